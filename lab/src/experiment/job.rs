// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One run as a guest is given it, and what comes back.

use std::collections::BTreeMap;
use std::path::Path;

use onramp_algorithm::find_control;
use onramp_algorithm::outside::{self, OutsideError};
use serde::{Deserialize, Serialize};

use super::clock::Guests;
use super::{Arm, ExperimentError, Plan, Run, files, run, store};
use crate::guest::{Guest, Outcome, Stream, image};
use crate::plot::Curve;

/// Where a guest finds it; next to it are objects of algorithms from outside the tree.
pub const PATH: &str = "/job.json";
/// Its result, next to the files of a run.
const RESULT: &str = "result.json";
/// What the figure draws of it.
const CURVE: &str = "curve.json";
/// Memory of a guest, MiB.
const MEMORY_MIB: u32 = 1_500;

/// One run: all that decides what it yields, but for what runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What to do. Repetitions and first seed are those of the whole.
    pub plan: Plan,
    /// With which control.
    pub arm: Arm,
    /// Seed of the link.
    pub seed: u64,
}

impl Job {
    /// In a guest: reads the objects of algorithms from outside the tree that the run is to have.
    ///
    /// # Errors
    /// Why one is refused.
    pub fn read_objects() -> Result<(), OutsideError> {
        let directory = Path::new(PATH).with_file_name("");
        let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| path.extension().is_some_and(|ending| ending == "o")) {
            outside::open(&path)?;
        }
        Ok(())
    }

    fn new(plan: &Plan, arm: &Arm, seed: u64) -> Self {
        // The same run has the same job, whichever experiment it is part of.
        let plan = Plan { repetitions: 1, seed: 0, ..plan.clone() };
        Self { plan, arm: arm.clone(), seed }
    }

    /// Makes the run in this kernel and leaves its files in `directory`.
    ///
    /// # Errors
    /// [`ExperimentError`] for what no other run could do better. A run that is spoilt leaves the reason in its result.
    pub fn run(&self, directory: &Path) -> Result<(), ExperimentError> {
        self.plan.validate()?;
        files::create(directory)?;
        match run::run(&self.plan, &self.arm, self.seed, Some(directory)) {
            Ok((run, trace)) => {
                let curve = Curve::new(&self.arm.name, &trace.flows[0], run.exit.as_ref());
                files::write_json(directory.join(CURVE), &curve)
            }
            Err(error) if error.spoils_one_run() => {
                files::write_json(directory.join(RESULT), &Run::failed(self.seed, error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Makes one run in a guest of its own, or takes it from where runs are kept. Files go to `directory`. A run that is not
/// ours to make, because another shard has it, is only taken; `None` where it has not been made.
///
/// # Errors
/// [`ExperimentError::Guest`], and [`ExperimentError::Inside`] with what the program in the guest said.
pub(super) fn run_in_guest(
    guests: &Guests,
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    ours: bool,
    directory: &Path,
) -> Result<Option<(Run, Option<Curve>)>, ExperimentError> {
    let job = Job::new(plan, arm, seed);
    let words = [image::SELF, "once"].into_iter().map(str::to_owned);
    let guest = Guest {
        image: &guests.image,
        command: words.chain(guests.words.iter().cloned()).collect(),
        environment: BTreeMap::new(),
        inputs: inputs(&job)?,
        memory_mib: MEMORY_MIB,
        seconds: guests.seconds,
    };
    let identity = guest.identity()?;
    let kept = if guests.fresh && ours { None } else { store::get(&identity)? };
    let outcome = match kept {
        Some(outcome) => outcome,
        None if !ours => return Ok(None),
        None => {
            let outcome = boot(&guest)?;
            store::put(&identity, &outcome)?;
            outcome
        }
    };
    take(&outcome, directory).map(Some)
}

fn boot(guest: &Guest<'_>) -> Result<Outcome, ExperimentError> {
    let mut said = Vec::new();
    let outcome = guest.run(|stream, bytes| {
        // What the program says while it runs is for people; its last words explain a failure.
        if stream == Stream::Stderr {
            said.extend(bytes);
            let _ = std::io::Write::write_all(&mut std::io::stderr(), bytes);
        }
    })?;
    if outcome.status == 0 {
        return Ok(outcome);
    }
    let text = String::from_utf8_lossy(&said);
    let last = text.lines().next_back().unwrap_or("it said nothing");
    Err(ExperimentError::Inside(last.trim_start_matches("error: ").to_owned()))
}

/// The run and its files.
fn take(outcome: &Outcome, directory: &Path) -> Result<(Run, Option<Curve>), ExperimentError> {
    files::create(directory)?;
    for (name, content) in outcome.files.iter().filter(|(name, _)| ![RESULT, CURVE].contains(&name.as_str()))
    {
        files::write(directory.join(name), content)?;
    }
    let read = |name: &str| outcome.files.get(name).map(Vec::as_slice).unwrap_or_default();
    let missing =
        |error: serde_json::Error| ExperimentError::Inside(format!("{RESULT} cannot be read: {error}"));
    let run: Run = serde_json::from_slice(read(RESULT)).map_err(missing)?;
    let run = Run {
        guest_seconds: Some(outcome.guest_seconds),
        host_cpu_seconds: Some(outcome.host_cpu_seconds),
        ..run
    };
    files::write_json(directory.join(RESULT), &run)?;
    let curve = if run.counts() { serde_json::from_slice(read(CURVE)).ok() } else { None };
    Ok((run, curve))
}

/// The job, and the objects of algorithms from outside the tree.
fn inputs(job: &Job) -> Result<BTreeMap<String, Vec<u8>>, ExperimentError> {
    let mut inputs = BTreeMap::from([(PATH.to_owned(), json(job)?)]);
    let competitor = job.plan.competitor.iter().map(|competitor| &competitor.congestion_control);
    for algorithm in competitor.chain([&job.arm.congestion_control]).filter_map(|name| find_control(name)) {
        if let Some(outside) = algorithm.outside() {
            inputs.insert(format!("/{}.o", algorithm.name()), outside.whole().to_vec());
        }
    }
    Ok(inputs)
}

fn json(job: &Job) -> Result<Vec<u8>, ExperimentError> {
    serde_json::to_vec(job).map_err(|error| ExperimentError::File { path: PATH.into(), source: error.into() })
}
