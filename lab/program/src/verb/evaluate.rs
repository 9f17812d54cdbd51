//! `onramp-lab evaluate`.

use std::path::PathBuf;

use clap::Args;
use onramp_lab::evaluate::{CASES, NOT_EVALUATED, OTHER, REFERENCE};
use onramp_lab::experiment::Plan;
use onramp_lab::question::report::ReportText;
use onramp_lab::question::{Evidence, Question};
use onramp_loader::algorithm;

use super::series::{Series, SeriesOptions};
use crate::output::Output;
use crate::target::directory;
use crate::verb::reproduction::{Manner, Outcomes, chosen, print_list, trials};

/// Evaluate an arm as RFC 9743 asks for, compared with stock CUBIC and BBR on the same paths and seeds
///
/// Short and long flows, alone, against its like, against CUBIC and BBR, of one RTT and of two; small and large queues, AQM,
/// random loss, wireless paths, satellites, handovers, sudden changes and changes to another path. RFC 9743 sets no
/// thresholds. Ours: 5 % longer than stock CUBIC at most, 1.25 times its retransmissions or 50 segments, and a neighbour
/// keeps nine tenths of what it keeps next to stock CUBIC, or of an equal share where it keeps more. Flows of the arm share as
/// evenly and use as much as those of stock CUBIC but for 5 %, and of two RTTs the flow of the longer one gets nine tenths
/// likewise. Medians of seven runs. report.html has all figures, plots and digests, and says
/// what of the RFC is not evaluated. Exits 1 if a case does not hold.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab evaluate --list
  onramp lab evaluate --quick
  onramp lab evaluate ramp:base=bbr --case tail-drop,neighbour-cubic
  onramp lab evaluate search -o evaluation --resume")]
pub(crate) struct Evaluate {
    /// Algorithm or congestion control, with settings after colons
    #[arg(default_value = algorithm::default().name())]
    arm: String,
    /// Cases, by name; see --list [default: all]
    #[arg(long = "case", value_delimiter = ',', value_name = "CASE,…")]
    cases: Vec<String>,
    /// List the cases
    #[arg(long, conflicts_with = "cases")]
    list: bool,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    series: SeriesOptions,
    /// Directory for everything [default: runs/evaluate]
    #[arg(short, long, value_name = "DIR", value_parser = directory, default_value = "runs/evaluate", hide_default_value = true)]
    output: PathBuf,
}

impl Evaluate {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let series = Series { options: &self.series, manner: self.manner, root: &self.output };
        let all: Vec<Question<'_>> = CASES.iter().map(|case| case.question(&self.arm)).collect();
        if self.list {
            return print_list("cases", &all, |trial| series.seconds(trial).map(Some), output);
        }
        let cases = if self.cases.is_empty() { all } else { chosen("case", all, &self.cases)? };
        let trials = trials(&cases);
        let made_in = self.series.clock(&[])?;
        let mut evidence = Evidence::default();
        for trial in &trials {
            let plan = Plan { clock: made_in.clone(), ..series.plan(trial)? };
            if let Some(comparison) = series.kept(trial, &plan)? {
                evidence.trials.insert(trial.name.clone(), comparison);
            }
        }
        let mut clock = series.begin("lab evaluate", &trials, &evidence, output)?;
        let title = format!("{} after RFC 9743", self.arm);
        let compared_with = format!("{REFERENCE} and {OTHER}");
        let words =
            ReportText { title: &title, question: "case", compared_with: &compared_with, here: &self.arm };
        let mut outcomes =
            Outcomes::new(&self.output, self.manner, words)?.with("not evaluated", NOT_EVALUATED);
        for case in &cases {
            for trial in &case.trials {
                if !evidence.trials.contains_key(&trial.name) {
                    clock.say(&format!("{}: {}", case.id, trial.name));
                    let plan = Plan { clock: made_in.clone(), ..series.plan(trial)? };
                    let comparison = series.measure(trial, &plan, &mut clock)?;
                    evidence.trials.insert(trial.name.clone(), comparison);
                }
            }
            clock.say(&outcomes.add(case, &evidence)?);
        }
        drop(clock);
        outcomes.finish(output)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        evaluate: Evaluate,
    }

    #[test]
    fn every_path_is_valid_as_adapted() {
        let Evaluate { manner, series, output, arm, .. } = CommandLine::parse_from(["evaluate"]).evaluate;
        let series = Series { options: &series, manner, root: &output };
        for trial in CASES.iter().flat_map(|case| case.question(&arm).trials) {
            let plan = series.plan(&trial).unwrap();
            plan.validate().unwrap();
            assert_eq!((plan.flows, &plan.competitor), (trial.flows, &trial.competitor));
            assert_eq!((plan.repetitions, plan.changes.len()), (7, trial.changes.len()));
            assert_eq!((plan.paths.len(), &plan.extra_rtt_us), (trial.paths.len(), &trial.extra_rtt_us));
        }
    }
}
