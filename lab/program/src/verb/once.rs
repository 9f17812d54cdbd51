//! `onramp-lab once`: one run in a guest, as the host has asked for it.

use std::path::Path;

use anyhow::{Context, anyhow};
use clap::Args;
use onramp_lab::experiment::{JOB_PATH, Job};
use onramp_lab::guest::inside::OUT;

use super::pairs::{Collector, PAIRS};
use super::recorder::{RECORDING, Recorder};
use super::require_root;
use crate::arm::Arms;
use crate::follow;

/// Make the run that a guest has been given; not for calls by hand
#[derive(Args, Debug)]
pub(crate) struct Once {
    /// Say once a second on stderr what the flow does
    #[arg(long)]
    follow: bool,
    /// Record the flows of onramp's algorithms
    #[arg(long)]
    record: bool,
    /// Collect the rates of ACK pairs
    #[arg(long)]
    pairs: bool,
}

impl Once {
    pub fn run(self) -> anyhow::Result<u8> {
        require_root("lab once")?;
        let text = std::fs::read(JOB_PATH).with_context(|| format!("cannot read {JOB_PATH}"))?;
        let mut job: Job =
            serde_json::from_slice(&text).with_context(|| format!("cannot read {JOB_PATH}"))?;
        Job::read_objects()?;
        let arms = Arms::of_job(&job)?;
        if let Some(arm) = arms.arms.first() {
            job.arm.ready.clone_from(&arm.ready);
        }
        let collector = Collector::default();
        job.plan.watch = match (self.pairs, self.follow) {
            (true, _) => Some(collector.watch()),
            (_, true) => Some(follow::follow()),
            _ => None,
        };
        let recorder = match &job.arm.ready {
            Some(ready) if self.record => {
                // A recording describes what is attached when it begins.
                (ready.0)().map_err(|error| anyhow!(error))?;
                Some(Recorder::start(Path::new(OUT).join(RECORDING))?)
            }
            _ => None,
        };
        job.run(Path::new(OUT))?;
        recorder.map_or(Ok(()), Recorder::finish)?;
        if self.pairs {
            let path = Path::new(OUT).join(PAIRS);
            std::fs::write(&path, serde_json::to_string(&collector.rounds())?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(0)
    }
}
