// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `/proc/sys/net` of a namespace. The kernel decides by the network namespace of the thread that opens the file.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{Namespace, NamespaceError};

pub(super) fn get(namespace: &Namespace, name: &str) -> Result<String, NamespaceError> {
    let path = path_of(name)?;
    let read = namespace.run(|| fs::read_to_string(path))?;
    read.map(|value| value.trim_end().to_owned()).map_err(|source| failed(namespace, name, "read", source))
}

pub(super) fn set(namespace: &Namespace, name: &str, value: &str) -> Result<(), NamespaceError> {
    let path = path_of(name)?;
    // Not fs::write: that would create a file where a sysctl is missing, or try to.
    let write = |path| {
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        io::Write::write_all(&mut file, value.as_bytes())
    };
    namespace
        .run(|| write(path))?
        .map_err(|source| failed(namespace, name, &format!("write {value:?} to"), source))
}

fn failed(namespace: &Namespace, name: &str, action: &str, source: io::Error) -> NamespaceError {
    if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
        return NamespaceError::SysctlReadOnly { name: name.to_owned(), namespace: namespace.to_string() };
    }
    NamespaceError::Sysctl {
        action: action.to_owned(),
        name: name.to_owned(),
        namespace: namespace.to_string(),
        source,
    }
}

/// `net.ipv4.tcp_rmem` or `net/ipv4/tcp_rmem`, as for sysctl(8): if the first separator is a slash, dots are part
/// of a component (`net/ipv4/conf/eth0.1/rp_filter`).
fn path_of(name: &str) -> Result<PathBuf, NamespaceError> {
    let refuse = |reason| NamespaceError::SysctlName { name: name.to_owned(), reason };
    let separator = match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('/') => '/',
        Some(_) => '.',
        None => return Err(refuse("it has no separator")),
    };
    let mut path = PathBuf::from("/proc/sys");
    for (position, part) in name.split(separator).enumerate() {
        if position == 0 && part != "net" {
            return Err(refuse("only net.* belongs to a network namespace"));
        }
        // A slash becomes a dot in sysctl(8)'s dotted form, so that eth0/1 names the interface eth0.1.
        let part = if separator == '.' { part.replace('/', ".") } else { part.to_owned() };
        if part.is_empty() || part == "." || part == ".." || part.contains('\0') {
            return Err(refuse("it has an empty or relative component"));
        }
        path.push(part);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths() {
        let path = |name| path_of(name).unwrap().display().to_string();
        assert_eq!(path("net.ipv4.tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(path("net/ipv4/conf/eth0.1/rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
        assert_eq!(path("net.ipv4.conf.eth0/1.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
    }

    #[test]
    fn names_outside_net_are_refused() {
        for name in ["kernel.hostname", "net", "", "net..x", "net/../kernel/hostname", "net./.x", "net.a\0b"]
        {
            let error = path_of(name).unwrap_err().to_string();
            assert!(error.contains("is refused"), "{name}: {error}");
        }
    }
}
