//! What verbs over many paths share.

use std::num::NonZeroUsize;

use clap::Args;
use onramp_files::bounded;
use onramp_lab::population::Population;

use crate::failure::Usage;

/// The population that is there without a file.
pub(super) const DEFAULT: &str = "default";
const DEFAULT_TEXT: &str = include_str!("../../../../populations/default.toml");

/// A population's text and what it says, of a file or [`DEFAULT`].
pub(super) fn load(given: &str) -> anyhow::Result<(String, Population)> {
    let text = if given == DEFAULT {
        DEFAULT_TEXT.to_owned()
    } else {
        bounded::read_text(given.as_ref()).map_err(|error| {
            Usage::error(format!(
                "cannot read population {given}: {error}; give the path of a .toml file, or {DEFAULT}"
            ))
        })?
    };
    let population =
        Population::parse(&text, given).map_err(|error| Usage::error(error.to_string().trim_end()))?;
    Ok((text, population))
}

/// How many paths are simulated at once.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Jobs {
    /// Paths at once, 1 to 1024 [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
}

impl Jobs {
    pub fn jobs(self) -> NonZeroUsize {
        let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())).unwrap_or_else(processors)
    }
}
