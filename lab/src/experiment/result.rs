// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an experiment yields. The JSON form is an interface: fields are added, never renamed or removed, without a
//! new schema number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::arm::{Arm, Exit};
use super::clock::Origin;
use super::measures::Measures;
use super::plan::{Amount, Plan};
use super::regret::LinkRegret;
use onramp_terminal::output::SCHEMA;

use crate::emulator::Health;
use crate::stats::Summary;

/// One run of one arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Whether it was measured in full.
    pub valid: bool,
    /// Whether it was given up at the limit. It counts as far as it came: times, retransmissions and drops are lower bounds.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut_off: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_reason: Option<String>,
    /// Seed of the link's randomness.
    pub seed: u64,
    /// Receiver's time from the start of the transfer to the last byte, seconds; of several flows, from the
    /// start of the first to the last byte of all.
    pub seconds: f64,
    /// Bytes received over that time, bit/s; of a run that was given up, those that had arrived.
    pub goodput_bps: f64,
    /// Bytes the receiver got, all flows.
    pub received_bytes: u64,
    /// From the first full packet that the emulator handed to the receiver to the last, seconds: a check on `seconds`.
    /// Longer than it where iperf3's sender sent part of a block more than asked (see `received_bytes`), by up to a
    /// round trip if that part had to wait for the window.
    pub link_seconds: Option<f64>,
    /// Segments the sender retransmitted (`tcp_info`, last look at the flows).
    pub retransmitted_segments: u64,
    /// The same as iperf3 counted; none where it did not make the transfer.
    pub iperf3_retransmitted_segments: Option<u64>,
    /// Packets the forward queue dropped, full or by AQM.
    pub queue_drops: u64,
    /// Of these, by AQM.
    pub aqm_drops: u64,
    /// Packets that AQM marked instead (RFC 3168).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ecn_marks: u64,
    /// Most the forward queue held, bytes.
    pub max_queue_bytes: u64,
    /// Base round-trip time of the flow, where flows have one each; else it is that of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rtt_us: Option<u64>,
    /// Largest smoothed round-trip time, microseconds.
    pub max_rtt_us: u32,
    /// Mean smoothed round-trip time from the first data to the last acknowledgment, microseconds.
    pub mean_rtt_us: f64,
    /// Smallest round-trip time, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Time stalled by the receiver's window, seconds.
    pub receive_window_limited_seconds: f64,
    /// Time stalled by the send buffer, seconds.
    pub send_buffer_limited_seconds: f64,
    /// How slow start ended; none if it did not, or if it cannot be seen. Of several flows, the first one's, as are
    /// round-trip times, stalls and measures.
    pub exit: Option<Exit>,
    /// What that exit cost, measured by what the link gives; none too where several flows share it or it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret: Option<LinkRegret>,
    /// Read off the series of the flow.
    pub measures: Measures,
    /// Each of several flows, in the order of their starts; empty for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRun>,
    /// Jain's index of the goodputs of several flows: 1 where all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// What a competitor got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competitor: Option<CompetitorRun>,
    /// The transfer before it, which is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<WarmRun>,
    /// Processor time of the whole machine during the transfer, seconds; that of the emulator is in `health`. None
    /// where several runs went on at once.
    pub machine_cpu_seconds: Option<f64>,
    /// How the emulator kept up.
    pub health: Option<Health>,
    /// In virtual time: from the guest's boot to the end of the run, by its clock, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_seconds: Option<f64>,
    /// In virtual time: what the guest cost this host's processors, boot included, seconds. The only figure that differs
    /// from one machine to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu_seconds: Option<f64>,
    /// Of all that crossed the link, with its times; see [`Report::digest`](crate::emulator::Report::digest).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Run {
    /// Whether it counts: in full, or as far as it came.
    pub fn counts(&self) -> bool {
        self.valid || self.cut_off
    }

    /// A run that was given up at a limit before anything was sent.
    pub(crate) fn cut_off(seed: u64, limit: Duration) -> Self {
        let seconds = limit.as_secs_f64();
        let reason = format!("given up at the limit of {seconds:.0} s (--timeout)");
        Self { cut_off: true, seconds, ..Self::failed(seed, reason) }
    }

    /// A run that yielded nothing.
    pub(crate) fn failed(seed: u64, reason: String) -> Self {
        Self {
            valid: false,
            cut_off: false,
            invalid_reason: Some(reason),
            seed,
            seconds: 0.0,
            goodput_bps: 0.0,
            received_bytes: 0,
            link_seconds: None,
            retransmitted_segments: 0,
            iperf3_retransmitted_segments: None,
            queue_drops: 0,
            aqm_drops: 0,
            ecn_marks: 0,
            max_queue_bytes: 0,
            base_rtt_us: None,
            max_rtt_us: 0,
            mean_rtt_us: 0.0,
            min_rtt_us: None,
            receive_window_limited_seconds: 0.0,
            send_buffer_limited_seconds: 0.0,
            exit: None,
            regret: None,
            measures: Measures::default(),
            flows: Vec::new(),
            fairness: None,
            competitor: None,
            warm: None,
            machine_cpu_seconds: None,
            health: None,
            guest_seconds: None,
            host_cpu_seconds: None,
            digest: None,
        }
    }
}

