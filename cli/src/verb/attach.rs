//! `onramp attach`.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onramp_loader::algorithm::Algorithm;
use onramp_loader::telemetry::Level;
use onramp_loader::{AttachOptions, Attached, DEFAULT_SYSCTL};
use serde::Serialize;

use super::{expire, plan};
use crate::guard::{self, Margins};
use crate::output::Output;
use crate::settings::Settings;
use crate::units;

/// Attach an algorithm: load it, register its congestion control and pin it
///
/// It stays until `onramp detach` or a reboot, and no process is needed meanwhile. Attaching by itself changes no
/// socket: an application chooses onramp_ALG (TCP_CONGESTION, `iperf3 -C onramp_ALG`), a route does (`ip route change
/// ... congctl onramp_ALG`), `onramp run` does for a command, or --default does for this network namespace.
/// All or nothing: where it fails, nothing has changed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp attach                                # ramp, which is told nothing about the path
  onramp attach --profile geo                  # what the profile names
  onramp attach search --profile geo --set exit_action=hold
  onramp attach search --telemetry exit        # of its flows nobody hears more than their exits
  onramp attach search --default --for 10m     # goes back by itself, unless `onramp confirm search` comes in time
  onramp attach search --default --guard retransmit_ratio=2%,goodput=-10%   # goes back by itself where it does harm
  onramp attach search --default --dry-run

Undo: onramp detach ALG")]
pub(crate) struct Attach {
    #[command(flatten)]
    settings: Settings,
    /// Become the default of this network namespace, also where it is attached already; `onramp detach` gives the former
    /// default back
    #[arg(long)]
    default: bool,
    /// Only observe: record when the algorithm would have left slow start, and do nothing of what it wants
    #[arg(long)]
    observe: bool,
    /// Keep a share of the flows on the base as control, and have the base run alone once the others are worse by more than these
    /// margins: retransmit_ratio, of bytes, in percentage points, 0.1% to 50%; goodput, -1% to -90%. `onramp compare-arms` shows
    /// both
    #[arg(long, value_name = "MARGINS", value_parser = guard::margins)]
    guard: Option<Margins>,
    /// The share of the flows that stays on the base, 1% to 50%
    #[arg(long, value_name = "PERCENT", value_parser = guard::control_share, default_value = guard::CONTROL_SHARE, requires = "guard")]
    control_share: f64,
    /// Detach again after this time (30s, 10m, 2h) unless confirmed
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    expires_in: Option<Duration>,
    /// Say what would be done and how it would be undone; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Report {
    algorithm: &'static str,
    congestion_control: String,
    base: &'static str,
    observe: bool,
    /// As `--guard` takes it.
    guard: Option<String>,
    control_share_pct: Option<f64>,
    profile: String,
    telemetry_max: &'static str,
    generation: String,
    replaced_default: Option<String>,
    expires_at_us: Option<u64>,
    undo: String,
}

/// It was attached already, and became the default of one more namespace.
#[derive(Serialize)]
struct DefaultReport {
    algorithm: &'static str,
    congestion_control: String,
    replaced_default: Option<String>,
    undo: Option<String>,
}

