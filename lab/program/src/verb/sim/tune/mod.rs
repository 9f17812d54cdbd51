//! `onramp-lab sim tune`.

mod kernel;
mod varied;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use onramp_files::bounded;
use onramp_lab::population::{Path, Population};
use onramp_lab::sim::sweep::front;
use onramp_lab::sim::tune::{self, Search, Tuning};
use onramp_loader::algorithm::{Algorithm, Parameters};
use onramp_profiles::{Params, Profile, Value};
use serde::Serialize;

use super::written;
use crate::failure::{FAILURE, PARTIAL, Usage};
use crate::output::Output;
use crate::profile;
use crate::progress::{Progress, Resumes};
use crate::settings::{self, AlgorithmName};
use crate::target::directory;
use crate::units;
use crate::verb::population::{self, Jobs, Limit};
use kernel::Confirmation;

/// Experimental: search parameters of an algorithm that suit a population of paths, or the links of profiles
///
/// Candidates are drawn from the ranges of the parameters; the worse two thirds are given up after few paths, and so on
/// (successive halving), then one parameter is moved at a time as long as that costs less. A candidate costs the geometric mean
/// over paths of its time, with the time that the path needs for what was retransmitted, compared with the start: the
/// algorithm's defaults, or the profile's parameters. Best and start are then compared on as many paths that the search has not
/// seen, and with --confirm on some of these with kernel TCP in virtual time. The table says what moving each parameter alone
/// would cost. The same arguments give the same result with any --jobs. Exits 1 if --write-profile has nothing to
/// write, and 5 if one of the last runs was given up.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim tune search
  onramp sim tune search --vary threshold_pct=10..60,look_back --paths 90
  onramp sim tune spacing --profile geo,leo,./mine.toml --confirm 4
  onramp sim tune best --profile ./mine.toml --write-profile tuned.toml")]
pub(super) struct Tune {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: String,
    /// Path of a population's .toml file, or `default`
    #[arg(long, value_name = "FILE", default_value = population::DEFAULT, conflicts_with = "profile")]
    population: String,
    /// Instead of a population, the links of these profiles: paths, or names in /etc/onramp/profiles or built in
    #[arg(long, value_delimiter = ',', value_name = "PROFILE,…")]
    profile: Vec<String>,
    /// Parameters to vary, each with a range of numbers where not all that is allowed is to be tried [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME[=FROM..TO],…")]
    vary: Vec<String>,
    /// Candidates at the begin, 3 to 100000
    #[arg(long, default_value_t = 243, value_parser = units::number(3..=100_000_u32))]
    candidates: u32,
    /// Paths that the last candidates are compared on, 3 to 1000000; as many others are held out
    #[arg(long, default_value_t = 270, value_parser = units::number(3..=1_000_000_u64))]
    paths: u64,
    /// Seed of paths and candidates
    #[arg(long, default_value_t = 1, value_parser = units::number(0..=u64::MAX))]
    seed: u64,
    /// What a segment retransmitted costs, in times that the path needs for one, 0 to 1000; 0: time alone counts
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = weight)]
    loss_weight: f64,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    confirmation: Confirmation,
    /// Directory for tune.json, tune.md and front.svg [default: runs/tune-ALG-POPULATION-SEED]
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// Write the profile, of which there must be one, with what was found; - is standard output, in place of the report
    #[arg(long, value_name = "FILE", requires = "profile")]
    write_profile: Option<PathBuf>,
}

/// A tuning and what the kernel says of it.
#[derive(Serialize)]
struct TuneReport {
    #[serde(flatten)]
    tuning: Tuning,
    /// With --confirm.
    kernel: Option<kernel::Confirmed>,
    /// Best costs surely less than the start on paths that the search has not seen, and with the kernel's TCP where it was asked.
    better: bool,
}

/// Where paths come from.
enum Paths {
    Drawn(Box<Population>),
    Links(Vec<Profile>),
}

impl Paths {
    fn name(&self) -> String {
        match self {
            Self::Drawn(population) => population.name.clone(),
            Self::Links(profiles) => {
                profiles.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join("+")
            }
        }
    }

    fn path(&self, seed: u64, number: u64) -> Path {
        match self {
            Self::Drawn(population) => population.path(seed, number),
            Self::Links(profiles) => Path::of_profiles(profiles, seed, number)
                .unwrap_or_else(|| unreachable!("there is at least one profile")),
        }
    }
}

