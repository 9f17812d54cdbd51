// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Network settings of the lab's hosts, as profiles and arms write them.

use onramp_algorithm::did_you_mean;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::link::{LinkSpec, RangeError, within};

/// Bytes of the headers of IP and TCP, with the timestamps that Linux always sends (RFC 7323).
pub const HEADER_BYTES: u32 = 52;
/// Largest IP packet of the lab's devices, bytes.
pub const MTU_BYTES: u32 = 1_500;
/// The kernel's own initial window (RFC 6928), segments.
const INITIAL_WINDOW: u32 = 10;

/// Linux's own sizes of receive and send buffers.
const RMEM: [u64; 3] = [4_096, 131_072, 6_291_456];
const WMEM: [u64; 3] = [4_096, 16_384, 4_194_304];

/// Network settings of both hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// `net.ipv4.tcp_rmem`: smallest, initial and largest receive buffer in bytes, 4 096 to 2 147 483 647, not
    /// decreasing. The kernel offers about half of it as window at first.
    pub tcp_rmem: [u64; 3],
    /// `net.ipv4.tcp_wmem`: the same for the send buffer. It also holds the kernel's bookkeeping, so the largest
    /// window is about two thirds of it.
    pub tcp_wmem: [u64; 3],
    /// `net.ipv4.tcp_sack`: selective acknowledgments (RFC 2018).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub tcp_sack: bool,
    /// Three duplicate acknowledgments repair a loss (RFC 5681). Without this the retransmission timer alone does, and
    /// slow start begins anew each time, as in TCP Tahoe, whose repair was earlier but no other: fast retransmit, RACK,
    /// tail loss probes and F-RTO are out of reach.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub fast_retransmit: bool,
    /// `net.ipv4.tcp_moderate_rcvbuf`: the receive buffer grows with the data rate, from its initial to its largest
    /// size. Without it the receive buffer stays at its initial size.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub tcp_moderate_rcvbuf: bool,
    /// Largest IP packet of both devices, bytes, 256 to 1 500.
    #[serde(default = "full_mtu", skip_serializing_if = "is_full_mtu")]
    pub mtu_bytes: u32,
    /// First window of the sender's connections, segments, 1 to 1 000 (`initcwnd` of the route); the kernel's own, 10
    /// (RFC 6928), if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window_segments: Option<u32>,
    /// The receiver acknowledges every segment at once (`quickack` of the route) instead of every second.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quickack: bool,
    /// Both ends take part in explicit congestion notification (RFC 3168; `net.ipv4.tcp_ecn` = 1). A queue that marks is
    /// needed, see [`AqmSpec::CoDel`](crate::link::AqmSpec::CoDel). Not simulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tcp_ecn: bool,
    /// The sender's device has the queueing discipline `fq`, which paces its packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fq: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

