// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whose time runs are made in: this machine's, or that of a guest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::guest::Image;

/// Whose time runs are made in.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// This machine's: who else uses it has a part in every figure.
    #[default]
    Machine,
    /// A guest's, one for each run: the same on every machine.
    Virtual(Arc<Guests>),
}

/// How guests are made.
#[derive(Debug)]
pub struct Guests {
    /// What they boot.
    pub image: Image,
    /// QEMU's version.
    pub qemu: String,
    /// Further words for the program in the guest, such as what it is to collect.
    pub words: Vec<String>,
    /// Make runs anew that have been made before.
    pub fresh: bool,
    /// Which runs are to be made here; those of others are taken where they have been made.
    pub shard: Shard,
    /// After so many seconds of this machine a guest is given up.
    pub seconds: u64,
}

/// One of several equal parts of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// How many there are, 1 or more.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether a run belongs to it.
    pub fn has(self, run: usize) -> bool {
        run % self.count == self.index
    }
}

/// Where a result was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `machine` or `virtual`; empty in results that are older than this field, which were made in a machine's time.
    #[serde(default)]
    pub clock: String,
    /// Release of the kernel whose TCP was measured.
    #[serde(default)]
    pub kernel: String,
    /// Version of QEMU, in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu: Option<String>,
    /// SHA-256 of all that guests boot (kernel, this program, file system), in virtual time: with the same, the same
    /// seed and the same QEMU, digests are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

impl Clock {
    /// What results say of it.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Machine => {
                let kernel = nix::sys::utsname::uname();
                let kernel = kernel.map(|kernel| kernel.release().to_string_lossy().into_owned());
                Origin { clock: "machine".into(), kernel: kernel.unwrap_or_default(), ..Origin::default() }
            }
            Self::Virtual(guests) => Origin {
                clock: "virtual".into(),
                kernel: guests.image.kernel().release.clone(),
                qemu: Some(guests.qemu.clone()),
                image: Some(guests.image.digest().to_owned()),
            },
        }
    }

    /// Whether a run that is made again can end in another way.
    pub(super) fn varies(&self) -> bool {
        matches!(self, Self::Machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_every_run_once() {
        let shards: Vec<_> = (0..3).map(|index| Shard { index, count: 3 }).collect();
        for run in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1);
            assert!(Shard::WHOLE.has(run));
        }
    }

    #[test]
    fn the_machines_clock_names_its_kernel() {
        let origin = Clock::Machine.origin();
        assert_eq!(origin.clock, "machine");
        assert!(!origin.kernel.is_empty() && origin.qemu.is_none());
    }
}
