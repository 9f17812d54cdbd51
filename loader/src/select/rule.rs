//! Rules, and the keys by which the kernel finds them.

use std::cmp::Ordering;
use std::fmt;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use aya::maps::lpm_trie::Key;
use onramp_net::Prefix;

use super::cgroup::{self, Cgroup};
use crate::object::abi::{
    SELECT_BARE_BITS, SELECT_HEAD_BITS, SELECT_SHAPES_BITS, SelectKey, SelectRule, padded, select_family,
    select_named, select_side, text,
};
use crate::object::algorithms;
use crate::pins::profiles::Names;
use crate::system::error::{Error, quoted};

/// The most rules that there may be at once.
pub use crate::object::abi::SELECT_RULES_MAX as RULES_MAX;

/// Bytes of a key before what a trie looks at.
const LENGTH: usize = offset_of!(SelectKey, side);
/// Where its parts are, in what follows.
const SIDE: usize = offset_of!(SelectKey, side) - LENGTH;
const PORT: usize = offset_of!(SelectKey, port) - LENGTH;
const CGROUP: usize = offset_of!(SelectKey, cgroup) - LENGTH;
const FAMILY: usize = offset_of!(SelectKey, family) - LENGTH;
const ADDRESS: usize = offset_of!(SelectKey, address) - LENGTH;

/// The side of a connection that this host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Side {
    /// Of a rule: either.
    Both = select_side::BOTH,
    /// It listened.
    Accept = select_side::ACCEPT,
    /// It connected.
    Connect = select_side::CONNECT,
}

/// The connections that a rule is for: those that agree in everything that it names, which is a prefix, a port or a cgroup
/// at least. There is one rule for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Prefix of the peer's address.
    pub to: Option<Prefix>,
    /// The port of the listening side: this host's where it accepts, the peer's where it connects.
    pub port: Option<u16>,
    /// The cgroup of the socket, or one above it.
    pub cgroup: Option<Cgroup>,
    /// On which side.
    pub side: Side,
}

/// What connections get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// The kernel's name of a congestion control, at most 15 bytes.
    pub control: String,
    /// The profile whose parameters they get, of an algorithm; `None`: those of the attachment.
    pub profile: Option<String>,
    /// The initial window, segments (RFC 6928 has 10); `None`: the kernel's.
    pub initial_window: Option<u32>,
    /// The path that they start over from memory (RFC 9959), of an algorithm of onramp's; `None`: it is not known.
    pub resume: Option<KnownPath>,
}

/// What an operator knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownPath {
    /// The rate that a connection can have, kbit/s.
    pub kbps: u32,
    /// The RTT of the empty path, microseconds.
    pub rtt_us: u32,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// For which connections.
    pub target: Target,
    /// What they get.
    pub choice: Choice,
}

/// What follows `bits` in `struct select_key`.
pub(crate) type KeyValue = [u8; size_of::<SelectKey>() - LENGTH];

impl Side {
    const ALL: [Self; 3] = [Self::Both, Self::Accept, Self::Connect];

    /// Its name: `both`, `accept` or `connect`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Accept => "accept",
            Self::Connect => "connect",
        }
    }

    /// Its option on the command line; empty for both.
    fn option(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::Accept => "--accept",
            Self::Connect => "--connect",
        }
    }

    pub(super) fn new(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|side| *side as u32 == u32::from(number))
    }
}

