// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is in a guest's memory when it boots: this program as its first process, other programs with the libraries they
//! need, modules of its kernel, and files.

use std::fs;
use std::path::{Path, PathBuf};

use onramp_files::bounded;
use sha2::{Digest, Sha256};

use super::archive::Archive;
use super::modules::{Module, Modules, of_control};
use super::{GuestError, Kernel, bzimage, pace, programs};
use crate::digest::hex;

/// Where this program is in a guest.
pub const SELF: &str = "/bin/onramp-lab";
/// Modules, in the order of a list of their names.
pub(super) const MODULES: &str = "/modules";
/// That list: what is loaded at boot. With a dot and the name of a congestion control behind it, what that needs.
pub(super) const ORDER: &str = "/modules/order";
/// Mount points, and what programs expect to be there.
const DIRECTORIES: [&str; 9] = ["dev", "etc", "out", "proc", "root", "run", "sys", "tmp", "var/tmp"];

/// A file of the host, and where it is in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// On the host.
    pub from: PathBuf,
    /// In the guest, absolute.
    pub to: String,
}

/// A kernel, and the file system it boots with.
#[derive(Debug)]
pub struct Image {
    kernel: Kernel,
    vmlinux: Vec<u8>,
    archive: Vec<u8>,
    digest: String,
}

impl Image {
    /// An image with these modules of the kernel, which are loaded at boot, and those of its congestion controls, which
    /// [`load_control`](super::load_control) loads, programs of the host by name or path, and files. A program is in
    /// /bin, its libraries are where they are on the host; this program is [`SELF`].
    ///
    /// # Errors
    /// [`GuestError`] naming what is missing.
    pub fn build(
        kernel: Kernel,
        loaded: &[&str],
        programs: &[&str],
        files: &[Placed],
    ) -> Result<Self, GuestError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(GuestError::Architecture(std::env::consts::ARCH));
        }
        let mut archive = Archive::default();
        DIRECTORIES.iter().for_each(|directory| archive.directory(directory));
        let this = std::env::current_exe().map_err(GuestError::file("read", "/proc/self/exe"))?;
        add_program(&mut archive, SELF, &this)?;
        for name in programs {
            let path = programs::find(name, package(name))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            add_program(&mut archive, &format!("/bin/{name}"), &path)?;
        }
        for Placed { from, to } in files {
            add_program(&mut archive, to, from)?;
        }
        if !archive.contains("/bin/sh") && archive.contains("/bin/busybox") {
            archive.link("/bin/sh", "/bin/busybox");
        }
        let modules = Modules::of(&kernel)?;
        let at_boot = modules.load_order(loaded)?;
        for control in modules.controls() {
            let module = of_control(&control);
            if !at_boot.iter().any(|loaded| loaded.name == module) {
                add_modules(&mut archive, &format!("{ORDER}.{control}"), &modules.load_order(&[&module])?);
            }
        }
        add_modules(&mut archive, ORDER, &at_boot);
        let archive = archive.finish();
        let vmlinuz = fs::read(&kernel.vmlinuz).map_err(GuestError::file("read", &kernel.vmlinuz))?;
        let mut vmlinux = bzimage::vmlinux(&vmlinuz, &kernel.vmlinuz)?;
        pace::quicken(&mut vmlinux, &kernel.release)?;
        let digest =
            Sha256::new().chain_update(&vmlinux).chain_update(&kernel.processor).chain_update(&archive);
        let digest = hex(&digest.finalize());
        Ok(Self { kernel, vmlinux, archive, digest })
    }

    /// Its kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel as an ELF file.
    pub(super) fn vmlinux(&self) -> &[u8] {
        &self.vmlinux
    }

    /// The archive that the kernel unpacks at boot.
    pub(super) fn archive(&self) -> &[u8] {
        &self.archive
    }

    /// SHA-256 of kernel, processor and file system, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Modules, and the order in which they are loaded as a file of this name.
fn add_modules(archive: &mut Archive, order: &str, modules: &[Module]) {
    for module in modules {
        archive.file(&format!("{MODULES}/{}.ko", module.name), false, &module.content);
    }
    let names: String = modules.iter().map(|module| format!("{}\n", module.name)).collect();
    archive.file(order, false, names.as_bytes());
}

/// The Debian package of a program that is asked for by name.
fn package(name: &str) -> Option<&'static str> {
    match name {
        "ip" | "ss" | "tc" => Some("iproute2"),
        "busybox" => Some("busybox-static"),
        "iperf3" => Some("iperf3"),
        "curl" => Some("curl"),
        "jq" => Some("jq"),
        _ => None,
    }
}

/// Largest file that a guest is given, bytes.
const FILE_BYTES: u64 = 1 << 32;

/// A file with the libraries it needs, if it is a program.
fn add_program(archive: &mut Archive, to: &str, from: &Path) -> Result<(), GuestError> {
    let content = bounded::read(from, FILE_BYTES).map_err(GuestError::file("read", from))?;
    let is_elf = content.starts_with(b"\x7fELF");
    let executable = is_elf || content.starts_with(b"#!");
    if is_elf {
        for library in programs::libraries(from)? {
            let content = fs::read(&library).map_err(GuestError::file("read", &library))?;
            archive.file(&library.to_string_lossy(), true, without_debug(&content));
        }
    }
    archive.file(to, executable, without_debug(&content));
    Ok(())
}

/// A program up to the end of what is loaded of it: sections for debuggers come after, and are most of it. Tools that
/// list sections find their table missing; the kernel and the dynamic linker do not look at it.
fn without_debug(content: &[u8]) -> &[u8] {
    loaded_end(content).and_then(|end| content.get(..end)).unwrap_or(content)
}

/// The largest end of a segment in a 64-bit little-endian ELF file.
fn loaded_end(content: &[u8]) -> Option<usize> {
    let number = |at: usize, bytes: usize| {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(content.get(at..at + bytes)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    };
    content.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let ends = (0..count).map(|index| {
        let at = table.checked_add(index * size)?;
        number(at + 8, 8)?.checked_add(number(at + 32, 8)?)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max().filter(|end| *end > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_its_debug_sections_still_runs() {
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        let short = without_debug(&this);
        assert!(short.len() < this.len());
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("content"), short).unwrap();
        // A program that this process has written cannot be run while a child of another thread has inherited the open file.
        let run = "cp content program && chmod 755 program && exec ./program --list";
        let output =
            std::process::Command::new("sh").args(["-c", run]).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn what_is_no_program_stays_as_it_is() {
        assert_eq!(without_debug(b"text"), b"text");
        assert_eq!(without_debug(b"\x7fELF\x02\x01"), b"\x7fELF\x02\x01");
    }
}
