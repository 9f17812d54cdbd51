//! What it takes to have what files want, one step after another.

use onramp_loader::algorithm::{AfterExitOptions, Algorithm, Parameters, StartPolicies};
use onramp_loader::guard::GuardOptions;
use onramp_loader::select::{self, Changes, Profile, Rule};
use onramp_loader::telemetry::Level;
use onramp_loader::{
    Action, AttachOptions, AttachedState, Base, BaseChange, Basis, DEFAULT_SYSCTL, Detached, Error,
    ParameterSet, UpgradePlan, Users,
};
use onramp_net::Namespace;

use super::files::Desired;
use crate::basis;
use crate::failure::Usage;
use crate::guard;
use crate::settings;
use crate::units::count;
use crate::verb::detach;
use crate::verb::select::undo::{Sets, Undo};

/// A step, with what it does in words.
pub(super) struct Step {
    deed: Deed,
    pub actions: Vec<Action>,
    /// What connections lose by it.
    pub warning: Option<String>,
}

enum Deed {
    GiveDefaultBack(Algorithm),
    Detach(Algorithm),
    /// Detached first where it is attached.
    Attach(Box<AttachOptions>),
    Replace(Box<AttachOptions>),
    Upgrade(Algorithm, BaseChange),
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
            defaults.extend(restore_default(algorithm)?);
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
            let mut taking = step(Deed::TakeDefault(algorithm), what, undo);
            // Else its own step has said so.
            if before_of(&steps, algorithm).is_none() {
                let attached = basis::attached(algorithm);
                taking.warning =
                    attached.and_then(|attached| basis::warning_of_attached(algorithm, &attached));
            }
            steps.push(taking);
        }
    }
    let anew: Vec<_> = steps.iter().filter_map(Step::attached).collect();
    steps.extend(rules(desired, &anew)?);
    for algorithm in onramp_loader::pinned()? {
        if onramp_loader::is_applied(algorithm)? && !desired.attach.contains_key(algorithm.name()) {
            let undo = detach::Undo::now(algorithm).map(|undo| undo.command).unwrap_or_default();
            let what = format!("detach {}, which no file attaches any more", algorithm.name());
            steps.push(step(Deed::Detach(algorithm), what, undo));
        }
    }
    defaults.extend(steps);
    Ok(defaults)
}

fn step(deed: Deed, what: String, undo: String) -> Step {
    Step { deed, actions: vec![Action { what, undo }], warning: None }
}

/// The steps after which an algorithm is attached as it is wanted.
fn attach(options: &AttachOptions, profiles: &[Profile]) -> anyhow::Result<Vec<Step>> {
    let algorithm = options.parameters.algorithm();
    let name = algorithm.name();
    // What is planned is what is done, whatever another step makes the default meanwhile.
    let over = |base| Box::new(AttachOptions { default: false, base: Some(base), ..options.clone() });
    if !onramp_loader::pinned()?.contains(&algorithm) {
        let basis = onramp_loader::basis(options)?;
        let wanted = over(basis.base);
        onramp_loader::plan_attach(&wanted)?;
        let what = format!("attach {name}{}", with(options, basis.base));
        let step = step(Deed::Attach(wanted), what, format!("onramp detach {name}"));
        return Ok(vec![Step { warning: warning(options, &basis), ..step }]);
    }
    let replace_over = |basis: &Basis, why: &str| {
        let again =
            detach::Undo::now(algorithm).map_or_else(String::new, |undo| format!("; {}", undo.command));
        let what = format!("detach {name} ({why}) and attach it{}", with(options, basis.base));
        let step = step(Deed::Replace(over(basis.base)), what, format!("onramp detach {name}{again}"));
        vec![Step { warning: warning(options, basis), ..step }]
    };
    let there = match onramp_loader::attached_state(algorithm)? {
        Some(state) => Ok(There::as_it_is(algorithm, state, options)),
        None => There::of_another(algorithm, options),
    };
    let there = match there {
        Err(Error::Interrupted { .. }) => {
            return Ok(replace_over(&onramp_loader::basis(options)?, "half attached"));
        }
        Err(Error::NotTakenOver { why, .. }) => {
            return Ok(replace_over(&onramp_loader::basis(options)?, &why));
        }
        other => other?,
    };
    // A file that names no base leaves the one that there is.
    let base = there.base;
    let basis = onramp_loader::basis(&over(base))?;
    let replace = |why: &str| replace_over(&basis, why);
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
    if let Some(upgrade) = steps.iter_mut().find(|step| matches!(step.deed, Deed::Upgrade(..))) {
        upgrade.warning = warning(options, &basis);
    }
    let own = profiles.iter().filter(|profile| profile.parameters.algorithm() == algorithm);
    steps.extend(own.filter_map(|profile| tune_profile(profile, &there)));
    Ok(steps)
}

