// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What arms cost over a population, compared with the best one on each path.

use std::collections::BTreeMap;

use onramp_algorithm::ExitReason;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::RunRow;
use super::pareto::beats;
use crate::digest::hex;
use crate::emulator::MTU;
use crate::host::HEADER_BYTES;
use crate::sim::ORACLE;
use crate::stats::{Bound, Quantiles, Summary};
use onramp_terminal::output::SCHEMA;

/// An arm wins where it is so near to the least time …
const NEAR: f64 = 1.02;
/// … with so many losses at most, of the least of those that are as near, or …
const LOSSES: f64 = 1.25;
/// … so many segments.
const FEW_LOSSES: f64 = 50.0;
/// Bytes of the packets that the hosts of every path send, and what a full one carries.
const PACKET_BYTES: u64 = MTU as u64;
const MSS: u64 = PACKET_BYTES - HEADER_BYTES as u64;
/// An exit is early below this part of the bandwidth-delay product.
const EARLY_BDP: f64 = 0.7;
/// Paths that are named for each arm.
const WORST: usize = 5;

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Version of the JSON form.
    pub schema: u32,
    /// Name of the population.
    pub population: String,
    /// Its seed.
    pub seed: u64,
    /// Paths that were run over.
    pub paths: usize,
    /// Of these, how many have a doubling limit.
    pub paths_with_limit: usize,
    /// Each arm, as asked for.
    pub arms: Vec<ArmSummary>,
    /// Over the digests of all runs, in the order of paths and arms.
    pub digest: String,
}

/// One arm. Regrets are ratios of times, and differences of segments; the best arm of a path is the one that took the
/// least time, the oracle not counted. A run that was given up counts with the time until then, so that with one of them
/// times and losses are lower bounds; ratios leave out the paths on which no arm finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmSummary {
    /// Its name.
    pub arm: String,
    /// Share of paths on which it takes at most 1.02 times the least time, and sends at most max(50, 1.25 L) segments again,
    /// L the least of all that are as near.
    pub won: f64,
    /// Runs were given up, so that times, their ratios and losses are bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Paths on which an arm finished, so that the least time is known: those of `time` and `mean_time`.
    pub paths_compared: usize,
    /// Time over the least time.
    pub time: Option<Quantiles>,
    /// Time over the doubling limit, where there is one.
    pub time_over_limit: Option<Quantiles>,
    /// Time over what the receiver's window lets any sender have, where there is such a limit.
    pub time_over_receiver_limit: Option<Quantiles>,
    /// Runs that were bound by their receiver: for half of their time or more its window was the limit.
    pub bound_by_receiver: usize,
    /// Paths on which the oracle finished, if it is among the arms.
    pub paths_with_oracle: usize,
    /// Time over the oracle's on these.
    pub time_over_oracle: Option<Quantiles>,
    /// Segments retransmitted beyond the least of those within 2 % of the least time; below 0: fewer than these.
    pub losses: Option<Quantiles>,
    /// Segments retransmitted, in all.
    pub retransmitted_segments: u64,
    /// The same of a thousand that carried data for the first time.
    pub retransmitted_per_mille: f64,
    /// Mean over the paths of what the mean round-trip time is above the empty path's, microseconds.
    pub queueing_delay_us: f64,
    /// Runs that were given up; with one, times and losses are at least what is said.
    pub given_up: usize,
    /// Runs in which slow start ended by the algorithm's or the kernel's decision, not by loss.
    pub exits: usize,
    /// Of these, at a window below 0.7 of the bandwidth-delay product.
    pub early_exits: usize,
    /// The earliest of them.
    pub earliest: Vec<Worst>,
    /// No other arm is better in one of mean time over the least (geometric), losses and queueing delay without being worse
    /// in another. The oracle is not counted.
    pub front: bool,
    /// Geometric mean of time over the least time.
    pub mean_time: f64,
    /// Its 95 % confidence interval, over the paths: from, to. None of a single path, or where times are bounds.
    pub mean_time_ci95: Option<[f64; 2]>,
    /// By class of paths.
    pub classes: BTreeMap<String, ClassSummary>,
    /// Where it takes longest compared with the least time.
    pub worst: Vec<Worst>,
}

