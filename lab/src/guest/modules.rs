// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Modules of a kernel, with what they need, in the order to load them.

use std::fs;
use std::path::{Path, PathBuf};

use super::{GuestError, Kernel, compressed};

/// A module, as it is loaded.
#[derive(Debug)]
pub(super) struct Module {
    pub name: String,
    pub content: Vec<u8>,
}

/// The modules of a kernel.
pub(super) struct Modules<'a> {
    kernel: &'a Kernel,
    built_in: Vec<String>,
    files: Vec<PathBuf>,
}

impl<'a> Modules<'a> {
    /// Finds them.
    ///
    /// # Errors
    /// [`GuestError::File`] where they cannot be listed.
    pub fn of(kernel: &'a Kernel) -> Result<Self, GuestError> {
        let list = kernel.modules.join("modules.builtin");
        let built_in = fs::read_to_string(&list).map_err(GuestError::file("read", &list))?;
        let mut files = Vec::new();
        walk(&kernel.modules, &mut files)?;
        Ok(Self { kernel, built_in: built_in.lines().filter_map(name_of).collect(), files })
    }

    /// Those of these names and those they need, needed ones first. Built-in ones are left out.
    ///
    /// # Errors
    /// [`GuestError::Module`] where the kernel does not have one.
    pub fn load_order(&self, names: &[&str]) -> Result<Vec<Module>, GuestError> {
        let mut order = Vec::new();
        for name in names {
            self.add(name, &mut order)?;
        }
        Ok(order)
    }

    /// See [`controls`].
    pub fn controls(&self) -> Vec<String> {
        let in_ipv4 =
            self.files.iter().filter(|file| file.parent().is_some_and(|place| place.ends_with("net/ipv4")));
        let names = in_ipv4.filter_map(|file| name_of(&file.to_string_lossy()));
        let controls = names.filter_map(|name| Some(name.strip_prefix("tcp_")?.to_owned()));
        let mut controls: Vec<String> = controls.filter(|name| name != "diag").collect();
        controls.sort();
        controls
    }

    fn add(&self, name: &str, order: &mut Vec<Module>) -> Result<(), GuestError> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || order.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let file = self.files.iter().find(|file| name_of(&file.to_string_lossy()).as_ref() == Some(&name));
        let release = &self.kernel.release;
        let file = file.ok_or_else(|| GuestError::Module { release: release.clone(), name: name.clone() })?;
        let content = content(file)?;
        for needed in needed(&content) {
            self.add(&needed, order)?;
        }
        order.push(Module { name, content });
        Ok(())
    }
}

/// Module of a congestion control of the kernel.
pub(super) fn of_control(name: &str) -> String {
    format!("tcp_{name}")
}

/// The congestion controls that a kernel has as modules, by name, in order.
///
/// # Errors
/// [`GuestError::File`] where its modules cannot be read.
pub fn controls(kernel: &Kernel) -> Result<Vec<String>, GuestError> {
    Ok(Modules::of(kernel)?.controls())
}

/// `tcp_diag` of `kernel/net/ipv4/tcp-diag.ko.xz`: dashes and underscores are one in names of modules.
fn name_of(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    Some(file.split_once(".ko")?.0.replace('-', "_"))
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), GuestError> {
    let failed = || GuestError::file("read", directory);
    for entry in fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_type().map_err(failed())?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The module itself, decompressed.
fn content(file: &Path) -> Result<Vec<u8>, GuestError> {
    let content = fs::read(file).map_err(GuestError::file("read", file))?;
    let Some(format) = compressed::format(&content) else { return Ok(content) };
    let mut module = Vec::new();
    let (read, failure) = format.read(&content, |decompressed| decompressed.read_to_end(&mut module))?;
    match failure.or_else(|| Some(read.err()?.to_string())) {
        Some(message) => Err(format.failed(format!("{}: {message}", file.display()))),
        None => Ok(module),
    }
}

/// What `depends=` in the module's information names.
fn needed(content: &[u8]) -> Vec<String> {
    let names = information(content, "depends").unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The release of the kernel that a module is for: the first word of `vermagic=` in its information.
pub(super) fn release_of(content: &[u8]) -> Option<String> {
    information(content, "vermagic")?.split(' ').next().map(str::to_owned)
}

/// What a module's information says of a key.
fn information(content: &[u8], key: &str) -> Option<String> {
    let key = format!("\0{key}=");
    let at = memchr::memmem::find(content, key.as_bytes())? + key.len();
    let text = content[at..].split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel whose modules are text.
    fn kernel(directory: &Path) -> Kernel {
        let ipv4 = directory.join("kernel/net/ipv4");
        fs::create_dir_all(&ipv4).unwrap();
        fs::write(ipv4.join("tcp_diag.ko"), b"\x7fELF\0license=GPL\0depends=inet_diag\0").unwrap();
        fs::write(ipv4.join("inet-diag.ko"), b"\x7fELF\0depends=\0").unwrap();
        for name in ["tcp_yeah.ko.xz", "tcp_hybla.ko", "inet_lro.ko"] {
            fs::write(ipv4.join(name), b"").unwrap();
        }
        fs::write(directory.join("modules.builtin"), "kernel/drivers/net/tun.ko\n").unwrap();
        let vmlinuz = directory.join("vmlinuz");
        Kernel { release: "1.0".into(), vmlinuz, modules: directory.into(), processor: String::new() }
    }

    #[test]
    fn needed_modules_come_first_and_built_in_ones_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path());
        let order = Modules::of(&kernel).unwrap().load_order(&["tcp_diag", "tun", "inet_diag"]).unwrap();
        let names: Vec<_> = order.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["inet_diag", "tcp_diag"]);
    }

    #[test]
    fn congestion_controls_are_found_by_their_modules() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(controls(&kernel(directory.path())).unwrap(), ["hybla", "yeah"]);
    }

    #[test]
    fn a_module_that_the_kernel_lacks_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path());
        let error = Modules::of(&kernel).unwrap().load_order(&["veth"]).unwrap_err().to_string();
        assert!(error.contains("veth"), "{error}");
    }
}
