//! `onramp confirm`.

use clap::Args;
use serde::Serialize;

use crate::output::Output;
use crate::settings::AlgorithmName;

/// Let an algorithm stay that was attached with --for
///
/// Without this it is detached when its time is over. Confirming again, or what has no time limit, changes nothing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp attach search --default --for 10m
  onramp confirm search

Undo: onramp detach ALG")]
pub(crate) struct Confirm {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName)]
    algorithm: String,
}

#[derive(Serialize)]
struct Report {
    algorithm: &'static str,
    /// Whether it had a time limit until now.
    confirmed: bool,
    undo: String,
}

impl Confirm {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let algorithm = onramp_loader::find(&self.algorithm)?;
        let expiry = onramp_loader::confirm(algorithm)?;
        let name = algorithm.name();
        let report =
            Report { algorithm: name, confirmed: expiry.is_some(), undo: format!("onramp detach {name}") };
        output.report(&report, || {
            let said = if report.confirmed { "confirmed: stays" } else { "had no time limit: it stays" };
            format!("{name} {said} until detached\n  undo: {}\n", report.undo)
        })?;
        Ok(0)
    }
}
