// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The kernel inside a bzImage, decompressed here: a guest would take many times as long for it.
//!
//! Offsets are those of Documentation/arch/x86/boot.rst of the kernel.

use std::path::Path;

use super::{GuestError, compressed};

/// The release that it names in its header (`kernel_version`), `6.12.107+deb13-cloud-amd64`; `None`: not a bzImage.
pub(super) fn release(image: &[u8]) -> Option<String> {
    image.get(0x202..0x206).filter(|magic| *magic == b"HdrS")?;
    let at = number(image, 0x20e, 2).filter(|at| *at > 0)?;
    let text = image.get(at + 0x200..)?.split(|byte| *byte == 0 || *byte == b' ').next()?;
    String::from_utf8(text.to_vec()).ok().filter(|text| !text.is_empty())
}

/// The ELF file in it, which QEMU boots directly.
///
/// # Errors
/// [`GuestError`] where it is not a bzImage, or its compression is unknown or not installed.
pub(super) fn vmlinux(image: &[u8], path: &Path) -> Result<Vec<u8>, GuestError> {
    let incomplete =
        |missing| GuestError::Incomplete { directory: path.parent().unwrap_or(path).into(), missing };
    let payload = payload(image).ok_or_else(|| incomplete("vmlinuz that is a bzImage"))?;
    let format = compressed::format(payload)
        .ok_or_else(|| incomplete("vmlinuz compressed by lz4, zstd, xz or gzip"))?;
    let mut elf = Vec::new();
    // Some say of what follows the kernel that it is no archive.
    let (read, _) = format.read(payload, |decompressed| decompressed.read_to_end(&mut elf))?;
    read.map_err(|error| format.failed(error.to_string()))?;
    if elf.starts_with(b"\x7fELF") { Ok(elf) } else { Err(incomplete("vmlinuz with an ELF file in it")) }
}

/// The compressed kernel, without the length that follows it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    release(image)?;
    // 0 stands for 4.
    let sectors = image.get(0x1f1).map(|sectors| usize::from(if *sectors == 0 { 4 } else { *sectors }))?;
    let begin = (sectors + 1) * 512 + number(image, 0x248, 4)?;
    let length = number(image, 0x24c, 4)?.checked_sub(4)?;
    image.get(begin..begin.checked_add(length)?)
}

fn number(image: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(image.get(at..at + bytes)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// A bzImage around this payload.
    pub fn image(release: &str, payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0xa00];
        image[0x1f1] = 4;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        let version = format!("{release} (me)");
        image[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend(payload);
        image.extend([0; 4]);
        image
    }

    /// What a program makes of its standard input.
    pub fn piped(program: &str, argument: &str, bytes: &[u8]) -> Vec<u8> {
        let mut child = Command::new(program)
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut stdin = child.stdin.take().unwrap();
        let written = bytes.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&written));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{program}");
        output.stdout
    }

    #[test]
    fn the_kernel_in_it_is_decompressed() {
        let image = image("6.12.0-test", &piped("gzip", "-c", b"\x7fELF, a kernel"));
        assert_eq!(release(&image).unwrap(), "6.12.0-test");
        assert_eq!(vmlinux(&image, Path::new("vmlinuz")).unwrap(), b"\x7fELF, a kernel");
    }

    #[test]
    fn what_is_not_a_kernel_is_refused_with_the_reason() {
        let says = |image: &[u8]| vmlinux(image, Path::new("here/vmlinuz")).unwrap_err().to_string();
        assert!(says(b"text").contains("bzImage"));
        assert!(says(&image("6.12.0-test", b"unknown")).contains("lz4, zstd, xz or gzip"));
        let mut cut = image("6.12.0-test", b"\x1f\x8b");
        cut.truncate(0xa00);
        assert!(says(&cut).contains("bzImage"), "cut short");
    }
}
