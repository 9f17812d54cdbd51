//! `onramp-lab sim sweep`.

use std::path::{Path as File, PathBuf};

use clap::Args;
use onramp_files::bounded;
use onramp_lab::experiment::Arm;
use onramp_lab::population::{Path, Population};
use onramp_lab::sim::sweep::{self, Store, Sweep as Summary};
use onramp_lab::sim::{SimError, SourceSpec};
use serde::Serialize;

use super::written;
use crate::arm::Arms;
use crate::output::Output;
use crate::units;
use crate::verb::population::{self, Jobs};
use crate::verb::sweeping::{PROGRAM, Sweeping, Swept, code, usage};

/// Simulate arms over a population of paths
///
/// Paths are drawn from the distributions of a TOML file; path K of a seed is always the same one. The runs go to Parquet
/// files of ten paths each. What is there already is not made again, so a sweep that was broken off goes on with the
/// same command, and shards that share the directory are put together by the same command without --shard. Once
/// all are there, summary.json, summary.md and front.svg follow: time and losses compared with the best arm of each path and with
/// the path's doubling limit, the worst paths by name, and the Pareto front. The files are the same for any --jobs and any
/// shards. `oracle` is an arm that knows its path, paces slow start at the true rate and exits at 110 % of the
/// path's BDP. Exits 5 while shards are missing, or if a
/// run was given up, which counts as at least as long as it was let go on.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim sweep --arms cubic,plain,search,oracle --paths 1000
  onramp sim sweep --population mine.toml --seed 7 --shard 2/16 -o /shared/mine-7
  onramp sim sweep --path 17
  onramp sim sweep --path 17 --write-profile path-17.toml")]
pub(crate) struct Sweep {
    #[command(flatten)]
    sweeping: Sweeping,
    /// Algorithms and controls, with settings after colons as in `onramp sim compare`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ARM,…",
        default_value = "cubic,plain,best,search,spacing,ramp,hystartpp,inflight,oracle"
    )]
    arms: Vec<String>,
    /// How many paths, 1 to 10000000
    #[arg(long, default_value_t = 1_000, value_parser = units::number(1..=10_000_000_u64))]
    paths: u64,
    #[command(flatten)]
    jobs: Jobs,
    /// Only this path, 0 to 9999999; no directory is written
    #[arg(long, value_name = "K", value_parser = units::number(0..=9_999_999_u64), conflicts_with_all = ["paths", "shard", "output", "jobs"])]
    path: Option<u64>,
    /// Write the path as a profile; - is standard output, in place of the report, with the command that simulates it alone
    #[arg(long, value_name = "FILE", requires = "path")]
    write_profile: Option<PathBuf>,
}

/// One path, as JSON.
#[derive(Serialize)]
struct OnePath {
    name: String,
    /// Bytes in all.
    bytes: u64,
    /// When there is something to send.
    source: SourceSpec,
    /// Seed of the link.
    seed: u64,
    /// The arms over it.
    #[serde(flatten)]
    summary: Summary,
}

