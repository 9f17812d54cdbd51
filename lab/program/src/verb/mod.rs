// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The verbs, one file or folder each, and what some of them share.

mod bench;
mod clock;
mod common;
mod compare;
mod evaluate;
mod guest;
mod inside;
mod kernel;
mod matrix;
mod model;
mod once;
mod outside;
mod pairs;
mod plot;
mod population;
mod profile;
mod progress;
mod qlog;
mod recorder;
mod reproduce;
mod reproduction;
pub(crate) mod result;
mod series;
mod shell;
pub(crate) mod sim;
mod sweep;
pub(crate) mod sweeping;
mod transfer;
mod verify;

use clap::{Command, Subcommand};
use onramp_terminal::completions::Completions;
use onramp_terminal::manual::{Man, Manual};

use crate::output::Output;

/// A verb with its arguments; what `--help` says of it stands with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    New(outside::New),
    Build(outside::Build),
    Run(compare::RunOne),
    Compare(Box<compare::Compare>),
    Sweep(sweep::Sweep),
    Matrix(Box<matrix::Matrix>),
    Evaluate(evaluate::Evaluate),
    Reproduce(reproduce::Reproduce),
    Verify(verify::Verify),
    Shell(shell::Shell),
    Guest(guest::Guest),
    Kernel(kernel::Kernel),
    Sim(sim::Sim),
    Bench(bench::Bench),
    Model(model::Model),
    Profile(profile::Profile),
    Plot(plot::Plot),
    Qlog(qlog::Qlog),
    #[command(hide = true)]
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Inside(inside::Inside),
    #[command(hide = true)]
    Once(once::Once),
}

/// What its manual pages have in common.
const MANUAL: Manual = Manual {
    name: "onramp-lab",
    about: env!("CARGO_PKG_DESCRIPTION"),
    section: "1",
    see_also: "onramp(8), qemu(1)",
};

impl Verb {
    /// Does it; returns the exit code. `line` is the whole command line.
    pub fn run(self, line: fn() -> Command, output: &Output) -> anyhow::Result<u8> {
        match self {
            Self::New(verb) => verb.run(output),
            Self::Build(verb) => verb.run(output),
            Self::Run(verb) => verb.run(output),
            Self::Compare(verb) => verb.run(output),
            Self::Sweep(verb) => verb.run(output),
            Self::Matrix(verb) => verb.run(output),
            Self::Evaluate(verb) => verb.run(output),
            Self::Reproduce(verb) => verb.run(output),
            Self::Verify(verb) => verb.run(output),
            Self::Shell(verb) => verb.run(),
            Self::Guest(verb) => verb.run(output),
            Self::Kernel(verb) => verb.run(output),
            Self::Sim(verb) => verb.run(output),
            Self::Bench(verb) => verb.run(output),
            Self::Model(verb) => verb.run(output),
            Self::Profile(verb) => verb.run(output),
            Self::Plot(verb) => verb.run(),
            Self::Qlog(verb) => verb.run(),
            Self::Completions(verb) => verb.run("onramp-lab", output),
            Self::Man(verb) => verb.run(MANUAL, &line(), output),
            Self::Inside(_) => Ok(inside::run()),
            Self::Once(verb) => verb.run(),
        }
    }
}

/// Fails with the exit code for missing privileges instead of in the middle of a run.
fn require_root(verb: &'static str) -> anyhow::Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let capabilities = "CAP_SYS_ADMIN and CAP_NET_ADMIN";
    Err(onramp_loader::Error::Privilege { verb, capabilities }.into())
}
