//! The guard of an attachment: its options and its report.

use onramp_loader::AttachOptions;
use onramp_loader::guard::{Arm, Comparison, FLOWS_MIN, GuardOptions, GuardState, Metric, Trip};
use serde::Serialize;

use crate::failure::Usage;
use crate::units::show_us;

/// The share of flows that stays on the base unless given.
pub(crate) const CONTROL_SHARE: &str = "10%";

/// The harm that is allowed, by metric, percent.
#[derive(Clone, Debug)]
pub(crate) struct Margins(Vec<(Metric, f64)>);

impl Margins {
    /// A guard with these margins and this control.
    pub fn guard(&self, control_share: f64) -> GuardOptions {
        GuardOptions::new(&self.0, control_share)
    }
}

/// `retransmit_ratio=2%,goodput=-10%,first_64kb=10%`, or some of the three.
pub(crate) fn margins(text: &str) -> Result<Margins, String> {
    let mut margins: Vec<(Metric, f64)> = Vec::new();
    for setting in text.split(',') {
        let metric = setting.split_once('=').and_then(|(name, value)| {
            let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name)?;
            Some((metric, value))
        });
        let (metric, value) = metric.ok_or_else(|| {
            format!(
                "{setting:?} is not a margin: write retransmit_ratio=2%, goodput=-10%, first_64kb=10%, or several with commas"
            )
        })?;
        let (nearest, farthest) = metric.margins();
        let value = percent(value)
            .filter(|percent| (nearest.min(farthest)..=nearest.max(farthest)).contains(percent))
            .ok_or_else(|| format!("{setting} is not allowed: give {nearest}% to {farthest}%"))?;
        if margins.iter().any(|(other, _)| *other == metric) {
            return Err(format!("{} is given twice", metric.name()));
        }
        margins.push((metric, value));
    }
    Ok(Margins(margins))
}

/// `10%`.
pub(crate) fn control_share(text: &str) -> Result<f64, String> {
    let (least, most) = GuardOptions::CONTROL_SHARES;
    percent(text)
        .filter(|percent| (least..=most).contains(percent))
        .ok_or_else(|| format!("{text:?} is not a share of flows for the control: give {least}% to {most}%"))
}

fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.parse().ok()
}

/// Refuses a guard of what does nothing.
pub(crate) fn reject_idle_guard(options: &AttachOptions) -> anyhow::Result<()> {
    if options.observe && options.guard.is_some() {
        return Err(Usage::error(
            "what only observes does nothing that a guard could compare: leave out the guard, or do not only observe",
        ));
    }
    Ok(())
}

/// The options with which a guard like this is attached.
pub(crate) fn words(guard: &GuardOptions) -> String {
    let share = format!("{}%", guard.control_share());
    let control = if share == CONTROL_SHARE { String::new() } else { format!(" --control-share {share}") };
    format!("--guard {guard}{control}")
}

/// What a guard has seen.
#[derive(Serialize)]
pub(crate) struct Guarded {
    control_share_pct: f64,
    /// That each arm must have before anything is said.
    flows_needed: u64,
    tripped: Option<Tripped>,
    treated: ArmRow,
    control: ArmRow,
    comparisons: Vec<ComparisonRow>,
}

#[derive(Serialize)]
struct Tripped {
    metric: &'static str,
    at_us: u64,
}

#[derive(Serialize)]
struct ArmRow {
    flows: u64,
    retransmit_ratio_pct: Option<f64>,
    goodput_bps: Option<f64>,
    first_64kb_us: Option<f64>,
}

#[derive(Serialize)]
struct ComparisonRow {
    metric: &'static str,
    treated_flows: u64,
    control_flows: u64,
    difference_pct: Option<f64>,
    interval_pct: Option<(f64, f64)>,
    margin_pct: Option<f64>,
    verdict: String,
}

