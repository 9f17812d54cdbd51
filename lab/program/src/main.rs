// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `onramp-lab`: the laboratory's program.
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "text goes out by onramp_terminal::output, which shows what would steer a terminal"
)]

mod arguments;
mod arm;
mod drawn;
mod follow;
mod progress;
mod verb;

use std::process::ExitCode;

use onramp_profiles::{lookup as profile, parameters as settings};
use onramp_terminal::{failure, global, output, program, signals as consumer, table, target, units};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    program::run::<Arguments>(std::env::args_os())
}
