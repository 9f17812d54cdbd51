// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether a fitted path is one: the recorded flow, simulated over it, must do what it did, and what a recording leaves open must
//! not decide what others would do.
//!
//! * Its own control takes as long, and exits slow start where it left it.
//! * HyStart, replayed over the acknowledgments that were recorded and over those that are simulated, leaves at the same window.
//!   Its statistic, the least excess of the round-trip time in a round, is what distinguishes jitter from a queue.
//! * A rate or a queue that was not reached is a lower bound. The arms are simulated with more of it, too: where that changes
//!   how long they take, or which of them is faster, the recording does not say it.
//! * The same holds where that changes with figures moved by as much as they are not known ([`Moved`]).
//! * Packets wait on the way there, by the receiver's clock: the rate of the way back is not fitted, nor whom it delays.
//! * The rate stays: of one that varies, what is between the windows over which it is read is not known.
//! * The flow reduces its window as often: losses other than those of a full queue are not fitted.

mod disagreement;
mod moved;

pub use disagreement::{Disagreement, Left};
pub use moved::Moved;

use onramp_algorithm::{Ack, Algorithm, all, baseline, find, of_cubic};
use onramp_recording::replay::{FlowReport, Generations, Known as KnownFlow};
use onramp_recording::{Run, Sample};
use serde::Serialize;

use super::flow::{detector, reductions};
use super::{Driver, FitError, Fitted, Known, RecordedFlow};
use crate::experiment::{Amount, Arm, Plan};
use crate::profile::Profile;
use crate::sim::{self, SimError, SourceSpec};

/// Share by which times may differ.
const TIME: f64 = 0.1;
/// The same of the flow that was recorded, whose path it is.
const OWN_TIME: f64 = 0.05;
/// For how long a rate has to be seen if transfers are to be longer than the recorded one, microseconds.
const SEEN_US: u64 = 500_000;
/// Factor by which windows at an exit may differ.
const WINDOW: f64 = 1.5;
/// Round-trip times that have to be compared, at least.
const LEAST_SAMPLES: usize = 50;
/// Share by which times differ at least if one arm is the faster.
const FASTER: f64 = 0.02;
/// Share of the waits on the way back from which on they, and not the path there, decide when slow start ends.
const WAY_BACK: f64 = 0.7;
/// Share by which the reductions of the window may differ.
const REDUCTIONS: f64 = 0.25;
/// Controls whose times must not depend on what the recording leaves open.
fn arms() -> [String; 2] {
    ["cubic".to_owned(), onramp_algorithm::default().congestion_control()]
}

/// A baseline's parameter: the window at which it exits.
const EXIT_WINDOW: &str = "exit_window_bytes";

/// How long an arm takes over the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmTimes {
    /// Arm.
    pub arm: String,
    /// Bytes of the transfer.
    pub bytes: u64,
    /// Seconds.
    pub seconds: f64,
}

/// What came of the check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    /// The recorded flow: from its first data to its last acknowledgment, seconds.
    pub recorded_seconds: f64,
    /// The same over the path; none: it cannot be simulated.
    pub simulated_seconds: Option<f64>,
    /// How often the recorded flow set another slow start threshold.
    pub recorded_reductions: usize,
    /// The same over the path; none: it cannot be simulated.
    pub simulated_reductions: Option<usize>,
    /// Arms over the path.
    pub arms: Vec<ArmTimes>,
    /// Why the path must not be used; none: it may.
    pub disagreements: Vec<Disagreement>,
}

/// Checks a path for transfers of the recorded size and of `bytes`.
///
/// # Errors
/// [`FitError::Range`]: the path is out of the simulator's ranges.
pub fn check(flow: &RecordedFlow, fitted: &Fitted, bytes: u64) -> Result<Checked, FitError> {
    let recorded = flow.bytes();
    let mut checked = Checked {
        recorded_seconds: fitted.duration_us as f64 / 1e6,
        recorded_reductions: flow.reductions,
        ..Checked::default()
    };
    let explained = &fitted.explained;
    if explained.samples < LEAST_SAMPLES {
        checked.disagreements.push(Disagreement::Unchecked { samples: explained.samples });
        return Ok(checked);
    }
    if let Some(rtt_variance) = explained.rtt_variance.filter(|share| *share <= 0.0) {
        checked.disagreements.push(Disagreement::WorseThanConstant { rtt_variance });
    }
    if let Some(share) = flow.waited_back.filter(|share| *share > WAY_BACK) {
        checked.disagreements.push(Disagreement::WayBack { share });
    }
    if !fitted.rate_steps.is_empty() {
        checked.disagreements.push(Disagreement::Varies { rates: fitted.rate_steps.len() });
    }
    let profile = fitted.profile("fitted", flow.driver.as_ref());
    match flow
        .driver
        .as_ref()
        .ok_or("what drove the flow is not recorded: give the recording's directory, or --control".into())
    {
        Ok(driver) => as_recorded(flow, driver, &profile, recorded, &mut checked)?,
        Err(reason) => checked.disagreements.push(Disagreement::Driver { reason }),
    }
    let mut sizes = vec![recorded, bytes];
    sizes.dedup();
    for bytes in sizes {
        others(fitted, &profile, (bytes, recorded), &mut checked)?;
    }
    Ok(checked)
}

