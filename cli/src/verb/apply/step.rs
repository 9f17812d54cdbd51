//! What it takes to have what files want, one step after another.

use onramp_loader::algorithm::{Algorithm, Parameters};
use onramp_loader::guard::GuardOptions;
use onramp_loader::select::{self, Changes, Profile, Rule};
use onramp_loader::telemetry::Level;
use onramp_loader::{
    Action, AttachOptions, AttachedState, Base, DEFAULT_SYSCTL, Detached, Error, ParameterSet, UpgradePlan,
    Users,
};
use onramp_net::Namespace;

use super::files::Desired;
use crate::failure::Usage;
use crate::guard;
use crate::settings;
use crate::units::count;
use crate::verb::detach;

/// A step, with what it does in words.
pub(super) struct Step {
    deed: Deed,
    pub actions: Vec<Action>,
}

enum Deed {
    GiveDefaultBack(Algorithm),
    Detach(Algorithm),
    /// Detached first where it is attached.
    Attach(Box<AttachOptions>),
    Replace(Box<AttachOptions>),
    Upgrade(Algorithm, Base),
    Tune(Box<AttachOptions>),
    TuneProfile(Box<Profile>),
    Confirm(Algorithm),
    TakeDefault(Algorithm),
    Select(Vec<Rule>, Vec<Profile>),
}

/// The steps, in an order in which none needs a later one.
///
/// # Errors
/// What a step would fail with, as far as it can be known before.
pub(super) fn plan(desired: &Desired) -> anyhow::Result<Vec<Step>> {
    let mut defaults = Vec::new();
    let mut steps = Vec::new();
    for options in desired.attach.values() {
        let algorithm = options.parameters.algorithm();
        let before = steps.len();
        steps.extend(attach(options, &desired.profiles)?);
        let replaced = steps[before..].iter().any(|step| matches!(step.deed, Deed::Replace(_)));
        if !options.default && !replaced {
            defaults.extend(give_default_back(algorithm)?);
        }
    }
    let now = Namespace::current()?.sysctl_get(DEFAULT_SYSCTL)?;
    for options in desired.attach.values().filter(|options| options.default) {
        let algorithm = options.parameters.algorithm();
        let name = algorithm.congestion_control();
        let anew = steps
            .iter()
            .any(|step| matches!(&step.deed, Deed::Replace(of) if of.parameters.algorithm() == algorithm));
        if now != name || anew {
            let undo = if now == name { String::new() } else { format!("sysctl -w {DEFAULT_SYSCTL}={now}") };
            let what = format!("make {name} the default of this network namespace (now {now})");
            steps.push(step(Deed::TakeDefault(algorithm), what, undo));
        }
    }
    let anew: Vec<_> = steps.iter().filter_map(Step::attached).collect();
    steps.extend(rules(desired, &anew)?);
    for algorithm in
        onramp_loader::pinned().into_iter().filter(|algorithm| onramp_loader::is_applied(*algorithm))
    {
        if !desired.attach.contains_key(algorithm.name()) {
            let undo = detach::undo(algorithm).unwrap_or_default();
            let what = format!("detach {}, which no file attaches any more", algorithm.name());
            steps.push(step(Deed::Detach(algorithm), what, undo));
        }
    }
    defaults.extend(steps);
    Ok(defaults)
}

fn step(deed: Deed, what: String, undo: String) -> Step {
    Step { deed, actions: vec![Action { what, undo }] }
}

