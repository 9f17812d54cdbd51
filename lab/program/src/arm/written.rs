//! Arms as they are written: `search`, `search:exit_action=hold`, `plain:base=reno:host.tcp_sack=off`.

use std::path::Path;

use onramp_lab::experiment::KnownPath;
use onramp_loader::Base;
use onramp_loader::algorithm::{self, AfterExitOptions, Algorithm, Named, Options, StartPolicies, outside};
use onramp_loader::select;
use onramp_profiles::host::HostSpec;
use onramp_profiles::link::LinkSpec;

use crate::failure::Usage;
use crate::units;
use onramp_lab::experiment::{AFTER_EXIT, START};

/// Name of the base that only the simulator has.
pub(super) const TAHOE: &str = "tahoe";

/// What is known of the path, as `onramp select add --resume` has it, with a slash for the comma.
const RESUME: &str = "resume";
/// The same as a percentage of the link's rate, and its RTT.
const RESUME_PCT: &str = "resume_pct";

/// What an arm knows of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Percent of the rate that the link has for it, and the link's RTT.
    Percent(u32),
    Path(KnownPath),
}

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
    /// Options of the base; none: those that the algorithm has usually.
    pub after_exit: Option<AfterExitOptions>,
    /// What its connections do at their start; none: what they do usually.
    pub start: Option<StartPolicies>,
    /// Its base is Tahoe, which only the simulator has.
    pub tahoe: bool,
    known: Option<Known>,
    /// Settings of the hosts, name and value.
    host: Vec<(&'a str, &'a str)>,
}

