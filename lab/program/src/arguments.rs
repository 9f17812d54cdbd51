// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command line as a whole.

use clap::{CommandFactory, Parser};
use onramp_terminal::program::CommandLine;

use crate::failure;
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
    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, output: &Output) -> anyhow::Result<u8> {
        self.verb.run(Self::command, output)
    }

    fn exit_code(error: &anyhow::Error) -> u8 {
        failure::code(error, onramp_loader::Error::exit_code)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use onramp_mutation::commands::{of_help, of_pages, parse, parse_at_random, without_example};

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
    fn every_example_of_every_help_is_one_line_that_the_command_line_takes() {
        let examples = of_help::<Arguments>();
        let taken = parse::<Arguments>(&examples, own);
        assert!(examples.len() > 60 && taken >= examples.len() - 5, "{taken} of {}", examples.len());
    }

    #[test]
    fn every_command_of_a_page_is_one_that_the_command_line_takes() {
        let pages = of_pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let taken = parse::<Arguments>(&pages, own);
        assert!(taken >= 20, "{taken}");
    }

    #[test]
    fn every_verb_that_does_something_has_an_example() {
        assert_eq!(without_example::<Arguments>(), [""; 0]);
    }

    #[test]
    fn whatever_is_typed_behind_a_verb_is_understood_or_refused() {
        parse_at_random::<Arguments>();
    }
}