/// How an algorithm is attached.
struct There {
    /// The base that it is to have.
    base: Base,
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
    fn as_it_is(algorithm: Algorithm, state: AttachedState, wanted: &AttachOptions) -> Self {
        let base = wanted.base.unwrap_or(state.base);
        let code = if state.version != env!("CARGO_PKG_VERSION") {
            // The previous build would have to be asked.
            Some((format!("onramp {}", state.version), String::new()))
        } else if (state.base, state.after_exit, state.start)
            != (base, wanted.after_exit_over(base), wanted.start_over(base))
        {
            let (name, base, options, start) =
                (algorithm.name(), state.base.name(), state.after_exit, state.start);
            let undo = format!("onramp upgrade {name} --base {base} --after-exit {options} --start {start}");
            Some((format!("base {base}{}", with_options(options, start)), undo))
        } else {
            None
        };
        let AttachedState { observe, guard, owner, expires_at_us, parameter_sets, .. } = state;
        let guard = guard.map(|guard| guard.options);
        Self { base, code, observe, guard, owner, expires_at_us, parameter_sets }
    }

    /// By another build, whose parameters are in its own tables.
    fn of_another(algorithm: Algorithm, wanted: &AttachOptions) -> Result<Self, Error> {
        // Over the base that it has, the options that it has are right.
        let after_exit = wanted.base.map_or(wanted.after_exit, |base| Some(wanted.after_exit_over(base)));
        let start = wanted.base.map_or(wanted.start, |base| Some(wanted.start_over(base)));
        let change = BaseChange { base: wanted.base, after_exit, start };
        let UpgradePlan { base, observe, guard, owner_pid, expires_at_us, parameter_sets, .. } =
            onramp_loader::plan_upgrade(algorithm, change)?;
        Ok(Self {
            base,
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
    // First: only that build can change what it has attached.
    if let Some((code, undo)) = &there.code {
        let (after_exit, start) = (options.after_exit_over(base), options.start_over(base));
        let change = BaseChange { base: Some(base), after_exit: Some(after_exit), start: Some(start) };
        let (base, with_options) = (base.name(), with_options(after_exit, start));
        let what = format!("upgrade {name} ({code}) to the code of this onramp, base {base}{with_options}");
        steps.push(step(Deed::Upgrade(algorithm, change), what, undo.clone()));
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
    let with_options = with_options(options.after_exit_over(base), options.start_over(base));
    let observe = if options.observe { ", to observe only" } else { "" };
    let telemetry = match options.telemetry_max {
        Level::Ack => String::new(),
        level => format!(", telemetry of its flows limited to level {}", level.name()),
    };
    let guard = options.guard.map_or_else(String::new, |guard| format!(", {}", guard::words(&guard)));
    format!(" with base {}{with_options}{profile}{parameters}{observe}{guard}{telemetry}", base.name())
}

/// What stands behind a base's name.
fn with_options(after_exit: AfterExitOptions, start: StartPolicies) -> String {
    let after_exit = if after_exit.is_empty() { String::new() } else { format!(" ({after_exit})") };
    if start.is_empty() { after_exit } else { format!("{after_exit}, start {start}") }
}

fn warning(options: &AttachOptions, basis: &Basis) -> Option<String> {
    let key = |base| format!("base = \"{base}\"");
    basis::warning(options.parameters.algorithm(), basis, options.guard.is_some(), key)
}

/// The step that attaches an algorithm, new or anew, or changes its base.
fn before_of(steps: &[Step], algorithm: Algorithm) -> Option<&Step> {
    steps.iter().find(|step| match &step.deed {
        Deed::Attach(options) | Deed::Replace(options) => options.parameters.algorithm() == algorithm,
        Deed::Upgrade(of, _) => *of == algorithm,
        _ => false,
    })
}

fn restore_default(algorithm: Algorithm) -> anyhow::Result<Option<Step>> {
    if onramp_loader::attached_state(algorithm)?.is_some_and(|state| state.owner.is_some()) {
        return Ok(None);
    }
    let previous = match onramp_loader::previous_default(algorithm) {
        Err(Error::NotAttached { .. } | Error::Interrupted { .. } | Error::UpgradeCutOff { .. }) => None,
        other => other?,
    };
    Ok(previous.map(|previous| {
        let name = algorithm.congestion_control();
        let what = format!("restore this network namespace's previous default {previous} (now {name})");
        step(Deed::GiveDefaultBack(algorithm), what, format!("onramp attach {} --default", algorithm.name()))
    }))
}

/// All rules are changed at once. `anew`: algorithms that lose the profiles that they have.
fn rules(desired: &Desired, anew: &[Algorithm]) -> anyhow::Result<Option<Step>> {
    let Desired { rules, profiles, .. } = desired;
    let mut changes = select::plan_apply(rules, anew)?;
    let lost = profiles.iter().filter(|profile| anew.contains(&profile.parameters.algorithm()));
    changes.profiles.extend(
        lost.map(|profile| (profile.parameters.algorithm().congestion_control(), profile.name.clone())),
    );
    if changes.is_empty() {
        return Ok(None);
    }
    let deed = Deed::Select(rules.clone(), profiles.clone());
    Ok(Some(Step { deed, actions: rule_actions(&changes), warning: None }))
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
    let sets = Sets::now();
    let again = |rule: &Rule, replace| {
        Undo::adding(std::slice::from_ref(rule), &sets, &Sets::default(), replace).command.unwrap_or_default()
    };
    for rule in &changes.removed {
        actions.push(action(format!("remove rule {rule}"), again(rule, false)));
    }
    for (before, after) in &changes.replaced {
        let what = format!("replace rule {before} by {after}");
        actions.push(action(what, again(before, true)));
    }
    for rule in &changes.added {
        actions.push(action(format!("add rule {rule}"), format!("onramp select del {:#}", rule.target)));
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
                onramp_loader::restore_default(*algorithm)?;
            }
            Deed::Detach(algorithm) => {
                return onramp_loader::detach(*algorithm, false).map(|detached| left_by(&detached));
            }
            Deed::Attach(options) => {
                onramp_loader::attach(options)?;
            }
            Deed::Replace(options) => {
                let algorithm = options.parameters.algorithm();
                let detached = onramp_loader::detach(algorithm, false)?;
                onramp_loader::attach(options).map_err(|source| Error::NotAttachedAnew {
                    algorithm: algorithm.name(),
                    source: Box::new(source),
                })?;
                return Ok(left_by(&detached));
            }
            Deed::Upgrade(algorithm, change) => {
                let upgraded = onramp_loader::upgrade(*algorithm, *change)?;
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
    let mut left = left(detached.algorithm, &detached.stragglers, &detached.unseen);
    left.extend(detached.pins_left.clone());
    left
}

/// What still has old code of an algorithm.
fn left(algorithm: Algorithm, stragglers: &[Users], unseen: &[String]) -> Vec<String> {
    let name = algorithm.name();
    let sockets = stragglers.iter().map(|users| {
        format!("{} in {} still on old code of {name}", count(users.sockets, "socket"), users.namespace)
    });
    let unseen = unseen.iter().map(|place| format!("not looked into, so {name} may be used there: {place}"));
    sockets.chain(unseen).collect()
}
