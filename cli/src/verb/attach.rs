//! `onramp attach`.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onramp_loader::algorithm::{AfterExitOptions, Algorithm, StartPolicies};
use onramp_loader::telemetry::Level;
use onramp_loader::{Action, AttachOptions, Attached, AttachedState, Basis};
use serde::Serialize;

use super::elsewhere::{self, Place, Taken};
use super::{expire, plan};
use crate::basis;
use crate::guard::{self, Margins};
use crate::output::{Output, say};
use crate::settings::{self, Settings};
use crate::units::{self, now_us};

/// Attach an algorithm: load it, register its congestion control and pin it
///
/// It stays until `onramp detach` or a reboot, and no process is needed meanwhile. Attaching by itself changes no
/// socket: an application chooses onramp_ALG (TCP_CONGESTION, `iperf3 -C onramp_ALG`), a route does (`ip route change
/// ... congctl onramp_ALG`), `onramp run` does for a command, or --default does for this network namespace.
/// All or nothing: where it fails, nothing has changed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp attach                                # ramp, which needs no knowledge of the path
  onramp attach --profile geo                  # what the profile names
  onramp attach search --profile geo --set exit_action=hold
  onramp attach --after-exit plateau,floor     # what the base does after slow start, too
  onramp attach --start resume+window          # start from what was learned of a path
  onramp attach search --telemetry exit   # consumers get no more than exits
  onramp attach search --default --for 10m   # reverts unless `onramp confirm search` comes
  onramp attach search --default --guard retransmit_ratio=2%,goodput=-10%   # reverts on harm
  onramp attach search --for 10m   # a time limit for what is attached, or a later one
  onramp attach search --default=all   # also of running containers
  onramp attach search --default --dry-run

Undo: printed; onramp detach ALG, or what was before")]
pub(crate) struct Attach {
    #[command(flatten)]
    settings: Settings,
    /// Become the default of this network namespace, also where it is attached already: `here`; of `all` that there are now;
    /// or of that of a file, such as /run/netns/NAME. May be repeated. `onramp detach` restores the previous defaults
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, require_equals = true, default_missing_value = elsewhere::HERE, value_parser = elsewhere::place)]
    default: Vec<Place>,
    /// Only observe: record when the algorithm would have exited slow start, and do nothing of what it wants
    #[arg(long)]
    observe: bool,
    /// Keep a share of the flows on the base as control, and have the base run alone once the others are worse by more than these
    /// margins: retransmit_ratio, of bytes, in percentage points, 0.1% to 50%; goodput, -1% to -90%; first_64kb, the time to the
    /// first 64 kB acknowledged, 1% to 900%. `onramp status --guard` shows all
    #[arg(long, value_name = "MARGINS", value_parser = guard::margins)]
    guard: Option<Margins>,
    /// The share of the flows that stays on the base, 1% to 50%
    #[arg(long, value_name = "PERCENT", value_parser = guard::control_share, default_value = guard::CONTROL_SHARE, requires = "guard")]
    control_share: f64,
    /// Detach again after this time (30s, 10m, 2h) unless confirmed; of what is attached already, from now on
    #[arg(long = "for", value_name = "TIME", value_parser = units::time_limit)]
    expires_in: Option<Duration>,
    /// Say what would be done and how it would be undone; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct AttachReport {
    algorithm: &'static str,
    congestion_control: String,
    base: &'static str,
    after_exit: AfterExitOptions,
    start: StartPolicies,
    /// Of this network namespace, before.
    default_before: String,
    /// What connections lose by the base.
    warning: Option<String>,
    observe: bool,
    /// As `--guard` takes it.
    guard: Option<String>,
    control_share_pct: Option<f64>,
    profile: String,
    telemetry_max: &'static str,
    generation: String,
    replaced_default: Option<String>,
    #[serde(flatten)]
    elsewhere: Taken,
    expires_at_us: Option<u64>,
    undo: String,
}

/// It was attached already, and became the default of one more namespace, or has another time limit.
#[derive(Serialize)]
struct Adjusted {
    algorithm: &'static str,
    congestion_control: String,
    warning: Option<String>,
    /// None: this was not asked for, or it is the default as before.
    replaced_default: Option<String>,
    /// None: this was not asked for.
    expires_at_us: Option<u64>,
    #[serde(flatten)]
    elsewhere: Taken,
    undo: Option<String>,
}

