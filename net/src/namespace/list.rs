// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Finding every network namespace of the host, by the three things that keep one alive and can be seen: a bind
//! mount, a process, a descriptor.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Namespace, NamespaceError};

/// Namespaces by inode: each is opened once, and the first label wins.
type Found = BTreeMap<u64, Namespace>;

pub(super) fn all() -> Result<Vec<Namespace>, NamespaceError> {
    let mut found = Found::new();
    let mounts = Path::new("/proc/thread-self/mountinfo");
    let text = fs::read(mounts).map_err(|source| NamespaceError::List { path: mounts.into(), source })?;
    for path in mount_points(&text) {
        if let Ok(namespace) = Namespace::open(path) {
            found.entry(namespace.inode).or_insert(namespace);
        }
    }
    let pids = pids()?;
    for pid in &pids {
        add(&mut found, &PathBuf::from(format!("/proc/{pid}/ns/net")), || format!("pid {pid}"));
    }
    for pid in &pids {
        // A process may end, or not be ours to inspect, at any time: not an error of the list.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for descriptor in descriptors.flatten() {
            let number = descriptor.file_name().to_string_lossy().into_owned();
            add(&mut found, &descriptor.path(), || format!("pid {pid} fd {number}"));
        }
    }
    Ok(found.into_values().collect())
}

fn pids() -> Result<Vec<u32>, NamespaceError> {
    let path = Path::new("/proc");
    let entries = fs::read_dir(path).map_err(|source| NamespaceError::List { path: path.into(), source })?;
    let mut pids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Adds what `link` (a magic link below /proc) points to, unless it is known. Reading the link first spares
/// opening other files: a FIFO would block, a device might act.
fn add(found: &mut Found, link: &Path, label: impl FnOnce() -> String) {
    let Some(inode) = fs::read_link(link).ok().and_then(|target| inode_of(target.as_os_str().as_bytes()))
    else {
        return;
    };
    if found.contains_key(&inode) {
        return;
    }
    if let Ok(mut namespace) = Namespace::open(link) {
        // The descriptor may have been replaced between the two calls: trust what is open now.
        namespace.label = Some(label());
        found.entry(namespace.inode).or_insert(namespace);
    }
}

/// `net:[4026531840]` to its number.
fn inode_of(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"net:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Mount points of network namespaces in proc(5)'s mountinfo, those of `ip netns` first because their names are
/// the ones people know.
fn mount_points(mountinfo: &[u8]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            inode_of(root)?;
            Some(PathBuf::from(std::ffi::OsString::from_vec(unescape(point))))
        })
        .collect();
    paths.sort_by_key(|path| !path.starts_with("/run/netns"));
    paths
}

/// Undoes mountinfo's `\040` for a space and so on.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(value) if byte == b'\\' => {
                out.push(value);
                rest = &tail[3..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_mounts_are_recognised() {
        assert_eq!(inode_of(b"net:[4026531840]"), Some(4_026_531_840));
        assert_eq!(inode_of(b"mnt:[4026531840]"), None);
        assert_eq!(inode_of(b"net:[x]"), None);
        let text = b"22 1 0:21 / /proc rw - proc proc rw\n\
            90 1 0:4 net:[4026532001] /run/docker/netns/a\\040b rw shared:9 - nsfs nsfs rw\n\
            91 1 0:4 net:[4026532002] /run/netns/blue rw - nsfs nsfs rw\n\
            92 1 0:4 mnt:[4026532003] /run/mnt rw - nsfs nsfs rw\n\
            93 1\n";
        assert_eq!(
            mount_points(text),
            [PathBuf::from("/run/netns/blue"), PathBuf::from("/run/docker/netns/a b")]
        );
        assert_eq!(unescape(b"a\\134b\\"), b"a\\b\\");
    }
}
