//! Defaults of network namespaces other than this one: who keeps another control, and how an algorithm becomes the default
//! there, too.

use std::path::{Path, PathBuf};

use onramp_loader::algorithm::Algorithm;
use onramp_loader::{Action, DEFAULT_SYSCTL, DefaultOf, Defaults, Elsewhere, Error, quoted};
use onramp_net::namespace::{Namespace, NamespaceError};
use serde::Serialize;

use crate::failure::{PARTIAL, Usage};
use crate::output::escape_line;
use crate::units::count;

/// Names of namespaces that a line has at most.
const NAMED: usize = 5;

/// A network namespace and its default.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Other {
    pub namespace: String,
    pub congestion_control: String,
}

impl Other {
    /// Those whose default is not `control`.
    pub fn than(control: &str, defaults: &Defaults) -> Vec<Self> {
        let others = defaults.of.iter().filter(|one| one.name != control);
        others.map(|one| Self::new((one.namespace.clone(), one.name.clone()))).collect()
    }

    pub fn new((namespace, congestion_control): (String, String)) -> Self {
        Self { namespace, congestion_control }
    }
}

/// Who keeps which default, a line for each control.
pub(super) fn text(others: &[Other]) -> String {
    let mut controls: Vec<&str> = others.iter().map(|one| one.congestion_control.as_str()).collect();
    controls.sort_unstable();
    controls.dedup();
    let line = |control: &str| {
        let keep: Vec<_> = others.iter().filter(|one| one.congestion_control == control).collect();
        let names: Vec<_> = keep.iter().take(NAMED).map(|one| escape_line(&one.namespace)).collect();
        let more =
            if keep.len() > NAMED { format!(" and {} more", keep.len() - NAMED) } else { String::new() };
        let (namespaces, keep) =
            (count(keep.len(), "other network namespace"), if keep.len() == 1 { "keeps" } else { "keep" });
        format!("  {namespaces} {keep} {control}: {}{more}\n", names.join(", "))
    };
    controls.into_iter().map(line).collect()
}

/// A network namespace that `--default` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// That of the command.
    Here,
    /// All that can be found.
    All,
    /// That of a file.
    At(PathBuf),
}

/// What `--default` without a value means.
pub(super) const HERE: &str = "here";
const ALL: &str = "all";

/// Reads the value of `--default`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    match text {
        HERE => Ok(Place::Here),
        ALL => Ok(Place::All),
        path if path.starts_with('/') => Ok(Place::At(path.into())),
        other => {
            Err(format!("write {HERE}, {ALL}, or a file such as /run/netns/{other} or /proc/PID/ns/net"))
        }
    }
}

/// Whether these name the namespace of the command.
pub(super) fn is_here(places: &[Place]) -> bool {
    places.iter().any(|place| matches!(place, Place::Here | Place::All))
}

/// The others that these name; `None`: none.
pub(super) fn others(places: &[Place]) -> Option<Elsewhere> {
    if places.contains(&Place::All) {
        return Some(Elsewhere::All);
    }
    let at = |place: &Place| if let Place::At(path) = place { Some(path.clone()) } else { None };
    let paths: Vec<_> = places.iter().filter_map(at).collect();
    (!paths.is_empty()).then_some(Elsewhere::These(paths))
}

/// The same, each opened once, so that a file which is no network namespace is refused before anything is changed.
pub(super) fn checked(places: &[Place]) -> anyhow::Result<Option<Elsewhere>> {
    let others = others(places);
    if let Some(Elsewhere::These(paths)) = &others {
        for path in paths {
            Namespace::open(path).map_err(|error| Usage::error(error.to_string()))?;
        }
    }
    Ok(others)
}

