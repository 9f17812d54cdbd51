// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a case comes to: the arm's figures compared with those of the others, medians of the runs.

use super::{Case, Measure, OTHER, REFERENCE};
use crate::experiment::{Comparison, Run, jain};
use crate::question::plots::{columns, figure};
use crate::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Valid};

/// Time over stock CUBIC's, at most.
const TIME_MOST: f64 = 1.05;
/// Segments retransmitted over stock CUBIC's, at most; and so many in any case.
const RETRANSMITTED_MOST: f64 = 1.25;
const RETRANSMITTED_FREE: f64 = 50.0;
/// What a neighbour keeps, over what it keeps next to stock CUBIC or an equal share, whichever is less; at least.
const KEPT_LEAST: f64 = 0.9;
const EQUAL_PERCENT: f64 = 50.0;
/// Of two flows.
const LONG_GETS: &str = "the flow of the longer RTT gets, %";
/// Jain's index and goodput of several flows over stock CUBIC's, at least.
const TOGETHER_LEAST: f64 = 0.95;

/// The arms of a trial: the one in question, stock CUBIC, and BBR if it has a valid run: no check depends on it.
struct Arms<'a> {
    trial: &'a Comparison,
    name: &'a str,
    subject: Valid<'a>,
    cubic: Valid<'a>,
    bbr: Option<Valid<'a>>,
}

/// A figure of a run, where it has it.
type Value<'v> = &'v dyn Fn(&Run) -> Option<f64>;

/// What has been found so far.
#[derive(Default)]
struct Findings {
    comparands: Vec<Comparand>,
    checks: Vec<Check>,
    /// By quantity: a value for each path and arm.
    drawn: Vec<(&'static str, [Vec<f64>; 3])>,
}

impl Arms<'_> {
    /// Medians of a figure, NaN where no run has it: of the arm in question, CUBIC and BBR.
    fn medians(&self, value: Value<'_>) -> [f64; 3] {
        let bbr = self.bbr.map_or(f64::NAN, |arm| arm.median_of(value));
        [self.subject.median_of(value), self.cubic.median_of(value), bbr]
    }
}

impl Findings {
    /// A row of the table.
    fn row(&mut self, arms: &Arms<'_>, what: &str, values: [f64; 3], digits: usize) {
        let [ours, cubic, bbr] = values.map(|value| number(value, digits));
        let others = format!("{REFERENCE} {cubic}, {OTHER} {bbr}");
        self.comparands.push(Comparand { what: format!("{}: {what}", arms.name), source: others, ours });
    }

    /// Points of the figure.
    fn point(&mut self, quantity: &'static str, values: [f64; 3]) {
        if self.drawn.iter().all(|(name, _)| *name != quantity) {
            self.drawn.push((quantity, <[Vec<f64>; 3]>::default()));
        }
        let found = self.drawn.iter_mut().find(|(name, _)| *name == quantity);
        for (all, value) in found.into_iter().flat_map(|(_, all)| all).zip(values) {
            all.extend(Some(value).filter(|value| value.is_finite()));
        }
    }

    fn at_most(&mut self, arms: &Arms<'_>, what: &str, measured: f64, most: f64) {
        self.checks.push(Check::at_most(format!("{}: {what}", arms.name), measured, most));
    }

    fn at_least(&mut self, arms: &Arms<'_>, what: &str, measured: f64, least: f64) {
        self.checks.push(Check::at_least(format!("{}: {what}", arms.name), measured, least));
    }

    fn retransmitted(&mut self, arms: &Arms<'_>) {
        let values = arms.medians(&|run| Some(run.retransmitted_segments as f64));
        self.row(arms, "retransmitted, segments", values, 0);
        self.point("retransmitted, segments", values);
        let most = (values[1] * RETRANSMITTED_MOST).max(RETRANSMITTED_FREE);
        self.at_most(arms, "retransmitted, segments", values[0], most);
    }

    fn evaluation(self, case: &Case, subject: &str) -> Evaluation {
        let names = [subject, REFERENCE, OTHER].map(str::to_owned);
        let panel = |(quantity, values): (&str, [Vec<f64>; 3])| {
            let groups: Vec<_> = names.iter().cloned().zip(values).collect();
            columns(&format!("{quantity}: a dot for each path"), quantity, &groups)
        };
        let panels = self.drawn.into_iter().map(panel).collect();
        Evaluation {
            comparands: self.comparands,
            checks: self.checks,
            figure: figure(case.statement, panels),
        }
    }
}

fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

/// Over stock CUBIC's.
fn ratios(values: [f64; 3]) -> [f64; 3] {
    values.map(|value| value / values[1])
}

pub(super) fn evaluate(case: &Case, subject: &str, evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let mut findings = Findings::default();
    for trial in (case.paths)() {
        let name = trial.name.as_str();
        let arm = |arm| evidence.arm(name, arm);
        let arms = Arms {
            trial: evidence.trial(name)?,
            name,
            subject: arm(subject)?,
            cubic: arm(REFERENCE)?,
            bbr: arm(OTHER).ok(),
        };
        match case.measure {
            Measure::Download => download(&mut findings, &arms),
            Measure::Objects => objects(&mut findings, &arms, &trial.objects),
            Measure::Together => together(&mut findings, &arms),
            Measure::Rtts => rtts(&mut findings, &arms),
            Measure::Neighbour => neighbour(&mut findings, &arms),
            Measure::OtherPath => other_path(&mut findings, &arms),
        }
    }
    Ok(findings.evaluation(case, subject))
}

fn download(findings: &mut Findings, arms: &Arms<'_>) {
    let base_rtt_us = arms.trial.base_rtt_us as f64;
    let seconds = arms.medians(&|run| Some(run.seconds));
    let queueing = arms.medians(&|run| Some((run.mean_rtt_us - base_rtt_us).max(0.0) / 1e3));
    let exit = arms.medians(&|run| Some(run.exit.as_ref()?.window_bytes as f64));
    findings.row(arms, "time, s", seconds, 2);
    findings.row(arms, "mean queueing delay, ms", queueing, 1);
    findings.row(arms, "window at the exit, BDP", exit.map(|bytes| bytes / arms.trial.bdp_bytes as f64), 2);
    findings.point("time over stock CUBIC's", ratios(seconds));
    findings.point("mean queueing delay, ms", queueing);
    findings.at_most(arms, "time over stock CUBIC's", ratios(seconds)[0], TIME_MOST);
    findings.retransmitted(arms);
}

fn objects(findings: &mut Findings, arms: &Arms<'_>, sizes: &[u64]) {
    let rtt_seconds = arms.trial.base_rtt_us as f64 / 1e6;
    for bytes in sizes {
        let time = |run: &Run| run.measures.objects.iter().find(|object| object.bytes == *bytes)?.seconds;
        let seconds = arms.medians(&time);
        let what = format!("first {} kB, s", bytes / 1_000);
        findings.row(arms, &what, seconds, 3);
        findings.point("time of objects over stock CUBIC's", ratios(seconds));
        let most = (seconds[1] * TIME_MOST).max(seconds[1] + rtt_seconds);
        findings.at_most(arms, &what, seconds[0], (most * 1e6).round() / 1e6);
    }
}

fn together(findings: &mut Findings, arms: &Arms<'_>) {
    let fairness = arms.medians(&|run| run.fairness);
    let goodput = arms.medians(&|run| Some(run.goodput_bps / 1e6));
    findings.row(arms, "Jain's index", fairness, 3);
    findings.row(arms, "goodput of all, Mb/s", goodput, 1);
    findings.point("Jain's index", fairness);
    findings.at_least(arms, "Jain's index over stock CUBIC's", ratios(fairness)[0], TOGETHER_LEAST);
    findings.at_least(arms, "goodput over stock CUBIC's", ratios(goodput)[0], TOGETHER_LEAST);
    findings.retransmitted(arms);
}

fn rtts(findings: &mut Findings, arms: &Arms<'_>) {
    let share = arms.medians(&|run| {
        let long = run.flows.iter().max_by_key(|flow| flow.base_rtt_us)?;
        let all: f64 = run.flows.iter().map(|flow| flow.goodput_bps).sum();
        Some(long.goodput_bps / all * 100.0)
    });
    findings.row(arms, LONG_GETS, share, 1);
    findings.point(LONG_GETS, share);
    findings.at_least(arms, LONG_GETS, share[0], least_share(share[1]));
    together(findings, arms);
}

