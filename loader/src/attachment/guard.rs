//! The guard of an attachment: what it is to do, what it has seen, and what that means. The kernel decides, with the
//! integers of `bpf/guard.h`; what is reported of it is computed from the same sums in floating point.

use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::object::abi::{
    self, Attachment, GUARD_FLOWS_MIN, GUARD_GOODPUT_LEAST, GUARD_MEAN_BITS, GUARD_METRIC_MAX,
    GUARD_TAU_GOODPUT_BITS, GUARD_TAU_RETRANSMITS_BITS, GUARD_VALUE_BITS, GuardArm, guard_arm_index,
    guard_metric,
};
use crate::object::open;
use crate::pins::{GUARD, Pins};
use crate::system::clock;
use crate::system::error::Error;

/// Error of the intervals that are shown.
const INTERVAL_ERROR: f64 = 0.05;

/// What is compared between flows that run the algorithm and those of the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bytes retransmitted, of all bytes sent; differences in percentage points.
    RetransmitRatio,
    /// Bytes acknowledged by time with data to send; differences in percent of the control's geometric mean.
    Goodput,
    /// Time with data to send until the first 64 kB are acknowledged; differences as of goodput.
    First,
}

impl Metric {
    /// All there are.
    pub const ALL: [Self; GUARD_METRIC_MAX] = [Self::RetransmitRatio, Self::Goodput, Self::First];

    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::RetransmitRatio => "retransmit_ratio",
            Self::Goodput => "goodput",
            Self::First => "first_64kb",
        }
    }

    fn index(self) -> usize {
        let index = match self {
            Self::RetransmitRatio => guard_metric::RETRANSMITS,
            Self::Goodput => guard_metric::GOODPUT,
            Self::First => guard_metric::FIRST,
        };
        index as usize
    }

    /// The margins that may be given, in percent: nearest to none first.
    pub fn margins(self) -> (f64, f64) {
        match self {
            Self::RetransmitRatio => (0.1, 50.0),
            Self::Goodput => (-1.0, -90.0),
            Self::First => (1.0, 900.0),
        }
    }

    /// A difference as harm: less goodput is, and more of the others.
    pub fn harm(self, difference: f64) -> f64 {
        if self == Self::Goodput { -difference } else { difference }
    }

    /// A difference in the metric's own unit from one in percent.
    fn units(self, percent: f64) -> f64 {
        match self {
            Self::RetransmitRatio => percent / 100.0 * f64::from(1u32 << GUARD_VALUE_BITS),
            Self::Goodput | Self::First => (1.0 + percent / 100.0).log2() * OCTAVE,
        }
    }

    fn percent(self, units: f64) -> f64 {
        match self {
            Self::RetransmitRatio => units * 100.0 / f64::from(1u32 << GUARD_VALUE_BITS),
            Self::Goodput | Self::First => ((units / OCTAVE).exp2() - 1.0) * 100.0,
        }
    }

    fn tau(self) -> f64 {
        let bits = match self {
            Self::RetransmitRatio => GUARD_TAU_RETRANSMITS_BITS,
            Self::Goodput | Self::First => GUARD_TAU_GOODPUT_BITS,
        };
        f64::from(1u32 << bits)
    }
}

/// A doubling, in units of its metric.
const OCTAVE: f64 = 1024.0;

/// What a guard is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardOptions {
    /// In the kernel's form, by metric; 0: not looked at.
    margins: [u32; GUARD_METRIC_MAX],
    control_ppm: u32,
}

impl GuardOptions {
    /// Shares of flows that may stay on the base as control, percent.
    pub const CONTROL_SHARES: (f64, f64) = (1.0, 50.0);

    /// A guard with these margins, in percent and within [`Metric::margins`], whose control is a share of flows in percent
    /// within [`Self::CONTROL_SHARES`].
    pub fn new(margins: &[(Metric, f64)], control_share: f64) -> Self {
        let mut guard = Self { margins: [0; GUARD_METRIC_MAX], control_ppm: (control_share * 1e4) as u32 };
        for (metric, percent) in margins {
            let units = metric.units(*percent).abs() * f64::from(1u32 << GUARD_MEAN_BITS);
            guard.margins[metric.index()] = units.round() as u32;
        }
        guard
    }

    /// The margin of a metric, percent; `None`: it is not looked at.
    pub fn margin(&self, metric: Metric) -> Option<f64> {
        let units = f64::from(self.margins[metric.index()]) / f64::from(1u32 << GUARD_MEAN_BITS);
        // As it was given, and not as it is rounded in the kernel.
        (units != 0.0).then(|| (metric.percent(metric.harm(units)) * 1e3).round() / 1e3)
    }

