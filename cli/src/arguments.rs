//! The command line as a whole.

use clap::Parser;

use crate::global::Global;
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
