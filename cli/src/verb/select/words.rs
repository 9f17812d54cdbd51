//! Rules as they are written, on the command line and in files alike.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::Args;
use onramp_loader::algorithm::{Algorithm, did_you_mean};
use onramp_loader::select::{self, Cgroup, Choice, KnownPath, Profile, Rule, Side, Target};
use onramp_loader::telemetry::Level;
use onramp_loader::{AttachOptions, Base, ParameterSet};
use onramp_net::Prefix;

use crate::basis;
use crate::failure::Usage;
use crate::profile;
use crate::settings::{self, AlgorithmName};
use crate::units;

/// The largest initial window, segments: three hundred segments are 430 kB at once, beyond any receiver's first window.
const WINDOW_MAX: u32 = 300;
/// What a line of a file may have.
const OPTIONS: [&str; 9] = [
    "--to",
    "--cgroup",
    "--port",
    "--use",
    "--profile",
    "--initial-window",
    "--resume",
    "--accept",
    "--connect",
];

/// The connections that a rule is for.
#[derive(Args, Clone, Debug, Default)]
pub(in crate::verb) struct TargetWords {
    /// Connections whose peer has an address in this prefix; an address alone is a prefix of all its bits
    #[arg(long, value_name = "PREFIX")]
    pub to: Option<String>,
    /// Connections whose socket was made in this cgroup, or in one below it: /system.slice, its directory, or id:N, its number
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Connections to this port of the listening side: this host's where it accepts, the peer's where it connects
    #[arg(long, value_name = "N")]
    pub port: Option<String>,
    /// Only connections that this host accepts
    #[arg(long, conflicts_with = "connect")]
    pub accept: bool,
    /// Only connections that this host makes
    #[arg(long)]
    pub connect: bool,
}

#[derive(Args, Clone, Debug, Default)]
pub(in crate::verb) struct RuleWords {
    #[command(flatten)]
    pub target: TargetWords,
    /// What they get: an algorithm that is attached, or a control of the kernel such as cubic, reno or bbr
    #[arg(long = "use", value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true, required = true)]
    pub choice: Option<String>,
    /// The parameters of this profile, of an algorithm: one that it has already, else a path, or a name in
    /// /etc/onramp/profiles or built in; `onramp tune ALG --profile` changes them [default: those of the attachment]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Initial window, 1 to 300 segments [default: the kernel's, 10 by RFC 6928]
    #[arg(long, value_name = "SEGMENTS")]
    pub initial_window: Option<String>,
    /// Start from what is known of the path (Careful Resume, RFC 9959): the rate that a connection can have, and the RTT of the
    /// empty path; for algorithms of onramp's
    #[arg(long, value_name = "RATE,RTT")]
    pub resume: Option<String>,
}

/// What rules use; each is looked up once.
#[derive(Default)]
pub(in crate::verb) struct Controls {
    /// The kernel's names of controls.
    names: BTreeMap<String, String>,
    /// Profiles as rules name them, by control and as they are given.
    profiles: BTreeMap<(String, String), Option<String>>,
    /// Algorithms that will be attached.
    attaching: BTreeMap<&'static str, AttachOptions>,
    /// What is to be made if an algorithm has it not.
    pub made: Vec<Profile>,
}

