//! The command line as a whole.

use clap::{CommandFactory, Parser};
use onramp_terminal::program::CommandLine;

use crate::exit;
use crate::global::Global;
use crate::output::Output;
use crate::verb::Verb;

/// Decides when TCP stops doubling: attaches slow-start algorithms to this host's kernel, tunes them under running
/// flows and shows what each flow did.
#[derive(Debug, Parser)]
#[command(
    name = "onramp",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not possible on this kernel, 4 privilege missing, \
                  5 partly done.\n\nExamples:\n  onramp list\n  onramp attach search --for 10m\n  onramp flows dst 198.51.100.0/24\n  onramp detach --all"
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
        exit::code(error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use onramp_mutation::commands::{of_help, of_pages, parse, parse_at_random, without_example};

    use super::Arguments;

    /// The laboratory's program parses its own, and what stands behind its words here.
    fn own(words: &[String]) -> Option<Vec<String>> {
        (words.first()? == "onramp").then(|| words.to_vec())
    }

    #[test]
    fn every_example_of_every_help_is_one_line_that_the_command_line_takes() {
        let examples = of_help::<Arguments>();
        let taken = parse::<Arguments>(&examples, own);
        assert!(examples.len() > 60 && taken >= examples.len() - 5, "{taken} of {}", examples.len());
    }

    #[test]
    fn every_command_of_a_page_is_one_that_the_command_line_takes() {
        let pages = of_pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let taken = parse::<Arguments>(&pages, own);
        assert!(taken >= 40, "{taken}");
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
