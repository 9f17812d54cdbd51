//! `onramp status --guard`: the flows of guarded algorithms, next to those that stay on the base.

use onramp_loader::guard::{Arm, GuardState};
use serde::Serialize;

use crate::guard::{Guarded, difference, verdict};
use crate::output::Output;
use crate::table::Table;
use crate::units::{show_rate, show_us};

/// All that are guarded.
#[derive(Serialize)]
pub(super) struct GuardReport {
    guarded: Vec<GuardRow>,
    #[serde(skip)]
    texts: Vec<String>,
}

#[derive(Serialize)]
struct GuardRow {
    algorithm: &'static str,
    #[serde(flatten)]
    guard: Guarded,
}

impl GuardReport {
    pub fn new(guards: &[(&'static str, &GuardState)], output: &Output) -> Self {
        let rows =
            guards.iter().map(|&(algorithm, state)| GuardRow { algorithm, guard: Guarded::from(state) });
        Self {
            guarded: rows.collect(),
            texts: guards.iter().map(|&(algorithm, state)| text(algorithm, state, output)).collect(),
        }
    }

    pub fn text(&self) -> String {
        if self.texts.is_empty() { "nothing is guarded\n".into() } else { self.texts.concat() }
    }
}

fn text(algorithm: &str, state: &GuardState, output: &Output) -> String {
    let options = &state.options;
    let mut text = format!(
        "{}, guarded ({options}) by {}% of its flows\n",
        output.bold(algorithm),
        options.control_share()
    );
    let mut table = Table::new(["  arm", ">flows", ">retransmit ratio", ">goodput", ">first 64 kB"]);
    for (name, Arm { flows, retransmit_ratio_pct, goodput_bps, first_64kb_us }) in
        [("  treated", &state.treated), ("  control", &state.control)]
    {
        let none = || "-".to_owned();
        table.push([
            name.into(),
            flows.to_string(),
            retransmit_ratio_pct.map_or_else(none, |percent| format!("{percent:.2} %")),
            goodput_bps.map_or_else(none, |rate| show_rate(rate.round() as u64)),
            first_64kb_us.map_or_else(none, |us| show_us(us.round() as u64)),
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