impl Controls {
    /// With algorithms that will be attached, whose profile a rule need not name. What they have now does not count then.
    pub fn with<'a>(attaching: impl IntoIterator<Item = &'a AttachOptions>) -> Self {
        let mut controls = Self::default();
        for options in attaching {
            let algorithm = options.parameters.algorithm();
            for name in [algorithm.name().to_owned(), algorithm.congestion_control()] {
                controls.names.insert(name, algorithm.congestion_control());
            }
            controls.attaching.insert(algorithm.name(), options.clone());
        }
        controls
    }

    fn control(&mut self, name: &str) -> Result<String, onramp_loader::Error> {
        if let Some(control) = self.names.get(name) {
            return Ok(control.clone());
        }
        let control = select::control(name)?;
        self.names.insert(name.into(), control.clone());
        Ok(control)
    }

    /// Fails unless connections of a control of onramp's can start from what is known of their path.
    fn require_start(&self, control: &str) -> Result<(), onramp_loader::Error> {
        let algorithm = onramp_loader::find(control)?;
        match self.attaching.get(algorithm.name()) {
            Some(options) => {
                let base = basis::to_be(options);
                let start = options.start_over(base.unwrap_or(Base::Cubic));
                select::check_start(algorithm, base, start)
            }
            None => select::require_start(algorithm),
        }
    }

    /// The name of a profile for a control; `None`: that of the attachment.
    fn profile(&mut self, control: &str, given: &str) -> anyhow::Result<Option<String>> {
        let key = (control.to_owned(), given.to_owned());
        if let Some(name) = self.profiles.get(&key) {
            return Ok(name.clone());
        }
        let algorithm = onramp_loader::find(control).map_err(|_| onramp_loader::Error::NoProfiles {
            control: control.into(),
            profile: given.into(),
        })?;
        let name = match self.attaching.get(algorithm.name()) {
            Some(options) if options.profile == given => None,
            Some(_) => Some(self.make(made(algorithm, given)?)?),
            None => {
                let sets = onramp_loader::parameter_sets(algorithm)?;
                if sets.iter().any(|set| set.profile == given) {
                    Some(given.to_owned())
                } else {
                    let made = made(algorithm, given)?;
                    require_same(&made, &sets)?;
                    Some(self.make(made)?)
                }
            }
        };
        self.profiles.insert(key, name.clone());
        Ok(name)
    }

    /// Has a profile made, and returns its name, which no other one may have.
    fn make(&mut self, profile: Profile) -> anyhow::Result<String> {
        let name = profile.name.clone();
        let algorithm = profile.parameters.algorithm();
        let has = |one: &&Profile| one.name == name && one.parameters.algorithm() == algorithm;
        match self.made.iter().find(has) {
            None => self.made.push(profile),
            // Two ways of giving it may lead to one.
            Some(same) if *same == profile => {}
            Some(_) => {
                let algorithm = algorithm.name();
                return Err(Usage::error(format!(
                    "two files have a profile {name} for {algorithm}, with other values: give one of them another name"
                )));
            }
        }
        Ok(name)
    }
}

/// Fails where an algorithm has a profile of this name with other values: it would not become what its file says.
fn require_same(profile: &Profile, sets: &[ParameterSet]) -> anyhow::Result<()> {
    let Some(set) = sets.iter().find(|set| set.profile == profile.name) else { return Ok(()) };
    if set.has(&profile.parameters, profile.telemetry_max) {
        return Ok(());
    }
    let (algorithm, name) = (profile.parameters.algorithm().name(), &profile.name);
    Err(Usage::error(format!(
        "{algorithm} has a profile {name} already, with other values: give `--profile {name}` to take it as it is (`onramp tune {algorithm} --profile {name}` changes it), or give the file another name"
    )))
}

/// A profile's parameters of an algorithm.
pub(super) fn made(algorithm: Algorithm, given: &str) -> anyhow::Result<Profile> {
    let profile = profile::load(given)?;
    let mut parameters = algorithm.parameters();
    profile::apply(&profile, &mut parameters)?;
    let telemetry_max = settings::telemetry_max(&profile).unwrap_or(Level::Ack);
    Ok(Profile { name: profile.name, parameters, telemetry_max })
}

impl TargetWords {
    /// # Errors
    /// What is wrong with a value, or if there is none of a prefix, a cgroup and a port.
    pub fn target(&self) -> anyhow::Result<Target> {
        if self.to.is_none() && self.cgroup.is_none() && self.port.is_none() {
            return Err(Usage::error("a rule has at least one of --to PREFIX, --cgroup PATH and --port N"));
        }
        let side = match (self.accept, self.connect) {
            (false, false) => Side::Both,
            (true, false) => Side::Accept,
            (false, true) => Side::Connect,
            (true, true) => {
                return Err(Usage::error(
                    "--accept and --connect are two rules: leave both out for one of both",
                ));
            }
        };
        let to = self.to.as_deref().map(exact).transpose()?;
        let port = self.port.as_deref().map(port).transpose()?;
        let cgroup = self.cgroup.as_deref().map(Cgroup::find).transpose()?;
        Ok(Target { to, port, cgroup, side })
    }
}

impl RuleWords {
    /// # Errors
    /// What is wrong with a value, and what [`onramp_loader::select::control`] fails with.
    pub fn rule(&self, controls: &mut Controls) -> anyhow::Result<Rule> {
        self.target.cgroup.as_deref().map(Cgroup::find_living).transpose()?;
        let target = self.target.target()?;
        let name = self.choice.as_deref().ok_or_else(|| Usage::error("a rule has --use ALG"))?;
        let initial_window = self.initial_window.as_deref().map(window).transpose()?;
        let control = controls.control(name)?;
        let profile = self.profile.as_deref().map(|given| controls.profile(&control, given));
        let profile = profile.transpose()?.flatten();
        let resume = self.resume.as_deref().map(|given| known_path(&control, given)).transpose()?;
        if resume.is_some() {
            controls.require_start(&control)?;
        }
        Ok(Rule { target, choice: Choice { control, profile, initial_window, resume } })
    }

