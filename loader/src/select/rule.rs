//! Rules, and the keys by which the kernel finds them.

use std::fmt;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aya::maps::lpm_trie::Key;
use onramp_net::Prefix;

use super::cgroup::Cgroup;
use crate::abi::{SELECT_HEAD_BITS, SelectKey, SelectRule, padded, select_side, select_what, text};
use crate::profiles::Names;

/// The most rules that there may be at once.
pub use crate::abi::SELECT_RULES_MAX as RULES_MAX;

/// Bytes of a key before what a trie looks at.
const LENGTH: usize = offset_of!(SelectKey, what);
/// What a rule looks at, its side and the value, in what follows.
const WHAT: usize = offset_of!(SelectKey, what) - LENGTH;
const SIDE: usize = offset_of!(SelectKey, side) - LENGTH;
const VALUE: usize = offset_of!(SelectKey, value) - LENGTH;

/// What a rule looks at, in the order in which rules decide: the longest prefix first, then ports, then cgroups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The peer's address.
    To(Prefix),
    /// The port of the side that listens: this host's where it accepts, the peer's where it connects.
    Port(u16),
    /// The cgroup of the socket, or one above it.
    Cgroup(Cgroup),
}

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

/// The connections that a rule is for. There is one rule for a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// What it looks at.
    pub what: What,
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
            Self::Accept => " --accept",
            Self::Connect => " --connect",
        }
    }
}

impl Target {
    pub(crate) fn key(&self) -> Key<KeyValue> {
        let mut bytes = KeyValue::default();
        let (what, value, bits): (u32, &[u8], u32) = match &self.what {
            What::To(prefix) => match prefix.address() {
                IpAddr::V4(address) => (select_what::TO_IPV4, &address.octets(), prefix.length()),
                IpAddr::V6(address) => (select_what::TO_IPV6, &address.octets(), prefix.length()),
            },
            What::Port(port) => (select_what::PORT, &port.to_be_bytes(), 16),
            What::Cgroup(cgroup) => (select_what::CGROUP, &cgroup.id.to_ne_bytes(), 64),
        };
        bytes[WHAT] = what as u8;
        bytes[SIDE] = self.side as u8;
        bytes[VALUE..][..value.len()].copy_from_slice(value);
        Key::new(SELECT_HEAD_BITS + bits, bytes)
    }

    /// The target whose key is the first `bits` of this one's; `None`: there is none.
    pub(crate) fn shortened(&self, bits: u32) -> Option<Self> {
        let length = bits.checked_sub(SELECT_HEAD_BITS)?;
        let what = match &self.what {
            What::To(prefix) => What::To(Prefix::new(prefix.address(), length)?.network()),
            what => what.clone(),
        };
        Some(Self { what, side: self.side })
    }

    /// `None`: no key of this build.
    pub(crate) fn of(key: &Key<KeyValue>) -> Option<Self> {
        let (bytes, bits) = (key.data(), key.prefix_len().checked_sub(SELECT_HEAD_BITS)?);
        let value: [u8; 16] = bytes[VALUE..].try_into().ok()?;
        let [a, b, c, d, e, f, g, h, ..] = value;
        let what = match u32::from(bytes[WHAT]) {
            select_what::TO_IPV4 => What::To(Prefix::new(Ipv4Addr::new(a, b, c, d).into(), bits)?),
            select_what::TO_IPV6 => What::To(Prefix::new(Ipv6Addr::from(value).into(), bits)?),
            select_what::PORT => What::Port(u16::from_be_bytes([a, b])),
            select_what::CGROUP => {
                What::Cgroup(Cgroup { id: u64::from_ne_bytes([a, b, c, d, e, f, g, h]), path: None })
            }
            _ => return None,
        };
        let side = Side::ALL.into_iter().find(|side| *side as u32 == u32::from(bytes[SIDE]))?;
        Some(Self { what, side })
    }
}

