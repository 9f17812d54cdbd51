// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A processor of the host for each guest.
//!
//! QEMU emulates in one thread and keeps the time in another, and each time that the guest has nothing to do one hands
//! over to the other: 400,000 times in a download of 80 MB. On one processor that takes half of the time that it takes
//! across two, and what happens in the guest is the same.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// Taken until dropped, also by a kill.
pub(super) struct Processor {
    number: usize,
    _taken: UnixDatagram,
}

impl Processor {
    /// One of those that this process may use and no other guest has; `None`: there is none, and QEMU's threads run where
    /// the kernel lets them.
    pub fn take() -> Option<Self> {
        let ours = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let number = |number: &usize| ours.is_set(*number).unwrap_or(false);
        (0..CpuSet::count()).filter(number).find_map(|number| Some(Self { number, _taken: take(number)? }))
    }

    /// It alone.
    pub fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        // Its number was in such a set.
        let _ = set.set(self.number);
        set
    }
}

/// The name of a socket that is no file is gone with who has it. It counts in a network namespace.
fn take(number: usize) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("onramp-guest-processor-{number}")).ok()?;
    UnixDatagram::bind_addr(&name).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_guest_has_a_processor_of_its_own_as_long_as_there_are_any() {
        let ours = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let taken: Vec<Processor> = std::iter::from_fn(Processor::take).collect();
        let numbers: BTreeSet<usize> = taken.iter().map(|one| one.number).collect();
        assert_eq!(numbers.len(), taken.len());
        for one in &taken {
            let only = one.set();
            for number in 0..CpuSet::count() {
                assert_eq!(only.is_set(number).unwrap(), number == one.number);
            }
            assert!(ours.is_set(one.number).unwrap());
        }
        // Guests of others may have them all.
        if let Some(number) = numbers.first() {
            assert!(take(*number).is_none());
            drop(taken);
            // Another test's guest may have it first, or its child between fork and exec.
            let mut tries = 0..600;
            let restored = tries.any(|_| {
                std::thread::sleep(Duration::from_millis(100));
                take(*number).is_some()
            });
            assert!(restored);
        }
    }
}