/// The steps after which an algorithm is attached as it is wanted.
fn attach(options: &AttachOptions, profiles: &[Profile]) -> anyhow::Result<Vec<Step>> {
    let algorithm = options.parameters.algorithm();
    let name = algorithm.name();
    let base = onramp_loader::base(options)?;
    let wanted = Box::new(AttachOptions { default: false, ..options.clone() });
    let with = with(options, base);
    if !onramp_loader::pinned().contains(&algorithm) {
        onramp_loader::plan_attach(&wanted)?;
        let undo = format!("onramp detach {name}");
        return Ok(vec![step(Deed::Attach(wanted), format!("attach {name}{with}"), undo)]);
    }
    let replace = |why: &str| {
        let again = detach::undo(algorithm).map_or_else(String::new, |attach| format!("; {attach}"));
        let what = format!("detach {name} ({why}) and attach it{with}");
        vec![step(Deed::Replace(wanted.clone()), what, format!("onramp detach {name}{again}"))]
    };
    let there = match onramp_loader::attached_state(algorithm)? {
        Some(state) => Ok(There::as_it_is(algorithm, state, base)),
        None => There::of_another(algorithm, base),
    };
    let there = match there {
        Err(Error::Interrupted { .. }) => return Ok(replace("half attached")),
        Err(Error::NotTakenOver { why, .. }) => return Ok(replace(&why)),
        other => other?,
    };
    match there.owner {
        Some((pid, true)) => {
            return Err(Usage::error(format!(
                "{name} is attached for a run of process {pid}: apply when that has ended"
            )));
        }
        Some((_, false)) => return Ok(replace("for a run that has died")),
        None => {}
    }
    if there.observe != options.observe {
        return Ok(replace(if there.observe { "observing only" } else { "not observing only" }));
    }
    if there.guard != options.guard {
        let guard = there.guard.map_or_else(|| "without a guard".into(), |guard| guard::words(&guard));
        return Ok(replace(&guard));
    }
    let mut steps = adjust(options, base, &there);
    let own = profiles.iter().filter(|profile| profile.parameters.algorithm() == algorithm);
    steps.extend(own.filter_map(|profile| tune_profile(profile, &there)));
    Ok(steps)
}

/// How an algorithm is attached.
struct There {
    /// Of whom its code is, or which base it has, if that is not what is wanted; and what would have that again.
    code: Option<(String, String)>,
    observe: bool,
    guard: Option<GuardOptions>,
    /// The process of the run that attached it, and whether a run still needs it.
    owner: Option<(u32, bool)>,
    expires_at_us: Option<u64>,
    parameter_sets: Vec<ParameterSet>,
}

impl There {
    fn as_it_is(algorithm: Algorithm, state: AttachedState, base: Base) -> Self {
        let code = if state.version != env!("CARGO_PKG_VERSION") {
            // The former onramp would have to be asked.
            Some((format!("onramp {}", state.version), String::new()))
        } else if state.base != base {
            let base = state.base.name();
            Some((format!("base {base}"), format!("onramp upgrade {} --base {base}", algorithm.name())))
        } else {
            None
        };
        let AttachedState { observe, guard, owner, expires_at_us, parameter_sets, .. } = state;
        let guard = guard.map(|guard| guard.options);
        Self { code, observe, guard, owner, expires_at_us, parameter_sets }
    }

    /// By another build, whose parameters its own tables tell.
    fn of_another(algorithm: Algorithm, base: Base) -> Result<Self, Error> {
        let UpgradePlan { observe, guard, owner_pid, expires_at_us, parameter_sets, .. } =
            onramp_loader::plan_upgrade(algorithm, Some(base))?;
        Ok(Self {
            code: Some(("another onramp".into(), String::new())),
            observe,
            guard,
            owner: owner_pid.map(|pid| (pid, true)),
            expires_at_us,
            parameter_sets,
        })
    }
}

/// What differs and can be changed under flows.
fn adjust(options: &AttachOptions, base: Base, there: &There) -> Vec<Step> {
    let algorithm = options.parameters.algorithm();
    let name = algorithm.name();
    let mut steps = Vec::new();
    // First: nobody else can change what another build has attached.
    if let Some((code, undo)) = &there.code {
        let what = format!("upgrade {name} ({code}) to the code of this onramp, base {}", base.name());
        steps.push(step(Deed::Upgrade(algorithm, base), what, undo.clone()));
    }
    if there.expires_at_us.is_some() {
        let what = format!("let {name} stay, which would be detached when its time is over");
        steps.push(step(Deed::Confirm(algorithm), what, String::new()));
    }
    if let Some((what, undo)) = there
        .parameter_sets
        .first()
        .and_then(|set| retuned(name, set, &options.parameters, options.telemetry_max))
    {
        steps.push(step(Deed::Tune(Box::new(options.clone())), what, undo));
    }
    steps
}