/// One arm over the paths of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassSummary {
    /// How many there are.
    pub paths: usize,
    /// Share of them that it won.
    pub won: f64,
    /// Runs over them were given up, so that times are bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Those on which an arm finished, so that the least time is known.
    pub paths_compared: usize,
    /// Time over the least time on these.
    pub time: Option<Quantiles>,
    /// Segments retransmitted, in all.
    pub retransmitted_segments: u64,
}

/// A path on which an arm is far from the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Name of the path.
    pub name: String,
    /// Its number.
    pub path: u64,
    /// Seconds.
    pub seconds: f64,
    /// The run was given up, so that seconds and retransmissions are bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Seconds of the best arm.
    pub best_seconds: f64,
    /// The best arm.
    pub best: String,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Why slow start ended; empty: it did not.
    pub exit: String,
    /// Window then, of the bandwidth-delay product.
    pub exit_bdp: f64,
    /// The path in one line.
    pub about: String,
}

/// A run compared with the others of its path.
struct Placed<'a> {
    row: &'a RunRow,
    best: &'a RunRow,
    oracle: Option<&'a RunRow>,
    time: f64,
    losses: f64,
    won: bool,
}

impl Sweep {
    /// Of the runs of whole paths, in the order of paths and in each of arms.
    pub fn new(population: &str, seed: u64, rows: &[RunRow]) -> Self {
        let paths: Vec<_> = rows.chunk_by(|one, next| one.path == next.path).collect();
        let mut of_arms = BTreeMap::<&str, Vec<Placed<'_>>>::new();
        for path in &paths {
            for placed in place(path) {
                of_arms.entry(&placed.row.arm).or_default().push(placed);
            }
        }
        let order = paths.first().copied().unwrap_or_default();
        let mut arms: Vec<_> =
            order.iter().filter_map(|row| Some(arm(&row.arm, of_arms.get(&*row.arm)?))).collect();
        mark_front(&mut arms);
        let mut sha = Sha256::new();
        rows.iter().for_each(|row| sha.update(row.digest.as_bytes()));
        Self {
            schema: SCHEMA,
            population: population.to_owned(),
            seed,
            paths: paths.len(),
            paths_with_limit: paths.iter().filter(|path| path[0].limit_us > 0).count(),
            arms,
            digest: format!("sha256:{}", hex(&sha.finalize())),
        }
    }
}

/// All runs of a path compared with each other.
fn place(path: &[RunRow]) -> Vec<Placed<'_>> {
    let oracle = path.iter().find(|row| row.arm == ORACLE);
    // Who did not finish is behind all who did.
    let key = |row: &&RunRow| (row.complete == 0, row.duration_ns, row.retransmitted_segments);
    let others = || path.iter().filter(|row| row.arm != ORACLE);
    let Some(best) = others().min_by_key(key).or(oracle) else { return Vec::new() };
    let near = |row: &RunRow| row.complete >= best.complete && row.seconds() <= NEAR * best.seconds();
    let least = others().filter(|row| near(row)).map(|row| row.retransmitted_segments).min();
    let least = least.unwrap_or(best.retransmitted_segments) as f64;
    let placed = |row| Placed {
        row,
        best,
        oracle,
        // Who did not finish took longer than who did.
        time: (row.seconds() / best.seconds().max(1e-9)).max(if row.complete < best.complete {
            1.0
        } else {
            0.0
        }),
        losses: row.retransmitted_segments as f64 - least,
        won: near(row)
            && row.complete == 1
            && row.retransmitted_segments as f64 <= FEW_LOSSES.max(LOSSES * least),
    };
    path.iter().map(placed).collect()
}

fn share(runs: &[&Placed<'_>]) -> f64 {
    runs.iter().filter(|run| run.won).count() as f64 / runs.len().max(1) as f64
}

/// Whether figures of these runs are bounds.
fn bound<'a>(runs: impl IntoIterator<Item = &'a Placed<'a>>) -> Option<Bound> {
    runs.into_iter().any(|run| run.row.complete == 0).then_some(Bound::AtLeast)
}