/// One of several flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowRun {
    /// Receiver's time from the start of its transfer to the last byte, seconds.
    pub seconds: f64,
    /// Bytes received over that time, bit/s.
    pub goodput_bps: f64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Its base round-trip time, where flows have one each, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rtt_us: Option<u64>,
    /// Its smallest round-trip time, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// How slow start ended.
    pub exit: Option<Exit>,
}

/// The transfer over the same path before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmRun {
    /// Receiver's time from its start to the last byte, seconds.
    pub seconds: f64,
    /// Of all that crossed the link, as that of the run.
    pub digest: String,
}

/// What a competitor got while the arm's first flow was there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompetitorRun {
    /// Its goodput in that time, bit/s.
    pub goodput_bps: f64,
    /// Its goodput in as long a time before, or in its whole life before if that was shorter, bit/s.
    pub goodput_before_bps: f64,
    /// Its share of what both got, 0 to 1; 0.5 is an equal one.
    pub share: f64,
    /// Segments it retransmitted in its whole life.
    pub retransmitted_segments: u64,
    /// Its base round-trip time, where flows have one each, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rtt_us: Option<u64>,
}

/// All runs of one arm. Summaries cover the runs that count; with one that was cut off they are bounds and say so.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmResult {
    /// Name of the arm.
    pub arm: String,
    /// The kernel's name of the congestion control.
    pub congestion_control: String,
    /// Number of runs that were measured in full.
    pub valid_runs: usize,
    /// Number of runs that were given up at the limit, and count as far as they came.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cut_off_runs: usize,
    /// Download time, seconds.
    pub seconds: Option<Summary>,
    /// Goodput, bit/s.
    pub goodput_bps: Option<Summary>,
    /// Segments retransmitted.
    pub retransmitted_segments: Option<Summary>,
    /// Packets dropped by the forward queue.
    pub queue_drops: Option<Summary>,
    /// Largest smoothed round-trip time, microseconds.
    pub max_rtt_us: Option<Summary>,
    /// Mean smoothed round-trip time, microseconds.
    pub mean_rtt_us: Option<Summary>,
    /// Goodput over the last third, bit/s.
    pub steady_goodput_bps: Option<Summary>,
    /// Share that the competitor kept, over the runs that had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competitor_share: Option<Summary>,
    /// Jain's index, over the runs of several flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Summary>,
    /// Processor time of the machine, seconds.
    pub machine_cpu_seconds: Option<Summary>,
    /// Processor time of the emulator's thread, seconds.
    pub emulator_cpu_seconds: Option<Summary>,
    /// Time of the exit, seconds, over the runs that have one.
    pub exit_seconds: Option<Summary>,
    /// Window at the exit, bytes, over the runs that have one.
    pub exit_window_bytes: Option<Summary>,
    /// Time lost by leaving early, seconds, over the runs that have a regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_seconds: Option<Summary>,
    /// What it is: enough to run it again. Absent in results that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Arm>,
    /// The runs, in the order they took place.
    pub runs: Vec<Run>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_nothing(value: &usize) -> bool {
    *value == 0
}

impl ArmResult {
    /// Summarises runs of an arm, which can be made again from it.
    pub(crate) fn from_runs(arm: &Arm, runs: Vec<Run>) -> Self {
        let definition = Some(arm.clone());
        Self { definition, ..Self::new(&arm.name, &arm.congestion_control, runs) }
    }

