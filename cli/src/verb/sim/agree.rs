//! `onramp sim agree`: the simulator beside the kernel.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::Comparison;
use onramp_lab::sim::agreement::{self, Agreement};
use onramp_recording::bounded;

use crate::failure::{FAILURE, Usage};
use crate::output::Output;

/// Simulate what results of `onramp lab run` and `compare` measured, and say how far both are apart
///
/// Results are read as the lab writes them: result.json of a directory, or what --json printed. Exit and completion may
/// differ by 3 %, losses by 10 % or 20 segments. Ends with code 1 if fewer than the asked part of all pairs agree.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim agree tests/golden/*.json
  onramp lab compare --arms plain,search --profile leo --json | onramp sim agree /dev/stdin")]
pub(super) struct Agree {
    /// Results of the lab
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Part of the pairs that must agree, percent
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u8).range(0..=100))]
    percent: u8,
}

impl Agree {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let mut all = Agreement::default();
        for path in &self.results {
            let text = bounded::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
            let measured: Comparison = serde_json::from_str(&text).map_err(|error| {
                Usage::error(format!("{} is no result of the lab: {error}", path.display()))
            })?;
            all.add(&measured)?;
        }
        output.versioned(&all, || agreement::text(&all))?;
        let enough = all.agree * 100 >= all.pairs.len() * usize::from(self.percent);
        Ok(if enough { 0 } else { FAILURE })
    }
}
