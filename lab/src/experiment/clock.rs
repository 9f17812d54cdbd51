// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whose time runs are made in: this machine's, or that of a guest.

use std::str::FromStr;
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

impl FromStr for Shard {
    type Err = String;

    /// `2/8`: the second of eight.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse::<usize>().ok()?, count.parse::<usize>().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index: index - 1, count }),
            _ => Err(format!("{text:?} is not a shard: write I/N with I from 1 to N, for instance 1/4")),
        }
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
    fn shards_are_written_from_one() {
        assert_eq!("2/8".parse(), Ok(Shard { index: 1, count: 8 }));
        for bad in ["0/4", "5/4", "1", "a/b", "1/0", "", "1/2/3"] {
            let error = bad.parse::<Shard>().unwrap_err();
            assert!(error.contains(&format!("{bad:?}")) && error.contains("1 to N"), "{error}");
        }
    }

    #[test]
    fn the_machines_clock_names_its_kernel() {
        let origin = Clock::Machine.origin();
        assert_eq!(origin.clock, "machine");
        assert!(!origin.kernel.is_empty() && origin.qemu.is_none());
    }
}