/// In the order in which rules are listed: those of prefixes, those of ports, those of cgroups. What is named comes
/// before what is not.
impl Ord for Target {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |one: &Self| (one.to.is_none(), one.to, one.port.is_none(), one.port, one.cgroup.is_none());
        key(self).cmp(&key(other)).then(self.cgroup.cmp(&other.cgroup)).then(self.side.cmp(&other.side))
    }
}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Target {
    /// Its bit among the shapes of rules that a table has.
    pub(super) fn shape(&self) -> u32 {
        let port = self.port.map_or(0, |_| select_named::NAMES_PORT);
        let cgroup = self.cgroup.as_ref().map_or(0, |_| select_named::NAMES_CGROUP);
        1 << (self.side as u32 * select_named::NAMED + (port | cgroup))
    }

    /// How many bits of its key count: the more, the longer its prefix.
    pub(super) fn bits(&self) -> u32 {
        self.to.map_or(SELECT_BARE_BITS, |to| SELECT_HEAD_BITS + to.length())
    }

    pub(crate) fn key(&self) -> Key<KeyValue> {
        let mut bytes = KeyValue::default();
        bytes[SIDE] = self.side as u8;
        let mut put = |at: usize, value: &[u8]| bytes[at..][..value.len()].copy_from_slice(value);
        put(PORT, &self.port.unwrap_or(0).to_be_bytes());
        put(CGROUP, &self.cgroup.as_ref().map_or(0, |cgroup| cgroup.id).to_ne_bytes());
        match self.to.map(Prefix::address) {
            Some(IpAddr::V4(address)) => {
                put(FAMILY, &[select_family::IPV4 as u8]);
                put(ADDRESS, &address.octets());
            }
            Some(IpAddr::V6(address)) => {
                put(FAMILY, &[select_family::IPV6 as u8]);
                put(ADDRESS, &address.octets());
            }
            None => {}
        }
        Key::new(self.bits(), bytes)
    }

    /// The target whose key is the first `bits` of this one's; `None`: there is none.
    pub(crate) fn shortened(&self, bits: u32) -> Option<Self> {
        let to = match bits.checked_sub(SELECT_HEAD_BITS) {
            Some(length) => Some(Prefix::new(self.to?.address(), length)?.network()),
            None => None,
        };
        Some(Self { to, ..self.clone() })
    }

    /// `None`: no key of a rule of this build.
    pub(crate) fn new(key: &Key<KeyValue>) -> Option<Self> {
        let bytes = key.data();
        let value: [u8; 16] = bytes[ADDRESS..].try_into().ok()?;
        let [a, b, c, d, ..] = value;
        let family = u32::from(bytes[FAMILY]);
        let to = match key.prefix_len().checked_sub(SELECT_HEAD_BITS) {
            Some(length) if family == select_family::IPV4 => {
                Some(Prefix::new(Ipv4Addr::new(a, b, c, d).into(), length)?)
            }
            Some(length) if family == select_family::IPV6 => {
                Some(Prefix::new(Ipv6Addr::from(value).into(), length)?)
            }
            Some(_) => return None,
            None => None,
        };
        let port = u16::from_be_bytes(bytes[PORT..][..2].try_into().ok()?);
        let id = u64::from_ne_bytes(bytes[CGROUP..][..8].try_into().ok()?);
        let cgroup = (id != 0).then_some(Cgroup { id, path: None });
        Some(Self { to, port: (port != 0).then_some(port), cgroup, side: Side::new(bytes[SIDE])? })
    }
}

/// The entry of a table that says which shapes of rules there are.
pub(super) fn shapes_key() -> Key<KeyValue> {
    let mut bytes = KeyValue::default();
    bytes[SIDE] = select_side::SHAPES as u8;
    Key::new(SELECT_SHAPES_BITS, bytes)
}

/// What that entry says.
pub(super) fn shapes_layout(shapes: u32) -> SelectRule {
    SelectRule {
        control: [0; 15],
        profile: 0,
        initial_window: 0,
        resume_kbps: 0,
        resume_rtt_us: 0,
        bits: shapes,
    }
}

impl KnownPath {
    /// The rates that there can be, kbit/s.
    pub const KBPS: RangeInclusive<u32> = 64..=1_000_000_000;
    /// The RTTs that there can be, microseconds.
    pub const RTTS_US: RangeInclusive<u32> = 100..=10_000_000;

    fn of_layout(layout: &SelectRule) -> Option<Self> {
        let (kbps, rtt_us) = (layout.resume_kbps, layout.resume_rtt_us);
        (kbps != 0).then_some(Self { kbps, rtt_us })
    }
}

