// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command line as a whole.

use clap::{CommandFactory, Parser};
use onramp_loader::algorithm::outside;
use onramp_terminal::completions::Candidate;
use onramp_terminal::program::CommandLine;

use crate::completions;
use crate::exit;
use crate::global::Global;
use crate::output::Output;
use crate::verb::Verb;

/// Measures what slow-start algorithms do: with real kernel TCP over an emulated link, in virtual time; with modelled TCP over
/// thousands of paths; and against what papers claim.
///
/// Over an emulated link two network namespaces are joined by an emulator on two TUN devices; data flow from one to the other.
/// Everything is made for the run and gone with it. Runs are made in virtual time, each in a guest of its own (--clock
/// virtual): the same on every machine and under any load, without root. With --clock machine they are made here and now.
#[derive(Debug, Parser)]
#[command(
    name = "onramp-lab",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not possible on this kernel, 4 privilege missing, \
                  5 partly done.\n\nExamples:
  onramp-lab run search
  onramp-lab compare --arms cubic,plain,search --repetitions 5
  onramp-lab sweep --paths 50 --arms cubic,bbr,ramp
  onramp-lab shell --profile geo -- iperf3 -c 192.0.2.2
  onramp-lab reproduce --all --quick
  onramp-lab evaluate ramp --quick"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

impl CommandLine for Arguments {
    const GONE: &'static [(&'static str, &'static str)] =
        &[("calibrate", "tests of the lab compare its link models with their closed forms")];

    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, output: &Output) -> anyhow::Result<u8> {
        outside::caught(|| self.verb.run(Self::command, output))?
    }

    fn exit_code(error: &anyhow::Error) -> u8 {
        exit::code(error)
    }

    fn values(name: &str, words: &[String], typed: &str) -> Vec<Candidate> {
        completions::values(name, words, typed)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use onramp_mutation::commands::check;

    use super::Arguments;

    /// A command as this program gets it, also where `onramp` executes this program for it.
    fn own(words: &[String]) -> Option<Vec<String>> {
        let rest = match (words.first()?.as_str(), words.get(1).map(String::as_str)) {
            ("onramp-lab", _) | ("onramp", Some("sim")) => &words[1..],
            ("onramp", Some("lab")) => &words[2..],
            _ => return None,
        };
        Some([&["onramp-lab".to_owned()], rest].concat())
    }

    #[test]
    fn examples_of_help_and_pages_are_commands_and_whatever_is_typed_is_understood_or_refused() {
        check::<Arguments>(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), 20, own);
    }
}