impl Attach {
    /// Everything checked; nothing done yet.
    pub(super) fn options(&self) -> anyhow::Result<AttachOptions> {
        let mut options = self.settings.options()?;
        options.default = elsewhere::is_here(&self.default);
        options.observe = self.observe;
        options.guard = self.guard.as_ref().map(|margins| margins.guard(self.control_share));
        guard::reject_idle_guard(&options)?;
        options.expires_in = self.expires_in;
        Ok(options)
    }

    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let options = self.options()?;
        if let Some(attached) = self.attached_as_asked(&options) {
            return self.adjust(&options, &attached, output);
        }
        let algorithm = options.parameters.algorithm();
        let others = elsewhere::checked(&self.default)?;
        if self.dry_run {
            let mut actions = onramp_loader::plan_attach(&options)?;
            actions.extend(self.planned_limit(algorithm, None));
            let undo = format!("onramp detach {}", algorithm.name());
            actions.extend(elsewhere::planned(algorithm, others.as_ref(), |_| undo.clone())?);
            let warning = warning(&options, &onramp_loader::basis(&options)?);
            return plan::print_warned(&actions, &Vec::from_iter(warning), output);
        }
        let attached = match self.expires_in {
            Some(_) => attach_for_a_time(&options)?,
            None => onramp_loader::attach(&options)?,
        };
        let taken = Taken::take(algorithm, &self.default, others.as_ref()).inspect_err(|_| {
            if let Err(error) = onramp_loader::begin_detach(algorithm, false) {
                say(&format!("error: {error}"));
            }
        })?;
        let report = describe(&attached, &options, taken);
        output.report(&report, || text(&report, self.expires_in));
        say_warning(report.warning.as_deref());
        Ok(report.elsewhere.code())
    }

    /// How it is attached already, if this is as it is asked for but for what can be added: a default, a time limit.
    fn attached_as_asked(&self, options: &AttachOptions) -> Option<AttachedState> {
        if self.default.is_empty() && self.expires_in.is_none() {
            return None;
        }
        let attached = basis::attached(options.parameters.algorithm())?;
        let guard = attached.guard.as_ref().map(|guard| guard.options);
        let as_asked = (!self.observe || attached.observe)
            && (self.guard.is_none() || guard == options.guard)
            && !self.settings.differ_from(&attached, options);
        as_asked.then_some(attached)
    }

    /// Adds to what is attached.
    fn adjust(
        &self,
        options: &AttachOptions,
        attached: &AttachedState,
        output: &Output,
    ) -> anyhow::Result<u8> {
        let algorithm = options.parameters.algorithm();
        let (here, others) = (elsewhere::is_here(&self.default), elsewhere::checked(&self.default)?);
        let mut actions = Vec::new();
        actions.extend(self.planned_limit(algorithm, attached.expires_in));
        if here {
            actions.extend(onramp_loader::plan_default(algorithm)?);
        }
        actions.extend(elsewhere::planned(algorithm, others.as_ref(), elsewhere::restoring)?);
        let warning =
            (!self.default.is_empty()).then(|| basis::warning_of_attached(algorithm, attached)).flatten();
        if self.dry_run {
            return plan::print_warned(&actions, &Vec::from_iter(warning), output);
        }
        // What can be refused has been; a time limit is there before anything that it may have to end.
        let watch = self.expires_in.map(|_| watch(algorithm, "changed")).transpose()?;
        if let Some(time) = self.expires_in {
            onramp_loader::expire_after(algorithm, time)?;
        }
        if let Some(watch) = watch {
            watch.begin();
        }
        let replaced_default = if here {
            onramp_loader::take_default(algorithm).inspect_err(|_| self.restore_limit(algorithm, attached))?
        } else {
            None
        };
        let taken = Taken::take(algorithm, &self.default, others.as_ref()).inspect_err(|_| {
            self.restore_limit(algorithm, attached);
            if replaced_default.is_some()
                && let Err(error) = onramp_loader::restore_default(algorithm)
            {
                say(&format!("error: {error}"));
            }
        })?;
        let limit = self.expires_in.map(|_| previous_limit(algorithm, attached.expires_in));
        let undo: Vec<_> = limit.into_iter().chain(taken.undo(replaced_default.as_deref())).collect();
        let report = Adjusted {
            algorithm: algorithm.name(),
            congestion_control: algorithm.congestion_control(),
            warning,
            replaced_default,
            elsewhere: taken,
            expires_at_us: self.expires_in.map(|time| now_us() + time.as_micros() as u64),
            undo: (!undo.is_empty()).then(|| undo.join("; ")),
        };
        output.report(&report, || self.adjusted_text(&report));
        say_warning(report.warning.as_deref());
        Ok(report.elsewhere.code())
    }

    /// What a dry run says of the time limit; `before`: what is left of the one that there is.
    fn planned_limit(&self, algorithm: Algorithm, before: Option<Duration>) -> Option<Action> {
        let time = show(self.expires_in?);
        let what = format!("have {} detach in {time} unless confirmed", algorithm.name());
        Some(Action { what, undo: previous_limit(algorithm, before) })
    }

    /// As it was, where what comes after it has failed.
    fn restore_limit(&self, algorithm: Algorithm, attached: &AttachedState) {
        if self.expires_in.is_none() {
            return;
        }
        let restored = match attached.expires_in {
            Some(left) => onramp_loader::expire_after(algorithm, left),
            None => onramp_loader::confirm(algorithm),
        };
        if let Err(error) = restored {
            say(&format!("error: {error}"));
        }
    }

    fn adjusted_text(&self, report: &Adjusted) -> String {
        let Adjusted { algorithm, congestion_control, .. } = report;
        let mut text = format!("{algorithm} is attached already\n");
        if let Some(time) = self.expires_in {
            text += &limit_text(algorithm, time);
        }
        if elsewhere::is_here(&self.default) {
            let before = report.replaced_default.as_ref();
            let before = before.map_or_else(|| "as before".to_owned(), |before| format!("(was {before})"));
            text += &format!("  default of this network namespace: {congestion_control} {before}\n");
        }
        text += &report.elsewhere.text(congestion_control);
        text + &report.undo.as_ref().map_or_else(String::new, |undo| format!("  undo: {undo}\n"))
    }
}