/// As `--resume` takes it.
impl fmt::Display for KnownPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kbps {
            whole if whole % 1_000_000 == 0 => write!(formatter, "{}gbit", whole / 1_000_000),
            whole if whole % 1_000 == 0 => write!(formatter, "{}mbit", whole / 1_000),
            kbps => write!(formatter, "{kbps}kbit"),
        }?;
        match self.rtt_us {
            whole if whole % 1_000 == 0 => write!(formatter, ",{}ms", whole / 1_000),
            rtt_us => write!(formatter, ",{rtt_us}us"),
        }
    }
}

impl Choice {
    /// The profile that it names, after its control.
    pub(crate) fn named(&self) -> Option<(&str, &str)> {
        Some((&self.control, self.profile.as_deref()?))
    }

    pub(crate) fn layout(&self, key: &Key<KeyValue>, names: &Names) -> SelectRule {
        let mut control = [0; 15];
        control.copy_from_slice(&padded::<16>(&self.control)[..15]);
        SelectRule {
            control,
            profile: self.named().map_or(0, |(control, profile)| names.number(control, profile)),
            initial_window: self.initial_window.unwrap_or(0),
            resume_kbps: self.resume.map_or(0, |path| path.kbps),
            resume_rtt_us: self.resume.map_or(0, |path| path.rtt_us),
            bits: key.prefix_len(),
        }
    }

    pub(crate) fn new(layout: &SelectRule, names: &Names) -> Self {
        Self {
            control: text(&layout.control),
            profile: names.profile(layout.profile),
            initial_window: Some(layout.initial_window).filter(|window| *window != 0),
            resume: KnownPath::of_layout(layout),
        }
    }

    /// The control as it is named on the command line: an algorithm by its own name.
    pub fn name(&self) -> &str {
        algorithms::find_control(&self.control).map_or(self.control.as_str(), |algorithm| algorithm.name())
    }
}

/// Finds the paths of the cgroups that rules name.
pub(super) fn name_cgroups(rules: &mut [Rule]) -> Result<(), Error> {
    cgroup::name_all(rules.iter_mut().filter_map(|rule| rule.target.cgroup.as_mut()))
}

impl Rule {
    /// Whether its cgroup is gone, so that it is for no connection any more.
    pub fn is_orphan(&self) -> bool {
        self.target.cgroup.as_ref().is_some_and(|cgroup| cgroup.path.is_none())
    }
}

/// As options of `onramp select`; `{:#}`: as a shell takes them.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cgroup = |cgroup: &Cgroup| {
            if formatter.alternate() { format!("--cgroup {cgroup:#}") } else { format!("--cgroup {cgroup}") }
        };
        let words = [
            self.to.map(|prefix| format!("--to {prefix}")),
            self.port.map(|port| format!("--port {port}")),
            self.cgroup.as_ref().map(cgroup),
            Some(self.side.option().to_owned()).filter(|option| !option.is_empty()),
        ];
        formatter.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