impl Tune {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let algorithm = onramp_loader::find(&self.algorithm)?;
        let varied = varied::parse(algorithm, &self.vary)?;
        let profiles: Vec<_> =
            self.profile.iter().map(|name| profile::load(name)).collect::<Result<_, _>>()?;
        let file =
            self.write_profile.as_deref().map(|file| Ok::<_, anyhow::Error>((file, written::name(file)?)));
        let file = file.transpose()?;
        if file.is_some() && profiles.len() != 1 {
            return Err(Usage::error(format!(
                "--write-profile takes one --profile, and there are {}: give the one that is to be written",
                profiles.len()
            )));
        }
        let start = match &profiles[..] {
            [only] => of_profile(only, algorithm)?,
            _ => algorithm.parameters(),
        };
        let paths = if profiles.is_empty() {
            Paths::Drawn(Box::new(population::load(&self.population)?.1))
        } else {
            Paths::Links(profiles)
        };
        let directory = self.output.clone().unwrap_or_else(|| {
            PathBuf::from("runs").join(format!("tune-{}-{}-{}", algorithm.name(), paths.name(), self.seed))
        });
        // What is missing shows before minutes are spent.
        let confirm = self.confirmation.prepare()?;
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let search = Search {
            start,
            varied,
            candidates: self.candidates as usize,
            paths: self.paths,
            seed: self.seed,
            loss_weight: self.loss_weight,
            jobs: self.jobs.jobs(),
        };
        let path = |number| self.limit.over(paths.path(self.seed, number));
        let progress = Progress::begin(output, "tuning", Resumes::No);
        let step = Mutex::new((String::new(), Instant::now()));
        let tuning = tune::tune(&search, &paths.name(), path, |what, made, all| {
            let Ok(mut step) = step.lock() else { return };
            if step.0 != what {
                *step = (what.to_owned(), Instant::now());
                progress.say(what);
            }
            progress.count(what, made, all, step.1);
        })?;
        drop(progress);
        let kernel = match confirm {
            Some(clock) if !tuning.settings.is_empty() => {
                let held_out = (self.paths..2 * self.paths).map(path);
                Some(self.confirmation.confirm(
                    &tuning,
                    held_out,
                    clock,
                    &directory.join("kernel"),
                    output,
                )?)
            }
            _ => None,
        };
        let better =
            tuning.held_out.is_better() && kernel.as_ref().is_none_or(|of| of.beside_start.cost < 1.0);
        let report = TuneReport { tuning, kernel, better };
        front::draw(&report.tuning.last, &directory.join("front.svg"))?;
        let text = text(&report);
        let json = serde_json::to_string_pretty(&report)? + "\n";
        for (name, content) in [("tune.json", &json), ("tune.md", &text)] {
            let path = directory.join(name);
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        output.progress(&format!("written to {}", directory.display()));
        if !self.write_profile.as_deref().is_some_and(bounded::is_standard) {
            output.versioned(&report, || text)?;
        }
        match (file, paths) {
            (Some((file, name)), Paths::Links(profiles)) => self.write(file, name, profiles, &report, output),
            _ if report.tuning.last.arms.iter().any(|arm| arm.given_up > 0) => Ok(PARTIAL),
            _ => Ok(0),
        }
    }

    fn write(
        &self,
        file: &std::path::Path,
        name: String,
        mut profiles: Vec<Profile>,
        report: &TuneReport,
        output: &Output,
    ) -> anyhow::Result<u8> {
        let Some(profile) = profiles.pop().filter(|_| report.better) else {
            output.progress(&format!(
                "{} is not written: the profile's parameters are not beaten",
                file.display()
            ));
            return Ok(FAILURE);
        };
        let profile = tuned(profile, name, &report.tuning.parameters[1]);
        let argument = written::argument(file);
        let comment = format!(
            "Found by `onramp sim tune {} --profile {} --seed {}`: {}",
            self.algorithm,
            self.profile.join(","),
            self.seed,
            report.tuning.held_out
        );
        written::write(file, &profile, &comment)?;
        output.progress(&format!(
            "measure it: onramp lab compare --profile {argument} --arms cubic,{}",
            self.algorithm
        ));
        Ok(0)
    }
}

/// What a profile has for an algorithm, the defaults where it has nothing.
fn of_profile(profile: &Profile, algorithm: Algorithm) -> anyhow::Result<Parameters> {
    let mut parameters = algorithm.parameters();
    if profile.algorithms().contains(&algorithm.name()) {
        profile::apply(profile, &mut parameters)?;
    }
    Ok(parameters)
}

fn text(report: &TuneReport) -> String {
    let mut text = format!("{}\n", report.tuning);
    if let Some(kernel) = &report.kernel {
        text += &format!("{kernel}\n");
    }
    text += &match (report.better, &report.kernel) {
        (false, _) => "Nothing that was tried is surely better than the start: keep it.\n".to_owned(),
        (true, None) => "Modelled TCP is not the kernel's: the same command with --confirm 5 asks that before anything is attached.\n".to_owned(),
        (true, Some(_)) => attach(&report.tuning.parameters[1]) + "\n",
    };
    text
}

/// The command that attaches an algorithm with these parameters.
fn attach(parameters: &Parameters) -> String {
    let algorithm = parameters.algorithm();
    let changes = settings::changes(&algorithm.parameters(), parameters);
    let settings: String = changes.iter().map(|one| format!(" --set {one}")).collect();
    format!("onramp attach {}{settings}", algorithm.name())
}

/// The profile under another name, with an algorithm and its parameters as far as they are not the defaults.
fn tuned(profile: Profile, name: String, parameters: &Parameters) -> Profile {
    let algorithm = parameters.algorithm();
    let mut params = profile.params;
    params.retain(|key, of| matches!(of, Params::Of(_)) && key != algorithm.name());
    for (parameter, value) in parameters.changed_from(&algorithm.parameters()) {
        let shown = parameter.show(value);
        let value = shown.parse().map_or_else(|_| Value::Text(shown), Value::Integer);
        params.insert(parameter.name.to_owned(), Params::Own(value));
    }
    Profile { name, algorithm: algorithm.name().to_owned(), params, ..profile }
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| (0.0..=1_000.0).contains(weight));
    weight.ok_or_else(|| "expected 0 to 1000".to_owned())
}

#[cfg(test)]
mod tests;