/// A profile that rules name, if the algorithm has it with other values.
fn tune_profile(profile: &Profile, there: &There) -> Option<Step> {
    let set = there.parameter_sets.iter().find(|set| set.number > 0 && set.profile == profile.name)?;
    let name = format!("{} --profile {}", profile.parameters.algorithm().name(), profile.name);
    let (what, undo) = retuned(&name, set, &profile.parameters, profile.telemetry_max)?;
    Some(step(Deed::TuneProfile(Box::new(profile.clone())), what, undo))
}

/// What makes of a parameter set what is wanted, and its undo; `None`: it is. `name` is what `onramp tune` is given.
fn retuned(
    name: &str,
    set: &ParameterSet,
    parameters: &Parameters,
    level: Level,
) -> Option<(String, String)> {
    if set.has(parameters, level) {
        return None;
    }
    let telemetry = |to: Level| {
        let differs = set.telemetry_max != level;
        if differs { format!(" --telemetry {}", to.name()) } else { String::new() }
    };
    let words = |changes: Vec<String>| changes.iter().map(|one| format!(" {one}")).collect::<String>();
    let to = words(settings::changes(&set.parameters, parameters));
    let back = words(settings::changes(parameters, &set.parameters));
    let what = format!("tune {name}{}{to}", telemetry(level));
    Some((what, format!("onramp tune {name}{}{back}", telemetry(set.telemetry_max))))
}

fn with(options: &AttachOptions, base: Base) -> String {
    let profile = match options.profile.as_str() {
        "default" => String::new(),
        profile => format!(", profile {profile}"),
    };
    let changes = settings::changes(&options.parameters.algorithm().parameters(), &options.parameters);
    let parameters = if changes.is_empty() { String::new() } else { format!(", {}", changes.join(" ")) };
    let observe = if options.observe { ", to observe only" } else { "" };
    let told = match options.telemetry_max {
        Level::Ack => String::new(),
        level => format!(", its flows told of up to level {}", level.name()),
    };
    let guard = options.guard.map_or_else(String::new, |guard| format!(", {}", guard::words(&guard)));
    format!(" with base {}{profile}{parameters}{observe}{guard}{told}", base.name())
}

fn give_default_back(algorithm: Algorithm) -> anyhow::Result<Option<Step>> {
    if onramp_loader::attached_state(algorithm)?.is_some_and(|state| state.owner.is_some()) {
        return Ok(None);
    }
    let former = match onramp_loader::former_default(algorithm) {
        Err(Error::NotAttached { .. } | Error::Interrupted { .. } | Error::UpgradeCutOff { .. }) => None,
        other => other?,
    };
    Ok(former.map(|former| {
        let name = algorithm.congestion_control();
        let what = format!("give this network namespace its former default {former} back (now {name})");
        step(Deed::GiveDefaultBack(algorithm), what, format!("onramp attach {} --default", algorithm.name()))
    }))
}

/// All rules are changed at once. `anew`: algorithms that lose the profiles that they have.
fn rules(desired: &Desired, anew: &[Algorithm]) -> anyhow::Result<Option<Step>> {
    let Desired { rules, profiles, .. } = desired;
    let mut changes = select::plan_apply(rules)?;
    let lost = profiles.iter().filter(|profile| anew.contains(&profile.parameters.algorithm()));
    changes.profiles.extend(
        lost.map(|profile| (profile.parameters.algorithm().congestion_control(), profile.name.clone())),
    );
    if changes.is_empty() {
        return Ok(None);
    }
    let deed = Deed::Select(rules.clone(), profiles.clone());
    Ok(Some(Step { deed, actions: rule_actions(&changes) }))
}

