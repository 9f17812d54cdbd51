// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The guest's file system as an archive that Linux unpacks at boot: cpio in its "newc" form
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).
//!
//! Equal contents give equal bytes: no times, no owners, entries in the order in which they were added, numbered from 1.

use std::collections::BTreeSet;
use std::path::Path;

const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
const TRAILER: &str = "TRAILER!!!";

/// An archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Archive {
    /// A directory, and those above it.
    pub fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return;
        }
        self.parent(path);
        self.entry(path, DIRECTORY | 0o755, &[]);
        self.directories.insert(path.to_owned());
    }

    /// A file, executable or not; one that is there already stays as it is.
    pub fn file(&mut self, path: &str, executable: bool, content: &[u8]) {
        let path = path.trim_matches('/');
        if !self.files.insert(path.to_owned()) {
            return;
        }
        self.parent(path);
        self.entry(path, REGULAR | if executable { 0o755 } else { 0o644 }, content);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        let path = path.trim_matches('/');
        if self.files.insert(path.to_owned()) {
            self.parent(path);
            self.entry(path, SYMLINK | 0o777, target.as_bytes());
        }
    }

    /// Whether there is such a file or link.
    pub fn contains(&self, path: &str) -> bool {
        self.files.contains(path.trim_matches('/'))
    }

    /// All of it, with the trailer. Linux takes several archives, one after the other.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn parent(&mut self, path: &str) {
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = content.len() as u32;
        let name = path.len() as u32 + 1;
        // inode, mode, owner, group, links, time, size, device (2), device of the node (2), length of the name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes().chain([0]));
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.file("/usr/bin/true", true, b"\x7fELF");
        archive.file("usr/bin/true", true, b"another");
        archive.link("bin", "usr/bin");
        assert!(archive.contains("/usr/bin/true") && !archive.contains("/usr/bin/false"));
        archive.finish()
    }

    #[test]
    fn equal_contents_give_equal_bytes_of_whole_blocks() {
        assert_eq!(example(), example());
        assert_eq!(example().len() % 512, 0);
    }

    #[test]
    fn a_path_has_its_directories_before_it_and_is_there_once() {
        let bytes = example();
        let text = String::from_utf8_lossy(&bytes);
        // A name follows the last field of its header, eight zeros.
        let at = |name: &str| text.find(&format!("00000000{name}\0")).unwrap();
        assert!(at("usr") < at("usr/bin") && at("usr/bin") < at("usr/bin/true"));
        assert!(at("usr/bin/true") < at("bin"));
        assert!(text.contains("\u{7f}ELF") && !text.contains("another"));
        assert!(text.contains("070701") && text.contains(TRAILER));
    }
}
