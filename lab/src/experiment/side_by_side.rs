// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! All runs of an experiment, up to so many at once.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope};

use super::turns::{Turn, Turns};
use super::{Arm, Clock, ExperimentError, Plan, Progress, Run, files, job, run};
use crate::plot::Curve;

/// What one attempt at a run yielded.
pub(super) struct Attempt {
    pub turn: Turn,
    /// Number of the attempt, from 0.
    pub number: u32,
    pub run: Run,
    /// Of runs that count.
    pub curve: Option<Curve>,
}

/// What the thread of a turn says.
enum Said {
    Started(Turn, u32),
    Finished(Box<Attempt>),
    /// Its last word, with what no other run could do better, if that is why.
    Over(Turn, Option<ExperimentError>),
}

/// Makes all runs; attempts come in the order of the runs.
///
/// # Errors
/// The first that no other run could do better, after the runs that had begun.
pub(super) fn run(
    plan: &Plan,
    arms: &[Arm],
    root: &Path,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Vec<Attempt>, ExperimentError> {
    let total = arms.len() * plan.repetitions as usize;
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut turns = Turns::new(plan, arms);
    let mut failed = None;
    let (say, said) = mpsc::channel();
    thread::scope(|scope| {
        loop {
            while failed.is_none() && turns.running() < usize::from(plan.jobs) {
                let Some(turn) = turns.begin() else { break };
                start(scope, plan, &arms[turn.arm], turn, root, say.clone());
            }
            if turns.running() == 0 {
                break;
            }
            // This side keeps a sender, so that the channel cannot be closed.
            let Ok(said) = said.recv() else { break };
            match said {
                Said::Started(turn, attempt) => {
                    let Turn { index, arm, seed } = turn;
                    progress(Progress::Started { index, total, attempt, arm: &arms[arm].name, seed });
                }
                Said::Finished(attempt) => {
                    let Turn { index, arm, .. } = attempt.turn;
                    let (arm, run, number) = (&arms[arm].name, &attempt.run, attempt.number);
                    progress(Progress::Finished { index, total, attempt: number, arm, run });
                    attempts.push(*attempt);
                }
                Said::Over(turn, error) => {
                    turns.end(turn.arm);
                    failed = failed.take().or(error);
                }
            }
        }
    });
    attempts.sort_by_key(|attempt| (attempt.turn.index, attempt.number));
    failed.map_or(Ok(attempts), Err)
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    arm: &'scope Arm,
    turn: Turn,
    root: &'scope Path,
    say: Sender<Said>,
) {
    scope.spawn(move || {
        let mut last = LastWord { turn, error: None, say };
        last.error = attempt(plan, arm, turn, root, &last.say).err();
    });
}

/// Said however the thread ends, or the other side would wait for ever.
struct LastWord {
    turn: Turn,
    error: Option<ExperimentError>,
    say: Sender<Said>,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        send(&self.say, Said::Over(self.turn, self.error.take()));
    }
}

/// The other side receives until all turns are over, or has panicked and waits for this thread to end.
fn send(say: &Sender<Said>, said: Said) {
    let _ = say.send(said);
}

fn attempt(
    plan: &Plan,
    arm: &Arm,
    turn: Turn,
    root: &Path,
    say: &Sender<Said>,
) -> Result<(), ExperimentError> {
    let retries = if plan.clock.varies() { plan.retries } else { 0 };
    for number in 0..=retries {
        send(say, Said::Started(turn, number));
        let directory = files::run_directory(root, turn.index, number, arm);
        let (run, curve) = match once(plan, arm, turn, &directory) {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(()),
            Err(error) if error.spoils_one_run() => (Run::failed(turn.seed, error.to_string()), None),
            Err(error) => return Err(error),
        };
        // Only lateness is worth another try: it comes from outside and says nothing about the arm.
        let again = !run.counts() && run.health.is_some();
        send(say, Said::Finished(Box::new(Attempt { turn, number, run, curve })));
        if !again {
            break;
        }
    }
    Ok(())
}

/// One run, with what the figure draws of it if it counts; `None` where another shard has it and has not made it yet.
fn once(
    plan: &Plan,
    arm: &Arm,
    turn: Turn,
    directory: &Path,
) -> Result<Option<(Run, Option<Curve>)>, ExperimentError> {
    match &plan.clock {
        Clock::Machine => {
            let (run, trace) = run::run(plan, arm, turn.seed, Some(directory))?;
            let curve = run.counts().then(|| Curve::new(&arm.name, &trace.flows[0], run.exit.as_ref()));
            Ok(Some((run, curve)))
        }
        Clock::Virtual(guests) => {
            job::run_in_guest(guests, plan, arm, turn.seed, guests.shard.has(turn.index), directory)
        }
    }
}
