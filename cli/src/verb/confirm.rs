//! `onramp confirm`.

use clap::Args;
use serde::Serialize;

use super::attach::previous_limit;
use crate::output::Output;
use crate::settings::AlgorithmName;

/// Let an algorithm stay that was attached with --for
///
/// Without this it is detached when its time is over. Confirming again, or what has no time limit, changes nothing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp attach search --default --for 10m
  onramp confirm search

Undo: printed; onramp attach ALG --for TIME")]
pub(crate) struct Confirm {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: String,
}

#[derive(Serialize)]
struct ConfirmReport {
    algorithm: &'static str,
    /// Whether it had a time limit until now.
    confirmed: bool,
    /// None: nothing has changed.
    undo: Option<String>,
}

impl Confirm {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let algorithm = onramp_loader::find(&self.algorithm)?;
        let expiry = onramp_loader::confirm(algorithm)?;
        let name = algorithm.name();
        let undo = expiry.map(|expiry| previous_limit(algorithm, Some(expiry.left)));
        let report = ConfirmReport { algorithm: name, confirmed: expiry.is_some(), undo };
        output.report(&report, || {
            let said = if report.confirmed { "confirmed: stays" } else { "had no time limit: it stays" };
            let undo = report.undo.as_ref().map_or_else(String::new, |undo| format!("  undo: {undo}\n"));
            format!("{name} {said} until detached\n{undo}")
        });
        Ok(0)
    }
}
