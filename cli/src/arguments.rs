//! The command line as a whole.

use std::ffi::OsString;
use std::process::Command;

use clap::{CommandFactory, Parser};
use onramp_loader::algorithm::outside;
use onramp_profiles::completions;
use onramp_terminal::completions::Candidate;
use onramp_terminal::program::CommandLine;

use crate::exit;
use crate::global::Global;
use crate::output::Output;
use crate::verb::{Verb, lab};

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
    const GONE: &'static [(&'static str, &'static str)] = &[
        ("bench", "`onramp lab bench`"),
        ("compare-arms", "`onramp status --guard`"),
        ("export", "`onramp lab qlog` writes qlog; DuckDB writes CSV and JSON (docs/recording.md)"),
        ("model", "`onramp lab model`"),
        ("profile", "`onramp lab profile`"),
        ("--algorithms", "--algorithm search,best"),
        ("--otlp", "a collector reads /metrics of `onramp serve`"),
        ("--under-way", "--established"),
        ("--undo", "`onramp undo settings` restores what `onramp doctor --fix` has set"),
    ];

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

    fn other_program(words: &[OsString]) -> Option<Command> {
        lab::completing(words)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use onramp_mutation::commands::check;

    use super::Arguments;

    /// The laboratory's program parses its own, and what stands behind its words here.
    fn own(words: &[String]) -> Option<Vec<String>> {
        (words.first()? == "onramp").then(|| words.to_vec())
    }

    #[test]
    fn examples_of_help_and_pages_are_commands_and_whatever_is_typed_is_understood_or_refused() {
        check::<Arguments>(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), 40, own);
    }
}
