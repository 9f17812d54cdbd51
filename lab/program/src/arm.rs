//! Arms of an experiment: the kernel's own controls by their kernel name, ours by algorithm name, with settings of
//! their own. What was attached for them is detached with them.

mod attachments;
mod written;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use onramp_lab::experiment::{
    AFTER_EXIT, Arm, BASE, Clock, Exit, ExitSource, FlowStorage, Job, PORT, Ready, START,
};
use onramp_lab::guest;
use onramp_lab::host::RECEIVER;
use onramp_lab::sim::ORACLE;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, AfterExitOptions, Algorithm, Parameters, StartPolicies, did_you_mean};
use onramp_loader::select::{self, Choice, KnownPath, Rule, Side, Target};
use onramp_loader::{AttachOptions, Base, Error, Phase, kernel};
use onramp_profiles::Profile;

use crate::failure::Usage;
use crate::profile;
use attachments::Attachments;
use written::{TAHOE, Written};

/// Arms ready to run.
pub(crate) struct Arms {
    /// As the lab takes them.
    pub arms: Vec<Arm>,
    attachments: Arc<Mutex<Attachments>>,
}

impl Arms {
    /// Checks all arms and attaches what is not attached yet, with the profile's parameters where the profile has some
    /// for that algorithm, `settings` (`algorithm.name=value`) on top, and the arm's own on top of these. An algorithm of
    /// several arms gets each one's parameters when its turn comes. For runs in guests nothing is attached here.
    pub fn prepare<S: AsRef<str>>(
        labels: &[S],
        profile: &Profile,
        settings: &[String],
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let controls = match clock {
            Clock::Machine => kernel::registered()?,
            Clock::Virtual(guests) => {
                let modules = guest::controls(guests.image.kernel())?;
                BUILT_IN.map(str::to_owned).into_iter().chain(modules).collect()
            }
        };
        Self::all(labels, profile, settings, matches!(clock, Clock::Machine), &controls)
    }

    /// What the arms are, for simulations: nothing is attached.
    pub fn describe<S: AsRef<str>>(
        labels: &[S],
        profile: &Profile,
        settings: &[String],
    ) -> anyhow::Result<Vec<Arm>> {
        Ok(Self::all(labels, profile, settings, false, &SIMULATED.map(str::to_owned))?.arms)
    }

    fn all<S: AsRef<str>>(
        labels: &[S],
        profile: &Profile,
        settings: &[String],
        here: bool,
        controls: &[String],
    ) -> anyhow::Result<Self> {
        let simulated = controls.iter().any(|name| name == ORACLE);
        let labels: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        let written = check(&labels, settings, controls)?;
        let mut arms = Self { arms: Vec::new(), attachments: Attachments::new() };
        for arm in &written {
            let known_path = arm.known_path(&profile.link)?;
            if known_path.is_some() && here {
                return Err(Usage::error(format!(
                    "arm {:?}: a known path is for virtual time or `onramp sim`: here its rule would hold for flows of other arms",
                    arm.label
                )));
            }
            if arm.tahoe && !simulated {
                return Err(Usage::error(format!(
                    "arm {:?}: base=tahoe is not in any kernel: give cubic|reno|bbr, or `onramp sim`",
                    arm.label
                )));
            }
            let host = arm.host(&profile.host)?;
            let made = match arm.algorithm {
                Some(algorithm) => {
                    let alone = written.iter().filter(|other| other.algorithm == arm.algorithm).count() == 1;
                    arms.ours(arm, algorithm, profile, settings, here.then_some(alone))?
                }
                None => Arm::stock(arm.name),
            };
            arms.arms.push(Arm { name: arm.shown(), host, known_path, ..made });
        }
        // All at once, so that what is wrong shows before the first run.
        for arm in &arms.arms {
            if let Some(ready) = &arm.ready {
                (ready.0)().map_err(|error| match error.downcast::<Error>() {
                    Ok(error) => anyhow::Error::from(*error),
                    Err(other) => anyhow::anyhow!(other),
                })?;
            }
        }
        Ok(arms)
    }

