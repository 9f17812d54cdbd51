// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Finding every network namespace of the host, by the three things that keep one alive and can be seen: a bind
//! mount, a process, a descriptor.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::{Namespace, NamespaceError};
use crate::mounts::{self, Mount};

/// Where network namespaces were found, none of them held open: a host may have more of them than a process may have
/// descriptors.
#[derive(Debug, Default)]
pub struct Survey {
    /// By inode, the most telling place first.
    places: BTreeMap<u64, Vec<Place>>,
    refused: BTreeMap<(&'static str, i32), Refused>,
}

/// A file that stands for a namespace.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    label: String,
}

/// Looks that failed for the same reason.
#[derive(Debug)]
struct Refused {
    times: usize,
    first: String,
}

impl Survey {
    /// Looks everywhere.
    pub(super) fn take() -> Result<Self, NamespaceError> {
        let mut survey = Self::default();
        let mounts = mounts::of_process(None)
            .map_err(|source| NamespaceError::List { path: "/proc/thread-self/mountinfo".into(), source })?;
        for (inode, path) in mount_points(mounts) {
            survey.add(inode, Place { label: path.display().to_string(), path });
        }
        let pids = pids()?;
        for pid in &pids {
            let place = PathBuf::from(format!("/proc/{pid}/ns/net"));
            survey.look("network namespace of", *pid, &place, || format!("pid {pid}"));
        }
        for pid in &pids {
            let directory = format!("/proc/{pid}/fd");
            let descriptors = match fs::read_dir(directory) {
                Ok(descriptors) => descriptors,
                Err(error) => {
                    survey.refuse("descriptors of", *pid, &error);
                    continue;
                }
            };
            for descriptor in descriptors.flatten() {
                let number = descriptor.file_name().to_string_lossy().into_owned();
                survey.look("a descriptor of", *pid, &descriptor.path(), || format!("pid {pid} fd {number}"));
            }
        }
        Ok(survey)
    }

    /// The namespaces, each opened when it is asked for, in order of inode, with the most telling label found. Those
    /// that have ended meanwhile are left out; what cannot be opened for another reason is an error.
    pub fn namespaces(&self) -> impl Iterator<Item = Result<Namespace, NamespaceError>> {
        self.places.iter().filter_map(|(inode, places)| open(*inode, places).transpose())
    }

    /// What could not be looked into, so that namespaces may have been missed: a sentence for each reason.
    pub fn unseen(&self) -> Vec<String> {
        let sentence = |((what, errno), refused): (&(&'static str, i32), &Refused)| {
            let why = io::Error::from_raw_os_error(*errno);
            let others = match refused.times {
                1 => String::new(),
                times => format!(" and {} other processes", times - 1),
            };
            format!("{what} {}{others}: {why}", refused.first)
        };
        self.refused.iter().map(sentence).collect()
    }

    fn add(&mut self, inode: u64, place: Place) {
        self.places.entry(inode).or_default().push(place);
    }

    /// Adds what `link` (a magic link below /proc) points to. Only the link is read, nothing opened: a FIFO would block,
    /// a device might act.
    fn look(&mut self, what: &'static str, pid: u32, link: &Path, label: impl FnOnce() -> String) {
        match fs::read_link(link) {
            Ok(target) => {
                if let Some(inode) = inode_of(target.as_os_str().as_bytes()) {
                    self.add(inode, Place { path: link.to_owned(), label: label() });
                }
            }
            Err(error) => self.refuse(what, pid, &error),
        }
    }

    /// A process may end at any time; that is no refusal.
    fn refuse(&mut self, what: &'static str, pid: u32, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(0);
        if !ended(errno) {
            self.refused
                .entry((what, errno))
                .or_insert_with(|| Refused { times: 0, first: format!("process {pid}") })
                .times += 1;
        }
    }
}

/// Opens a namespace by the first of its places that still stands for it; `None`: there is none any more.
fn open(inode: u64, places: &[Place]) -> Result<Option<Namespace>, NamespaceError> {
    for Place { path, label } in places {
        match Namespace::open(path) {
            // What the place stood for may have been replaced: trust what is open now.
            Ok(mut namespace) if namespace.inode == inode => {
                namespace.label = Some(label.clone());
                return Ok(Some(namespace));
            }
            Ok(_) | Err(NamespaceError::NotANamespace { .. }) => {}
            Err(NamespaceError::Open { source, .. }) if ended(source.raw_os_error().unwrap_or(0)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// What /proc says of a process, or of a descriptor, that has gone.
fn ended(errno: i32) -> bool {
    [Errno::ENOENT, Errno::ESRCH].contains(&Errno::from_raw(errno))
}

fn pids() -> Result<Vec<u32>, NamespaceError> {
    let path = Path::new("/proc");
    let entries = fs::read_dir(path).map_err(|source| NamespaceError::List { path: path.into(), source })?;
    let mut pids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// `net:[4026531840]` to its number.
fn inode_of(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"net:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Mount points of network namespaces, those of `ip netns` first because their names are the ones people know.
fn mount_points(mounts: Vec<Mount>) -> Vec<(u64, PathBuf)> {
    let network = |mount: Mount| Some((inode_of(mount.root.as_os_str().as_bytes())?, mount.point));
    let mut paths: Vec<_> = mounts.into_iter().filter_map(network).collect();
    paths.sort_by_key(|(_, path)| !path.starts_with("/run/netns"));
    paths
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
            mount_points(mounts::parse(text)),
            [
                (4_026_532_002, PathBuf::from("/run/netns/blue")),
                (4_026_532_001, PathBuf::from("/run/docker/netns/a b"))
            ]
        );
    }

    #[test]
    fn refusals_are_counted_by_reason_and_what_has_ended_is_none() {
        let mut survey = Survey::default();
        let refusal = |errno: Errno| io::Error::from_raw_os_error(errno as i32);
        for pid in [1, 2, 30] {
            survey.refuse("descriptors of", pid, &refusal(Errno::EACCES));
        }
        survey.refuse("descriptors of", 4, &refusal(Errno::EMFILE));
        survey.refuse("descriptors of", 5, &refusal(Errno::ENOENT));
        survey.refuse("network namespace of", 6, &refusal(Errno::ESRCH));
        assert_eq!(
            survey.unseen(),
            [
                "descriptors of process 1 and 2 other processes: Permission denied (os error 13)",
                "descriptors of process 4: Too many open files (os error 24)"
            ]
        );
    }

    #[test]
    fn a_place_that_stands_for_another_namespace_now_is_passed_over() {
        let here = Namespace::current().unwrap();
        let place = |path: &str| Place { path: path.into(), label: path.into() };
        let own = "/proc/self/ns/net";
        let found = open(here.inode, &[place("/proc/0/ns/net"), place("/proc/self/ns/mnt"), place(own)]);
        assert_eq!(found.unwrap().unwrap().label(), Some(own));
        assert!(open(here.inode + 1, &[place(own)]).unwrap().is_none());
        let file = tempfile::tempdir().unwrap();
        let looped = file.path().join("loop");
        std::os::unix::fs::symlink(&looped, &looped).unwrap();
        let error = open(here.inode, &[Place { path: looped, label: "loop".into() }]).unwrap_err();
        assert!(matches!(error, NamespaceError::Open { .. }), "{error}");
    }
}