    /// A line of a file: the options of `onramp select add`. `None`: nothing but a comment.
    fn of_line(line: &str) -> anyhow::Result<Option<Self>> {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace().peekable();
        if words.peek().is_none() {
            return Ok(None);
        }
        let mut rule = Self::default();
        while let Some(word) = words.next() {
            let place = match word {
                "--to" => &mut rule.target.to,
                "--cgroup" => &mut rule.target.cgroup,
                "--port" => &mut rule.target.port,
                "--use" => &mut rule.choice,
                "--profile" => &mut rule.profile,
                "--initial-window" => &mut rule.initial_window,
                "--resume" => &mut rule.resume,
                "--accept" => {
                    rule.target.accept = true;
                    continue;
                }
                "--connect" => {
                    rule.target.connect = true;
                    continue;
                }
                _ => {
                    return Err(Usage::error(format!(
                        "{word:?} is not understood{}: a line has the options of `onramp select add`",
                        did_you_mean(word, OPTIONS)
                    )));
                }
            };
            let value = words.next().ok_or_else(|| Usage::error(format!("{word} needs a value")))?;
            if place.replace(value.to_owned()).is_some() {
                return Err(Usage::error(format!("{word} is there twice")));
            }
        }
        Ok(Some(rule))
    }
}

/// The rules of a file, of which no two may be for the same connections.
///
/// # Errors
/// The first line that is wrong, with its number.
pub(super) fn rules(text: &str, file: &str, controls: &mut Controls) -> anyhow::Result<Vec<Rule>> {
    let mut lines: BTreeMap<Target, usize> = BTreeMap::new();
    let mut rules = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let parsed = RuleWords::of_line(line).and_then(|words| match words {
            Some(words) => words.rule(controls).map(Some),
            None => Ok(None),
        });
        let Some(rule) = parsed.with_context(|| format!("{file} line {number}"))? else { continue };
        if let Some(first) = lines.insert(rule.target.clone(), number) {
            let target = &rule.target;
            return Err(Usage::error(format!(
                "{file} line {number}: {target} has a rule in line {first} already"
            )));
        }
        rules.push(rule);
    }
    if rules.is_empty() {
        return Err(Usage::error(format!("{file} has no rules: `onramp select del --all` removes all")));
    }
    Ok(rules)
}

fn exact(text: &str) -> anyhow::Result<Prefix> {
    let prefix: Prefix = text.parse().map_err(|why: String| Usage::error(why))?;
    if prefix != prefix.network() {
        return Err(Usage::error(format!(
            "{text:?} has bits set behind its length: write {}, or {} for this address alone",
            prefix.network(),
            prefix.address()
        )));
    }
    Ok(prefix)
}

fn port(text: &str) -> anyhow::Result<u16> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| Usage::error(format!("{text:?} is not a port: write a number from 1 to 65535")))
}

fn window(text: &str) -> anyhow::Result<u32> {
    let window = text.parse().ok().filter(|window| (1..=WINDOW_MAX).contains(window));
    window.ok_or_else(|| {
        Usage::error(format!(
            "{text:?} is not an initial window: write a number of segments, 1 to {WINDOW_MAX}"
        ))
    })
}