    fn ours(
        &self,
        arm: &Written<'_>,
        algorithm: Algorithm,
        with: &Profile,
        settings: &[String],
        here: Option<bool>,
    ) -> anyhow::Result<Arm> {
        let mut wanted = algorithm.parameters();
        if with.algorithms().contains(&algorithm.name()) {
            profile::apply(with, &mut wanted)?;
        }
        let of_it = |setting: &'_ str| written::algorithm(setting) == Some(algorithm);
        let settings = settings.iter().filter(|setting| of_it(setting));
        let of_all: Vec<&str> = settings.filter_map(|setting| Some(setting.split_once('.')?.1)).collect();
        wanted.assign(&of_all).map_err(Error::from)?;
        wanted.assign(&arm.parameters).map_err(Error::from)?;
        let options = options(wanted, &with.name, (arm.base, arm.after_exit, arm.start));
        // Another process may have attached it with others.
        let as_it_is = here == Some(true)
            && of_all.is_empty()
            && arm.parameters.is_empty()
            && arm.base.is_none()
            && arm.after_exit.is_none()
            && arm.start.is_none();
        let there = if as_it_is { onramp_loader::parameter_sets(algorithm).ok() } else { None };
        let there = there.and_then(|sets| sets.into_iter().next()).map(|set| set.parameters);
        let used = there.as_ref().unwrap_or(&options.parameters);
        let mut parameters: BTreeMap<String, String> =
            used.shown().map(|(name, value)| (name.to_owned(), value)).collect();
        let base = if arm.tahoe { Some(TAHOE) } else { arm.base.map(|base| base.name()) };
        parameters.extend(base.map(|base| (BASE.to_owned(), base.to_owned())));
        if let Some(options) = arm.after_exit {
            parameters.insert(AFTER_EXIT.to_owned(), options.in_an_arm());
        }
        if let Some(start) = arm.start {
            parameters.insert(START.to_owned(), start.to_string());
        }
        Ok(Arm {
            congestion_control: algorithm.congestion_control(),
            parameters,
            records_exit: true,
            ready: here.map(|_| self.ready(algorithm, options, as_it_is, Vec::new())),
            ..Arm::stock(algorithm.name())
        })
    }

    /// The arm of a run that another process has prepared, and nothing else, ready to run in this guest.
    pub fn of_job(job: &Job) -> anyhow::Result<Self> {
        let Job { arm, plan, .. } = job;
        let arms = Self { arms: Vec::new(), attachments: Attachments::new() };
        let ours = algorithm::find_control(&arm.congestion_control);
        let registered = kernel::registered()?;
        let is_ours = |control: &str| algorithm::find_control(control).is_some();
        let competitor = plan.competitor.iter().map(|competitor| &competitor.congestion_control);
        for control in competitor.chain([&arm.congestion_control]) {
            if !is_ours(control) && !registered.contains(control) {
                guest::load_control(control)
                    .with_context(|| format!("this kernel has no control {control:?}"))?;
            }
        }
        let ready = match ours {
            None => None,
            Some(algorithm) => {
                let base = arm.parameters.get(BASE).map(|name| written::base(name)).transpose()?;
                let mut wanted = algorithm.parameters();
                let after_exit = arm.options(AFTER_EXIT).map_err(Usage::error)?;
                let start: Option<StartPolicies> = arm.options(START).map_err(Usage::error)?;
                // A start by a rule is paced, which the code of these can do with a start of its own alone.
                let paces = || select::check_start(algorithm, base, start.unwrap_or_default()).is_ok();
                let start = if arm.known_path.is_none() || paces() {
                    start
                } else {
                    Some(StartPolicies::of_memory())
                };
                let of_base = |name: &str| [BASE, AFTER_EXIT, START].contains(&name);
                let all: Vec<_> = arm.parameters.iter().filter(|(name, _)| !of_base(name)).collect();
                let all: Vec<_> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
                wanted.assign(&all).map_err(Error::from)?;
                let options = options(wanted, &plan.profile.name, (base, after_exit, start));
                Some(arms.ready(algorithm, options, false, rules(job)))
            }
        };
        Ok(Self { arms: vec![Arm { ready, ..arm.clone() }], ..arms })
    }

    /// What has to be done before each run: the algorithm is attached, and these rules are there.
    fn ready(&self, algorithm: Algorithm, options: AttachOptions, as_it_is: bool, rules: Vec<Rule>) -> Ready {
        let attachments = Arc::clone(&self.attachments);
        Ready(Arc::new(move || {
            attachments.lock().unwrap_or_else(PoisonError::into_inner).ready(&options, as_it_is)?;
            for rule in &rules {
                select::add(rule, &[], true)?;
            }
            Ok(storage(algorithm)?)
        }))
    }
}

/// The rules by which flows of a run know their path. A sender that sets its control to the one that it has by a rule changes
/// nothing.
fn rules(job: &Job) -> Vec<Rule> {
    let Some(path) = job.arm.known_path else { return Vec::new() };
    let rule = |flow| Rule {
        target: Target {
            to: Some(IpAddr::from(RECEIVER).into()),
            port: Some(PORT + flow),
            cgroup: None,
            side: Side::Accept,
        },
        choice: Choice {
            control: job.arm.congestion_control.clone(),
            profile: None,
            initial_window: None,
            resume: Some(KnownPath { kbps: path.kbps, rtt_us: path.rtt_us }),
        },
    };
    (0..job.plan.flows).map(rule).collect()
}