    /// Flows that stay on the base, percent.
    pub fn control_share(&self) -> f64 {
        f64::from(self.control_ppm) / 1e4
    }

    /// Of a guard in the kernel.
    pub(crate) fn from_abi(guard: &abi::Guard) -> Self {
        Self { margins: guard.margins, control_ppm: guard.control_ppm }
    }

    /// As the kernel starts with it.
    pub(crate) fn begin(self, generation: u64) -> abi::Guard {
        abi::Guard {
            control_ppm: self.control_ppm,
            salt: generation as u32 | 1,
            margins: self.margins,
            ..abi::Guard::default()
        }
    }
}

/// The margins, as `attach --guard` takes them.
impl fmt::Display for GuardOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margins = Metric::ALL.into_iter().filter_map(|metric| Some((metric, self.margin(metric)?)));
        for (at, (metric, percent)) in margins.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(formatter, "{comma}{}={percent}%", metric.name())?;
        }
        Ok(())
    }
}

/// What a guard goes on with where other code takes over. Who runs it is drawn anew and what it does may be different, so
/// it counts from the beginning; but one that has tripped stays as it is.
pub(crate) fn taken_over(previous: abi::Guard, generation: u64) -> abi::Guard {
    if previous.tripped_ns == 0 { GuardOptions::from_abi(&previous).begin(generation) } else { previous }
}

/// Flows of an arm that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arm {
    /// How many have had 100 kB acknowledged.
    pub flows: u64,
    /// Mean of their shares of bytes retransmitted, percent; `None`: there are none.
    pub retransmit_ratio_pct: Option<f64>,
    /// Geometric mean of their goodputs, bits per second.
    pub goodput_bps: Option<f64>,
    /// Geometric mean of the times to their first 64 kB, microseconds; of all that have had as much acknowledged.
    pub first_64kb_us: Option<f64>,
}

/// How the arms compare by a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// Flows that it was seen of: treated, and of the control.
    pub flows: (u64, u64),
    /// Treated against control, percent; negative: less. `None`: flows are missing.
    pub difference_pct: Option<f64>,
    /// What holds the true difference at every moment at once, but for an error of 5 %.
    pub interval_pct: Option<(f64, f64)>,
    /// The difference that is allowed; `None`: it trips nothing.
    pub margin_pct: Option<f64>,
}

/// That a guard has tripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// By which metric.
    pub by: Metric,
    /// Wall clock as it is set now, microseconds since 1970.
    pub at_us: u64,
    /// How long ago that was, whatever the wall clock has done since.
    pub age: Duration,
}

/// A guard at work.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardState {
    /// What it is to do.
    pub options: GuardOptions,
    /// Flows that run the algorithm.
    pub treated: Arm,
    /// Flows that stay on the base.
    pub control: Arm,
    /// By metric.
    pub comparisons: Vec<Comparison>,
    /// Whether it has tripped: nothing is counted any more then, and the base runs alone.
    pub tripped: Option<Trip>,
}

/// Flows that each arm must have before anything is said.
pub const FLOWS_MIN: u64 = GUARD_FLOWS_MIN as u64;

/// The guard of an attachment, for a caller that holds the lock; `None`: it has none.
pub(crate) fn state(pins: &Pins, attachment: &Attachment) -> Result<Option<GuardState>, Error> {
    Ok(read(pins, attachment)?.map(|guard| describe(&guard, clock::tick())))
}

/// What the kernel has, all of one moment; `None`: there is no guard.
///
/// # Errors
/// [`Error::Interrupted`] if its pin was removed, or a map that cannot be read.
pub(crate) fn read(pins: &Pins, attachment: &Attachment) -> Result<Option<abi::Guard>, Error> {
    if !attachment.is_guarded() {
        return Ok(None);
    }
    let path = pins.path(GUARD);
    if !pins.has(GUARD)? {
        return Err(pins.interrupted());
    }
    let bytes = MapHandle::from_pinned_path(&path)
        .and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::LOCK))
        .map_err(open::failed("read", &path.display().to_string()))?;
    let guard = bytes.as_deref().and_then(abi::read).map(|(guard, _)| guard);
    // Of another form it is not one to go without.
    guard.map(Some).ok_or_else(|| Error::io("read", &path)(ErrorKind::InvalidData.into()))
}

