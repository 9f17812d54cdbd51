//! `onramp-lab calibrate`.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::Args;
use onramp_lab::calibrate::{Measured, ModelCheck};
use onramp_lab::experiment::Tool;
use onramp_lab::guest;
use onramp_profiles::Profile;
use serde::Serialize;

use super::clock::ClockOptions;
use super::require_root;
use crate::failure::FAILURE;
use crate::output::Output;
use crate::profile;
use crate::table::Table;
use crate::units::count;

/// Of what is random in the models: the result is the same every time.
const SEED: u64 = 1;
/// Memory of the guest, MiB.
const MEMORY_MIB: u32 = 1_500;

/// Measure the emulated link itself: rate within 1 %, base RTT within 1 ms, queue limit within a packet
///
/// The link is built without its random parts and probed with UDP. Exits 1 if it is off: this machine, or in virtual time
/// the guest, is too slow to emulate it.
///
/// With --models what varies is compared with closed forms instead: rates, delays, loss, AQM, schedules, cross traffic.
/// In virtual time, so it needs neither root nor an idle machine. Where a model is random the tolerance is five
/// standard deviations of the measured mean. Exits 1 if one does not hold.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab calibrate
  onramp lab calibrate --profile ./mine.toml --json
  onramp lab calibrate --models")]
pub(crate) struct Calibrate {
    /// Link: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    /// Compare every link model with its closed form
    #[arg(long, conflicts_with = "profile")]
    models: bool,
    #[command(flatten)]
    clock: ClockOptions,
}

impl Calibrate {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if self.models {
            return models(output);
        }
        let profile = profile::load(&self.profile)?;
        if self.clock.is_virtual() {
            return in_guest(&self.clock, &profile, output);
        }
        require_root("lab calibrate")?;
        let calibration = onramp_lab::calibrate::calibrate(&profile.link)?;
        output.data(&calibration, || format!("{}: {calibration}\n", profile.name))?;
        Ok(if calibration.holds() { 0 } else { FAILURE })
    }
}

/// The same command in a guest, in the guest's time.
fn in_guest(clock: &ClockOptions, profile: &Profile, output: &Output) -> anyhow::Result<u8> {
    const PROFILE: &str = "/profile.toml";
    let mut command =
        vec![guest::image::SELF, "lab", "calibrate", "--clock", "machine", "--profile", PROFILE];
    if output.json() {
        command.push("--json");
    }
    let image = clock.image(Tool::Builtin)?;
    let text = toml::to_string(profile).context("cannot write the profile for the guest")?;
    let guest = guest::Guest {
        image: &image,
        command: command.into_iter().map(str::to_owned).collect(),
        environment: BTreeMap::new(),
        inputs: BTreeMap::from([(PROFILE.to_owned(), text.into_bytes())]),
        memory_mib: MEMORY_MIB,
        seconds: clock.seconds(),
    };
    Ok(guest.run(super::guest::print)?.status)
}

#[derive(Serialize)]
struct Report {
    seed: u64,
    checks: Vec<Row>,
    checks_failed: usize,
}

#[derive(Serialize)]
struct Row {
    model: &'static str,
    quantity: &'static str,
    #[serde(flatten)]
    value: Measured,
    holds: bool,
}

impl Report {
    fn of(checks: Vec<ModelCheck>) -> Self {
        let row =
            |ModelCheck { model, quantity, value }| Row { model, quantity, value, holds: value.holds() };
        let checks: Vec<Row> = checks.into_iter().map(row).collect();
        Self { seed: SEED, checks_failed: checks.iter().filter(|row| !row.holds).count(), checks }
    }

    fn text(&self, output: &Output) -> String {
        let mut table = Table::new(["MODEL", "QUANTITY", ">MEASURED", ">EXPECTED", ">TOLERANCE", ""]);
        for Row { model, quantity, value, holds } in &self.checks {
            let number = |value: f64| format!("{value:.4}");
            table.push([
                (*model).to_owned(),
                (*quantity).to_owned(),
                number(value.measured),
                number(value.expected),
                number(value.tolerance),
                if *holds { "good" } else { "OFF" }.to_owned(),
            ]);
        }
        let verdict = match self.checks_failed {
            0 => "all hold".to_owned(),
            failed => format!("{failed} off"),
        };
        let checks = count(self.checks.len(), "check");
        format!("{}{checks} in virtual time with seed {}: {verdict}\n", table.render(output), self.seed)
    }

    fn code(&self) -> u8 {
        if self.checks_failed == 0 { 0 } else { FAILURE }
    }
}

fn models(output: &Output) -> anyhow::Result<u8> {
    let report = Report::of(onramp_lab::calibrate::models(SEED));
    output.data(&report, || report.text(output))?;
    Ok(report.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::{Color, Global};

    #[test]
    fn one_check_that_is_off_is_shown_and_fails() {
        let check = |measured| ModelCheck {
            model: "random",
            quantity: "loss, share",
            value: Measured { expected: 0.1, measured, tolerance: 0.01 },
        };
        let output = Output::new(&Global {
            json: false,
            pretty: false,
            quiet: false,
            verbose: 0,
            color: Color::Never,
        });
        let good = Report::of(vec![check(0.1), check(0.105)]);
        assert_eq!((good.code(), good.checks_failed), (0, 0));
        assert!(good.text(&output).ends_with("2 checks in virtual time with seed 1: all hold\n"));
        // Nothing measured is not agreement.
        for measured in [0.2, f64::NAN] {
            let bad = Report::of(vec![check(0.1), check(measured)]);
            assert_eq!((bad.code(), bad.checks_failed), (FAILURE, 1));
            let text = bad.text(&output);
            assert!(text.ends_with(": 1 off\n") && text.lines().nth(2).unwrap().ends_with("  OFF"), "{text}");
        }
    }
}