impl<'a> Written<'a> {
    pub fn parse(label: &'a str) -> anyhow::Result<Self> {
        let mut parts = label.split(':');
        let name = parts.next().unwrap_or_default();
        let algorithm = if outside::is_path(name) {
            let read = outside::open(Path::new(name)).map(Algorithm::from);
            Some(read.map_err(|error| Usage::error(format!("arm {label:?}: {error}")))?)
        } else {
            algorithm::find(name)
        };
        let mut arm = Self {
            label,
            name,
            algorithm,
            parameters: Vec::new(),
            base: None,
            after_exit: None,
            start: None,
            tahoe: false,
            known: None,
            host: Vec::new(),
        };
        let mut given = Vec::new();
        for setting in parts {
            let refuse = |why: &str| Usage::error(format!("arm {label:?}: {setting:?} {why}"));
            let (key, value) =
                setting.split_once('=').ok_or_else(|| refuse("is not a setting: write KEY=VALUE"))?;
            let what = if key == RESUME_PCT { RESUME } else { key };
            if given.contains(&what) {
                return Err(refuse(&format!("is given twice: leave one {what} out")));
            }
            given.push(what);
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
                    let options =
                        value.parse().map_err(|why: String| refuse(&format!("is refused: {why}")))?;
                    arm.after_exit = Some(options);
                }
                (None, START) => {
                    let start = value.parse().map_err(|why: String| refuse(&format!("is refused: {why}")))?;
                    arm.start = Some(start);
                }
                (None, RESUME_PCT) => {
                    let percent = value.parse().ok().filter(|percent| (1..=1_000).contains(percent));
                    let percent = percent.ok_or_else(|| refuse("is no percentage: give 1 to 1000"))?;
                    arm.known = Some(Known::Percent(percent));
                }
                (None, RESUME) => {
                    let path =
                        known_path(value).map_err(|why| refuse(&format!("is no known path: {why}")))?;
                    arm.known = Some(Known::Path(path));
                }
                (None, _) => arm.parameters.push(setting),
            }
        }
        let base = if arm.tahoe { TAHOE } else { arm.base.map_or("cubic", Base::name) };
        let lacking = missing(arm.after_exit.unwrap_or_default(), base, AFTER_EXIT)
            .or_else(|| missing(arm.start.unwrap_or_default(), base, START));
        if let Some(why) = lacking {
            return Err(Usage::error(format!("arm {label:?}: {why}")));
        }
        if arm.known.is_some() && arm.base == Some(Base::Bbr) {
            return Err(Usage::error(format!(
                "arm {label:?}: over bbr no connection starts from what is known of a path: give cubic|reno"
            )));
        }
        Ok(arm)
    }

    /// What its flows know of a path over this link.
    pub fn known_path(&self, link: &LinkSpec) -> anyhow::Result<Option<KnownPath>> {
        let path = match self.known {
            None => return Ok(None),
            Some(Known::Path(path)) => path,
            Some(Known::Percent(percent)) => {
                let kbps = link.available_bps() / 1_000 * u64::from(percent) / 100;
                let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
                KnownPath { kbps: number(kbps), rtt_us: number(link.base_rtt_us()) }
            }
        };
        in_range(path).map_err(|why| Usage::error(format!("arm {:?}: {why}", self.label)))?;
        Ok(Some(path))
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

/// `50mbit/600ms`.
fn known_path(text: &str) -> Result<KnownPath, String> {
    let (rate, rtt) = text.split_once('/').ok_or("give rate and RTT, such as 50mbit/600ms")?;
    let number = |value: u128| u32::try_from(value).unwrap_or(u32::MAX);
    let kbps = number(u128::from(units::rate(rate)? / 1_000));
    let path = KnownPath { kbps, rtt_us: number(units::duration(rtt)?.as_micros()) };
    in_range(path).map(|()| path)
}

fn in_range(path: KnownPath) -> Result<(), String> {
    for (what, value, unit, range) in [
        ("rate", path.kbps, "kbit/s", select::KnownPath::KBPS),
        ("RTT", path.rtt_us, "us", select::KnownPath::RTTS_US),
    ] {
        if !range.contains(&value) {
            let (least, most) = range.into_inner();
            return Err(format!("a known {what} of {value} {unit} is out of range: {least} to {most}"));
        }
    }
    Ok(())
}

/// The option of a set, given by this name, that a base does not have.
fn missing<T: Named>(options: Options<T>, base: &str, by: &str) -> Option<String> {
    let option = options.missing_from(base)?;
    Some(format!("base {base} has no option {} ({by})", option.name()))
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
        let options = |label| Written::parse(label).unwrap().after_exit.map(|options| options.to_string());
        assert_eq!(options("ramp:after_exit=plateau+floor").as_deref(), Some("plateau,floor"));
        assert_eq!(options("ramp:after_exit=none").as_deref(), Some("none"));
        assert_eq!(options("ramp"), None);
        let start = |label| Written::parse(label).unwrap().start.map(|start| start.to_string());
        assert_eq!(start("ramp:start=resume+window").as_deref(), Some("resume+window"));
        assert_eq!(start("ramp:start=double").as_deref(), Some("double"));
        assert_eq!(start("ramp"), None);
        let tahoe = Written::parse("plain:base=tahoe").unwrap();
        assert!(tahoe.tahoe && tahoe.base.is_none());
    }

    #[test]
    fn a_known_path_is_given_or_a_percentage_of_the_link() {
        let geo = crate::profile::load("geo").unwrap().link;
        let known = |label| Written::parse(label).unwrap().known_path(&geo).unwrap();
        assert_eq!(known("ramp"), None);
        let given = KnownPath { kbps: 50_000, rtt_us: 500_000 };
        assert_eq!(known("ramp:resume=50mbit/500ms"), Some(given));
        let half = KnownPath { kbps: 75_000, rtt_us: 600_000 };
        assert_eq!(known("ramp:resume_pct=50"), Some(half));
        for bad in [
            "ramp:resume=50mbit",
            "ramp:resume=1kbit/600ms",
            "ramp:resume=50mbit/11s",
            "ramp:resume_pct=0",
            "ramp:base=bbr:resume_pct=100",
            "cubic:resume_pct=100",
        ] {
            assert!(Written::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let says = |label| Written::parse(label).unwrap_err().to_string();
        assert!(says("search:hold").contains("write KEY=VALUE"));
        for twice in [
            "search:threshold_pct=1:threshold_pct=2",
            "ramp:base=reno:base=tahoe",
            "ramp:after_exit=none:after_exit=floor",
            "ramp:start=double:start=resume",
            "ramp:resume_pct=50:resume=50mbit/500ms",
            "cubic:host.tcp_sack=off:host.tcp_sack=on",
        ] {
            assert!(says(twice).contains("given twice"), "{twice}");
        }
        assert!(says("search:base=vegas").contains("cubic|reno|bbr"));
        assert!(says("cubic:missed_bins_rtts=2").contains("host.KEY=VALUE only"));
        assert!(says("ramp:after_exit=floors").contains("plateau,floor"));
        assert!(says("ramp:base=reno:after_exit=floor+plateau").contains("base reno has no option plateau"));
        assert!(says("ramp:base=tahoe:after_exit=floor").contains("base tahoe has no option floor"));
        assert!(says("ramp:start=faster").contains("double"));
        assert!(says("ramp:base=bbr:start=resume").contains("base bbr has no option resume"));
        let host = HostSpec::new([4_096, 5_000, 6_000], [4_096, 5_000, 6_000]);
        let error = Written::parse("cubic:host.sack=off").unwrap().host(&host).unwrap_err().to_string();
        assert!(error.contains("\"sack\"") && error.contains("tcp_sack"), "{error}");
    }
}