/// Nine tenths of what it is next to stock CUBIC, or of an equal share; percent.
fn least_share(beside_cubic: f64) -> f64 {
    (KEPT_LEAST * beside_cubic.min(EQUAL_PERCENT) * 10.0).round() / 10.0
}

fn other_path(findings: &mut Findings, arms: &Arms<'_>) {
    let seconds = arms.medians(&|run| Some(run.seconds));
    let silent = arms.medians(&|run| Some(run.measures.longest_stall_seconds));
    findings.row(arms, "time, s", seconds, 2);
    findings.row(arms, "longest time without an acknowledgment, s", silent, 2);
    findings.point("time over stock CUBIC's", ratios(seconds));
    findings.at_most(arms, "time over stock CUBIC's", ratios(seconds)[0], TIME_MOST);
    findings.retransmitted(arms);
}

fn neighbour(findings: &mut Findings, arms: &Arms<'_>) {
    let kept = arms.medians(&|run| Some(run.competitor?.share * 100.0));
    let lost = arms.medians(&|run| Some(run.competitor?.retransmitted_segments as f64));
    let goodput = arms.medians(&|run| Some(run.goodput_bps / 1e6));
    findings.row(arms, "the neighbour keeps, %", kept, 1);
    findings.row(arms, "the neighbour retransmits, segments", lost, 0);
    findings.row(arms, "goodput of the arm, Mb/s", goodput, 1);
    findings.point("the neighbour keeps, %", kept);
    findings.at_least(arms, "the neighbour keeps, %", kept[0], least_share(kept[1]));
    let of_two_rtts = |run: &Run| {
        let competitor = run.competitor?;
        Some((competitor.share, competitor.base_rtt_us? > run.base_rtt_us?))
    };
    let long = arms.medians(&|run| {
        let (share, longer) = of_two_rtts(run)?;
        Some(if longer { share } else { 1.0 - share } * 100.0)
    });
    if long[0].is_finite() {
        let fairness = arms.medians(&|run| {
            let (share, _) = of_two_rtts(run)?;
            Some(jain([share, 1.0 - share].into_iter()))
        });
        findings.row(arms, LONG_GETS, long, 1);
        findings.row(arms, "Jain's index of both", fairness, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::super::CASES;
    use super::*;
    use crate::experiment::{CompetitorRun, FlowRun, ObjectTime};
    use crate::question::testing::{add, run};

    /// Evaluates a case on whose every path the arm and stock CUBIC, and BBR likewise, had such a run: what fails.
    fn failing(id: &str, ours: &Run, cubic: &Run) -> Vec<String> {
        let case = CASES.iter().find(|case| case.id == id).unwrap();
        let mut evidence = Evidence::default();
        for trial in case.question("ramp").trials {
            let arms = vec![("ramp", ours.clone()), ("cubic", cubic.clone()), ("bbr", cubic.clone())];
            add(&mut evidence, &trial.name, arms);
        }
        let evaluation = evaluate(case, "ramp", &evidence).unwrap();
        assert!(!evaluation.comparands.is_empty() && !evaluation.figure.panels.is_empty());
        evaluation.checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
    }

    #[test]
    fn a_download_may_take_five_percent_longer_and_lose_a_quarter_more() {
        assert_eq!(failing("transient", &run(10.5, 125), &run(10.0, 100)), [""; 0]);
        let late = failing("transient", &run(10.6, 125), &run(10.0, 100));
        assert_eq!(
            late,
            ["silent-in-slow-start", "silent-later"].map(|path| format!("{path}: time over stock CUBIC's"))
        );
        assert_eq!(failing("transient", &run(10.0, 126), &run(10.0, 100)).len(), 2);
        // Fifty are nothing.
        assert_eq!(failing("transient", &run(10.0, 50), &run(10.0, 0)), [""; 0]);
    }

    #[test]
    fn a_neighbour_keeps_nine_tenths_of_what_it_keeps_next_to_cubic_or_of_half() {
        let keeps = |share| {
            let competitor = CompetitorRun {
                goodput_bps: 1.0,
                goodput_before_bps: 1.0,
                share,
                retransmitted_segments: 0,
                base_rtt_us: None,
            };
            Run { competitor: Some(competitor), ..run(20.0, 0) }
        };
        assert_eq!(failing("neighbour-bbr", &keeps(0.36), &keeps(0.4)), [""; 0]);
        assert_eq!(failing("neighbour-bbr", &keeps(0.35), &keeps(0.4)).len(), 2);
        assert_eq!(failing("neighbour-bbr", &keeps(0.45), &keeps(0.9)), [""; 0]);
        assert_eq!(failing("neighbour-bbr", &keeps(0.44), &keeps(0.9)).len(), 2);
        // A run that had none shows nothing.
        assert_eq!(failing("neighbour-bbr", &run(20.0, 0), &keeps(0.5)).len(), 2);
        assert_eq!(failing("neighbour-bbr", &keeps(0.5), &run(20.0, 0)), [""; 0]);
    }

    #[test]
    fn objects_may_take_a_round_trip_longer_and_flows_share() {
        let took = |seconds| {
            let mut run = run(5.0, 0);
            let time = |bytes| ObjectTime { bytes, seconds: Some(seconds), utilization: None };
            run.measures.objects = [15_000, 100_000, 500_000, 1_000_000, 5_000_000].map(time).into();
            run
        };
        // The made-up path has 0.6 s.
        assert_eq!(failing("short", &took(2.6), &took(2.0)), [""; 0]);
        assert_eq!(failing("short", &took(2.61), &took(2.0)).len(), 20);
        let shared = |fairness| Run { fairness: Some(fairness), ..run(20.0, 0) };
        assert_eq!(failing("itself", &shared(0.86), &shared(0.9)), [""; 0]);
        assert_eq!(failing("itself", &shared(0.85), &shared(0.9)).len(), 2);
    }

    #[test]
    fn of_two_rtts_the_longer_gets_nine_tenths_of_what_it_gets_of_cubic() {
        let shared = |percent: f64, fairness| {
            let flow = |goodput_bps, base_rtt_us| FlowRun {
                seconds: 20.0,
                goodput_bps,
                retransmitted_segments: 0,
                base_rtt_us: Some(base_rtt_us),
                min_rtt_us: None,
                exit: None,
            };
            let flows = vec![flow(percent, 160_000), flow(100.0 - percent, 40_000)];
            Run { flows, fairness: Some(fairness), ..run(20.0, 0) }
        };
        assert_eq!(failing("rtts", &shared(18.0, 0.7), &shared(20.0, 0.7)), [""; 0]);
        let failed = failing("rtts", &shared(17.0, 0.6), &shared(20.0, 0.7));
        assert_eq!(
            failed,
            [
                "rtts-1-to-4: the flow of the longer RTT gets, %",
                "rtts-1-to-4: Jain's index over stock CUBIC's"
            ]
        );
        let met = |share, longer| {
            let base_rtt_us = Some(if longer { 160_000 } else { 40_000 });
            let competitor = CompetitorRun {
                goodput_bps: 1.0,
                goodput_before_bps: 1.0,
                share,
                retransmitted_segments: 0,
                base_rtt_us,
            };
            Run { competitor: Some(competitor), base_rtt_us: Some(100_000), ..run(20.0, 0) }
        };
        for longer in [false, true] {
            assert_eq!(failing("rtts-neighbour-cubic", &met(0.19, longer), &met(0.2, longer)), [""; 0]);
            assert_eq!(failing("rtts-neighbour-cubic", &met(0.17, longer), &met(0.2, longer)).len(), 2);
        }
        assert_eq!(failing("other-path", &run(10.5, 125), &run(10.0, 100)), [""; 0]);
        assert_eq!(failing("other-path", &run(10.6, 126), &run(10.0, 100)).len(), 8);
    }

    #[test]
    fn without_a_run_of_cubic_nothing_is_evaluated() {
        let case = &CASES[0];
        assert!(evaluate(case, "ramp", &Evidence::default()).is_err());
        let mut evidence = Evidence::default();
        for trial in case.question("ramp").trials {
            add(&mut evidence, &trial.name, vec![("ramp", run(1.0, 0)), ("bbr", run(1.0, 0))]);
        }
        assert!(evaluate(case, "ramp", &evidence).unwrap_err().to_string().contains("cubic"));
        // Without one of BBR it is.
        for trial in case.question("ramp").trials {
            add(&mut evidence, &trial.name, vec![("ramp", run(1.0, 0)), ("cubic", run(1.0, 0))]);
        }
        assert!(evaluate(case, "ramp", &evidence).unwrap().comparands[0].source.ends_with("bbr -"));
    }
}