impl From<&GuardState> for Guarded {
    fn from(state: &GuardState) -> Self {
        let arm = |arm: &Arm| ArmRow {
            flows: arm.flows,
            retransmit_ratio_pct: arm.retransmit_ratio_pct,
            goodput_bps: arm.goodput_bps,
            first_64kb_us: arm.first_64kb_us,
        };
        let comparison = |one: &Comparison| ComparisonRow {
            metric: one.metric.name(),
            treated_flows: one.flows.0,
            control_flows: one.flows.1,
            difference_pct: one.difference_pct,
            interval_pct: one.interval_pct,
            margin_pct: one.margin_pct,
            verdict: verdict(one, state),
        };
        Self {
            control_share_pct: state.options.control_share(),
            flows_needed: FLOWS_MIN,
            tripped: state.tripped.map(|Trip { by, at_us, .. }| Tripped { metric: by.name(), at_us }),
            treated: arm(&state.treated),
            control: arm(&state.control),
            comparisons: state.comparisons.iter().map(comparison).collect(),
        }
    }
}

/// What is known of a difference, in words.
pub(crate) fn verdict(comparison: &Comparison, state: &GuardState) -> String {
    let Some((low, high)) = comparison.interval_pct else {
        let (treated, control) = comparison.flows;
        let (arm, flows) = if control < FLOWS_MIN { ("control", control) } else { ("treated", treated) };
        return format!("cannot say yet: {flows} of {FLOWS_MIN} {arm} flows");
    };
    if let Some(Trip { by, age, .. }) = state.tripped
        && by == comparison.metric
    {
        return format!("tripped {} ago, worse by more than the margin", show_us(age.as_micros() as u64));
    }
    let harm = |difference| comparison.metric.harm(difference);
    let least = harm(low).min(harm(high));
    let said = match comparison.margin_pct.map(harm) {
        Some(margin) if least > margin => "worse by more than the margin",
        _ if least > 0.0 => "worse",
        _ if harm(low).max(harm(high)) < 0.0 => "better",
        _ => "no difference shown",
    };
    said.to_owned()
}

/// A difference with its interval: `-12.3 % (-15.0 to -9.6)`.
pub(crate) fn difference(comparison: &Comparison) -> Option<String> {
    let unit = match comparison.metric {
        Metric::RetransmitRatio => "points",
        Metric::Goodput | Metric::First => "%",
    };
    let (is, (low, high)) = comparison.difference_pct.zip(comparison.interval_pct)?;
    Some(format!("{is:+.2} {unit} ({low:+.2} to {high:+.2})"))
}

