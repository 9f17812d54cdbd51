//! `onramp-lab matrix`: every arm on every profile.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::{self, Amount, Comparison, Competitor, Plan};
use onramp_lab::matrix::{self, MatrixRow};
use onramp_loader::algorithm::{self, Algorithm};
use onramp_loader::kernel;
use onramp_profiles::Profile;
use serde_json::json;

use super::common::{Common, Jobs};
use super::progress::{self, Clock};
use crate::arm::Arms;
use crate::output::{Output, SCHEMA};
use crate::profile;
use crate::units;
use crate::verb::transfer;

/// Controls of the kernel that belong into the matrix where this kernel has them.
const STOCK: [&str; 2] = ["cubic", "bbr"];
/// Who competes.
const COMPETITOR: &str = "cubic";

/// Measure every algorithm on every profile, alone and against a flow of stock CUBIC that was there before
///
/// Each arm downloads as many bytes as take 4 s at the link's rate, and at least 7 BDP, unless --bytes or --seconds says
/// otherwise. What is there is written after each profile: matrix.json, matrix.md and matrix.txt.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab matrix -o matrix
  onramp lab matrix -o matrix --resume
  onramp lab matrix --profile geo,leo --arms cubic,search -n 1")]
pub(crate) struct Matrix {
    /// Algorithms and congestion controls, with settings after colons [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ARM,…")]
    arms: Vec<String>,
    /// Links and hosts: paths, or names in /etc/onramp/profiles or built in [default: all]
    #[arg(long = "profile", value_delimiter = ',', value_name = "PROFILE,…")]
    profiles: Vec<String>,
    /// Downloads of each arm
    #[arg(short = 'n', long, default_value_t = 3, value_parser = units::number(1..=10_000_u32))]
    repetitions: u32,
    #[command(flatten)]
    jobs: Jobs,
    /// Take from DIR what an earlier run with the same conditions has measured
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    common: Common,
}

/// The two experiments of one profile, and what an earlier run has left of them.
struct Part {
    profile: Profile,
    alone: Plan,
    against: Plan,
    kept: Option<(Comparison, Comparison)>,
}

impl Matrix {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let profiles = self.profiles()?;
        let arms = self.arms()?;
        let root = self.common.output.clone().unwrap_or_else(default_directory);
        // What is wrong with an arm on any profile is to show before hours are spent.
        let made_in = self.common.clock(self.jobs.shard)?;
        let parts: Vec<Part> = profiles
            .into_iter()
            .map(|profile| self.part(&root, profile, &arms, &made_in))
            .collect::<Result<_, _>>()?;
        self.common.clock.require_root("lab matrix")?;
        let each = |part: &Part| {
            (part.alone.expected_seconds() + part.against.expected_seconds())
                * f64::from(self.repetitions)
                * arms.len() as f64
        };
        let expected = parts.iter().filter(|part| part.kept.is_none()).map(each).sum();
        let mut clock = Clock::start(expected, progress::resumes(&made_in), output);
        let (mut rows, mut code) = (Vec::new(), 0);
        for part in parts {
            clock.say(&format!("profile {}", part.profile.name));
            let (alone, against) = match part.kept {
                Some(kept) => kept,
                None => self.measure(&part, &arms, &mut clock)?,
            };
            rows.extend(matrix::rows(&alone, &against));
            code = [code, transfer::code(&alone.arms), transfer::code(&against.arms)]
                .into_iter()
                .max()
                .unwrap_or(code);
            // After each profile, so that what is there is complete at any time.
            write(&root, &rows)?;
        }
        drop(clock);
        let report = json!({"schema": SCHEMA, "repetitions": self.repetitions, "seed": self.common.transfer.seed, "rows": rows});
        output.versioned(&report, || format!("{}written to {}\n", matrix::text(&rows), root.display()))?;
        Ok(code)
    }

    fn profiles(&self) -> anyhow::Result<Vec<Profile>> {
        let all = || profile::names();
        let names = if self.profiles.is_empty() { all() } else { self.profiles.clone() };
        names.iter().map(|name| profile::load(name)).collect()
    }

    fn arms(&self) -> anyhow::Result<Vec<String>> {
        if !self.arms.is_empty() {
            return Ok(self.arms.clone());
        }
        // A guest has them all.
        let registered = if self.common.clock.is_virtual() { None } else { Some(kernel::registered()?) };
        let here = |name: &&str| registered.as_ref().is_none_or(|all| all.iter().any(|known| known == name));
        let stock = STOCK.into_iter().filter(here);
        // A baseline with parameters does something only if they are set for each link.
        let idle = |one: &Algorithm| one.is_baseline() && one.declarations().len() > 0;
        let ours = algorithm::all().filter(|one| !idle(one)).map(|one| one.name());
        Ok(stock.chain(ours).map(str::to_owned).collect())
    }

    fn part(
        &self,
        root: &Path,
        profile: Profile,
        arms: &[String],
        clock: &experiment::Clock,
    ) -> anyhow::Result<Part> {
        let directory = root.join(&profile.name);
        let mut alone = self.common.plan(profile.clone(), self.repetitions, self.jobs.jobs, clock.clone());
        if self.common.transfer.bytes.is_none() && self.common.transfer.seconds.is_none() {
            alone.amount = Amount::Bytes(profile.download_bytes());
        }
        let lead_seconds = lead_seconds(&profile);
        let competitor = Some(Competitor { congestion_control: COMPETITOR.into(), lead_seconds });
        let against = Plan { competitor, directory: Some(directory.join("against")), ..alone.clone() };
        alone.directory = Some(directory.join("alone"));
        let prepared = Arms::prepare(arms, &profile, &self.common.transfer.settings, clock)?;
        let kept = |plan: &Plan| self.resume.then(|| experiment::kept(plan, &prepared.arms)).flatten();
        let kept = kept(&alone).zip(kept(&against));
        Ok(Part { profile, alone, against, kept })
    }

    fn measure(
        &self,
        part: &Part,
        arms: &[String],
        clock: &mut Clock,
    ) -> anyhow::Result<(Comparison, Comparison)> {
        let prepared = Arms::prepare(arms, &part.profile, &self.common.transfer.settings, &part.alone.clock)?;
        let mut compare = |plan: &Plan| {
            let each = plan.expected_seconds();
            experiment::compare(plan, &prepared.arms, |progress| {
                progress::show(&progress, each, clock);
            })
        };
        Ok((compare(&part.alone)?, compare(&part.against)?))
    }
}

/// Twenty round trips: longer than slow start takes.
fn lead_seconds(profile: &Profile) -> u32 {
    (profile.link.base_rtt_us() * 20 / 1_000_000).clamp(3, 15) as u32
}

fn default_directory() -> PathBuf {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    PathBuf::from(format!("runs/matrix-{}", time.as_secs()))
}

fn write(root: &Path, rows: &[MatrixRow]) -> anyhow::Result<()> {
    write_file(&root.join("matrix.json"), &serde_json::to_string_pretty(rows)?)?;
    write_file(&root.join("matrix.txt"), &matrix::text(rows))?;
    write_file(&root.join("matrix.md"), &matrix::markdown(rows))
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_leads_follow_the_link() {
        let mut profile = profile::load("geo").unwrap();
        assert_eq!((profile.download_bytes(), lead_seconds(&profile)), (79_000_000, 12));
        profile.link.forward.delay_us = 10_000;
        profile.link.back.delay_us = 10_000;
        assert_eq!((profile.download_bytes(), lead_seconds(&profile)), (75_000_000, 3));
    }
}
