// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Why an object from outside the tree is refused.

use std::io;
use std::path::PathBuf;

/// Why an object is refused.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what `onramp-lab build` makes.
    #[error("{} is no algorithm: {why}; `onramp-lab build NAME.h` makes one", path.display())]
    NoObject {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is for another ABI.
    #[error(
        "{} was built for ABI {version}, and this onramp has ABI {ours}: build it again with the onramp-lab of this version",
        path.display()
    )]
    Abi {
        /// Which.
        path: PathBuf,
        /// The ABI that it was built for.
        version: u32,
        /// The ABI of this program.
        ours: u32,
    },
    /// An algorithm of the tree has its name.
    #[error("onramp has an algorithm {name} of its own: give yours another name")]
    NameOfTheTree {
        /// The name.
        name: String,
    },
    /// A control of the kernel, or an arm of the simulator, has its name.
    #[error("{name} is a control of the kernel or the simulator's {name}: give yours another name")]
    NameOfAnother {
        /// The name.
        name: String,
    },
    /// Two objects have one name.
    #[error(
        "{} has the name {name}, as another object has ({}): give one of them another name, or detach that one first",
        origin.display(),
        other.display()
    )]
    NameTwice {
        /// The name.
        name: String,
        /// The second.
        origin: PathBuf,
        /// The first.
        other: PathBuf,
    },
    /// A function of it does at an ACK what the kernel's verifier refuses.
    #[error(
        "{}: {why}; the kernel would refuse it: a test in NAME_test.c with such ACKs shows where", path.display()
    )]
    Broken {
        /// Which.
        path: PathBuf,
        /// The function, and what it does.
        why: String,
    },
}