/// What becoming the default of others would change. `undo`: of one of them, with what it has now.
pub(super) fn planned(
    algorithm: Algorithm,
    others: Option<&Elsewhere>,
    undo: impl Fn(&[DefaultOf]) -> String,
) -> anyhow::Result<Vec<Action>> {
    let control = algorithm.congestion_control();
    let of = match others {
        None => return Ok(Vec::new()),
        Some(Elsewhere::All) => {
            let everywhere = onramp_loader::defaults_everywhere()?;
            everywhere.of.into_iter().filter(|one| one.path.is_some()).collect()
        }
        Some(Elsewhere::These(paths)) => {
            let one = |path: &PathBuf| {
                let name = Namespace::open(path)?.sysctl_get(DEFAULT_SYSCTL)?;
                let namespace = path.display().to_string();
                Ok::<_, NamespaceError>(DefaultOf { namespace, path: Some(path.clone()), name })
            };
            paths.iter().map(one).collect::<Result<Vec<_>, _>>()?
        }
    };
    let others = of.into_iter().filter(|one| one.name != control);
    let action = |one: DefaultOf| Action {
        what: format!(
            "set {DEFAULT_SYSCTL}={control} in network namespace {} (now {})",
            one.namespace, one.name
        ),
        undo: undo(&[one]),
    };
    Ok(others.map(action).collect())
}

/// What became of the defaults of other namespaces.
#[derive(Serialize)]
pub(super) struct Taken {
    /// Those that had another default, with what that was.
    defaults_elsewhere: Vec<Other>,
    #[serde(skip)]
    replaced: Vec<DefaultOf>,
    /// Those that keep another default; none is looked for unless some default was asked for.
    other_namespaces: Vec<Other>,
    /// Where it could not be looked.
    unseen: Vec<String>,
    /// Those that could not be given the default.
    not_set: Vec<NotSet>,
}

/// A network namespace that keeps its default.
#[derive(Serialize)]
struct NotSet {
    namespace: String,
    reason: String,
}

impl Taken {
    /// Makes an algorithm the default of others, and looks who keeps another one.
    pub fn take(algorithm: Algorithm, places: &[Place], others: Option<&Elsewhere>) -> Result<Self, Error> {
        let taken = match others {
            Some(others) => onramp_loader::take_default_elsewhere(algorithm, others)?,
            None => Defaults::default(),
        };
        // Without the privilege to look, nothing is said.
        let everywhere = if places.is_empty() { None } else { onramp_loader::defaults_everywhere().ok() };
        let other_namespaces =
            everywhere.map(|everywhere| Other::than(&algorithm.congestion_control(), &everywhere));
        let other = |one: &DefaultOf| Other::new((one.namespace.clone(), one.name.clone()));
        Ok(Self {
            defaults_elsewhere: taken.of.iter().map(other).collect(),
            replaced: taken.of,
            other_namespaces: other_namespaces.unwrap_or_default(),
            unseen: taken.unseen,
            not_set: taken.kept.into_iter().map(|(namespace, reason)| NotSet { namespace, reason }).collect(),
        })
    }

    /// The command that undoes it. `here`: what was replaced in this namespace, if that was asked for, too.
    pub fn undo(&self, here: Option<&str>) -> Option<String> {
        let here = here.map(|name| DefaultOf { namespace: String::new(), path: None, name: name.to_owned() });
        let all: Vec<_> = here.into_iter().chain(self.replaced.iter().cloned()).collect();
        (!all.is_empty()).then(|| restoring(&all))
    }

    pub fn text(&self, control: &str) -> String {
        let line = |one: &Other| {
            let namespace = escape_line(&one.namespace);
            format!(
                "  default of network namespace {namespace}: {control} (was {})\n",
                one.congestion_control
            )
        };
        let lines: String = self.defaults_elsewhere.iter().map(line).collect();
        let not_set = |NotSet { namespace, reason }: &NotSet| {
            format!(
                "  default of network namespace {} not set: {}\n",
                escape_line(namespace),
                escape_line(reason)
            )
        };
        let not_set: String = self.not_set.iter().map(not_set).collect();
        lines + &not_set + &text(&self.other_namespaces) + &unseen_text(&self.unseen)
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        if self.unseen.is_empty() && self.not_set.is_empty() { 0 } else { PARTIAL }
    }
}