/// The flow itself, over its path.
fn as_recorded(
    flow: &RecordedFlow,
    driver: &Driver,
    profile: &Profile,
    bytes: u64,
    checked: &mut Checked,
) -> Result<(), FitError> {
    let Some(arm) = arm(driver) else {
        let reason = format!("{} is not simulated", driver.algorithm);
        checked.disagreements.push(Disagreement::Driver { reason });
        return Ok(());
    };
    let acks = match sim::record(&plan(profile, bytes), &arm, 1, SourceSpec::Bulk) {
        Ok(acks) => acks,
        Err(SimError::Range(error)) => return Err(error.into()),
        Err(error) => {
            checked.disagreements.push(Disagreement::Driver { reason: error.to_string() });
            return Ok(());
        }
    };
    let samples: Vec<Sample> =
        acks.iter().map(|ack| Sample { ack: *ack, slow_starts: 1, ..Sample::default() }).collect();
    let simulated_seconds = seconds(&acks);
    checked.simulated_seconds = Some(simulated_seconds);
    if differs(checked.recorded_seconds, simulated_seconds, OWN_TIME) {
        checked.disagreements.push(Disagreement::Completion {
            arm: arm.name.clone(),
            recorded_seconds: checked.recorded_seconds,
            simulated_seconds,
        });
    }
    let reductions = reductions(acks.iter().map(|ack| ack.ssthresh));
    checked.simulated_reductions = Some(reductions);
    let (least, most) = (reductions.min(flow.reductions), reductions.max(flow.reductions));
    if (most - least) as f64 > REDUCTIONS * most as f64 {
        let losses = Disagreement::Losses { recorded: flow.reductions, simulated: reductions };
        checked.disagreements.push(losses);
    }
    let mut replay = detector();
    replay.feed(
        &Run { flow: flow.flow, samples: &samples, verdicts: &[] },
        &KnownFlow::default(),
        &Generations::default(),
    );
    let simulated = replay.finish().pop();
    let left = |report: Option<&FlowReport>| report?.findings.first()?.exit.as_ref().map(Left::new);
    let (recorded, simulated) = (left(flow.replayed.as_ref()), left(simulated.as_ref()));
    if !agree(recorded, simulated) && matters(profile, bytes, recorded, simulated)? {
        let of = of_cubic().name().into();
        checked.disagreements.push(Disagreement::Exit { of, recorded, simulated });
    }
    Ok(())
}

/// Whether it makes a difference over the path where slow start ends.
fn matters(
    profile: &Profile,
    bytes: u64,
    recorded: Option<Left>,
    simulated: Option<Left>,
) -> Result<bool, FitError> {
    let exits_there = |one: &Algorithm| {
        one.is_baseline() && one.declarations().any(|parameter| parameter.name == EXIT_WINDOW)
    };
    let control = all().find(exits_there).unwrap_or_else(baseline).congestion_control();
    let times = [recorded, simulated].map(|left| {
        let window = left.map_or(0, |left| left.window_bytes);
        let parameters = [(EXIT_WINDOW.to_owned(), window.to_string())].into();
        time(profile, &Arm { parameters, ..Arm::stock(&control) }, bytes)
    });
    let [recorded, simulated] = times;
    Ok(differs(recorded?, simulated?, OWN_TIME))
}

/// Seconds that an arm takes; without end where it does not get there.
fn time(profile: &Profile, arm: &Arm, bytes: u64) -> Result<f64, FitError> {
    match sim::run(&plan(profile, bytes), arm, 1, SourceSpec::Bulk) {
        Ok(run) if run.valid => Ok(run.seconds),
        Err(SimError::Range(error)) => Err(FitError::from(error)),
        Ok(_) | Err(_) => Ok(f64::INFINITY),
    }
}

/// Other flows, over the path and over those that the recording does not distinguish from it.
fn others(
    fitted: &Fitted,
    profile: &Profile,
    (bytes, recorded): (u64, u64),
    checked: &mut Checked,
) -> Result<(), FitError> {
    let seconds = times(profile, bytes)?;
    for (arm, seconds) in arms().iter().zip(seconds) {
        beyond(fitted, name(arm), (bytes, recorded), seconds, checked);
        checked.arms.push(ArmTimes { arm: name(arm), bytes, seconds });
    }
    changed(moved::open(fitted), bytes, seconds, checked)?;
    // What a path that does not hold depends on besides is not worth the time.
    if checked.disagreements.is_empty() {
        changed(moved::moved(fitted), bytes, seconds, checked)?;
    }
    Ok(())
}

