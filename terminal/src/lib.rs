// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the programs say things with. Data goes to stdout, the log and errors to stderr.
//!
//! * [`program`]: the frame of a program: command line, log, exit code.
//! * [`global`]: the options of every verb.
//! * [`output`]: text and JSON on stdout, and sentences on stderr; [`terminal`]: the same sieve for a stream.
//! * [`table`]: aligned text; [`units`]: quantities as people write and read them; [`html`]: text in pages.
//! * [`failure`]: exit codes, and errors as one sentence.
//! * [`target`]: files that verbs write; [`signals`]: those that end a verb; [`companion`]: the other program.
//! * [`completions`]: completion scripts of a program; [`manual`]: its manual pages.
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "text goes out by output, which shows what would steer a terminal"
)]

pub mod companion;
pub mod completions;
pub mod failure;
pub mod global;
pub mod html;
pub mod manual;
pub mod output;
pub mod program;
pub mod signals;
mod stdout;
pub mod table;
pub mod target;
pub mod terminal;
pub mod units;