fn retransmitted(runs: &[&Placed<'_>]) -> u64 {
    runs.iter().map(|run| run.row.retransmitted_segments).sum()
}

fn arm(name: &str, runs: &[Placed<'_>]) -> ArmSummary {
    let count = runs.len() as f64;
    let all: Vec<_> = runs.iter().collect();
    // Where no arm finished, nothing is known of the best time.
    let compared = || runs.iter().filter(|run| run.best.complete == 1);
    let over_oracle = || {
        runs.iter().filter_map(|run| {
            let oracle = run.oracle.filter(|oracle| oracle.complete == 1)?;
            Some(run.row.seconds() / oracle.seconds().max(1e-9))
        })
    };
    let over = |limit_us: fn(&RunRow) -> u64| {
        let limited = runs.iter().filter(move |run| limit_us(run.row) > 0);
        Quantiles::new(limited.map(move |run| run.row.seconds() / (limit_us(run.row) as f64 / 1e6)))
    };
    let by_receiver = |run: &&Placed<'_>| run.row.receive_window_limited_us * 2_000 >= run.row.duration_ns;
    let mut of_classes = BTreeMap::<&str, Vec<&Placed<'_>>>::new();
    for run in runs {
        of_classes.entry(&run.row.class).or_default().push(run);
    }
    let class = |(name, runs): (&str, Vec<&Placed<'_>>)| {
        let compared = || runs.iter().filter(|run| run.best.complete == 1);
        let summary = ClassSummary {
            paths: runs.len(),
            won: share(&runs),
            bound: bound(runs.iter().copied()),
            paths_compared: compared().count(),
            time: Quantiles::new(compared().map(|run| run.time)),
            retransmitted_segments: retransmitted(&runs),
        };
        (name.to_owned(), summary)
    };
    let exits: Vec<_> = runs.iter().filter(|run| run.row.is_decided_exit()).collect();
    let mut early: Vec<_> = exits.iter().filter(|run| run.row.exit_bdp() < EARLY_BDP).collect();
    early.sort_by(|one, other| one.row.exit_bdp().total_cmp(&other.row.exit_bdp()));
    let segments: u64 = runs.iter().map(|run| run.row.bytes.div_ceil(MSS)).sum();
    let mut worst: Vec<_> = compared().filter(|run| run.row.arm != run.best.arm).collect();
    worst.sort_by(|one, other| other.time.total_cmp(&one.time).then(one.row.path.cmp(&other.row.path)));
    let logarithm = Summary::new(compared().map(|run| run.time.max(1e-9).ln()));
    let bound_of_all = bound(runs);
    ArmSummary {
        arm: name.to_owned(),
        won: share(&all),
        bound: bound_of_all,
        paths_compared: compared().count(),
        time: Quantiles::new(compared().map(|run| run.time)),
        time_over_limit: over(|row| row.limit_us),
        time_over_receiver_limit: over(|row| row.receiver_limit_us),
        bound_by_receiver: runs.iter().filter(by_receiver).count(),
        paths_with_oracle: over_oracle().count(),
        time_over_oracle: Quantiles::new(over_oracle()),
        losses: Quantiles::new(runs.iter().map(|run| run.losses)),
        retransmitted_segments: retransmitted(&all),
        retransmitted_per_mille: retransmitted(&all) as f64 * 1e3 / segments.max(1) as f64,
        queueing_delay_us: runs
            .iter()
            .map(|run| run.row.mean_rtt_us as f64 - run.row.base_rtt_us as f64)
            .sum::<f64>()
            / count,
        given_up: runs.iter().filter(|run| run.row.complete == 0).count(),
        exits: exits.len(),
        early_exits: early.len(),
        earliest: early.into_iter().take(WORST).map(|run| Worst::new(run)).collect(),
        front: false,
        mean_time: logarithm.map_or(1.0, |of| of.mean.exp()),
        mean_time_ci95: logarithm
            .filter(|_| bound_of_all.is_none())
            .and_then(|of| of.ci95.map(|half| [of.mean - half, of.mean + half].map(f64::exp))),
        classes: of_classes.into_iter().map(class).collect(),
        worst: worst.into_iter().take(WORST).map(Worst::new).collect(),
    }
}

impl RunRow {
    /// Bandwidth-delay product of the path, in IP packets.
    fn bdp_bytes(&self) -> f64 {
        (self.available_bps as f64 * self.base_rtt_us as f64 / 8e6).max(1.0)
    }

    /// Window at the exit, of the bandwidth-delay product.
    fn exit_bdp(&self) -> f64 {
        self.exit_window_bytes as f64 / MSS as f64 * PACKET_BYTES as f64 / self.bdp_bytes()
    }

    /// Whether slow start ended by a decision that the path is full.
    fn is_decided_exit(&self) -> bool {
        ExitReason::from_name(&self.exit) == Some(ExitReason::Algorithm)
    }
}

impl Worst {
    fn new(run: &Placed<'_>) -> Self {
        let row = run.row;
        let mut about = format!(
            "{:.3} Mb/s, {:.1} ms, queue {:.2} BDP, {}",
            row.available_bps as f64 / 1e6,
            row.base_rtt_us as f64 / 1e3,
            row.queue_bytes as f64 / row.bdp_bytes(),
            row.aqm,
        );
        let ratio = row.available_bps as f64 / row.return_rate_bps as f64;
        for (there, said) in [
            (row.jitter_us > 0, format!("jitter {:.1} ms", row.jitter_us as f64 / 1e3)),
            (
                row.aggregation_us > 0,
                format!("acknowledgments every {:.1} ms", row.aggregation_us as f64 / 1e3),
            ),
            (ratio > 20.0, format!("{ratio:.0} times the way back")),
            (row.cross_bps > 0, format!("others {:.1} Mb/s", row.cross_bps as f64 / 1e6)),
            (row.loss_ppb > 0, format!("loss {:.3} %", row.loss_ppb as f64 / 1e7)),
        ] {
            if there {
                about += &format!(", {said}");
            }
        }
        about += &format!(", {} {:.2} MB", row.source, row.bytes as f64 / 1e6);
        Self {
            name: row.name.to_string(),
            path: row.path,
            seconds: row.seconds(),
            bound: bound([run]),
            best_seconds: run.best.seconds(),
            best: run.best.arm.to_string(),
            retransmitted_segments: row.retransmitted_segments,
            exit: row.exit.to_string(),
            exit_bdp: row.exit_bdp(),
            about,
        }
    }
}

/// What is to be small.
fn costs(arm: &ArmSummary) -> [f64; 3] {
    [arm.mean_time, arm.retransmitted_per_mille, arm.queueing_delay_us]
}

/// Marks those that no other arm beats. The oracle does not take part.
fn mark_front(arms: &mut [ArmSummary]) {
    let beats =
        |other: &ArmSummary, arm: &ArmSummary| other.arm != ORACLE && beats(&costs(other), &costs(arm));
    let front: Vec<_> =
        arms.iter().map(|arm| arm.arm != ORACLE && !arms.iter().any(|other| beats(other, arm))).collect();
    arms.iter_mut().zip(front).for_each(|(arm, front)| arm.front = front);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of so many ms and losses over a path with a limit of one second.
    pub fn row(path: u64, arm: &'static str, ms: u64, losses: u64) -> RunRow {
        RunRow {
            path,
            name: format!("a-{path}").into(),
            class: if path < 2 { "a" } else { "b" }.into(),
            available_bps: 8_000_000,
            return_rate_bps: 8_000_000,
            base_rtt_us: 50_000,
            bytes: 1_448_000,
            limit_us: 1_000_000,
            arm: arm.into(),
            complete: 1,
            duration_ns: ms * 1_000_000,
            retransmitted_segments: losses,
            mean_rtt_us: 60_000,
            digest: format!("{path} {arm} {ms}").into(),
            ..RunRow::default()
        }
    }

    fn sweep(rows: &[RunRow]) -> Sweep {
        Sweep::new("x", 1, rows)
    }

    #[test]
    fn who_is_as_fast_with_as_few_losses_wins() {
        let sweep = sweep(&[
            row(0, "fast", 1_000, 400),
            row(0, "careful", 1_019, 100),
            row(0, "near", 1_020, 125),
            row(0, "lossy", 1_000, 126),
            row(0, "slow", 1_021, 0),
        ]);
        let won: Vec<_> = sweep.arms.iter().map(|arm| (arm.arm.as_str(), arm.won)).collect();
        assert_eq!(won, [("fast", 0.0), ("careful", 1.0), ("near", 1.0), ("lossy", 0.0), ("slow", 0.0)]);
        // Losses beyond those of the most careful of the near; the slow one is not near.
        let losses: Vec<_> = sweep.arms.iter().map(|arm| arm.losses.unwrap().worst).collect();
        assert_eq!(losses, [300.0, 0.0, 25.0, 26.0, -100.0]);
        assert_eq!(sweep.arms[0].retransmitted_per_mille, 400.0);
        assert_eq!(sweep.arms[0].queueing_delay_us, 10_000.0);
    }

    #[test]
    fn regrets_are_next_to_the_best_of_each_path_the_limit_and_the_oracle() {
        let mut rows = Vec::new();
        for (path, ms) in [(0, 2_000), (1, 1_500), (2, 3_000)] {
            rows.extend([row(path, "one", 1_500, 0), row(path, "two", ms, 0), row(path, ORACLE, 1_200, 0)]);
        }
        let sweep = sweep(&rows);
        let [one, two, oracle] = &sweep.arms[..] else { panic!("three arms") };
        assert_eq!(one.time.unwrap().worst, 1.0);
        assert_eq!(two.time.unwrap(), Quantiles { median: 2.0 / 1.5, p95: 2.0, p99: 2.0, worst: 2.0 });
        assert_eq!(two.time_over_limit.unwrap().median, 2.0);
        assert_eq!(two.time_over_oracle.unwrap().worst, 2.5);
        assert_eq!(
            oracle.time.unwrap().median,
            1.2 / 1.5,
            "it knows what no host knows, and is never the best"
        );
        assert_eq!((two.classes["a"].paths, two.classes["b"].paths), (2, 1));
        let worst: Vec<_> = two.worst.iter().map(|worst| (worst.path, worst.best.as_str())).collect();
        assert_eq!(worst, [(2, "one"), (0, "one"), (1, "one")]);
        assert!(one.worst.is_empty());
    }

    #[test]
    fn a_mean_of_ratios_has_its_interval_unless_it_is_a_bound_or_of_a_single_path() {
        let rows = |other| [row(0, "one", 1_000, 0), other, row(2, "one", 1_000, 0), row(2, "two", 2_000, 0)];
        let of = |rows: &[RunRow]| sweep(rows).arms[1].mean_time_ci95;
        // Ratios 1 and 2: half of the interval of their logarithms is t(1) = 12.706 times half of ln 2.
        let [from, to] = of(&rows(row(0, "two", 1_000, 0))).unwrap();
        assert!((from * to - 2.0).abs() < 1e-9, "around the geometric mean");
        assert!(((to / from).ln() - 12.706 * 2f64.ln()).abs() < 1e-9, "{from} {to}");
        assert_eq!(of(&rows(RunRow { complete: 0, ..row(0, "two", 9_000, 0) })), None);
        assert_eq!(of(&rows(row(0, "two", 1_000, 0))[..2]), None);
    }

    #[test]
    fn who_does_not_finish_never_wins() {
        let given_up = RunRow { complete: 0, ..row(0, "stuck", 900, 0) };
        let sweep = sweep(&[given_up, row(0, "done", 1_000, 0)]);
        assert_eq!((sweep.arms[0].won, sweep.arms[0].given_up), (0.0, 1));
        assert_eq!((sweep.arms[1].won, sweep.arms[1].time.unwrap().worst), (1.0, 1.0));
        assert_eq!(sweep.arms[0].time.unwrap().worst, 1.0, "it took longer than who finished");
    }

    #[test]
    fn a_path_on_which_no_arm_finished_flatters_no_arm() {
        let stuck = |arm| RunRow { complete: 0, ..row(1, arm, 9_000, 0) };
        let rows = [row(0, "one", 2_000, 0), row(0, "two", 1_000, 0), stuck("one"), stuck("two")];
        let arms = sweep(&rows).arms;
        assert_eq!((arms[0].given_up, arms[0].won, arms[0].mean_time), (1, 0.0, 2.0));
        assert_eq!((arms[0].paths_compared, arms[0].bound), (1, Some(Bound::AtLeast)));
        let worst: Vec<_> = arms[0].worst.iter().map(|worst| (worst.path, worst.bound)).collect();
        assert_eq!(worst, [(0, None)], "no arm is known to be the best of the other path");
        assert_eq!(arms[0].time.unwrap(), Quantiles { median: 2.0, p95: 2.0, p99: 2.0, worst: 2.0 });
    }

    #[test]
    fn what_is_a_bound_is_marked_in_its_class_its_path_and_over_the_oracle() {
        let given_up = |path, arm| RunRow { complete: 0, ..row(path, arm, 9_000, 0) };
        let rows = [
            [row(0, "one", 2_000, 0), row(0, "two", 1_000, 0), row(0, ORACLE, 1_000, 0)],
            [row(1, "one", 1_000, 0), row(1, "two", 1_000, 0), given_up(1, ORACLE)],
            [given_up(2, "one"), row(2, "two", 1_000, 0), row(2, ORACLE, 1_000, 0)],
            [given_up(3, "one"), given_up(3, "two"), given_up(3, ORACLE)],
        ];
        let sweep = sweep(&rows.concat());
        let [one, two, _] = &sweep.arms[..] else { panic!("three arms") };
        for (arm, given_up) in [(one, 2), (two, 1)] {
            assert_eq!((arm.given_up, arm.bound), (given_up, Some(Bound::AtLeast)));
            assert_eq!((arm.paths_compared, arm.paths_with_oracle), (3, 2));
            let class = |name| (arm.classes[name].bound, arm.classes[name].paths_compared);
            assert_eq!((class("a"), class("b")), ((None, 2), (Some(Bound::AtLeast), 1)));
        }
        let worst: Vec<_> = one.worst.iter().map(|worst| (worst.path, worst.bound)).collect();
        assert_eq!(worst, [(2, Some(Bound::AtLeast)), (0, None)]);
        let json = serde_json::to_value(&sweep).unwrap();
        assert_eq!(json["arms"][0]["classes"]["b"]["bound"], "at_least");
        assert_eq!(json["arms"][0]["classes"]["a"].get("bound"), None);
    }

    #[test]
    fn an_exit_is_early_below_seven_tenths_of_what_the_path_holds_if_an_algorithm_decided() {
        // The path holds 50 kB in packets of 1500 bytes.
        let exit = |path, reason: &'static str, segments| RunRow {
            exit: reason.into(),
            exit_window_bytes: segments * MSS,
            ..row(path, "one", 1_000, 0)
        };
        let rows = [
            exit(0, "algorithm", 23),
            exit(1, "algorithm", 24),
            exit(2, "algorithm", 10),
            exit(3, "loss", 10),
            exit(4, "", 0),
        ];
        let arm = &sweep(&rows).arms[0];
        assert_eq!((arm.exits, arm.early_exits), (3, 2));
        let earliest: Vec<_> = arm.earliest.iter().map(|one| (one.path, one.exit_bdp)).collect();
        assert_eq!(earliest, [(2, 0.3), (0, 0.69)]);
    }

    #[test]
    fn the_digest_is_that_of_all_runs() {
        let one = sweep(&[row(0, "a", 1_000, 0), row(1, "a", 1_000, 0)]).digest;
        assert_ne!(one, sweep(&[row(0, "a", 1_000, 0), row(1, "a", 1_001, 0)]).digest);
    }
}
