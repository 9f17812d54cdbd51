// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The kernel inside a bzImage, decompressed here: a guest would take many times as long for it.
//!
//! Offsets are those of Documentation/arch/x86/boot.rst of the kernel.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{GuestError, programs};

/// What a compressed kernel begins with, the program that decompresses it, and the Debian package that has that.
const FORMATS: [(&[u8], &str, &str); 4] = [
    (&[0x02, 0x21, 0x4c, 0x18], "lz4", "lz4"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz", "xz-utils"),
    (&[0x1f, 0x8b], "gzip", "gzip"),
];

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
    let format = FORMATS.iter().find(|(magic, ..)| payload.starts_with(magic));
    let (_, program, package) =
        format.ok_or_else(|| incomplete("vmlinuz compressed by lz4, zstd, xz or gzip"))?;
    let elf = decompress(payload, program, package)?;
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

fn decompress(payload: &[u8], program: &'static str, package: &'static str) -> Result<Vec<u8>, GuestError> {
    let failed = |message: String| GuestError::Run { program: program.into(), message };
    let mut child = Command::new(programs::find(program, package)?)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Both pipes at once, or both sides would wait. It may end before it has read all.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(payload)));
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        // Some say of what follows the kernel that it is no archive.
        if output.stdout.is_empty() {
            Err(failed("it cannot decompress the kernel".into()))
        } else {
            Ok(output.stdout)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage around this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0xa00];
        image[0x1f1] = 4;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x310].copy_from_slice(b"6.12.0-test (me)");
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend(payload);
        image.extend([0; 4]);
        image
    }

    #[test]
    fn the_kernel_in_it_is_decompressed() {
        // gzip of "\x7fELF".
        let mut gzip =
            Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        gzip.stdin.take().unwrap().write_all(b"\x7fELF, a kernel").unwrap();
        let payload = gzip.wait_with_output().unwrap().stdout;
        let image = image(&payload);
        assert_eq!(release(&image).unwrap(), "6.12.0-test");
        assert_eq!(vmlinux(&image, Path::new("vmlinuz")).unwrap(), b"\x7fELF, a kernel");
    }

    #[test]
    fn what_is_not_a_kernel_is_refused_with_the_reason() {
        let says = |image: &[u8]| vmlinux(image, Path::new("here/vmlinuz")).unwrap_err().to_string();
        assert!(says(b"text").contains("bzImage"));
        assert!(says(&image(b"unknown")).contains("lz4, zstd, xz or gzip"));
        let mut cut = image(b"\x1f\x8b");
        cut.truncate(0xa00);
        assert!(says(&cut).contains("bzImage"), "cut short");
    }
}