/// As options of `onramp select add`; `{:#}`: as a shell takes them.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.target, formatter)?;
        write!(formatter, " --use {}", self.choice.name())?;
        match &self.choice.profile {
            Some(profile) if formatter.alternate() => write!(formatter, " --profile {}", quoted(profile))?,
            Some(profile) => write!(formatter, " --profile {profile}")?,
            None => {}
        }
        if let Some(window) = self.choice.initial_window {
            write!(formatter, " --initial-window {window}")?;
        }
        match self.choice.resume {
            Some(path) => write!(formatter, " --resume {path}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Target = Target { to: None, port: None, cgroup: None, side: Side::Both };

    fn targets() -> Vec<Target> {
        let prefixes = [None, Some("192.0.2.0/24"), Some("0.0.0.0/0"), Some("2001:db8::/32"), Some("::/0")];
        let mut targets = Vec::new();
        for to in prefixes.map(|text| text.map(|text| text.parse().unwrap())) {
            for port in [None, Some(443)] {
                for cgroup in [None, Some(Cgroup { id: 0x1_0000_0042, path: None })] {
                    targets.extend(Side::ALL.map(|side| Target { to, port, cgroup: cgroup.clone(), side }));
                }
            }
        }
        targets
    }

    #[test]
    fn as_a_shell_takes_it_a_rule_has_its_cgroup_quoted() {
        let rule = |path: &str| Rule {
            target: Target { cgroup: Some(Cgroup { id: 7, path: Some(path.into()) }), ..NOTHING },
            choice: Choice {
                control: "onramp_ramp".into(),
                profile: None,
                initial_window: None,
                resume: None,
            },
        };
        for (path, word) in [
            ("/system.slice", "/system.slice"),
            (r"/system-openvpn\x2dclient.slice", r"'/system-openvpn\x2dclient.slice'"),
            ("/x;reboot", "'/x;reboot'"),
            ("/a b", "'/a b'"),
            ("/it's", r"'/it'\''s'"),
        ] {
            assert_eq!(format!("{:#}", rule(path)), format!("--cgroup {word} --use ramp"));
            // As a listing and a file of rules have it.
            assert_eq!(rule(path).to_string(), format!("--cgroup {path} --use ramp"));
        }
    }

    #[test]
    fn a_key_shows_its_target() {
        let mut keys = vec![(shapes_key().prefix_len(), shapes_key().data())];
        for target in targets() {
            let key = target.key();
            assert_eq!(Target::new(&key).as_ref(), Some(&target));
            keys.push((key.prefix_len(), key.data()));
        }
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "two targets have one key");
        assert!(Target::new(&shapes_key()).is_none());
        assert!(Target::new(&Key::new(SELECT_HEAD_BITS + 8, [2; 28])).is_none());
    }

    #[test]
    fn a_shorter_key_is_that_of_a_wider_prefix_or_of_none() {
        for (narrow, wide) in
            [("192.0.2.77", "192.0.0.0/12"), ("2001:db8::77", "::/0"), ("10.0.0.0/8", "10.0.0.0/8")]
        {
            for port in [None, Some(443)] {
                let target = |prefix: &str| Target { to: Some(prefix.parse().unwrap()), port, ..NOTHING };
                let bits = target(wide).key().prefix_len();
                assert_eq!(target(narrow).shortened(bits), Some(target(wide)));
                let bare = Target { port, ..NOTHING };
                assert_eq!(target(narrow).shortened(bare.key().prefix_len()), Some(bare));
            }
        }
    }

    #[test]
    fn each_side_and_each_combination_of_what_is_named_has_a_shape_of_its_own() {
        let mut shapes: Vec<_> = targets().iter().map(Target::shape).collect();
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes.len(), 12);
        let cgroups: u32 =
            targets().iter().filter(|one| one.cgroup.is_some()).map(Target::shape).fold(0, |a, b| a | b);
        assert_eq!(cgroups, crate::object::abi::SELECT_CGROUP_SHAPES);
    }

    #[test]
    fn a_rule_is_written_as_it_is_given() {
        let cgroup = Some(Cgroup { id: 7, path: Some("/system.slice".into()) });
        let to = Some("10.0.0.0/8".parse().unwrap());
        let target = Target { to, port: Some(443), cgroup, side: Side::Accept };
        let choice = |profile: Option<&str>| Choice {
            control: "onramp_search".into(),
            profile: profile.map(str::to_owned),
            initial_window: Some(20),
            resume: Some(KnownPath { kbps: 50_000, rtt_us: 600_000 }),
        };
        let key = target.key();
        let none = Names::default();
        assert_eq!(Choice::new(&choice(None).layout(&key, &none), &none), choice(None));
        let rule = |profile| Rule { target: target.clone(), choice: choice(profile) }.to_string();
        let written = "--to 10.0.0.0/8 --port 443 --cgroup /system.slice --accept --use search";
        assert_eq!(rule(None), format!("{written} --initial-window 20 --resume 50mbit,600ms"));
        assert_eq!(
            rule(Some("geo")),
            format!("{written} --profile geo --initial-window 20 --resume 50mbit,600ms")
        );
        let bare = Target { port: Some(22), ..NOTHING };
        assert_eq!(bare.to_string(), "--port 22");
    }
}
