//! Why a connection has its congestion control, in words: `onramp select test` and `onramp flows --why`.

use std::collections::BTreeSet;

use onramp_loader::Flow;
use onramp_loader::algorithm::Algorithm;
use onramp_loader::select::{Connection, Side, Target};
use onramp_loader::{By, Deciders, Decision};
use serde::Serialize;

/// What decides, as a stable word: of a rule, the first of what it names.
pub(super) fn word(by: &By) -> &'static str {
    match by {
        By::LockedRoute | By::Route => "route",
        By::Server(_) => "application",
        By::Run(_) => "run",
        By::Rule(rule) if rule.target.to.is_some() => "prefix",
        By::Rule(rule) if rule.target.port.is_some() => "port",
        By::Rule(_) => "cgroup",
        By::Default => "default",
    }
}

/// Why a rule decides and no other does: what has no rule first, then what it names.
fn decides(target: &Target) -> String {
    let named = [
        (target.to.is_some(), "prefix", "the longest prefix"),
        (target.port.is_some(), "port", "the port"),
        (target.cgroup.is_some(), "cgroup", "the nearest cgroup"),
    ];
    let missing = named.iter().take_while(|(named, ..)| !named).map(|(_, word, _)| format!("no {word}"));
    let missing = missing.collect::<Vec<_>>().join(" and ");
    let has = named.iter().filter(|(named, ..)| *named).map(|(.., word)| *word).collect::<Vec<_>>();
    let so = if missing.is_empty() { String::new() } else { missing + ", so " };
    so + &has.join(" and ")
}

/// What a connection gets.
pub(super) fn gets(decision: &Decision) -> String {
    let profile = decision.profile.as_ref().map(|profile| format!(" with profile {profile}"));
    decision.control.clone() + &profile.unwrap_or_default()
}

/// What decides, and why nothing else does.
pub(super) fn text(decision: &Decision) -> String {
    let otherwise = match &decision.without_control {
        Some(rule) => {
            format!("{rule} decides, but {} is not registered", rule.choice.control)
        }
        None => "no rule decides".into(),
    };
    match &decision.by {
        By::LockedRoute => "the route, whose `congctl lock` wins over all".into(),
        By::Server(port) => {
            format!("the application listening on port {port}, which has set TCP_CONGESTION there")
        }
        By::Run(pid) => format!("onramp run, process {pid}"),
        By::Rule(rule) => {
            let why = decides(&rule.target);
            let profile = rule.choice.profile.as_ref().filter(|_| decision.profile.is_none());
            let missing = profile.map(|profile| {
                format!("; there is no profile {profile} now, so with the parameters of the attachment")
            });
            format!("{rule} ({why}{})", missing.unwrap_or_default())
        }
        By::Route => format!("the route's `congctl`: {otherwise}"),
        By::Default => {
            format!("the default of the network namespace: {otherwise}, and the route has no `congctl`")
        }
    }
}

/// Why a flow has the control that it has, and which code it runs.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Why {
    /// Exact: `attached`, that of the attachment there is now; `older`, of one that has been detached; `other_build`;
    /// `unknown`, where nothing is kept of the flow and there is older code, or a pin cannot be read.
    pub code: &'static str,
    /// Exact: the cgroup that its socket was made in, by its number; and by its path unless it is gone.
    cgroup_id: Option<u64>,
    cgroup: Option<String>,
    /// Derived from whether there is a listening socket on its port.
    side: &'static str,
    /// Derived: what gives a new connection like this one its control; `other` if that is not the flow's.
    chosen_by: &'static str,
    /// What a new connection like this one gets.
    new_connections_get: Option<String>,
    /// With which profile, where a rule says so.
    new_connections_get_profile: Option<String>,
    /// The rule that decides about new connections, or would if its control were registered.
    rule: Option<String>,
    pub explanation: String,
}

/// What flows are asked about.
pub(super) struct Asker {
    /// Else why it is not known.
    deciders: Result<Deciders, String>,
    listening: BTreeSet<u16>,
    /// Algorithms of which older code may be loaded.
    older: Vec<Algorithm>,
}

impl Asker {
    /// For the flows of the current network namespace.
    pub fn here() -> anyhow::Result<Self> {
        let deciders = Deciders::here().map_err(|error| error.to_string());
        let (listening, older) = (onramp_loader::listening_ports()?, onramp_loader::older_code()?);
        Ok(Self { deciders, listening, older })
    }

    pub fn ask(&mut self, flow: &Flow) -> Why {
        let side = if self.listening.contains(&flow.local.port()) { Side::Accept } else { Side::Connect };
        let port = if side == Side::Accept { flow.local.port() } else { flow.remote.port() };
        let connection = Connection {
            peer: flow.remote.ip(),
            local: Some(flow.local.ip()),
            interface: flow.interface,
            port: Some(port),
            cgroup: flow.cgroup_id,
            side,
        };
        let why = Why {
            code: code(flow, &self.older),
            cgroup_id: flow.cgroup_id,
            cgroup: None,
            side: side.name(),
            chosen_by: "unknown",
            new_connections_get: None,
            new_connections_get_profile: None,
            rule: None,
            explanation: String::new(),
        };
        let asked = self.deciders.as_mut().map_err(|error| error.clone()).and_then(|deciders| {
            let decision = deciders.decide(&connection).map_err(|error| error.to_string())?;
            let cgroup = flow.cgroup_id.and_then(|id| deciders.cgroup_path(id));
            Ok((decision, cgroup.map(str::to_owned)))
        });
        match asked {
            Ok((decision, cgroup)) => {
                let control = flow.algorithm.congestion_control();
                Why { cgroup, ..decided(&control, set(flow), &decision, why) }
            }
            Err(error) => Why { explanation: format!("it is not known: {error}"), ..why },
        }
    }
}

