//! Rates of ACK pairs by round, read off the state of flows of `best` while they run.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use onramp_files::bounded;
use onramp_lab::experiment::{LiveSample, Watch};
use onramp_lab::question::RoundRates;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, Algorithm};

/// Rates of ACK pairs of a trial's flows, next to its results.
pub(super) const PAIRS: &str = "pairs.json";
/// Unit of the bars that are rates of ACK pairs.
const RATES: &str = "bit/s";
/// Connections that have sent less are not the download's.
const DOWNLOAD_BYTES: u64 = 1_000_000;

/// One connection: what it has sent, and the last look at the pairs of each of its rounds.
#[derive(Default)]
struct Seen {
    bytes_sent: u64,
    rounds: BTreeMap<u32, Vec<u64>>,
}

/// Collects while flows run.
#[derive(Clone, Default)]
pub(super) struct Collector(Arc<Mutex<HashMap<u64, Seen>>>);

impl Collector {
    pub fn watch(&self) -> Watch {
        let seen = Arc::clone(&self.0);
        Watch(Arc::new(move |sample| look(sample, &mut seen.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    /// All rounds of all downloads.
    pub fn rounds(&self) -> Vec<RoundRates> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let downloads = seen.values().filter(|flow| flow.bytes_sent >= DOWNLOAD_BYTES);
        let rounds = downloads.flat_map(|flow| &flow.rounds);
        rounds.map(|(round, rates)| RoundRates { round: round + 1, bins: bins(rates) }).collect()
    }
}

/// What the runs of a trial have left, each in a directory of its own.
pub(super) fn left(trial: &Path) -> anyhow::Result<Vec<RoundRates>> {
    let failed = || format!("cannot read {}", trial.display());
    let mut all = Vec::new();
    let mut runs: Vec<_> =
        fs::read_dir(trial).with_context(failed)?.flatten().map(|run| run.path()).collect();
    runs.sort();
    for path in runs.into_iter().map(|run| run.join(PAIRS)).filter(|path| path.exists()) {
        let text = bounded::read_text(&path).with_context(failed)?;
        let rounds: Vec<RoundRates> = serde_json::from_str(&text).with_context(failed)?;
        all.extend(rounds);
    }
    Ok(all)
}

fn look(sample: &LiveSample<'_>, seen: &mut HashMap<u64, Seen>) {
    let (Some(storage), Some(algorithm)) = (sample.storage, algorithm::find(sample.arm)) else { return };
    let (Some(header), Some(state)) = (FlowHeader::read(storage), onramp_loader::state(storage)) else {
        return;
    };
    let Some((round, rates)) = newest(algorithm, state) else { return };
    // No two connections begin in one microsecond.
    let flow = seen.entry(header.start_us).or_default();
    flow.bytes_sent = flow.bytes_sent.max(sample.info.bytes_sent);
    if !rates.is_empty() {
        flow.rounds.insert(round, rates);
    }
}

/// The number of the round, and the rates of its ACK pairs so far, bit/s; `None`: the algorithm draws none.
fn newest(algorithm: Algorithm, state: &[u8]) -> Option<(u32, Vec<u64>)> {
    let bars = algorithm.picture(state)?.bars.filter(|bars| bars.unit == RATES)?;
    let round = algorithm.exports().find(|export| export.name == "rounds")?.read_first(state)?;
    Some((round, bars.values))
}

/// Rates of pairs, bytes per second, each counted once, ascending.
fn bins(rates_bps: &[u64]) -> Vec<(f64, u32)> {
    let mut rates: Vec<f64> = rates_bps.iter().map(|rate| (*rate as f64 / 8.0).round()).collect();
    rates.sort_by(f64::total_cmp);
    rates.into_iter().map(|rate| (rate, 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_per_second_in_ascending_order() {
        assert_eq!(bins(&[160_000_000, 80_000_000]), [(10_000_000.0, 1), (20_000_000.0, 1)]);
    }

    #[test]
    fn rounds_of_ack_pairs_are_read_where_an_algorithm_draws_them() {
        let read = algorithm::all().filter(|one| newest(*one, &vec![0xff; one.state_size()]).is_some());
        let names: Vec<_> = read.map(|one| one.name()).collect();
        assert_eq!(names, ["best"]);
    }
}
