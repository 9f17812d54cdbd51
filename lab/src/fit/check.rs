// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether a fitted path is one: the recorded flow, simulated over it, must do what it did, and what a recording leaves open must
//! not decide what others would do.
//!
//! * Its own control takes as long, and exits slow start where it left it.
//! * HyStart, replayed over the acknowledgments that were recorded and over those that are simulated, leaves at the same window.
//!   Its statistic, the least excess of the round-trip time in a round, is what distinguishes jitter from a queue.
//! * A rate or a queue that was not reached is a lower bound. The arms are simulated with more of it, too: where that changes
//!   how long they take, the recording does not say how long they would take.

use std::fmt;

use onramp_algorithm::{Ack, Algorithm, all, baseline, find, of_cubic};
use onramp_recording::replay::{Exit, FlowReport, Generations, Known as KnownFlow};
use onramp_recording::{Run, Sample};
use serde::Serialize;

use super::flow::detector;
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
/// Controls whose times must not depend on what the recording leaves open.
fn arms() -> [String; 2] {
    ["cubic".to_owned(), onramp_algorithm::default().congestion_control()]
}

/// A baseline's parameter: the window at which it exits.
const EXIT_WINDOW: &str = "exit_window_bytes";

/// Why a path must not be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Disagreement {
    /// Too few round-trip times could be compared.
    Unchecked {
        /// So many.
        samples: usize,
    },
    /// It explains the recorded round-trip times less than their mean does.
    WorseThanConstant {
        /// Share of the variance that it explains.
        rtt_variance: f64,
    },
    /// What drove the flow is not known, or not simulated.
    Driver {
        /// Reason.
        reason: String,
    },
    /// The flow takes another time over the path.
    Completion {
        /// Arm.
        arm: String,
        /// From its first data to its last acknowledgment, seconds.
        recorded_seconds: f64,
        /// The same over the path.
        simulated_seconds: f64,
    },
    /// Slow start ends elsewhere over the path.
    Exit {
        /// Algorithm that leaves; the flow's own arm: its real exit.
        of: String,
        /// Recorded; none: not before the flow itself left.
        recorded: Option<Left>,
        /// Over the path.
        simulated: Option<Left>,
    },
    /// How long an arm takes depends on what the flow did not reach.
    Open {
        /// Arm.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// What was not reached: `rate` or `queue`.
        figure: &'static str,
        /// Time with the lower bound, seconds.
        seconds: f64,
        /// Time with more of it, seconds.
        with_more_seconds: f64,
    },
    /// The rate varies or was not seen for long enough to say that it does not, and a transfer takes longer than the recorded one.
    Beyond {
        /// Arm.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// It takes so long, seconds.
        seconds: f64,
        /// So long was recorded, seconds.
        recorded_seconds: f64,
    },
}