impl Sweep {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let (text, population) = population::load(&self.sweeping.population)?;
        // What is wrong with an arm shows before anything is made.
        self.arms(&population.path(self.sweeping.seed, 0))?;
        match self.path {
            Some(number) => self.one(&population, number, output),
            None => self.all(text, &population, output),
        }
    }

    fn arms(&self, path: &Path) -> anyhow::Result<Vec<Arm>> {
        Arms::describe(&self.arms, &path.profile, &[])
    }

    fn rows(&self, path: &Path) -> anyhow::Result<Vec<sweep::RunRow>> {
        sweep::path(path, &self.arms(path)?).map_err(|error| usage(error.into()))
    }

    /// Makes what is missing of it; `program` is the file of what simulates. `wanted` is asked before each path.
    pub fn swept(
        &self,
        program: &File,
        wanted: impl Fn() -> Result<(), SimError> + Sync,
    ) -> anyhow::Result<Swept> {
        let (text, population) = population::load(&self.sweeping.population)?;
        self.arms(&population.path(self.sweeping.seed, 0))?;
        let definition = self.sweeping.definition(program, text, &self.arms, self.paths, None)?;
        let store =
            Store::open(&self.sweeping.directory("sweep", &population), &definition).map_err(usage)?;
        let make = |number| {
            wanted()?;
            self.rows(&self.sweeping.path(&population, number))
        };
        self.sweeping.fill(&store, &definition, &population, self.jobs.jobs(), make)
    }

    fn all(self, text: String, population: &Population, output: &Output) -> anyhow::Result<u8> {
        let definition = self.sweeping.definition(PROGRAM.as_ref(), text, &self.arms, self.paths, None)?;
        let directory = self.sweeping.directory("sweep", population);
        let make = |number| self.rows(&self.sweeping.path(population, number));
        self.sweeping.sweep(&definition, directory, population, self.jobs.jobs(), make, output)
    }

    fn one(self, population: &Population, number: u64, output: &Output) -> anyhow::Result<u8> {
        let path = self.sweeping.path(population, number);
        if let Some(file) = &self.write_profile {
            let command = command(&path, &written::argument(file), &self.arms);
            written::write(file, &path.profile, &format!("Simulate it: {command}"))?;
            output.progress(&format!("simulate it: {command}"));
        }
        let summary = Summary::new(&population.name, self.sweeping.seed, &self.rows(&path)?);
        let one = OnePath {
            name: path.profile.name.clone(),
            bytes: path.bytes,
            source: path.source,
            seed: path.seed,
            summary,
        };
        if !self.write_profile.as_deref().is_some_and(bounded::is_standard) {
            output.versioned(&one, || format!("{}: {}", one.name, one.summary))?;
        }
        Ok(code(&one.summary, 1))
    }
}

