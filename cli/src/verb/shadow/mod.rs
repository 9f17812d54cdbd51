//! `onramp shadow`.

mod flows;
mod text;

use std::time::{Duration, Instant};

use clap::Args;
use onramp_loader::algorithm;
use onramp_loader::shadow::{Shadow as Source, Watch};
use onramp_recording::replay::candidates;
use serde::Serialize;

use crate::consumer::{Selection, Signals};
use crate::failure::Usage;
use crate::output::Output;
use crate::settings::AlgorithmName;
use crate::units;
use flows::{FlowRow, Flows};

/// How long to wait for the kernel before looking at the clock and at signals.
const LOOK: Duration = Duration::from_millis(200);
/// Snapshots after which to look even if more are waiting.
const BATCH: u32 = 4_096;

/// Say when algorithms would have exited slow start, on flows of any congestion control, and change nothing
///
/// Watches TCP flows of all network namespaces from the kernel's tracepoints and runs the algorithms here, next
/// to what the flows really do. Nothing is attached or pinned: when this process ends, however it does, nothing is left.
/// Flows are evaluated until each algorithm's first exit or the real end of their first slow start. FILTER as for ss(8):
/// `src` or `dst` with PREFIX, PREFIX:PORT or :PORT; `sport` or `dport` with a comparison, such as `= :443`, `!=
/// :22`, `>= :1024`; `and`, `or`, `not` and parentheses, read from left to right.
///
/// Prints at the end: after --for, or at Ctrl-C.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp shadow --algorithm search,best,hystartpp --for 30s\n  onramp shadow --for 1m --regret\n  onramp shadow --algorithm search --set search.threshold_pct=30 dst 198.51.100.0/24\n  onramp shadow --algorithm best --sweep best.min_rate_bytes_per_s=100000,1000000 --for 1m --json\n  onramp shadow --algorithm ramp --sample 100 --for 10m"
)]
pub(crate) struct Shadow {
    /// Algorithms; `onramp list` shows them
    #[arg(short, long, value_name = "ALG,…", value_parser = AlgorithmName, hide_possible_values = true, value_delimiter = ',', default_value = algorithm::default().name())]
    algorithm: Vec<String>,
    /// Set a parameter: NAME=VALUE for all algorithms, ALG.NAME=VALUE for one
    #[arg(long = "set", value_name = "[ALG.]NAME=VALUE")]
    settings: Vec<String>,
    /// Try every value: NAME=VALUE,VALUE,… or NAME=FROM:TO:STEP; several sweeps make all combinations
    #[arg(long, value_name = "[ALG.]NAME=VALUES")]
    sweep: Vec<String>,
    /// Also established flows: their beginning is not known, so algorithms start anew in their middle
    #[arg(long)]
    established: bool,
    /// Also say what the path gave in the end, and what each exit cost against that: time lost by leaving early. Flows are
    /// watched past their slow start for it
    #[arg(long)]
    regret: bool,
    /// End after this time: 30s, 10m, 2h [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = units::time_limit)]
    duration: Option<Duration>,
    #[command(flatten)]
    selection: Selection,
}

#[derive(Serialize)]
struct ShadowReport {
    duration_us: u64,
    /// Of so many flows one was followed.
    sample: u32,
    /// Observations for which the kernel had no room; each costs its flow an acknowledgment or two.
    dropped: u64,
    /// Flows passed over because they were in progress.
    skipped_established: u64,
    /// Flows that the kernel had no memory to follow.
    skipped_no_memory: u64,
    /// Flows beyond those that are kept.
    skipped_too_many: u64,
    flows: Vec<FlowRow>,
}

impl Shadow {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let candidates = candidates(&self.algorithm, &self.settings, &self.sweep)
            .map_err(|error| Usage::error(error.to_string()))?;
        let filter = self.selection.filter()?;
        // From here on a signal ends the watch instead of the process.
        let signals = Signals::take()?;
        let watch =
            Watch { established: self.established, past: self.regret, sampling: self.selection.sample };
        let mut source = Source::open(watch)?;

        let mut flows = Flows::new(candidates, self.regret, filter);
        output.progress("watching flows …");
        let begin = Instant::now();
        while !signals.came() && self.duration.is_none_or(|duration| begin.elapsed() < duration) {
            let mut snapshot = source.next_within(LOOK);
            for _ in 0..BATCH {
                let Some(one) = snapshot else { break };
                flows.take(&one);
                snapshot = source.try_next();
            }
            if let Some(one) = snapshot {
                flows.take(&one);
            }
        }
        source.stop();
        let duration = begin.elapsed();
        while let Some(one) = source.try_next() {
            flows.take(&one);
        }
        let counts = source.counts()?;
        let report = ShadowReport {
            sample: self.selection.sample,
            duration_us: duration.as_micros() as u64,
            dropped: counts.lost,
            skipped_established: counts.established,
            skipped_no_memory: counts.unfollowed,
            skipped_too_many: flows.too_many,
            flows: flows.finish(),
        };
        output.data(&report, || text::report(&report, self.regret, output))?;
        Ok(0)
    }
}