/// A path as `--resume` has it, for a control of onramp's.
fn known_path(control: &str, text: &str) -> anyhow::Result<KnownPath> {
    if onramp_loader::find(control).is_err() {
        return Err(Usage::error(format!(
            "--resume {text:?} is for algorithms of onramp's, and {control} is a control of the kernel"
        )));
    }
    let refuse = || {
        Usage::error(format!(
            "{text:?} is not a path: write its rate (64kbit to 1000gbit) and its RTT (100us to 10s), such as 50mbit,600ms"
        ))
    };
    let (rate, rtt) = text.split_once(',').ok_or_else(refuse)?;
    let (bits, rtt) = (units::rate(rate).map_err(|_| refuse())?, units::duration(rtt).map_err(|_| refuse())?);
    let kbps = u32::try_from(bits / 1_000).ok().filter(|kbps| KnownPath::KBPS.contains(kbps));
    let rtt_us = u32::try_from(rtt.as_micros()).ok().filter(|us| KnownPath::RTTS_US.contains(us));
    match (kbps, rtt_us) {
        (Some(kbps), Some(rtt_us)) => Ok(KnownPath { kbps, rtt_us }),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::sentence;

    fn rules(text: &str, file: &str) -> anyhow::Result<Vec<Rule>> {
        super::rules(text, file, &mut Controls::default())
    }

    #[test]
    fn a_line_is_what_add_is_given() {
        let text = "# rules of the edge\n\n--to 192.0.2.0/24 --use reno\n  --to 2001:db8::/32 --accept --use reno --initial-window 20 # here\n--port 443 --connect --use reno\n--to ::ffff:10.0.0.0/104 --use reno\n--to 198.51.100.7 --use reno\n--accept --port 443 --to 203.0.113.0/24 --use reno";
        let read = rules(text, "f").unwrap();
        let written: Vec<_> = read.iter().map(ToString::to_string).collect();
        assert_eq!(
            written,
            [
                "--to 192.0.2.0/24 --use reno",
                "--to 2001:db8::/32 --accept --use reno --initial-window 20",
                "--port 443 --connect --use reno",
                "--to 10.0.0.0/8 --use reno",
                "--to 198.51.100.7/32 --use reno",
                "--to 203.0.113.0/24 --port 443 --accept --use reno"
            ]
        );
        assert_eq!(rules(&written.join("\n"), "f").unwrap(), read);
    }

    #[test]
    fn lines_changed_anywhere_are_rules_or_refused_with_their_line() {
        let valid = [
            "--to 192.0.2.0/24 --use reno\n--to 2001:db8::/32 --accept --use cubic --initial-window 20 # here\n",
            "# rules\n\n--port 443 --to 192.0.2.0/24 --connect --use reno\n--cgroup /system.slice --use reno\n--port 22 --use reno\n",
        ];
        let accepted = std::cell::Cell::new(0);
        onramp_mutation::check(1, 4_000, onramp_mutation::text(&valid), |text| {
            match rules(&text, "f") {
                Ok(read) => {
                    accepted.set(accepted.get() + 1);
                    let written: Vec<_> = read.iter().map(ToString::to_string).collect();
                    assert_eq!(rules(&written.join("\n"), "f").unwrap(), read, "{text:?}");
                }
                Err(error) => {
                    let said = sentence(&error);
                    assert!(said.contains("f line ") || said.contains("f has no rules"), "{text:?}: {said}");
                }
            }
            Ok(())
        });
        assert!(accepted.get() > 200, "{}", accepted.get());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (line, said) in [
            (
                "--to 10.0.0.1/8 --use reno",
                "f line 2: \"10.0.0.1/8\" has bits set behind its length: write 10.0.0.0/8, or 10.0.0.1 for",
            ),
            ("--to 10.0.0.0/33 --use reno", "not one of 0 to 32"),
            ("--to example.org --use reno", "not an address or prefix"),
            ("--port 0 --use reno", "write a number from 1 to 65535"),
            ("--port 65536 --use reno", "write a number from 1 to 65535"),
            ("--port 80 --use nonsense", "there is no congestion control \"nonsense\""),
            ("--port 80", "a rule has --use ALG"),
            ("--use reno", "at least one of --to PREFIX, --cgroup PATH and --port N"),
            ("--accept --use reno", "at least one of --to PREFIX, --cgroup PATH and --port N"),
            ("--port 80 --accept --connect --use reno", "are two rules"),
            ("--port 80 --use reno --profile geo", "reno is a control of the kernel, which has no profiles"),
            ("--port 80 --use", "--use needs a value"),
            ("--port 80 --port 81 --use reno", "--port is there twice"),
            ("10.0.0.0/8 reno", "\"10.0.0.0/8\" is not understood"),
            ("--port 80 --use reno --initial-window 0", "1 to 300"),
            ("--port 80 --use reno --initial-window 301", "1 to 300"),
            ("--port 80 --use reno --resume 50mbit,600ms", "a control of the kernel"),
            ("--port 443 --use reno", "f line 2: --port 443 has a rule in line 1 already"),
            ("--to 10.0.0.0/8 --port 0 --use reno", "write a number from 1 to 65535"),
        ] {
            let error = sentence(&rules(&format!("--port 443 --use reno\n{line}\n"), "f").unwrap_err());
            assert!(error.contains(said) && error.contains("f line 2"), "{line}: {error}");
        }
        assert!(sentence(&rules("# none\n", "f").unwrap_err()).contains("f has no rules"));
    }
}
