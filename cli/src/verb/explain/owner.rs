//! The sockets of a process and of its children.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use onramp_net::sock_diag::SockDiag;

use super::namespace_of;
use crate::failure::Usage;

/// A process.
pub(super) struct Owner {
    pid: i32,
    /// Inodes of the sockets that it and its children had when they were read last.
    inodes: HashSet<u32>,
}

impl Owner {
    /// Of a process that was named.
    ///
    /// # Errors
    /// There is none, or its descriptors are not this user's to read.
    pub fn of(pid: i32) -> anyhow::Result<Self> {
        let path = PathBuf::from(format!("/proc/{pid}/fd"));
        match fs::read_dir(&path) {
            Ok(_) => Ok(Self { pid, inodes: HashSet::new() }),
            Err(error) if !Path::new(&format!("/proc/{pid}")).exists() => {
                Err(Usage::error(format!("--pid {pid}: there is no such process ({error})")))
            }
            Err(source) => Err(onramp_loader::Error::Io { action: "list", path, source }.into()),
        }
    }

    /// Of a command that was started.
    pub fn of_child(pid: u32) -> Self {
        Self { pid: pid as i32, inodes: HashSet::new() }
    }

    /// A netlink socket in its network namespace.
    pub fn diag(&self) -> anyhow::Result<SockDiag> {
        Ok(match namespace_of(self.pid)? {
            Some(namespace) => namespace.run(SockDiag::open)??,
            None => SockDiag::open()?,
        })
    }

    /// Reads anew which sockets there are. Those of a process that has just ended are missing.
    pub fn refresh(&mut self) {
        self.inodes = family(self.pid).into_iter().flat_map(sockets).collect();
    }

    pub fn has(&self, inode: u32) -> bool {
        self.inodes.contains(&inode)
    }
}

/// A process and its children, their children included.
fn family(pid: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for child in processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent(child) {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(one) = family.get(at) {
        family.extend(children.remove(one).unwrap_or_default());
        at += 1;
    }
    family
}

/// `None`: it has ended.
fn parent(pid: i32) -> Option<i32> {
    parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// proc_pid_stat(5), field 4: the name before may have spaces and parentheses in it.
fn parent_in(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Inodes of its sockets: `socket:[N]`.
fn sockets(pid: i32) -> Vec<u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_process_has_its_sockets_and_those_of_its_children() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = link.to_str().unwrap().trim_matches(|sign: char| !sign.is_ascii_digit()).parse().unwrap();
        let this = std::process::id() as i32;
        let mut owner = Owner::of(this).unwrap();
        assert!(!owner.has(inode));
        owner.refresh();
        assert!(owner.has(inode));
        assert!(family(parent(this).unwrap()).contains(&this));
        assert_eq!(parent_in("42 (a) (b 1) S 7 42 42 0"), Some(7));
        assert!(Owner::of(i32::MAX).is_err());
    }
}