fn rule_actions(changes: &Changes) -> Vec<Action> {
    let action = |what: String, undo: String| Action { what, undo };
    let mut actions = Vec::new();
    if changes.out_of_use {
        actions.push(action("have the rules asked again".into(), String::new()));
    }
    for (control, profile) in &changes.profiles {
        let what = format!("have {control} have profile {profile}, which rules name");
        actions.push(action(what, String::new()));
    }
    for rule in &changes.removed {
        let undo = if rule.is_orphan() { String::new() } else { format!("onramp select add {rule}") };
        actions.push(action(format!("remove rule {rule}"), undo));
    }
    for (before, after) in &changes.replaced {
        let what = format!("replace rule {before} by {after}");
        let undo = format!("onramp select del {}; onramp select add {before}", after.target);
        actions.push(action(what, undo));
    }
    for rule in &changes.added {
        actions.push(action(format!("add rule {rule}"), format!("onramp select del {}", rule.target)));
    }
    actions
}

/// Sets all values of a parameter set; `profile`: not that of the attachment.
fn tune(parameters: &Parameters, profile: Option<&str>, telemetry_max: Level) -> Result<(), Error> {
    let all: Vec<_> = parameters.shown().map(|(name, value)| format!("{name}={value}")).collect();
    let changes = onramp_loader::Changes {
        settings: &all,
        telemetry_max: Some(telemetry_max),
        ..onramp_loader::Changes::default()
    };
    onramp_loader::tune(parameters.algorithm(), profile, &changes, false).map(|_| ())
}

impl Step {
    /// The algorithm that it attaches, new or anew.
    fn attached(&self) -> Option<Algorithm> {
        match &self.deed {
            Deed::Attach(options) | Deed::Replace(options) => Some(options.parameters.algorithm()),
            _ => None,
        }
    }

    /// Does it; returns what is left that it could not do.
    ///
    /// # Errors
    /// What it fails with.
    pub fn take(&self) -> Result<Vec<String>, Error> {
        match &self.deed {
            Deed::GiveDefaultBack(algorithm) => {
                onramp_loader::give_default_back(*algorithm)?;
            }
            Deed::Detach(algorithm) => {
                return onramp_loader::detach(*algorithm, false).map(|detached| left_by(&detached));
            }
            Deed::Attach(options) => {
                onramp_loader::attach(options)?;
            }
            Deed::Replace(options) => {
                let detached = onramp_loader::detach(options.parameters.algorithm(), false)?;
                onramp_loader::attach(options)?;
                return Ok(left_by(&detached));
            }
            Deed::Upgrade(algorithm, base) => {
                let upgraded = onramp_loader::upgrade(*algorithm, Some(*base))?;
                return Ok(left(*algorithm, &upgraded.stragglers, &upgraded.unseen));
            }
            Deed::Tune(options) => tune(&options.parameters, None, options.telemetry_max)?,
            Deed::TuneProfile(profile) => {
                tune(&profile.parameters, Some(&profile.name), profile.telemetry_max)?;
            }
            Deed::Confirm(algorithm) => {
                onramp_loader::confirm(*algorithm)?;
            }
            Deed::TakeDefault(algorithm) => {
                onramp_loader::take_default(*algorithm)?;
            }
            Deed::Select(rules, profiles) => {
                select::apply(rules, profiles)?;
            }
        }
        Ok(Vec::new())
    }
}

fn left_by(detached: &Detached) -> Vec<String> {
    left(detached.algorithm, &detached.stragglers, &detached.unseen)
}

/// What has former code of an algorithm still.
fn left(algorithm: Algorithm, stragglers: &[Users], unseen: &[String]) -> Vec<String> {
    let name = algorithm.name();
    let sockets = stragglers.iter().map(|users| {
        format!("{} in {} still on former code of {name}", count(users.sockets, "socket"), users.namespace)
    });
    let unseen = unseen.iter().map(|place| format!("not looked into, so {name} may be used there: {place}"));
    sockets.chain(unseen).collect()
}