/// An exit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Left {
    /// Since the first data, seconds.
    pub seconds: f64,
    /// Window, bytes.
    pub window_bytes: u64,
}

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
    let recorded = flow.acks.last().map_or(0, |ack| ack.bytes_acked);
    let mut checked = Checked { recorded_seconds: fitted.duration_us as f64 / 1e6, ..Checked::default() };
    let explained = &fitted.explained;
    if explained.samples < LEAST_SAMPLES {
        checked.disagreements.push(Disagreement::Unchecked { samples: explained.samples });
        return Ok(checked);
    }
    if let Some(rtt_variance) = explained.rtt_variance.filter(|share| *share <= 0.0) {
        checked.disagreements.push(Disagreement::WorseThanConstant { rtt_variance });
    }
    let profile = fitted.profile("fitted", flow.driver.as_ref());
    match flow.driver.as_ref().ok_or("the recording does not name its algorithm: give its directory".into()) {
        Ok(driver) => as_recorded(flow, driver, &profile, recorded, &mut checked)?,
        Err(reason) => checked.disagreements.push(Disagreement::Driver { reason }),
    }
    let mut sizes = vec![recorded, bytes];
    sizes.dedup();
    for bytes in sizes {
        for control in arms() {
            others(fitted, &profile, &control, bytes, &mut checked)?;
        }
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

/// Another flow, over the path and over one that has more of what was not reached.
fn others(
    fitted: &Fitted,
    profile: &Profile,
    control: &str,
    bytes: u64,
    checked: &mut Checked,
) -> Result<(), FitError> {
    let stock = Arm::stock(control);
    let arm = control.trim_start_matches("onramp_").to_owned();
    let seconds = time(profile, &stock, bytes)?;
    checked.arms.push(ArmTimes { arm: arm.clone(), bytes, seconds });
    for (known, figure, more) in [
        (fitted.rate_known, "rate", Fitted { rate_bps: fitted.rate_bps * 2, ..fitted.clone() }),
        (fitted.queue_known, "queue", Fitted { queue_bytes: fitted.roomy_queue_bytes(), ..fitted.clone() }),
    ] {
        if known == Known::Measured {
            continue;
        }
        let with_more_seconds = time(&more.profile("fitted", None), &stock, bytes)?;
        if differs(seconds, with_more_seconds, TIME) {
            let arm = arm.clone();
            checked.disagreements.push(Disagreement::Open { arm, bytes, figure, seconds, with_more_seconds });
        }
    }
    let recorded_seconds = checked.recorded_seconds;
    let constant = fitted.rate_steps.is_empty()
        && (fitted.rate_known == Known::AtLeast || fitted.rate_seen_us >= SEEN_US);
    if !constant && seconds > recorded_seconds * (1.0 + TIME) {
        checked.disagreements.push(Disagreement::Beyond { arm, bytes, seconds, recorded_seconds });
    }
    Ok(())
}

fn plan(profile: &Profile, bytes: u64) -> Plan {
    Plan { amount: Amount::Bytes(bytes.max(1)), ..Plan::new(profile.clone()) }
}

/// The arm of what drove a flow; none: no algorithm of this name.
fn arm(driver: &Driver) -> Option<Arm> {
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

impl Left {
    fn new(exit: &Exit) -> Self {
        Self { seconds: exit.since_start_us as f64 / 1e6, window_bytes: exit.window_bytes }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {:.2} s at {:.0} kB", self.seconds, self.window_bytes as f64 / 1e3)
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = |exit: &Option<Left>| {
            exit.map_or_else(|| "not before the flow itself left".to_owned(), |left| left.to_string())
        };
        let megabytes = |bytes: &u64| *bytes as f64 / 1e6;
        match self {
            Self::Unchecked { samples } => write!(
                f,
                "the path cannot be checked: {samples} round-trip times could be compared, {LEAST_SAMPLES} are needed"
            ),
            Self::WorseThanConstant { rtt_variance } => write!(
                f,
                "the path explains the round-trip times less than their mean does: {:.0} % of their variance",
                100.0 * rtt_variance
            ),
            Self::Driver { reason } => write!(f, "the flow cannot be simulated: {reason}"),
            Self::Completion { arm, recorded_seconds, simulated_seconds } => write!(
                f,
                "{arm} took {recorded_seconds:.2} s when it was recorded, and takes {simulated_seconds:.2} s over the path"
            ),
            Self::Exit { of, recorded, simulated } => write!(
                f,
                "{of} leaves {} over what was recorded, and {} over the path",
                exit(recorded),
                exit(simulated)
            ),
            Self::Open { arm, bytes, figure, seconds, with_more_seconds } => write!(
                f,
                "how long {arm} takes for {:.1} MB depends on the {figure}, which the flow did not reach: {seconds:.2} s with \
                 what is known of it, {with_more_seconds:.2} s with more",
                megabytes(bytes)
            ),
            Self::Beyond { arm, bytes, seconds, recorded_seconds } => write!(
                f,
                "the rate may vary and is known for {recorded_seconds:.2} s, but {arm} takes {seconds:.2} s for {:.1} MB",
                megabytes(bytes)
            ),
        }
    }
}