/// A flow's parameter set by number and name; `None`: nothing is known of it.
fn set(flow: &Flow) -> Option<(u32, &str)> {
    Some((flow.header?.profile.into(), flow.profile.as_deref()?))
}

fn decided(control: &str, set: Option<(u32, &str)>, decision: &Decision, why: Why) -> Why {
    let has_profile = match (&decision.profile, set) {
        (_, None) => true,
        (Some(profile), Some((_, name))) => profile == name,
        (None, Some((number, _))) => number == 0,
    };
    let has = decision.control == control && has_profile;
    let explanation = if has {
        format!("as things are now, {}", text(decision))
    } else {
        format!(
            "by its application, or by what has changed since: a new connection gets {} by {}",
            gets(decision),
            text(decision)
        )
    };
    Why {
        chosen_by: if has { word(&decision.by) } else { "other" },
        new_connections_get: Some(decision.control.clone()),
        new_connections_get_profile: decision.profile.clone(),
        rule: decision.rule().map(ToString::to_string),
        explanation,
        ..why
    }
}

fn code(flow: &Flow, older: &[Algorithm]) -> &'static str {
    if flow.unreadable {
        return "unknown";
    }
    match (flow.other_build, flow.base, &flow.header) {
        (true, ..) => "other_build",
        (_, None, _) => "older",
        (.., None) if older.contains(&flow.algorithm) => "unknown",
        _ => "attached",
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::select::{Cgroup, Choice, Rule};

    use super::*;

    #[test]
    fn why_a_rule_decides_is_what_has_no_rule_and_what_it_names() {
        let target = |to: Option<&str>, port, cgroup: Option<u64>| Target {
            to: to.map(|to| to.parse().unwrap()),
            port,
            cgroup: cgroup.map(|id| Cgroup { id, path: None }),
            side: Side::Both,
        };
        for (target, said) in [
            (target(Some("10.0.0.0/8"), None, None), "the longest prefix"),
            (target(None, Some(1), None), "no prefix, so the port"),
            (target(None, None, Some(1)), "no prefix and no port, so the nearest cgroup"),
            (target(Some("10.0.0.0/8"), None, Some(1)), "the longest prefix and the nearest cgroup"),
            (target(None, Some(1), Some(1)), "no prefix, so the port and the nearest cgroup"),
        ] {
            assert_eq!(decides(&target), said);
        }
    }

    fn rule(what: &str, control: &str) -> Rule {
        let target = Target { to: Some(what.parse().unwrap()), port: None, cgroup: None, side: Side::Both };
        Rule {
            target,
            choice: Choice { control: control.into(), profile: None, initial_window: None, resume: None },
        }
    }

    fn of(decision: &Decision) -> Why {
        of_set(None, decision)
    }

    fn of_set(set: Option<(u32, &str)>, decision: &Decision) -> Why {
        let why = Why {
            code: "attached",
            cgroup_id: None,
            cgroup: None,
            side: "accept",
            chosen_by: "unknown",
            new_connections_get: None,
            new_connections_get_profile: None,
            rule: None,
            explanation: String::new(),
        };
        decided("onramp_plain", set, decision, why)
    }

    #[test]
    fn what_would_give_a_flow_its_control_is_said_to_have_chosen_it_and_only_then() {
        let decision = |control: &str, by, without_control| Decision {
            control: control.into(),
            profile: None,
            by,
            without_control,
        };
        let by_rule = By::Rule(rule("10.0.0.0/8", "onramp_plain"));
        let chosen = of(&decision("onramp_plain", by_rule, None));
        assert_eq!(
            (chosen.chosen_by, chosen.rule.as_deref()),
            ("prefix", Some("--to 10.0.0.0/8 --use plain"))
        );
        assert_eq!(chosen.explanation, "as things are now, --to 10.0.0.0/8 --use plain (the longest prefix)");
        let changed = of(&decision("cubic", By::Default, Some(rule("10.0.0.0/8", "onramp_best"))));
        assert_eq!((changed.chosen_by, changed.new_connections_get.as_deref()), ("other", Some("cubic")));
        assert_eq!(
            changed.explanation,
            "by its application, or by what has changed since: a new connection gets cubic by the default of the network \
             namespace: --to 10.0.0.0/8 --use best decides, but onramp_best is not registered, and the route has no \
             `congctl`"
        );
        for (by, word) in [
            (By::Server(80), "application"),
            (By::Run(7), "run"),
            (By::LockedRoute, "route"),
            (By::Route, "route"),
            (By::Default, "default"),
        ] {
            assert_eq!(of(&decision("onramp_plain", by, None)).chosen_by, word);
        }
    }

    #[test]
    fn a_rule_has_chosen_for_a_flow_that_has_its_profile_too() {
        for (profile, set, chosen_by) in [
            (Some("geo"), Some((1, "geo")), "prefix"),
            // That of the attachment, by its name.
            (Some("geo"), Some((0, "geo")), "prefix"),
            (Some("geo"), Some((0, "default")), "other"),
            (Some("geo"), Some((2, "leo")), "other"),
            (None, Some((0, "geo")), "prefix"),
            (None, Some((1, "geo")), "other"),
            (Some("geo"), None, "prefix"),
        ] {
            let mut rule = rule("10.0.0.0/8", "onramp_plain");
            rule.choice.profile = profile.map(str::to_owned);
            let decision = Decision {
                control: "onramp_plain".into(),
                profile: rule.choice.profile.clone(),
                by: By::Rule(rule),
                without_control: None,
            };
            let why = of_set(set, &decision);
            assert_eq!(why.chosen_by, chosen_by, "{profile:?} {set:?}");
            assert_eq!(why.new_connections_get_profile.as_deref(), profile);
        }
    }
}