/// Names what makes these times others.
fn changed(
    paths: Vec<(Moved, Fitted)>,
    bytes: u64,
    seconds: [f64; 2],
    checked: &mut Checked,
) -> Result<(), FitError> {
    for (figure, path) in paths {
        let moved = times(&path.profile("fitted", None), figure.bytes(bytes))?;
        for ((arm, seconds), moved_seconds) in arms().iter().zip(seconds).zip(moved) {
            if !differs(seconds, moved_seconds, figure.margin()) {
                continue;
            }
            let arm = name(arm);
            checked.disagreements.push(match figure.open() {
                Some(figure) => {
                    Disagreement::Open { arm, bytes, figure, seconds, with_more_seconds: moved_seconds }
                }
                None => Disagreement::Moved { arm, bytes, figure, seconds, moved_seconds },
            });
        }
        if let Some(faster) = faster(seconds).filter(|one| faster(moved) != Some(*one)) {
            let arm = name(&arms()[faster]);
            checked.disagreements.push(Disagreement::Order { arm, bytes, figure });
        }
    }
    Ok(())
}

/// A transfer that lasts longer than the recording takes a rate that stays, and losses that the path shows. One of more bytes may
/// meet what the recorded one did not.
fn beyond(fitted: &Fitted, arm: String, (bytes, recorded): (u64, u64), seconds: f64, checked: &mut Checked) {
    let recorded_seconds = checked.recorded_seconds;
    let constant = fitted.rate_steps.is_empty()
        && (fitted.rate_known == Known::AtLeast || fitted.rate_seen_us >= SEEN_US);
    let shown = checked.simulated_reductions.is_none_or(|simulated| simulated == checked.recorded_reductions);
    let more = bytes as f64 > recorded as f64 * (1.0 + TIME);
    if more || !(constant && shown) && seconds > recorded_seconds * (1.0 + TIME) {
        checked.disagreements.push(Disagreement::Beyond { arm, bytes, seconds, recorded_seconds });
    }
}

/// What the arms take.
fn times(profile: &Profile, bytes: u64) -> Result<[f64; 2], FitError> {
    let [one, other] = arms().map(|control| time(profile, &Arm::stock(&control), bytes));
    Ok([one?, other?])
}

/// Which of two is the faster one, if one is.
fn faster(seconds: [f64; 2]) -> Option<usize> {
    let [one, other] = seconds;
    differs(one, other, FASTER).then_some(usize::from(other < one))
}

/// Controls of the kernel that are simulated.
const SIMULATED: [&str; 2] = ["cubic", "reno"];

/// The arm of a control.
fn name(control: &str) -> String {
    control.trim_start_matches("onramp_").to_owned()
}

fn plan(profile: &Profile, bytes: u64) -> Plan {
    Plan { amount: Amount::Bytes(bytes.max(1)), ..Plan::new(profile.clone()) }
}

/// The arm of what drove a flow; none: no algorithm or simulated control of this name.
fn arm(driver: &Driver) -> Option<Arm> {
    if SIMULATED.contains(&&*driver.algorithm) {
        return Some(Arm::stock(&driver.algorithm));
    }
    let algorithm = find(&driver.algorithm)?;
    let mut parameters = driver.parameters.clone();
    parameters.extend(driver.base.iter().map(|base| ("base".to_owned(), base.clone())));
    Some(Arm { name: driver.algorithm.clone(), parameters, ..Arm::stock(&algorithm.congestion_control()) })
}

/// From the first data to the last acknowledgment.
fn seconds(acks: &[Ack]) -> f64 {
    let began = acks.iter().find(|ack| ack.rtt_us > 0).map(|ack| ack.now_us - u64::from(ack.rtt_us as u32));
    let ended = acks.last().map(|ack| ack.now_us);
    began.zip(ended).map_or(0.0, |(began, ended)| (ended - began) as f64 / 1e6)
}

fn differs(one: f64, other: f64, share: f64) -> bool {
    // Neither where both never end.
    one != other && (one - other).abs() > share * one.min(other)
}

fn agree(recorded: Option<Left>, simulated: Option<Left>) -> bool {
    match (recorded, simulated) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            let ratio = one.window_bytes.max(1) as f64 / other.window_bytes.max(1) as f64;
            (1.0 / WINDOW..=WINDOW).contains(&ratio)
        }
        _ => false,
    }
}