impl Attach {
    /// Everything checked; nothing done yet.
    pub(super) fn options(&self) -> anyhow::Result<AttachOptions> {
        let mut options = self.settings.options()?;
        options.default = self.default;
        options.observe = self.observe;
        options.guard = self.guard.as_ref().map(|margins| margins.guard(self.control_share));
        guard::require_a_deed(&options)?;
        options.expires_in = self.expires_in;
        Ok(options)
    }

    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let options = self.options()?;
        if self.only_default_is_new(&options) {
            return self.take_default(options.parameters.algorithm(), output);
        }
        if self.dry_run {
            return plan::print(&onramp_loader::plan_attach(&options)?, output);
        }
        let attached = match self.expires_in {
            Some(_) => attach_for_a_time(&options)?,
            None => onramp_loader::attach(&options)?,
        };
        let report = describe(&attached, &options);
        output.report(&report, || text(&report, self.expires_in))?;
        Ok(0)
    }

    /// Whether it is attached as it is asked for, and is to become the default of this namespace, too.
    fn only_default_is_new(&self, options: &AttachOptions) -> bool {
        let sets = onramp_loader::parameter_sets(options.parameters.algorithm()).unwrap_or_default();
        self.default
            && !self.observe
            && self.guard.is_none()
            && self.expires_in.is_none()
            && sets.first().is_some_and(|set| !self.settings.differ_from(set, options))
    }

    fn take_default(&self, algorithm: Algorithm, output: &Output) -> anyhow::Result<u8> {
        if self.dry_run {
            return plan::print(&onramp_loader::plan_default(algorithm)?, output);
        }
        let replaced_default = onramp_loader::take_default(algorithm)?;
        let report = DefaultReport {
            algorithm: algorithm.name(),
            congestion_control: algorithm.congestion_control(),
            undo: replaced_default.as_ref().map(|before| format!("sysctl -w {DEFAULT_SYSCTL}={before}")),
            replaced_default,
        };
        output.report(&report, || default_text(&report))?;
        Ok(0)
    }
}

fn default_text(report: &DefaultReport) -> String {
    let DefaultReport { algorithm, congestion_control, .. } = report;
    let mut text = format!("{algorithm} is attached already\n");
    match (&report.replaced_default, &report.undo) {
        (Some(before), Some(undo)) => {
            text += &format!("  default of this network namespace: {congestion_control} (was {before})\n");
            text += &format!("  undo: {undo}\n");
        }
        _ => text += &format!("  default of this network namespace: {congestion_control} as before\n"),
    }
    text
}

/// The watch is started first, so that there is no moment in which the attachment would outlive a killed command.
fn attach_for_a_time(options: &AttachOptions) -> anyhow::Result<Attached> {
    // What can be refused is refused before anything is started.
    onramp_loader::plan_attach(options)?;
    let watch = expire::Watch::start(options.parameters.algorithm())
        .context("cannot start the process that would detach again, so nothing was attached")?;
    let attached = onramp_loader::attach(options)?;
    watch.begin();
    Ok(attached)
}

fn describe(attached: &Attached, options: &AttachOptions) -> Report {
    let name = attached.algorithm.name();
    Report {
        algorithm: name,
        congestion_control: attached.algorithm.congestion_control(),
        base: attached.base.name(),
        observe: options.observe,
        guard: options.guard.map(|guard| guard.to_string()),
        control_share_pct: options.guard.map(|guard| guard.control_share()),
        profile: options.profile.clone(),
        telemetry_max: options.telemetry_max.name(),
        generation: format!("{:x}", attached.generation),
        replaced_default: attached.replaced_default.clone(),
        expires_at_us: options.expires_in.map(|delay| attached.generation + delay.as_micros() as u64),
        undo: format!("onramp detach {name}"),
    }
}

fn text(report: &Report, expires_in: Option<Duration>) -> String {
    let Report { algorithm, congestion_control, base, generation, .. } = report;
    let mut text =
        format!("attached {algorithm} as {congestion_control}, base {base}, generation {generation}\n");
    if report.observe {
        text += "  observes only: what it would do is recorded, the base does everything\n";
    }
    if let (Some(guard), Some(share)) = (&report.guard, report.control_share_pct) {
        text += &format!(
            "  guarded ({guard}): {share}% of its flows run the base alone: onramp compare-arms {algorithm}\n"
        );
    }
    if report.telemetry_max != Level::Ack.name() {
        text += &format!("  its flows are told of up to level {}\n", report.telemetry_max);
    }
    if let Some(before) = &report.replaced_default {
        text += &format!("  default of this network namespace: {congestion_control} (was {before})\n");
    }
    if let Some(delay) = expires_in {
        let delay = units::show_us(delay.as_micros() as u64);
        text += &format!("  detaches in {delay} unless confirmed: onramp confirm {algorithm}\n");
    }
    text + &format!("  undo: {}\n", report.undo)
}
