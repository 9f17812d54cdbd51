//! `onramp`: slow-start exit algorithms on running hosts.
//!
//! Data goes to stdout, the log to stderr. Exit codes: see [`failure`].
#![cfg_attr(not(test), forbid(unsafe_code))]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "text goes out by crate::output, which shows what would steer a terminal"
)]

mod arguments;
mod basis;
mod consumer;
mod event_rows;
mod exit;
mod filter;
mod guard;
mod limits;
mod live;
mod settings;
mod verb;

use std::process::ExitCode;

use onramp_profiles::lookup as profile;
use onramp_terminal::{failure, global, output, program, table, target, units};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    program::run::<Arguments>(std::env::args_os())
}
