//! `onramp-lab sim`.

mod agree;
mod compare;
mod path;
mod reproduce;
mod sweep;
mod tune;
mod written;

use clap::{Args, Subcommand};

use crate::output::Output;
pub(crate) use compare::Compare;
pub(crate) use sweep::Sweep;

/// Simulate: the lab's link models and the algorithms' own code with modelled TCP, hundreds of times faster than time
///
/// What is modelled, what is not, and how far results are from those of the kernel: docs/simulator.md. The same
/// arguments give the same bytes on every machine. Needs no privilege, no guest and no kernel.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim run search --profile geo
  onramp sim compare --arms cubic,plain,search --profile leo -n 100
  onramp sim sweep --paths 1000
  onramp sim tune search --vary threshold_pct,look_back
  onramp sim reproduce --all
  onramp sim path recording --write-profile slow.toml
  onramp sim agree tests/golden/*.json")]
pub(crate) struct Sim {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(compare::RunOne),
    Compare(Compare),
    Sweep(Sweep),
    Tune(tune::Tune),
    Reproduce(reproduce::Reproduce),
    Path(path::Path),
    Agree(agree::Agree),
}

impl Sim {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::Run(verb) => verb.run(output),
            Verb::Compare(verb) => verb.run(output),
            Verb::Sweep(verb) => verb.run(output),
            Verb::Tune(verb) => verb.run(output),
            Verb::Reproduce(verb) => verb.run(output),
            Verb::Path(verb) => verb.run(output),
            Verb::Agree(verb) => verb.run(output),
        }
    }
}
