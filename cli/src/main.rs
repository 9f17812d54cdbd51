//! `onramp`: slow-start exit algorithms on running hosts.
//!
//! Data goes to stdout, the log to stderr. Exit codes: see [`failure`].

mod ack_pairs;
mod arguments;
mod arm;
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
mod settings;
mod table;
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

fn main() -> ExitCode {
    let Arguments { global, verb } = Arguments::parse();
    log_to_stderr(&global);
    match verb.run(&Output::new(&global)) {
        Ok(code) => code.into(),
        Err(error) => {
            output::say(&format!("error: {}", failure::sentence(&error)));
            failure::code(&error).into()
        }
    }
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
        .with_writer(io::stderr)
        .with_ansi(global.color.applies_to(&io::stderr()))
        .without_time()
        .with_target(global.verbose > 0)
        .init();
}
