//! The command line as a whole.

use std::io::IsTerminal;

use clap::{Args, Parser, ValueEnum};

use crate::verb::Verb;

/// Decides when TCP stops doubling: attaches slow-start algorithms to this host's kernel, tunes them under running
/// flows and shows what each flow did.
#[derive(Debug, Parser)]
#[command(
    name = "onramp",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 asked for wrongly, 3 this kernel cannot, 4 a privilege is missing, \
                  5 done in part.\n\nExamples:\n  onramp list\n  onramp attach search --for 10m\n  onramp flows dst 198.51.100.0/24\n  onramp detach --all"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options of every verb.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every verb")]
pub(crate) struct Global {
    /// Print JSON: one object with "schema": 1, units in the names of its fields
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Print JSON over several lines
    #[arg(short, long, global = true)]
    pub pretty: bool,
    /// Print no report of a change, and of the log only errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log what is done to stderr; twice: libbpf's messages too
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Colours; auto: on a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    pub fn applies_to(self, stream: &impl IsTerminal) -> bool {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Auto => stream.is_terminal() && !refused,
            Self::Always => true,
            Self::Never => false,
        }
    }
}