fn describe(guard: &abi::Guard, tick: Duration) -> GuardState {
    let options = GuardOptions::from_abi(guard);
    let arm = |index: u32| &guard.arms[index as usize];
    let (treated, control) = (arm(guard_arm_index::TREATED), arm(guard_arm_index::CONTROL));
    let tripped = clock::wall_clock_us(guard.tripped_ns).map(|at_us| Trip {
        by: Metric::ALL[guard.tripped_by as usize % GUARD_METRIC_MAX],
        at_us,
        age: clock::since(guard.tripped_ns),
    });
    GuardState {
        options,
        treated: means(treated, tick),
        control: means(control, tick),
        comparisons: Metric::ALL
            .into_iter()
            .map(|metric| compare(metric, treated, control, options.margin(metric)))
            .collect(),
        tripped,
    }
}

fn means(arm: &GuardArm, tick: Duration) -> Arm {
    let mean = |metric| Mean::new(arm, metric).map(|mean| mean.mean);
    let goodput = mean(Metric::Goodput).map(|units| {
        let per_tick = (units / OCTAVE - f64::from(GUARD_GOODPUT_LEAST)).exp2();
        8.0 * per_tick / tick.as_secs_f64()
    });
    let first = mean(Metric::First).map(|units| (units / OCTAVE).exp2() * tick.as_secs_f64() * 1e6);
    Arm {
        flows: arm.metrics[Metric::Goodput.index()].flows,
        first_64kb_us: first,
        retransmit_ratio_pct: mean(Metric::RetransmitRatio)
            .map(|units| Metric::RetransmitRatio.percent(units)),
        goodput_bps: goodput,
    }
}

/// A mean of a metric and its variance, in the metric's unit and its square.
struct Mean {
    mean: f64,
    variance: f64,
}

impl Mean {
    /// `None`: there are no flows.
    fn new(arm: &GuardArm, metric: Metric) -> Option<Self> {
        let sums = &arm.metrics[metric.index()];
        let flows = sums.flows as f64;
        let variance = sums.squares as f64 / (flows - 1.0).max(1.0);
        // One unit's worth is what rounding hides, as in guard.h.
        (sums.flows > 0).then(|| Self { mean: sums.sum as f64 / flows, variance: (variance + 1.0) / flows })
    }
}

fn compare(metric: Metric, treated: &GuardArm, control: &GuardArm, margin_pct: Option<f64>) -> Comparison {
    let flows = [treated, control].map(|arm| arm.metrics[metric.index()].flows);
    let enough = flows.into_iter().min() >= Some(FLOWS_MIN);
    let means = Mean::new(treated, metric).zip(Mean::new(control, metric)).filter(|_| enough);
    let difference = means.as_ref().map(|(treated, control)| treated.mean - control.mean);
    let interval_pct = means.as_ref().zip(difference).map(|((treated, control), difference)| {
        let half = half_width(treated.variance + control.variance, metric.tau(), INTERVAL_ERROR);
        (metric.percent(difference - half), metric.percent(difference + half))
    });
    Comparison {
        metric,
        flows: flows.into(),
        difference_pct: difference.map(|difference| metric.percent(difference)),
        interval_pct,
        margin_pct,
    }
}

