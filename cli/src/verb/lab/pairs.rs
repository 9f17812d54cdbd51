//! Rates of ACK pairs by round, read off the state of flows of `best` while they run.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use onramp_files::bounded;
use onramp_lab::experiment::{Sight, Watch};
use onramp_lab::reproduce::RoundRates;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm;

use crate::ack_pairs::rates_bps;

/// Rates of ACK pairs of a trial's flows, beside its results.
pub(super) const PAIRS: &str = "pairs.json";
/// The algorithm that keeps them.
const ALGORITHM: &str = "best";
/// Connections that have sent less are not the download's.
const DOWNLOAD_BYTES: u64 = 1_000_000;

/// One connection: what it has sent, and the last look at the pairs of each of its rounds.
#[derive(Default)]
struct Seen {
    bytes_sent: u64,
    rounds: BTreeMap<u32, Vec<u32>>,
}

/// Collects while flows run.
#[derive(Clone, Default)]
pub(super) struct Collector(Arc<Mutex<HashMap<u64, Seen>>>);

impl Collector {
    pub fn watch(&self) -> Watch {
        let seen = Arc::clone(&self.0);
        Watch(Arc::new(move |sight| look(sight, &mut seen.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    /// All rounds of all downloads.
    pub fn rounds(&self) -> Vec<RoundRates> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let downloads = seen.values().filter(|flow| flow.bytes_sent >= DOWNLOAD_BYTES);
        let rounds = downloads.flat_map(|flow| &flow.rounds);
        rounds.map(|(round, pairs)| RoundRates { round: round + 1, bins: bins(pairs) }).collect()
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

fn look(sight: &Sight<'_>, seen: &mut HashMap<u64, Seen>) {
    let (Some(storage), Some(best)) = (sight.storage, algorithm::find(ALGORITHM)) else { return };
    if sight.arm != ALGORITHM {
        return;
    }
    let Some(header) = FlowHeader::read(storage) else { return };
    let exports = onramp_loader::exports(best, storage);
    let export =
        |name: &str| exports.iter().find(|(export, _)| export.name == name).map(|(_, values)| values);
    let (Some(rounds), Some(pairs)) = (export("rounds"), export("pairs")) else { return };
    // No two connections begin in one microsecond.
    let flow = seen.entry(header.start_us).or_default();
    flow.bytes_sent = flow.bytes_sent.max(sight.info.bytes_sent);
    if let (Some(round), true) = (rounds.first(), rates_bps(pairs).next().is_some()) {
        flow.rounds.insert(*round, pairs.clone());
    }
}

/// Rates of pairs, bytes per second, each counted once, ascending.
fn bins(pairs: &[u32]) -> Vec<(f64, u32)> {
    let mut rates: Vec<f64> = rates_bps(pairs).map(|rate| (rate as f64 / 8.0).round()).collect();
    rates.sort_by(f64::total_cmp);
    rates.into_iter().map(|rate| (rate, 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_rates_and_those_that_are_not_there_are_none() {
        assert_eq!(bins(&[50_000, u32::MAX, 100_000, u32::MAX]), [(10_000_000.0, 1), (20_000_000.0, 1)]);
    }

    #[test]
    fn the_algorithm_exports_what_is_read() {
        let best = algorithm::find(ALGORITHM).unwrap();
        let names: Vec<_> = best.exports().map(|export| export.name).collect();
        assert!(names.contains(&"rounds") && names.contains(&"pairs"), "{names:?}");
    }
}
