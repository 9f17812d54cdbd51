// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The laboratory's program, `onramp-lab`; and what it simulates and reads, for callers in the same process ([`library`]).
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "text goes out by onramp_terminal::output, which shows what would steer a terminal"
)]

mod arguments;
mod arm;
mod completions;
mod drawn;
mod exit;
mod follow;
pub mod library;
mod progress;
mod scratch;
mod verb;

use std::ffi::OsString;
use std::process::ExitCode;

use onramp_profiles::{lookup as profile, parameters as settings};
use onramp_terminal::{failure, global, output, program, signals as consumer, table, target, units};

use crate::arguments::Arguments;

/// The whole of the program with these arguments, the first of which is its name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    program::run::<Arguments>(arguments)
}
