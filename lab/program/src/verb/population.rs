//! What verbs over many paths share.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use onramp_files::bounded;
use onramp_lab::population::{Path, Population};
use onramp_loader::algorithm::did_you_mean;

use crate::failure::Usage;
use crate::units;
use crate::verb::transfer::limit;

/// The population that is there without a file.
pub(super) const DEFAULT: &str = "default";
const DEFAULT_TEXT: &str = include_str!("../../../populations/default.toml");

/// A population's text and what it says, of a file or [`DEFAULT`].
pub(super) fn load(given: &str) -> anyhow::Result<(String, Population)> {
    let text = if given == DEFAULT {
        DEFAULT_TEXT.to_owned()
    } else {
        bounded::read_text(given.as_ref()).map_err(|error| {
            let hint = did_you_mean(given, [DEFAULT]);
            Usage::error(format!(
                "cannot read population {given}{hint}: {error}; give the path of a .toml file, or {DEFAULT}"
            ))
        })?
    };
    let population =
        Population::parse(&text, given).map_err(|error| Usage::error(error.to_string().trim_end()))?;
    Ok((text, population))
}

/// The limit of transfers over many paths.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Time after which a transfer is given up, 1 s to 24 h; it then counts as at least that long [default: 2 min, 10 times
    /// what the path's rate needs, and the application's pauses]
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
}

impl Limit {
    /// The path with this limit.
    pub fn over(self, path: Path) -> Path {
        Path { timeout: self.timeout, ..path }
    }
}

/// How many paths are simulated at once.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Jobs {
    /// Paths at once, 1 to 1024 [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = units::number(1..=1_024_u16))]
    jobs: Option<u16>,
}

impl Jobs {
    pub fn jobs(self) -> NonZeroUsize {
        let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())).unwrap_or_else(processors)
    }
}
