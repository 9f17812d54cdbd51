//! Arms over a population of paths, as `sim sweep` and `lab sweep` make them: a directory that is filled, and its summary.

use std::num::NonZeroUsize;
use std::path::{Path as File, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::Shard;
use onramp_lab::population::{Path, Population};
use onramp_lab::sim::sweep::{self, Definition, RunRow, Store, Sweep as Summary, SweepError, front};
use onramp_lab::sim::{SimError, SourceSpec};

use super::population::{self, Limit};
use crate::failure::{PARTIAL, Usage};
use crate::output::Output;
use crate::progress::{Progress, Resumes};
use crate::target::directory;
use crate::units;

/// The program that runs.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// What there is of a sweep.
pub(crate) struct Swept {
    pub summary: Summary,
    pub rows: Vec<RunRow>,
    /// Whether that is all of it.
    pub complete: bool,
}

/// What is swept, and where it goes.
#[derive(Args, Debug)]
pub(crate) struct Sweeping {
    /// Path of a population's .toml file, or `default`
    #[arg(long, value_name = "FILE", default_value = population::DEFAULT)]
    pub population: String,
    /// Seed of the population
    #[arg(long, default_value_t = 1, value_parser = units::number(0..=u64::MAX))]
    pub seed: u64,
    #[command(flatten)]
    limit: Limit,
    /// Size of every transfer, in one piece, in place of the population's, such as 100k
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    bytes: Option<u64>,
    /// Before each transfer, another of so much over the same path, alone and not counted, such as 2M: arms with start=… have
    /// learned the path then. The link begins anew after it
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    warm: Option<u64>,
    /// Make only the I-th of N equal parts
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Directory of the sweep [default: runs/sweep-POPULATION-SEED]
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    pub output: Option<PathBuf>,
}

impl Sweeping {
    /// A path of the population, with what was said of its transfer and of what comes before.
    pub fn path(&self, population: &Population, number: u64) -> Path {
        let mut path = self.limit.over(population.path(self.seed, number));
        path.warm_bytes = self.warm;
        if let Some(bytes) = self.bytes {
            (path.bytes, path.source) = (bytes, SourceSpec::Bulk);
        }
        path
    }

    /// What the directory holds. `text` is the population's; `kernel` that whose TCP makes the runs, if they are not simulated;
    /// `program` the file of what makes them.
    pub fn definition(
        &self,
        program: &File,
        text: String,
        arms: &[String],
        paths: u64,
        kernel: Option<String>,
    ) -> anyhow::Result<Definition> {
        Ok(Definition {
            program: sweep::program(program)?,
            population: text,
            seed: self.seed,
            paths,
            arms: arms.to_vec(),
            kernel,
            timeout_seconds: self.limit.timeout.map(|limit| limit.as_secs()),
            bytes: self.bytes,
            warm_bytes: self.warm,
        })
    }

    /// Where it goes, unless it was said.
    pub fn directory(&self, what: &str, population: &Population) -> PathBuf {
        let default = || PathBuf::from("runs").join(format!("{what}-{}-{}", population.name, self.seed));
        self.output.clone().unwrap_or_else(default)
    }

    /// Fills the directory, and writes the summary once all is there. `make` runs all arms over a path.
    pub fn fill(
        &self,
        store: &Store,
        definition: &Definition,
        population: &Population,
        jobs: NonZeroUsize,
        make: impl Fn(u64) -> anyhow::Result<Vec<RunRow>> + Sync,
    ) -> anyhow::Result<Swept> {
        store.fill(definition, self.shard(), jobs, make)?;
        let (rows, complete) = store.rows()?;
        let summary = Summary::new(&population.name, self.seed, &rows);
        let swept = Swept { summary, rows, complete };
        if !complete {
            return Ok(swept);
        }
        let summary = &swept.summary;
        let json = serde_json::to_string_pretty(summary)? + "\n";
        for (name, text) in [("summary.json", json), ("summary.md", summary.to_string())] {
            let path = store.file(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        front::draw(summary, &store.file("front.svg"))?;
        Ok(swept)
    }

    fn shard(&self) -> Shard {
        self.shard.unwrap_or(Shard::WHOLE)
    }

    /// The same with its progress, and prints the summary.
    pub fn sweep(
        &self,
        definition: &Definition,
        directory: PathBuf,
        population: &Population,
        jobs: NonZeroUsize,
        make: impl Fn(u64) -> anyhow::Result<Vec<RunRow>> + Sync,
        output: &Output,
    ) -> anyhow::Result<u8> {
        let store = Store::open(&directory, definition).map_err(usage)?;
        let (began, made, all) = (Instant::now(), AtomicU64::new(0), store.missing(definition, self.shard()));
        let progress = Progress::begin(output, "paths", Resumes::Yes);
        let make = |number| {
            let rows = make(number)?;
            progress.count("paths", made.fetch_add(1, Ordering::Relaxed) + 1, all, began);
            Ok::<_, anyhow::Error>(rows)
        };
        let Swept { summary, complete, .. } = self.fill(&store, definition, population, jobs, make)?;
        drop(progress);
        if !complete {
            output.progress(&format!(
                "{} of {} paths are there: the same command without --shard makes the rest, and the summary",
                summary.paths, definition.paths
            ));
            return Ok(PARTIAL);
        }
        output.progress(&format!("written to {}", directory.display()));
        output.versioned(&summary, || summary.to_string())?;
        Ok(code(&summary, definition.paths))
    }
}

/// The exit code: 5 if a run was given up, or a path left out.
pub(crate) fn code(summary: &Summary, paths: u64) -> u8 {
    let whole = summary.arms.iter().all(|arm| arm.given_up == 0) && summary.paths as u64 == paths;
    if whole { 0 } else { PARTIAL }
}

/// A wrong usage.
pub(crate) fn usage(error: SweepError) -> anyhow::Error {
    match error {
        SweepError::Other { .. }
        | SweepError::NotEmpty { .. }
        | SweepError::Sim(SimError::Control { .. } | SimError::Unlearned { .. }) => {
            Usage::error(error.to_string())
        }
        other => other.into(),
    }
}