/// What simulates a path that was written as a profile.
fn command(path: &Path, profile: &str, arms: &[String]) -> String {
    let source = match path.source {
        SourceSpec::Bulk => String::new(),
        SourceSpec::Requests { object_bytes, think_us } => {
            format!(" --object {object_bytes} --think {think_us}us")
        }
        SourceSpec::Periodic { block_bytes, every_us } => {
            format!(" --block {block_bytes} --every {every_us}us")
        }
    };
    let warm = path.warm_bytes.map(|bytes| format!(" --warm {bytes}")).unwrap_or_default();
    format!(
        "onramp sim compare --profile {profile} --bytes {} --seed {} -n 1 --arms {}{source}{warm}",
        path.bytes,
        path.seed,
        arms.join(",")
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        sweep: Sweep,
    }

    fn sweep(words: &[&str]) -> Sweep {
        CommandLine::try_parse_from([&["sweep"], words].concat()).unwrap().sweep
    }

    #[test]
    fn every_arm_of_the_default_can_be_simulated_on_every_class() {
        let sweep = sweep(&[]);
        let (_, population) = population::load(&sweep.sweeping.population).unwrap();
        let path = Path { bytes: 100_000, ..population.path(1, 0) };
        let rows = sweep.rows(&path).unwrap();
        assert_eq!(rows.len(), sweep.arms.len());
        assert!(rows.iter().all(|row| row.complete == 1), "{rows:?}");
    }

    /// The first seven are those of a thousand over which `search` or `spacing` once left below 0.7 of what the path holds.
    #[test]
    fn a_pause_between_requests_ends_no_slow_start_below_what_the_path_holds() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../populations/requests.toml");
        let sweep = sweep(&[
            "--population",
            file,
            "--arms",
            "best,best:pacing=on,search,search:pacing=on,spacing,ramp",
        ]);
        let (_, population) = population::load(file).unwrap();
        let numbers = [77, 528, 573, 647, 839, 863, 922].into_iter().chain(0..40);
        let rows: Vec<_> =
            numbers.flat_map(|number| sweep.rows(&population.path(1, number)).unwrap()).collect();
        for arm in Summary::new("requests", 1, &rows).arms {
            assert_eq!(arm.early_exits, 0, "{}: {:?}", arm.arm, arm.earliest);
            assert!(arm.exits > 0 || arm.arm.starts_with("search"), "{}", arm.arm);
        }
    }

    #[test]
    fn a_transfer_over_the_limit_that_is_given_counts_as_that_long() {
        let sweep = sweep(&["--arms", "plain", "--timeout", "1s"]);
        let (_, population) = population::load(&sweep.sweeping.population).unwrap();
        let path = Path { bytes: 4_000_000_000, ..sweep.sweeping.path(&population, 0) };
        let [row] = &sweep.rows(&path).unwrap()[..] else { panic!("one arm") };
        assert_eq!(row.complete, 0);
        let definition = sweep.sweeping.definition(PROGRAM.as_ref(), String::new(), &[], 1, None).unwrap();
        assert_eq!(definition.timeout_seconds, Some(1));
        assert!(CommandLine::try_parse_from(["sweep", "--timeout", "0s"]).is_err());
    }

    #[test]
    fn transfers_have_the_size_that_is_given_and_are_written_as_they_are_made() {
        let sweep = sweep(&["--bytes", "100k", "--warm", "2M", "--arms", "ramp:start=resume+window"]);
        let (_, population) = population::load(&sweep.sweeping.population).unwrap();
        for number in 0..20 {
            let path = sweep.sweeping.path(&population, number);
            assert_eq!((path.bytes, path.source), (100_000, SourceSpec::Bulk));
            let written = command(&path, "path.toml", &sweep.arms);
            assert!(
                written.contains(" --bytes 100000 ") && written.ends_with(" --warm 2000000"),
                "{written}"
            );
        }
        let rows = sweep.rows(&sweep.sweeping.path(&population, 0)).unwrap();
        assert_eq!(rows.len(), 1);
        let definition = sweep.sweeping.definition(PROGRAM.as_ref(), String::new(), &[], 1, None).unwrap();
        assert_eq!((definition.bytes, definition.warm_bytes), (Some(100_000), Some(2_000_000)));
        for bad in [["--bytes", "0"], ["--warm", "0"]] {
            assert!(CommandLine::try_parse_from([&["sweep"], &bad[..]].concat()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_cannot_be_swept_is_refused_by_name() {
        let says = |words: &[&str]| {
            let sweep = sweep(words);
            let (_, population) = population::load(&sweep.sweeping.population)?;
            let path = population.path(1, 0);
            sweep.arms(&path)?;
            sweep.rows(&path).map(drop)
        };
        assert!(says(&["--arms", "vegas"]).unwrap_err().to_string().contains("there is no arm"));
        assert!(says(&["--arms", "inflight:base=bbr"]).unwrap_err().to_string().contains("base=cubic"));
        assert!(says(&["--arms", "search,search"]).unwrap_err().to_string().contains("twice"));
        let error = says(&["--population", "none.toml"]).unwrap_err().to_string();
        assert!(error.contains("none.toml"), "{error}");
        assert!(CommandLine::try_parse_from(["sweep", "--paths", "0"]).is_err());
        assert!(CommandLine::try_parse_from(["sweep", "--path", "3", "--shard", "1/2"]).is_err());
    }

    #[test]
    fn a_path_that_is_written_as_a_profile_is_the_same_path() {
        let sweep = sweep(&["--arms", "plain"]);
        let (_, population) = population::load(&sweep.sweeping.population).unwrap();
        let mut sources = std::collections::BTreeSet::new();
        for number in 0..40 {
            let path = population.path(1, number);
            sources.insert(
                command(&path, "x.toml", &sweep.arms).split(" --arms ").nth(1).unwrap().contains("--"),
            );
            let text = toml::to_string(&path.profile).unwrap();
            let read = onramp_profiles::Profile::parse(&text, "x.toml").unwrap();
            assert_eq!(read, path.profile);
        }
        assert_eq!(sources.len(), 2, "applications of both kinds");
    }
}
