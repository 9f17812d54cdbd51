//! `onramp`: slow-start exit algorithms on running hosts.
//!
//! Data goes to stdout, the log to stderr. Exit codes: see [`failure`].
#![cfg_attr(not(test), forbid(unsafe_code))]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "text goes out by crate::output, which shows what would steer a terminal"
)]

mod ack_pairs;
mod arguments;
mod arm;
mod basis;
mod consumer;
mod event_rows;
mod failure;
mod filter;
mod follow;
mod global;
mod guard;
mod live;
mod output;
mod profile;
mod progress;
mod settings;
mod table;
mod target;
mod terminal;
mod units;
mod verb;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::arguments::Arguments;
use crate::global::Global;
use crate::output::Output;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    let Arguments { global, verb } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return told(&error),
    };
    log_to_stderr(&global);
    match verb.run(&Output::new(&global)) {
        Ok(code) => code.into(),
        Err(error) => {
            output::say(&format!("error: {}", failure::sentence(&error)));
            failure::code(&error).into()
        }
    }
}

/// Help and version as they are; what is wrong with the command line, which it quotes, as errors are.
fn told(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::say(error.to_string().trim_end());
        return failure::USAGE.into();
    }
    // A reader that has gone away has seen what it wanted.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// Warnings; with -v also what onramp does; with -vv libbpf's messages too.
fn log_to_stderr(global: &Global) {
    let levels = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "debug,libbpf=warn",
        (false, _) => "debug",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(levels))
        // What is logged quotes names and messages of others: all of it goes through the same sieve as errors.
        .with_writer(|| Terminal::new(io::stderr()))
        // It would be said on stderr, by a panic if that cannot be written.
        .log_internal_errors(false)
        .with_ansi(false)
        .without_time()
        .with_target(global.verbose > 0)
        .init();
}
