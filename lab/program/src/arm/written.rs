//! Arms as they are written: `search`, `search:exit_action=hold`, `plain:base=reno:host.tcp_sack=off`.

use onramp_lab::sim::RESUME;
use onramp_loader::Base;
use onramp_loader::algorithm::{self, AfterExitOptions, Algorithm, StartPolicies};
use onramp_profiles::host::HostSpec;

use crate::failure::Usage;
use onramp_lab::experiment::{AFTER_EXIT, START};

/// Name of the base that only the simulator has.
pub(super) const TAHOE: &str = "tahoe";

/// One arm as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written<'a> {
    /// All of it.
    pub label: &'a str,
    /// Algorithm or control.
    pub name: &'a str,
    /// The algorithm, if it is one of ours.
    pub algorithm: Option<Algorithm>,
    /// Settings of the algorithm, `name=value`.
    pub parameters: Vec<&'a str>,
    pub base: Option<Base>,
    /// Options of the base.
    pub after_exit: AfterExitOptions,
    /// What its connections do at their start.
    pub start: StartPolicies,
    /// Its base is Tahoe, which only the simulator has.
    pub tahoe: bool,
    /// What it knows of its path, percent of the link's rate, which only the simulator tells it.
    pub resume_pct: Option<u32>,
    /// Settings of the hosts, name and value.
    host: Vec<(&'a str, &'a str)>,
}

impl<'a> Written<'a> {
    pub fn parse(label: &'a str) -> anyhow::Result<Self> {
        let mut parts = label.split(':');
        let name = parts.next().unwrap_or_default();
        let algorithm = algorithm::find(name);
        let mut arm = Self {
            label,
            name,
            algorithm,
            parameters: Vec::new(),
            base: None,
            after_exit: AfterExitOptions::default(),
            start: StartPolicies::default(),
            tahoe: false,
            resume_pct: None,
            host: Vec::new(),
        };
        for setting in parts {
            let refuse = |why: &str| Usage::error(format!("arm {label:?}: {setting:?} {why}"));
            let (key, value) =
                setting.split_once('=').ok_or_else(|| refuse("is not a setting: write KEY=VALUE"))?;
            match (key.strip_prefix("host."), key) {
                (Some(key), _) => arm.host.push((key, value)),
                (None, _) if algorithm.is_none() => {
                    return Err(refuse(
                        "is for algorithms of onramp's; a control of the kernel takes host.KEY=VALUE only",
                    ));
                }
                (None, "base") if value == TAHOE => arm.tahoe = true,
                (None, "base") => {
                    arm.base = Some(base(value).map_err(|_| refuse("names no base: give cubic|reno|bbr"))?);
                }
                (None, AFTER_EXIT) => {
                    arm.after_exit =
                        value.parse().map_err(|why: String| refuse(&format!("is refused: {why}")))?;
                }
                (None, START) => {
                    arm.start = value.parse().map_err(|why: String| refuse(&format!("is refused: {why}")))?;
                }
                (None, RESUME) => {
                    let percent = value.parse().ok().filter(|percent| (1..=1_000).contains(percent));
                    arm.resume_pct = Some(percent.ok_or_else(|| refuse("is no percentage: give 1 to 1000"))?);
                }
                (None, _) => arm.parameters.push(setting),
            }
        }
        let base = if arm.tahoe { TAHOE } else { arm.base.map_or("cubic", Base::name) };
        if let Some(option) = arm.after_exit.missing_from(base) {
            let why = format!("base {base} has no option {} (after_exit)", option.name());
            return Err(Usage::error(format!("arm {label:?}: {why}")));
        }
        if let Some(policy) = arm.start.missing_from(base) {
            let why = format!("base {base} has no option {} (start)", policy.name());
            return Err(Usage::error(format!("arm {label:?}: {why}")));
        }
        Ok(arm)
    }

    /// What tables call it: as it is written, but an algorithm by its own name.
    pub fn shown(&self) -> String {
        let name = self.algorithm.map_or(self.name, |algorithm| algorithm.name());
        format!("{name}{}", &self.label[self.name.len()..])
    }

    /// The profile's hosts with this arm's settings; `None` where it has none.
    pub fn host(&self, of_profile: &HostSpec) -> anyhow::Result<Option<HostSpec>> {
        let mut host = of_profile.clone();
        for (key, value) in &self.host {
            host.set(key, value).map_err(|error| Usage::error(format!("arm {:?}: {error}", self.label)))?;
        }
        Ok((!self.host.is_empty()).then_some(host))
    }
}

/// The algorithm that `ALG.NAME=VALUE` is for.
pub(super) fn algorithm(setting: &str) -> Option<Algorithm> {
    algorithm::find(setting.split_once('.')?.0)
}

/// A base by its name.
pub(super) fn base(name: &str) -> anyhow::Result<Base> {
    let base = Base::ALL.into_iter().find(|base| base.name() == name);
    base.ok_or_else(|| Usage::error(format!("there is no base {name:?}: give cubic|reno|bbr")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_a_name_and_its_settings() {
        let arm = Written::parse("search:exit_action=hold:base=reno:host.tcp_sack=off").unwrap();
        assert_eq!((arm.name, arm.base), ("search", Some(Base::Reno)));
        assert_eq!(arm.parameters, ["exit_action=hold"]);
        let host = HostSpec::new([4_096, 5_000, 6_000], [4_096, 5_000, 6_000]);
        assert!(!arm.host(&host).unwrap().unwrap().tcp_sack);
        assert_eq!(Written::parse("cubic").unwrap().host(&host).unwrap(), None);
        let options = Written::parse("ramp:after_exit=plateau+floor").unwrap().after_exit;
        assert_eq!(options.to_string(), "plateau,floor");
        let start = Written::parse("ramp:start=resume+window").unwrap().start;
        assert_eq!(start.to_string(), "resume+window");
        let tahoe = Written::parse("plain:base=tahoe").unwrap();
        assert!(tahoe.tahoe && tahoe.base.is_none());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let says = |label| Written::parse(label).unwrap_err().to_string();
        assert!(says("search:hold").contains("write KEY=VALUE"));
        assert!(says("search:base=vegas").contains("cubic|reno|bbr"));
        assert!(says("cubic:missed_bins_rtts=2").contains("host.KEY=VALUE only"));
        assert!(says("ramp:after_exit=floors").contains("plateau,floor"));
        assert!(says("ramp:base=reno:after_exit=floor+plateau").contains("base reno has no option plateau"));
        assert!(says("ramp:base=tahoe:after_exit=floor").contains("base tahoe has no option floor"));
        assert!(says("ramp:start=fast").contains("double"));
        assert!(says("ramp:base=bbr:start=resume").contains("base bbr has no option resume"));
        let host = HostSpec::new([4_096, 5_000, 6_000], [4_096, 5_000, 6_000]);
        let error = Written::parse("cubic:host.sack=off").unwrap().host(&host).unwrap_err().to_string();
        assert!(error.contains("\"sack\"") && error.contains("tcp_sack"), "{error}");
    }
}
