//! What a base changes for connections, in a line.

use onramp_loader::algorithm::Algorithm;
use onramp_loader::{AttachOptions, AttachedState, Base, BaseChange, Basis};

/// What connections of an algorithm get after slow start, where this is not what its network namespace gives them now.
/// `keep`: what names another base.
pub(crate) fn warning(
    algorithm: Algorithm,
    basis: &Basis,
    guarded: bool,
    keep: impl FnOnce(&'static str) -> String,
) -> Option<String> {
    let Basis { base, default, default_base } = basis;
    let control = algorithm.congestion_control();
    let base_name = base.name();
    let mut text = match default_base {
        Some(same) if same == base => String::new(),
        Some(other) => format!(
            "connections of {control} get base {base_name} after slow start, not {default} as the default of this network namespace; {} keeps it",
            keep(other.name())
        ),
        None => format!(
            "connections of {control} get base {base_name} after slow start, not {default} as the default of this network namespace, which cannot be a base"
        ),
    };
    // Its control runs the base alone.
    if guarded && default != base_name {
        if !text.is_empty() {
            text += ". ";
        }
        text += &format!("The guard compares {control} with {base_name} alone, not with {default}");
    }
    (!text.is_empty()).then_some(text)
}

/// How an algorithm is attached; `None`: it is not, or that cannot be read, and attaching will say why.
pub(crate) fn attached(algorithm: Algorithm) -> Option<AttachedState> {
    let pinned = onramp_loader::pinned().is_ok_and(|pinned| pinned.contains(&algorithm));
    pinned.then(|| onramp_loader::attached_state(algorithm).ok().flatten()).flatten()
}

/// The base that `apply` will have an algorithm have: what its file names, else the one that it has, else that of the network
/// namespace. `None`: that cannot be known, and planning says why.
pub(crate) fn to_be(options: &AttachOptions) -> Option<Base> {
    let algorithm = options.parameters.algorithm();
    let of_another_build = || onramp_loader::plan_upgrade(algorithm, BaseChange::default()).ok();
    let there = || {
        let pinned = onramp_loader::pinned().is_ok_and(|pinned| pinned.contains(&algorithm));
        let has = || attached(algorithm).map(|state| state.base);
        pinned.then(|| has().or_else(|| of_another_build().map(|plan| plan.base))).flatten()
    };
    let of_namespace = || onramp_loader::basis(options).ok().map(|basis| basis.base);
    options.base.or_else(there).or_else(of_namespace)
}

/// The option that names a base.
pub(crate) fn option(base: &'static str) -> String {
    format!("--base {base}")
}

/// As [`warning`], of what is attached and of the current network namespace, whose default can be read.
pub(crate) fn warning_of_attached(algorithm: Algorithm, attached: &AttachedState) -> Option<String> {
    let basis = Basis::here(algorithm, attached.base).ok()?;
    let upgrade = |base| format!("`onramp upgrade {} --base {base}`", algorithm.name());
    warning(algorithm, &basis, attached.guard.is_some(), upgrade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_lost_only_where_something_is() {
        let ramp = onramp_loader::find("ramp").unwrap();
        let said = |base, default: &str, default_base, guarded| {
            let basis = Basis { base, default: default.into(), default_base };
            warning(ramp, &basis, guarded, option)
        };
        for guarded in [false, true] {
            for base in Base::ALL {
                assert_eq!(said(base, base.name(), Some(base), guarded), None);
            }
        }
        assert_eq!(said(Base::Cubic, "onramp_search", Some(Base::Cubic), false), None);
        for (default, default_base, guarded, parts) in [
            ("bbr", Some(Base::Bbr), false, &["base cubic", "not bbr", "--base bbr keeps it"][..]),
            (
                "bbr",
                Some(Base::Bbr),
                true,
                &["--base bbr", "The guard compares onramp_ramp with cubic alone, not with bbr"],
            ),
            ("dctcp", None, false, &["not dctcp", "cannot be a base"]),
            (
                "onramp_search",
                Some(Base::Cubic),
                true,
                &["The guard compares onramp_ramp with cubic alone, not with onramp_search"],
            ),
        ] {
            let said = said(Base::Cubic, default, default_base, guarded).unwrap();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
    }
}