/// The command that gives an attachment the time limit that it had.
pub(super) fn previous_limit(algorithm: Algorithm, left: Option<Duration>) -> String {
    let name = algorithm.name();
    match left {
        // Never nothing.
        Some(left) => format!("onramp attach {name} --for {}s", left.as_secs().max(1)),
        None => format!("onramp confirm {name}"),
    }
}

fn warning(options: &AttachOptions, basis: &Basis) -> Option<String> {
    basis::warning(options.parameters.algorithm(), basis, options.guard.is_some(), basis::option)
}

fn say_warning(warning: Option<&str>) {
    if let Some(warning) = warning {
        say(&format!("warning: {warning}"));
    }
}

fn show(time: Duration) -> String {
    units::show_us(time.as_micros() as u64)
}

fn limit_text(algorithm: &str, time: Duration) -> String {
    format!("  detaches in {} unless confirmed: onramp confirm {algorithm}\n", show(time))
}

/// The watch is started first, so that there is no moment in which the attachment would outlive a killed command.
fn attach_for_a_time(options: &AttachOptions) -> anyhow::Result<Attached> {
    // What can be refused is refused before anything is started.
    onramp_loader::plan_attach(options)?;
    let watch = watch(options.parameters.algorithm(), "attached")?;
    let attached = onramp_loader::attach(options)?;
    watch.begin();
    Ok(attached)
}

fn watch(algorithm: Algorithm, deed: &str) -> anyhow::Result<expire::Watch> {
    expire::Watch::start(algorithm)
        .with_context(|| format!("cannot start the process that would detach again, so nothing was {deed}"))
}

fn describe(attached: &Attached, options: &AttachOptions, elsewhere: Taken) -> AttachReport {
    let name = attached.algorithm.name();
    AttachReport {
        algorithm: name,
        congestion_control: attached.algorithm.congestion_control(),
        base: attached.basis.base.name(),
        after_exit: options.after_exit_over(attached.basis.base),
        start: options.start_over(attached.basis.base),
        default_before: attached.basis.default.clone(),
        warning: warning(options, &attached.basis),
        observe: options.observe,
        guard: options.guard.map(|guard| guard.to_string()),
        control_share_pct: options.guard.map(|guard| guard.control_share()),
        profile: options.profile.clone(),
        telemetry_max: options.telemetry_max.name(),
        generation: format!("{:x}", attached.generation),
        replaced_default: attached.replaced_default.clone(),
        elsewhere,
        expires_at_us: options.expires_in.map(|delay| attached.generation + delay.as_micros() as u64),
        undo: format!("onramp detach {name}"),
    }
}

fn text(report: &AttachReport, expires_in: Option<Duration>) -> String {
    let AttachReport { algorithm, congestion_control, base, generation, .. } = report;
    let mut text =
        format!("attached {algorithm} as {congestion_control}, base {base}, generation {generation}\n");
    text += &settings::after_exit_line(report.after_exit);
    text += &settings::start_line(report.start);
    if report.observe {
        text += "  observes only: what it would do is recorded, the base does everything\n";
    }
    if let (Some(guard), Some(share)) = (&report.guard, report.control_share_pct) {
        text += &format!(
            "  guarded ({guard}): {share}% of its flows run the base alone: onramp status --guard\n"
        );
    }
    if report.telemetry_max != Level::Ack.name() {
        text += &format!("  telemetry of its flows is limited to level {}\n", report.telemetry_max);
    }
    if let Some(before) = &report.replaced_default {
        text += &format!("  default of this network namespace: {congestion_control} (was {before})\n");
    }
    text += &report.elsewhere.text(congestion_control);
    if let Some(time) = expires_in {
        text += &limit_text(algorithm, time);
    }
    text + &format!("  undo: {}\n", report.undo)
}