fn full_mtu() -> u32 {
    MTU_BYTES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_full_mtu(value: &u32) -> bool {
    *value == full_mtu()
}

/// A setting of the hosts by name was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SettingError {
    /// There is no such setting.
    #[error("the hosts have no setting {key:?}{}; they have {}", did_you_mean(key, HostSpec::KEYS), HostSpec::KEYS.join(", "))]
    Unknown {
        /// The name as given.
        key: String,
    },
    /// The value cannot be read.
    #[error("host.{key}={value} is not allowed: give {allowed}")]
    Value {
        /// The setting.
        key: String,
        /// The value as given.
        value: String,
        /// What may be given.
        allowed: &'static str,
    },
    /// The value is out of range.
    #[error(transparent)]
    Range(#[from] RangeError),
}

impl HostSpec {
    /// Names that [`HostSpec::set`] knows.
    pub const KEYS: [&'static str; 10] = [
        "tcp_rmem",
        "tcp_wmem",
        "tcp_sack",
        "fast_retransmit",
        "tcp_moderate_rcvbuf",
        "mtu_bytes",
        "initial_window_segments",
        "quickack",
        "tcp_ecn",
        "fq",
    ];

    /// Buffers of these sizes, all else as the kernel has it.
    pub fn new(tcp_rmem: [u64; 3], tcp_wmem: [u64; 3]) -> Self {
        Self {
            tcp_rmem,
            tcp_wmem,
            tcp_sack: true,
            fast_retransmit: true,
            tcp_moderate_rcvbuf: true,
            mtu_bytes: full_mtu(),
            initial_window_segments: None,
            quickack: false,
            tcp_ecn: false,
            fq: false,
        }
    }

    /// Buffers that do not limit a flow over this link: four times what path and queue hold, and Linux's own sizes at least.
    pub fn roomy(link: &LinkSpec) -> Self {
        let holds = link.bdp_bytes() + link.forward.queue_bytes.unwrap_or(0);
        let room =
            |[least, initial, most]: [u64; 3]| [least, initial, most.max(4 * holds).min(i32::MAX as u64)];
        Self::new(room(RMEM), room(WMEM))
    }

    /// Bytes of a full segment: what headers and timestamps leave of a packet.
    pub fn mss(&self) -> u32 {
        self.mtu_bytes - HEADER_BYTES
    }

    /// First window of the sender's connections, segments.
    pub fn initial_window(&self) -> u32 {
        self.initial_window_segments.unwrap_or(INITIAL_WINDOW)
    }

    /// Sets one value by its name: a number, `on` or `off`, or three numbers with slashes between them.
    ///
    /// # Errors
    /// [`SettingError`]; nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let mut changed = self.clone();
        let bad = |allowed| SettingError::Value { key: key.to_owned(), value: value.to_owned(), allowed };
        let triple = || {
            let numbers: Option<Vec<u64>> = value.split('/').map(|number| number.parse().ok()).collect();
            numbers
                .and_then(|numbers| <[u64; 3]>::try_from(numbers).ok())
                .ok_or_else(|| bad("three sizes in bytes, such as 4096/131072/6291456"))
        };
        let switch = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(bad("on|off")),
        };
        let number = || value.parse().map_err(|_| bad("a number"));
        match key {
            "tcp_rmem" => changed.tcp_rmem = triple()?,
            "tcp_wmem" => changed.tcp_wmem = triple()?,
            "tcp_sack" => changed.tcp_sack = switch()?,
            "fast_retransmit" => changed.fast_retransmit = switch()?,
            "tcp_moderate_rcvbuf" => changed.tcp_moderate_rcvbuf = switch()?,
            "mtu_bytes" => changed.mtu_bytes = number()?,
            "initial_window_segments" => changed.initial_window_segments = Some(number()?),
            "quickack" => changed.quickack = switch()?,
            "tcp_ecn" => changed.tcp_ecn = switch()?,
            "fq" => changed.fq = switch()?,
            _ => return Err(SettingError::Unknown { key: key.to_owned() }),
        }
        changed.validate("host")?;
        *self = changed;
        Ok(())
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self, key: &str) -> Result<(), RangeError> {
        for (name, values) in [("tcp_rmem", self.tcp_rmem), ("tcp_wmem", self.tcp_wmem)] {
            for (at, value) in values.into_iter().enumerate() {
                within(format!("{key}.{name}[{at}]"), value, 4_096..=i32::MAX as u64)?;
            }
            if !values.is_sorted() {
                let found = format!("{values:?}");
                let range = "expected no value below the one before";
                return Err(RangeError::new(format!("{key}.{name}"), found, range));
            }
        }
        within(format!("{key}.mtu_bytes"), self.mtu_bytes, 256..=full_mtu())?;
        self.initial_window_segments
            .map_or(Ok(()), |segments| within(format!("{key}.initial_window_segments"), segments, 1..=1_000))
    }

    /// What is written to each namespace, by sysctl name.
    pub fn sysctls(&self) -> Vec<(&'static str, String)> {
        let triple = |[low, initial, high]: [u64; 3]| format!("{low} {initial} {high}");
        let switch = |on: bool| u8::from(on).to_string();
        let mut sysctls = vec![
            ("net.ipv4.tcp_rmem", triple(self.tcp_rmem)),
            ("net.ipv4.tcp_wmem", triple(self.tcp_wmem)),
            ("net.ipv4.tcp_sack", switch(self.tcp_sack)),
            ("net.ipv4.tcp_moderate_rcvbuf", switch(self.tcp_moderate_rcvbuf)),
            // What an earlier connection learned must not seed the next one's threshold.
            ("net.ipv4.tcp_no_metrics_save", "1".into()),
            // Reno is in every kernel and may be chosen in every namespace. The congestion control under test comes
            // with the route: a name that is restricted to the initial namespace leaks a reference when it is
            // written here.
            ("net.ipv4.tcp_congestion_control", "reno".into()),
            // No router solicitations on the link.
            ("net.ipv6.conf.all.disable_ipv6", "1".into()),
            ("net.ipv6.conf.default.disable_ipv6", "1".into()),
        ];
        if self.tcp_ecn {
            sysctls.push(("net.ipv4.tcp_ecn", "1".into()));
        }
        if !self.fast_retransmit {
            // More duplicates than any window has.
            sysctls.push(("net.ipv4.tcp_max_reordering", "1000000".into()));
            sysctls.push(("net.ipv4.tcp_reordering", "1000000".into()));
            sysctls.extend(
                ["net.ipv4.tcp_recovery", "net.ipv4.tcp_early_retrans", "net.ipv4.tcp_frto"].map(off),
            );
        }
        sysctls
    }
}