impl Choice {
    pub(crate) fn layout(&self, key: &Key<KeyValue>, names: &Names) -> SelectRule {
        let mut control = [0; 15];
        control.copy_from_slice(&padded::<16>(&self.control)[..15]);
        SelectRule {
            control,
            profile: names.number(self),
            initial_window: self.initial_window.unwrap_or(0),
            bits: key.prefix_len(),
        }
    }

    pub(crate) fn of(layout: &SelectRule, names: &Names) -> Self {
        Self {
            control: text(&layout.control),
            profile: names.profile(layout.profile),
            initial_window: Some(layout.initial_window).filter(|window| *window != 0),
        }
    }

    /// The control as it is named on the command line: an algorithm by its own name.
    pub fn name(&self) -> &str {
        onramp_algorithm::find_control(&self.control)
            .map_or(self.control.as_str(), |algorithm| algorithm.name())
    }
}

impl Rule {
    /// Whether its cgroup is gone, so that it is for no connection any more.
    pub fn is_orphan(&self) -> bool {
        matches!(&self.target.what, What::Cgroup(cgroup) if cgroup.path.is_none())
    }
}

/// As options of `onramp select`.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::To(prefix) => write!(formatter, "--to {prefix}")?,
            What::Port(port) => write!(formatter, "--port {port}")?,
            What::Cgroup(cgroup) => write!(formatter, "--cgroup {cgroup}")?,
        }
        formatter.write_str(self.side.option())
    }
}

/// As options of `onramp select add`.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} --use {}", self.target, self.choice.name())?;
        if let Some(profile) = &self.choice.profile {
            write!(formatter, " --profile {profile}")?;
        }
        match self.choice.initial_window {
            Some(window) => write!(formatter, " --initial-window {window}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> Vec<Target> {
        let prefix = |text: &str| What::To(text.parse().unwrap());
        let whats = [
            prefix("192.0.2.0/24"),
            prefix("0.0.0.0/0"),
            prefix("2001:db8::/32"),
            prefix("::/0"),
            What::Port(443),
            What::Cgroup(Cgroup { id: 0x1_0000_0042, path: None }),
        ];
        whats.into_iter().flat_map(|what| Side::ALL.map(|side| Target { what: what.clone(), side })).collect()
    }

    #[test]
    fn a_key_tells_its_target() {
        let mut keys = Vec::new();
        for target in targets() {
            let key = target.key();
            assert_eq!(Target::of(&key).as_ref(), Some(&target));
            keys.push((key.prefix_len(), key.data()));
        }
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "two targets have one key");
        assert!(Target::of(&Key::new(40, [9; 20])).is_none());
        assert!(Target::of(&Key::new(8, [1; 20])).is_none());
    }

    #[test]
    fn a_shorter_key_is_that_of_a_wider_prefix() {
        let target = |prefix: &str| Target { what: What::To(prefix.parse().unwrap()), side: Side::Accept };
        for (narrow, wide) in
            [("192.0.2.77", "192.0.0.0/12"), ("2001:db8::77", "::/0"), ("10.0.0.0/8", "10.0.0.0/8")]
        {
            let bits = target(wide).key().prefix_len();
            assert_eq!(target(narrow).shortened(bits), Some(target(wide)));
        }
        let port = Target { what: What::Port(443), side: Side::Both };
        assert_eq!(port.shortened(port.key().prefix_len()), Some(port));
    }

    #[test]
    fn a_rule_is_written_as_it_is_given() {
        let target = Target { what: What::To("10.0.0.0/8".parse().unwrap()), side: Side::Accept };
        let choice = |profile: Option<&str>| Choice {
            control: "onramp_search".into(),
            profile: profile.map(str::to_owned),
            initial_window: Some(20),
        };
        let key = target.key();
        let none = Names::default();
        assert_eq!(Choice::of(&choice(None).layout(&key, &none), &none), choice(None));
        let rule = |profile| Rule { target: target.clone(), choice: choice(profile) }.to_string();
        assert_eq!(rule(None), "--to 10.0.0.0/8 --accept --use search --initial-window 20");
        assert_eq!(
            rule(Some("geo")),
            "--to 10.0.0.0/8 --accept --use search --profile geo --initial-window 20"
        );
    }
}