/// Half of the interval that the test's inversion gives (Johari et al. 2017): the differences that it would not refuse.
fn half_width(variance: f64, tau: f64, error: f64) -> f64 {
    let tau = tau * tau;
    let doubt = (1.0 / error).ln() + ((variance + tau) / variance).ln() / 2.0;
    (2.0 * variance * (variance + tau) / tau * doubt).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(4);

    fn options() -> GuardOptions {
        GuardOptions::new(&[(Metric::RetransmitRatio, 2.0), (Metric::Goodput, -10.0)], 10.0)
    }

    fn near(is: Option<f64>, expected: f64) {
        assert!(is.is_some_and(|is| (is - expected).abs() < 1e-3 * expected.abs().max(1.0)), "{is:?}");
    }

    #[test]
    fn margins_and_share_are_reported_as_they_were_given() {
        assert_eq!(options().to_string(), "retransmit_ratio=2%,goodput=-10%");
        near(options().margin(Metric::RetransmitRatio), 2.0);
        near(options().margin(Metric::Goodput), -10.0);
        near(Some(options().control_share()), 10.0);
        let one = GuardOptions::new(&[(Metric::Goodput, -90.0)], 12.5);
        assert_eq!(one.to_string(), "goodput=-90%");
        assert_eq!(one.margin(Metric::RetransmitRatio), None);
        near(one.margin(Metric::Goodput), -90.0);
        near(Some(one.control_share()), 12.5);
        // What the kernel's arithmetic was tested with.
        assert_eq!(options().margins, [1_342_177, 159_387, 0]);
        let first = GuardOptions::new(&[(Metric::First, 10.0)], 10.0);
        assert_eq!((first.to_string(), first.margins), ("first_64kb=10%".into(), [0, 0, 144_183]));
        // Generations differ by one and more; a salt is odd.
        assert_eq!(options().begin(6).salt, options().begin(7).salt);
        assert_ne!(options().begin(6).salt, options().begin(8).salt);
    }

    /// An arm of so many flows, the half of which is `apart` above the other, with 200 ms to the first 64 kB.
    fn arm(flows: u64, ratio: f64, megabits: f64, apart: f64) -> GuardArm {
        let goodput = ((megabits * 1e6 / 8.0 * TICK.as_secs_f64()).log2() + 16.0) * OCTAVE;
        let units = [ratio / 100.0 * 65_536.0, goodput, 50f64.log2() * OCTAVE];
        let metrics = units.map(|mean| abi::GuardSums {
            flows,
            sum: (mean * flows as f64).round() as u64,
            squares: (flows as f64 * apart * apart / 4.0) as u64,
        });
        GuardArm { metrics }
    }

    fn described(treated: GuardArm, control: GuardArm) -> GuardState {
        describe(&abi::Guard { arms: [treated, control], ..options().begin(1) }, TICK)
    }

    #[test]
    fn means_and_differences_are_in_what_people_read() {
        let state = described(arm(1_000, 3.0, 40.0, 100.0), arm(200, 2.0, 50.0, 100.0));
        near(state.treated.retransmit_ratio_pct, 3.0);
        near(state.treated.goodput_bps, 40e6);
        near(state.control.goodput_bps, 50e6);
        near(state.control.first_64kb_us, 200_000.0);
        let [ratio, goodput, first] = &state.comparisons[..] else { panic!("{state:?}") };
        assert!(first.difference_pct.is_some_and(|none| none.abs() < 0.1), "{first:?}");
        near(ratio.difference_pct, 1.0);
        near(goodput.difference_pct, -20.0);
        for comparison in [ratio, goodput] {
            let (low, high) = comparison.interval_pct.unwrap();
            let is = comparison.difference_pct.unwrap();
            assert!(low < is && is < high, "{comparison:?}");
        }
        assert_eq!(state.tripped, None);
    }

    #[test]
    fn other_code_counts_from_the_beginning_unless_the_guard_has_tripped() {
        let arms = [arm(500, 3.0, 40.0, 100.0), arm(200, 2.0, 50.0, 100.0)];
        let running = abi::Guard { arms, ..options().begin(1) };
        assert_eq!(taken_over(running, 4), options().begin(4));
        let tripped = abi::Guard { tripped_ns: 5, ..running };
        assert_eq!(taken_over(tripped, 4), tripped);
    }

    #[test]
    fn an_interval_is_wider_than_one_for_a_single_look_and_narrows_with_flows() {
        let width = |flows| {
            let state = described(arm(flows, 3.0, 40.0, 900.0), arm(flows, 3.0, 40.0, 900.0));
            let (low, high) = state.comparisons[0].interval_pct.unwrap();
            high - low
        };
        let once = |flows: f64| 2.0 * 1.96 * (2.0 * 450.0f64.powi(2) / flows).sqrt() * 100.0 / 65_536.0;
        assert!(width(100) > once(100.0) && width(10_000) > once(10_000.0));
        assert!(width(10_000) < width(100) / 5.0);
    }

    #[test]
    fn with_too_few_flows_nothing_is_said_of_differences() {
        let state = described(arm(1_000, 3.0, 40.0, 100.0), arm(FLOWS_MIN - 1, 2.0, 50.0, 100.0));
        assert!(
            state.comparisons.iter().all(|one| one.difference_pct.is_none() && one.interval_pct.is_none())
        );
        near(state.control.retransmit_ratio_pct, 2.0);
        // Flows that end between 64 and 100 kB say how long they took to the first of these, and no more.
        let mut few = [arm(FLOWS_MIN, 3.0, 40.0, 100.0); 2];
        few.iter_mut().for_each(|arm| arm.metrics[..2].fill(abi::GuardSums::default()));
        let state = described(few[0], few[1]);
        assert_eq!(state.comparisons.iter().map(|one| one.flows.0).collect::<Vec<_>>(), [0, 0, FLOWS_MIN]);
        assert!(state.comparisons[2].interval_pct.is_some() && state.comparisons[1].interval_pct.is_none());
        let empty = described(GuardArm::default(), GuardArm::default());
        assert_eq!((empty.treated.flows, empty.treated.goodput_bps), (0, None));
    }
}
