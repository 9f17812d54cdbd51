//! `onramp lab`.

mod calibrate;
pub(super) mod clock;
mod common;
mod compare;
mod evaluate;
mod guest;
mod inside;
mod kernel;
mod matrix;
mod once;
mod pairs;
mod progress;
mod reproduce;
mod series;
mod shell;
mod sweep;
mod verify;

use clap::{Args, Subcommand};

use crate::output::Output;

/// Measure with real kernel TCP over an emulated link
///
/// Two network namespaces are joined by an emulator on two TUN devices; data flow from one to the other. Everything is
/// made for the run and gone with it. Runs are made in virtual time, each in a guest of its own (--clock virtual): the
/// same on every machine and under any load, without root. With --clock machine they are made here and now.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab run search
  onramp lab compare --arms cubic,plain,search --repetitions 5
  onramp lab sweep --paths 50 --arms cubic,bbr,ramp
  onramp lab shell --profile geo -- iperf3 -c 192.0.2.2
  onramp lab reproduce --all --quick
  onramp lab evaluate ramp --quick")]
pub(crate) struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(compare::RunOne),
    Compare(Box<compare::Compare>),
    Matrix(Box<matrix::Matrix>),
    Sweep(sweep::Sweep),
    Shell(shell::Shell),
    Calibrate(calibrate::Calibrate),
    Reproduce(reproduce::Reproduce),
    Evaluate(evaluate::Evaluate),
    Verify(verify::Verify),
    Guest(guest::Guest),
    Kernel(kernel::Kernel),
    #[command(hide = true)]
    Inside(inside::Inside),
    #[command(hide = true)]
    Once(once::Once),
}

impl Lab {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::Run(verb) => verb.run(output),
            Verb::Compare(verb) => verb.run(output),
            Verb::Matrix(verb) => verb.run(output),
            Verb::Sweep(verb) => verb.run(output),
            Verb::Shell(verb) => verb.run(),
            Verb::Calibrate(verb) => verb.run(output),
            Verb::Reproduce(verb) => verb.run(output),
            Verb::Evaluate(verb) => verb.run(output),
            Verb::Verify(verb) => verb.run(output),
            Verb::Guest(verb) => verb.run(output),
            Verb::Kernel(verb) => verb.run(output),
            Verb::Inside(_) => Ok(inside::run()),
            Verb::Once(verb) => verb.run(),
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
