//! `onramp compare-arms`.

use anyhow::bail;
use clap::Args;
use onramp_loader::algorithm::Algorithm;
use onramp_loader::guard::{Arm, GuardState};
use serde::Serialize;

use crate::guard::{Guarded, difference, verdict};
use crate::output::Output;
use crate::settings::AlgorithmName;
use crate::table::Table;
use crate::units::show_rate;

/// Compare the flows of a guarded algorithm with those that stay on the base as control
///
/// `onramp attach ALG --guard ...` keeps a share of the flows on the base. Flows that began under it and have had 100 kB acknowledged
/// when they end are counted: the mean share of bytes retransmitted, and the geometric mean of goodput (bytes acknowledged by time with
/// data to send). A difference stands with the interval that holds the true one, at every moment at once, but for an error
/// of 5 %: it may be looked at as often as you like. Differences of retransmit_ratio are in percentage points.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp attach search --default --guard retransmit_ratio=2%,goodput=-10%
  onramp compare-arms search
  onramp compare-arms --json | jq '.guarded[].comparisons'")]
pub(crate) struct CompareArms {
    /// Algorithm [default: all that are guarded]
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: Option<String>,
}

#[derive(Serialize)]
struct Report {
    guarded: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    #[serde(flatten)]
    guard: Guarded,
}

impl CompareArms {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let guarded = match &self.algorithm {
            Some(name) => vec![one(onramp_loader::find(name)?)?],
            None => all()?,
        };
        let rows = guarded
            .iter()
            .map(|(algorithm, state)| Row { algorithm: algorithm.name(), guard: Guarded::from(state) });
        let report = Report { guarded: rows.collect() };
        output.data(&report, || {
            let texts: Vec<_> =
                guarded.iter().map(|(algorithm, state)| text(algorithm.name(), state, output)).collect();
            if texts.is_empty() { "nothing is guarded\n".into() } else { texts.concat() }
        })?;
        Ok(0)
    }
}

fn one(algorithm: Algorithm) -> anyhow::Result<(Algorithm, GuardState)> {
    let Some(state) = onramp_loader::guard::guard(algorithm)? else {
        bail!(
            "{0} is attached without a guard: `onramp detach {0}`, then attach it with --guard, for instance retransmit_ratio=2%,goodput=-10%",
            algorithm.name()
        );
    };
    Ok((algorithm, state))
}

fn all() -> Result<Vec<(Algorithm, GuardState)>, onramp_loader::Error> {
    let mut guarded = Vec::new();
    for algorithm in onramp_loader::pinned() {
        if let Some(state) = onramp_loader::attached_state(algorithm)?.and_then(|state| state.guard) {
            guarded.push((algorithm, state));
        }
    }
    Ok(guarded)
}

fn text(algorithm: &str, state: &GuardState, output: &Output) -> String {
    let options = &state.options;
    let mut text = format!(
        "{}, guarded ({options}) by {}% of its flows\n",
        output.bold(algorithm),
        options.control_share()
    );
    let mut table = Table::new(["  arm", ">flows", ">retransmit ratio", ">goodput"]);
    for (name, Arm { flows, retransmit_ratio_pct, goodput_bps }) in
        [("  treated", &state.treated), ("  control", &state.control)]
    {
        let none = || "-".to_owned();
        table.push([
            name.into(),
            flows.to_string(),
            retransmit_ratio_pct.map_or_else(none, |percent| format!("{percent:.2} %")),
            goodput_bps.map_or_else(none, |rate| show_rate(rate.round() as u64)),
        ]);
    }
    text += &table.render(output);
    for comparison in &state.comparisons {
        let said = verdict(comparison, state);
        let difference =
            difference(comparison).map_or_else(String::new, |difference| format!(" {difference}"));
        text += &format!("  {}{difference}: {said}\n", comparison.metric.name());
    }
    if state.tripped.is_some() {
        text += &format!("  the base runs alone, and nothing more is counted: onramp detach {algorithm}\n");
    }
    text
}