/// What `status` says of a guard: a line.
pub(crate) fn line(algorithm: &str, state: &GuardState) -> String {
    let (treated, control) = (state.treated.flows, state.control.flows);
    let Some(Trip { by, age, .. }) = state.tripped else {
        return format!(
            "  guarded ({}): {treated} treated flows, {control} of the control: onramp status --guard\n",
            state.options
        );
    };
    let numbers = state.comparisons.iter().find(|one| one.metric == by).and_then(difference);
    format!(
        "  its guard tripped {} ago, and the base runs alone: {} {} of {treated} treated flows against {control} of the control, margin {}: onramp detach {algorithm}\n",
        show_us(age.as_micros() as u64),
        by.name(),
        numbers.unwrap_or_default(),
        state.options
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn guard(text: &str) -> GuardOptions {
        margins(text).unwrap().guard(10.0)
    }

    #[test]
    fn limits_changed_anywhere_are_read_or_refused() {
        let valid = ["goodput=-10%,retransmit_ratio=2%", "20%"];
        onramp_mutation::check(1, 20_000, onramp_mutation::text(&valid), |text| {
            let refused = [margins(&text).err(), control_share(&text).err()];
            assert!(refused.iter().flatten().all(|error| !error.is_empty()));
            Ok(())
        });
    }

    #[test]
    fn margins_are_read_and_shown_again() {
        for text in [
            "retransmit_ratio=2%,goodput=-10%,first_64kb=10%",
            "goodput=-1%",
            "retransmit_ratio=0.1%",
            "goodput=-33.3%",
        ] {
            assert_eq!(words(&guard(text)), format!("--guard {text}"));
        }
        assert_eq!(guard("goodput=-10%,retransmit_ratio=2%"), guard("retransmit_ratio=2%,goodput=-10%"));
        let wide = margins("goodput=-5%").unwrap().guard(control_share("12.5%").unwrap());
        assert_eq!(words(&wide), "--guard goodput=-5% --control-share 12.5%");
    }

    #[test]
    fn what_is_no_margin_or_share_is_refused_with_what_is_allowed() {
        for (text, said) in [
            ("", "is not a margin"),
            ("goodput", "is not a margin"),
            ("delay=3%", "is not a margin"),
            ("goodput=10%", "goodput=10% is not allowed: give -1% to -90%"),
            ("goodput=-0.5%", "give -1% to -90%"),
            ("goodput=-10", "give -1% to -90%"),
            ("goodput=NaN%", "give -1% to -90%"),
            ("retransmit_ratio=51%", "give 0.1% to 50%"),
            ("retransmit_ratio=-2%", "give 0.1% to 50%"),
            ("first_64kb=-10%", "first_64kb=-10% is not allowed: give 1% to 900%"),
            ("goodput=-10%,goodput=-20%", "goodput is given twice"),
        ] {
            let error = margins(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        for text in ["10", "0.9%", "51%", "%", "NaN%"] {
            assert!(control_share(text).unwrap_err().contains("1% to 50%"), "{text}");
        }
        assert!(control_share("1%").is_ok() && control_share("50%").is_ok());
    }

    fn state(metric: Metric, interval_pct: Option<(f64, f64)>, tripped: bool) -> GuardState {
        let options = guard("retransmit_ratio=2%,goodput=-10%");
        let arm = |flows| Arm { flows, ..Arm::default() };
        let control = if interval_pct.is_some() { 120 } else { 37 };
        GuardState {
            options,
            treated: arm(900),
            control: arm(control),
            comparisons: vec![Comparison {
                metric,
                flows: (900, control),
                difference_pct: interval_pct.map(|(low, high)| (low + high) / 2.0),
                interval_pct,
                margin_pct: options.margin(metric),
            }],
            tripped: tripped.then(|| Trip { by: metric, at_us: 0, age: Duration::from_secs(65) }),
        }
    }

    #[test]
    fn verdicts_are_in_words() {
        let (ratio, goodput, first) = (Metric::RetransmitRatio, Metric::Goodput, Metric::First);
        for (metric, interval, said) in [
            (goodput, None, "cannot say yet: 37 of 100 control flows"),
            (goodput, Some((-4.0, 3.0)), "no difference shown"),
            (goodput, Some((1.0, 3.0)), "better"),
            (goodput, Some((-9.0, -3.0)), "worse"),
            (goodput, Some((-40.0, -11.0)), "worse by more than the margin"),
            (ratio, Some((-1.0, 3.0)), "no difference shown"),
            (ratio, Some((-3.0, -1.0)), "better"),
            (ratio, Some((0.5, 3.0)), "worse"),
            (ratio, Some((2.5, 3.0)), "worse by more than the margin"),
            (first, Some((-9.0, -3.0)), "better"),
            (first, Some((1.0, 3.0)), "worse"),
        ] {
            let state = state(metric, interval, false);
            assert_eq!(verdict(&state.comparisons[0], &state), said, "{metric:?} {interval:?}");
        }
        let tripped = state(goodput, Some((-40.0, -11.0)), true);
        let said = verdict(&tripped.comparisons[0], &tripped);
        assert!(said.starts_with("tripped 65") && said.ends_with("worse by more than the margin"), "{said}");
        let said = line("search", &tripped);
        assert!(
            said.contains("goodput -25.50 % (-40.00 to -11.00) of 900 treated flows against 120"),
            "{said}"
        );
        assert!(said.contains("the base runs alone") && said.contains("onramp detach search"), "{said}");
    }
}