/// For as long as this process lives.
fn options(
    parameters: Parameters,
    profile: &str,
    (base, after_exit, start): (Option<Base>, Option<AfterExitOptions>, Option<StartPolicies>),
) -> AttachOptions {
    let mut options = AttachOptions::new(parameters);
    profile.clone_into(&mut options.profile);
    options.scoped = true;
    // Of a comparison it is the same on every host.
    options.base = Some(base.unwrap_or(Base::Cubic));
    options.after_exit = after_exit;
    options.start = start;
    options
}

/// Where the flows of an attached algorithm keep their state.
fn storage(algorithm: Algorithm) -> anyhow::Result<FlowStorage> {
    let storage = onramp_loader::FlowStorage::open(algorithm)?;
    let map = storage.fd().try_clone_to_owned().context("cannot keep the flows map open")?;
    let before = storage.counters()?.verdicts();
    let acks = OnceLock::new();
    let decode = move |bytes: &[u8]| {
        let (exit, is_first) = exit(bytes)?;
        let calls = || if is_first { Some(storage.counters().ok()?.verdicts() - before) } else { None };
        Some(Exit { acks: *acks.get_or_init(calls), ..exit })
    };
    Ok(FlowStorage { map: Arc::new(map), decode: Arc::new(decode) })
}

/// Controls that every kernel has without a module.
const BUILT_IN: [&str; 2] = ["cubic", "reno"];

/// Controls that simulations know.
const SIMULATED: [&str; 4] = ["cubic", "bbr", "reno", ORACLE];

/// Controls that arms of simulations can be, or those of guests of the newest kernel that is kept.
pub(crate) fn controls(simulates: bool) -> Vec<String> {
    if simulates {
        return SIMULATED.map(str::to_owned).into();
    }
    let newest = guest::Series::all().iter().rev().find_map(|series| series.kept().ok());
    let modules = newest.and_then(|kernel| guest::controls(&kernel).ok()).unwrap_or_default();
    BUILT_IN.map(str::to_owned).into_iter().chain(modules).collect()
}

/// Every arm is one of these controls or an algorithm and is there once, and every setting belongs to an arm.
fn check<'a>(
    labels: &[&'a str],
    settings: &[String],
    controls: &[String],
) -> anyhow::Result<Vec<Written<'a>>> {
    let arms: Vec<_> = labels.iter().map(|label| Written::parse(label)).collect::<Result<_, _>>()?;
    for (at, arm) in arms.iter().enumerate() {
        if arms[..at].iter().any(|other| other.shown() == arm.shown()) {
            return Err(Usage::error(format!("arm {:?} is given twice", arm.label)));
        }
        if arm.algorithm.is_none() && !controls.iter().any(|name| name == arm.name) {
            let ours: Vec<_> = algorithm::all().map(|algorithm| algorithm.name()).collect();
            let simulated = controls.iter().any(|name| name == ORACLE);
            let controls: Vec<_> = controls.iter().map(String::as_str).collect();
            let all = ours.iter().chain(&controls).copied();
            return Err(Usage::error(format!(
                "there is no arm {:?}{}: give an algorithm ({}) or {} ({})",
                arm.name,
                did_you_mean(arm.name, all),
                ours.join(", "),
                if simulated { "what else is simulated" } else { "a control of this kernel" },
                controls.join(", ")
            )));
        }
    }
    for setting in settings {
        let algorithm = written::algorithm(setting);
        if algorithm.is_none() || !arms.iter().any(|arm| arm.algorithm == algorithm) {
            return Err(Usage::error(format!(
                "--set {setting} names no algorithm among the arms: write ALG.NAME=VALUE, for instance search.threshold_pct=30"
            )));
        }
    }
    Ok(arms)
}

/// The exit that a flow's storage records, and whether slow start has not begun anew since.
fn exit(storage: &[u8]) -> Option<(Exit, bool)> {
    let header = FlowHeader::read(storage)?;
    let (Phase::Left(reason, record) | Phase::Exiting(reason, record)) = onramp_loader::phase(&header) else {
        return None;
    };
    let exit = Exit {
        reason,
        seconds: record.at_us as f64 / 1e6,
        window_bytes: record.window_bytes(),
        acks: None,
        source: ExitSource::Record,
    };
    Some((exit, header.slow_starts <= 1))
}