fn off(name: &'static str) -> (&'static str, String) {
    (name, "0".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HostSpec {
        HostSpec::new([4_096, 131_072, 67_108_864], [4_096, 16_384, 67_108_864])
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = HostSpec { tcp_rmem: [1, 2, 3], ..spec() }.validate("host").unwrap_err().to_string();
        assert!(error.starts_with("host.tcp_rmem[0] = 1 is out of range"), "{error}");
        let error = HostSpec { tcp_wmem: [4_096, 8_192, 5_000], ..spec() }.validate("host").unwrap_err();
        assert_eq!(error.key, "host.tcp_wmem");
        assert!(HostSpec { mtu_bytes: 1_501, ..spec() }.validate("host").is_err());
        assert!(HostSpec { initial_window_segments: Some(0), ..spec() }.validate("host").is_err());
    }

    #[test]
    fn settings_by_name_are_all_known_and_change_nothing_when_refused() {
        for (key, value) in HostSpec::KEYS.iter().zip([
            "4096/5000/6000",
            "4096/5000/7000",
            "off",
            "off",
            "off",
            "512",
            "3",
            "on",
            "on",
            "on",
        ]) {
            let mut changed = spec();
            changed.set(key, value).unwrap();
            assert_ne!(changed, spec(), "{key}");
            let mut same = spec();
            let message = same.set(key, "many").unwrap_err().to_string();
            assert!(message.starts_with(&format!("host.{key}=many is not allowed: give ")), "{message}");
            assert_eq!(same, spec());
        }
        let mut same = spec();
        assert!(same.set("tcp_rmem", "9000/5000/6000").unwrap_err().to_string().contains("no value below"));
        assert!(same.set("mtu", "512").unwrap_err().to_string().contains("tcp_rmem"));
        assert_eq!(same, spec());
    }

    #[test]
    fn switches_become_sysctls() {
        let off = HostSpec { tcp_sack: false, tcp_moderate_rcvbuf: false, ..spec() }.sysctls();
        assert!(off.contains(&("net.ipv4.tcp_sack", "0".into())));
        assert!(off.contains(&("net.ipv4.tcp_moderate_rcvbuf", "0".into())));
        assert!(spec().sysctls().contains(&("net.ipv4.tcp_sack", "1".into())));
        let late = HostSpec { fast_retransmit: false, ..spec() }.sysctls();
        assert!(late.contains(&("net.ipv4.tcp_reordering", "1000000".into())));
        let ecn = HostSpec { tcp_ecn: true, ..spec() }.sysctls();
        assert!(ecn.contains(&("net.ipv4.tcp_ecn", "1".into())));
        let untouched = ["net.ipv4.tcp_reordering", "net.ipv4.tcp_ecn"];
        assert!(spec().sysctls().iter().all(|(name, _)| !untouched.contains(name)));
    }
}