    /// Summarises runs.
    pub fn new(arm: &str, congestion_control: &str, runs: Vec<Run>) -> Self {
        let counted = || runs.iter().filter(|run| run.counts());
        let at_least =
            |value: &dyn Fn(&Run) -> f64| Summary::at_least(counted().map(|run| (value(run), run.cut_off)));
        let of_exit = |value: &dyn Fn(&Exit) -> f64| {
            Summary::new(counted().filter_map(|run| Some(value(run.exit.as_ref()?))))
        };
        let if_any = |value: &dyn Fn(&Run) -> Option<f64>| Summary::new(counted().filter_map(value));
        Self {
            arm: arm.to_owned(),
            congestion_control: congestion_control.to_owned(),
            valid_runs: runs.iter().filter(|run| run.valid).count(),
            cut_off_runs: runs.iter().filter(|run| run.cut_off).count(),
            seconds: at_least(&|run| run.seconds),
            goodput_bps: Summary::new(counted().map(|run| run.goodput_bps)),
            retransmitted_segments: at_least(&|run| run.retransmitted_segments as f64),
            queue_drops: at_least(&|run| run.queue_drops as f64),
            max_rtt_us: at_least(&|run| f64::from(run.max_rtt_us)),
            mean_rtt_us: Summary::new(counted().map(|run| run.mean_rtt_us)),
            steady_goodput_bps: if_any(&|run| run.measures.steady_goodput_bps.filter(|_| run.valid)),
            competitor_share: if_any(&|run| Some(run.competitor?.share)),
            fairness: if_any(&|run| run.fairness),
            machine_cpu_seconds: if_any(&|run| run.machine_cpu_seconds),
            emulator_cpu_seconds: if_any(&|run| Some(run.health.as_ref()?.cpu_seconds)),
            exit_seconds: of_exit(&|exit| exit.seconds),
            exit_window_bytes: of_exit(&|exit| exit.window_bytes as f64),
            early_seconds: if_any(&|run| Some(run.regret?.cost.early_us as f64 / 1e6)),
            definition: None,
            runs,
        }
    }
}

/// All arms of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where it was made: clock, kernel, QEMU.
    #[serde(flatten)]
    pub origin: Origin,
    /// Name of the profile.
    pub profile: String,
    /// `bytes` of each transfer, or its `seconds`.
    #[serde(flatten)]
    pub amount: Amount,
    /// Bandwidth-delay product of the link, bytes.
    pub bdp_bytes: u64,
    /// Base round-trip time of the link, microseconds, without what flows have besides.
    pub base_rtt_us: u64,
    /// Rate of the forward direction, bit/s.
    pub rate_bps: u64,
    /// Seed of the first repetition; each further one adds 1, and all arms of a repetition share theirs.
    pub seed: u64,
    /// What was asked for: enough to do it again. Absent in results that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// One entry per arm, in the order given.
    pub arms: Vec<ArmResult>,
    /// Where some runs of some arms were not measured in full: the arms over the seeds that all of them finished. Only these
    /// compare arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<Paired>,
    /// Where the files are.
    #[serde(skip)]
    pub directory: Option<std::path::PathBuf>,
}

impl Comparison {
    /// What came of a plan, without files.
    pub(crate) fn new(plan: &Plan, origin: Origin, arms: Vec<ArmResult>) -> Self {
        let link = &plan.profile.link;
        let paired = Paired::new(&arms);
        Self {
            schema: SCHEMA,
            origin,
            profile: plan.profile.name.clone(),
            amount: plan.amount,
            bdp_bytes: link.bdp_bytes(),
            base_rtt_us: link.base_rtt_us(),
            rate_bps: link.forward.rate_bps,
            seed: plan.seed,
            plan: Some(Box::new(plan.clone())),
            arms,
            paired,
            directory: None,
        }
    }
}

/// Arms over the seeds that all of them finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// These seeds.
    pub seeds: Vec<u64>,
    /// How many seeds there are in all.
    pub of: usize,
    /// Download time over these, seconds, by name of the arm; empty without such a seed.
    pub seconds: BTreeMap<String, Summary>,
    /// Segments retransmitted, the same way.
    pub retransmitted_segments: BTreeMap<String, Summary>,
}