/// The options with which a control becomes the default where it is now.
pub(super) fn options(control: &str, defaults: &Defaults) -> Vec<String> {
    let has: Vec<_> = defaults.of.iter().filter(|one| one.name == control).collect();
    if has.len() == defaults.of.len() && has.len() > 1 && defaults.unseen.is_empty() {
        return vec![format!("--default={ALL}")];
    }
    let option = |one: &&DefaultOf| match &one.path {
        None => "--default".to_owned(),
        Some(path) => format!("--default={}", quoted(&path.display().to_string())),
    };
    has.iter().map(option).collect()
}

/// The command that sets these defaults.
pub(super) fn restoring(before: &[DefaultOf]) -> String {
    let one = |DefaultOf { path, name, .. }: &DefaultOf| {
        format!("{}sysctl -w {DEFAULT_SYSCTL}={name}", entering(path.as_deref()))
    };
    before.iter().map(one).collect::<Vec<_>>().join(" && ")
}

/// What runs a command in the network namespace of a file; nothing where it runs anyway.
pub(super) fn entering(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!("nsenter --net={} ", quoted(&path.display().to_string())))
}

/// Where it could not be looked, a line each.
pub(super) fn unseen_text(unseen: &[String]) -> String {
    let line = |place: &String| format!("  not looked into, so there may be more: {}\n", escape_line(place));
    unseen.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(all: &[(Option<&str>, &str)]) -> Defaults {
        let one = |(path, name): &(Option<&str>, &str)| DefaultOf {
            namespace: path.unwrap_or("current").into(),
            path: path.map(PathBuf::from),
            name: (*name).into(),
        };
        Defaults { of: all.iter().map(one).collect(), ..Defaults::default() }
    }

    #[test]
    fn where_a_control_is_the_default_is_named_by_options_that_are_read_as_the_same() {
        let ours = "onramp_plain";
        for (all, expected) in [
            (vec![(None, ours)], vec!["--default"]),
            (vec![(None, ours), (Some("/run/netns/a"), ours)], vec!["--default=all"]),
            (vec![(None, ours), (Some("/run/netns/a"), "cubic")], vec!["--default"]),
            (vec![(None, "reno"), (Some("/run/netns/a b"), ours)], vec!["--default='/run/netns/a b'"]),
            (vec![(None, "reno"), (Some("/proc/7/fd/3"), ours)], vec!["--default=/proc/7/fd/3"]),
            (vec![(None, "reno")], vec![]),
        ] {
            assert_eq!(options(ours, &defaults(&all)), expected);
        }
        assert_eq!(place("all"), Ok(Place::All));
        assert_eq!(place("here"), Ok(Place::Here));
        assert_eq!(place("/run/netns/a b"), Ok(Place::At("/run/netns/a b".into())));
        assert!(place("early").is_err_and(|why| why.contains("/run/netns/early")));
        assert_eq!(others(&[Place::Here]), None);
        assert_eq!(others(&[Place::Here, Place::All]), Some(Elsewhere::All));
        assert_eq!(others(&[Place::At("/a".into())]), Some(Elsewhere::These(vec!["/a".into()])));
    }

    #[test]
    fn defaults_are_restored_where_they_were() {
        let before = defaults(&[(None, "cubic"), (Some("/run/netns/a'b"), "bbr")]).of;
        assert_eq!(
            restoring(&before),
            r"sysctl -w net.ipv4.tcp_congestion_control=cubic && nsenter --net='/run/netns/a'\''b' sysctl -w net.ipv4.tcp_congestion_control=bbr"
        );
    }

    #[test]
    fn others_are_named_by_their_control_and_not_all_of_many() {
        let others: Vec<_> =
            (0..7).map(|number| Other::new((format!("pid {number}"), "cubic".into()))).collect();
        let said = text(&[&others[..], &[Other::new(("/run/netns/a".into(), "reno".into()))]].concat());
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(
            said.contains("7 other network namespaces keep cubic") && said.contains("and 2 more"),
            "{said}"
        );
        assert!(said.contains("1 other network namespace keeps reno: /run/netns/a"), "{said}");
        assert_eq!(text(&[]), "");
    }
}