impl Paired {
    /// `None` where nothing is missing, and for a single arm.
    fn new(arms: &[ArmResult]) -> Option<Self> {
        let seeds: BTreeSet<u64> = arms.iter().flat_map(|arm| arm.runs.iter().map(|run| run.seed)).collect();
        let finished = |arm: &ArmResult, seed: u64| arm.runs.iter().any(|run| run.seed == seed && run.valid);
        let by_all: Vec<u64> =
            seeds.iter().copied().filter(|seed| arms.iter().all(|arm| finished(arm, *seed))).collect();
        if arms.len() < 2 || by_all.len() == seeds.len() {
            return None;
        }
        let over = |value: fn(&Run) -> f64| {
            let of_arm = |arm: &ArmResult| {
                let runs = arm.runs.iter().filter(|run| run.valid && by_all.contains(&run.seed));
                Some((arm.arm.clone(), Summary::new(runs.map(value))?))
            };
            arms.iter().filter_map(of_arm).collect()
        };
        let (seconds, retransmitted_segments) =
            (over(|run| run.seconds), over(|run| run.retransmitted_segments as f64));
        Some(Self { seeds: by_all, of: seeds.len(), seconds, retransmitted_segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Bound;

    #[test]
    fn invalid_runs_are_kept_and_not_counted() {
        let run =
            |seconds, valid| Run { valid, seconds, invalid_reason: None, ..Run::failed(1, String::new()) };
        let result = ArmResult::new("a", "cubic", vec![run(10.0, true), run(99.0, false), run(12.0, true)]);
        assert_eq!((result.valid_runs, result.runs.len()), (2, 3));
        assert_eq!(result.seconds.unwrap().mean, 11.0);
        assert_eq!(result.exit_seconds, None);
        let none = ArmResult::new("a", "cubic", vec![run(99.0, false)]);
        assert_eq!(none.seconds, None);
    }

    fn finished(seed: u64, seconds: f64, retransmitted_segments: u64) -> Run {
        let run = Run { valid: true, invalid_reason: None, seconds, ..Run::failed(seed, String::new()) };
        Run { goodput_bps: 1e9 / seconds, retransmitted_segments, ..run }
    }

    /// Whatever its other runs took: what is given up took longer than all that finished within the limit.
    #[test]
    fn a_run_over_the_limit_never_lowers_a_mean_nor_raises_a_rank() {
        let limit = Duration::from_secs(400);
        for seed in 0..200_u64 {
            let value = |at: u64| {
                (crate::digest::mix(seed * 8 + at + 1, 0x9e37_79b9_7f4a_7c15) % 399_000) as f64 / 1e3
            };
            let runs: Vec<Run> = (0..1 + seed % 6).map(|at| finished(at, value(at).max(0.1), at)).collect();
            let over = Run { goodput_bps: 1e8 / 400.0, retransmitted_segments: 99, ..Run::cut_off(9, limit) };
            let before = ArmResult::new("a", "cubic", runs.clone());
            let after = ArmResult::new("a", "cubic", [runs, vec![over]].concat());
            let [one, two] = [&before, &after].map(|arm| arm.seconds.unwrap());
            assert!(two.mean >= one.mean, "{one:?} {two:?}");
            assert_eq!((one.bound, two.bound), (None, Some(Bound::AtLeast)));
            let [one, two] = [&before, &after].map(|arm| arm.goodput_bps.unwrap());
            assert!(two.mean <= one.mean && two.bound.is_none(), "{one:?} {two:?}");
            let [one, two] = [&before, &after].map(|arm| arm.retransmitted_segments.unwrap());
            assert!(two.mean >= one.mean, "its losses count");
            assert_eq!((after.valid_runs + 1, after.cut_off_runs), (after.runs.len(), 1));
        }
    }

    #[test]
    fn arms_are_compared_over_the_seeds_that_all_of_them_finished() {
        let over = |seed| Run::cut_off(seed, Duration::from_secs(400));
        let arms = [
            ArmResult::new("a", "cubic", vec![finished(1, 10.0, 1), finished(2, 20.0, 2), over(3)]),
            ArmResult::new("b", "reno", vec![over(1), finished(2, 30.0, 3), finished(3, 40.0, 4)]),
        ];
        let paired = Paired::new(&arms).unwrap();
        assert_eq!((paired.seeds.as_slice(), paired.of), ([2].as_slice(), 3));
        assert_eq!((paired.seconds["a"].mean, paired.seconds["b"].mean), (20.0, 30.0));
        assert_eq!(Paired::new(&arms[..1]), None, "one arm is compared with nothing");
        let whole = ArmResult::new("a", "cubic", vec![finished(1, 10.0, 1)]);
        assert_eq!(Paired::new(&[whole.clone(), ArmResult { arm: "b".into(), ..whole }]), None);
    }
}
