// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether the emulator kept up, and so whether a run may count.
//!
//! A packet is late when it is handed over after it was due. Two rules, either of which makes a run invalid:
//!
//! * **More than 0.1 % of packets later than 1 ms.** 1 ms is the resolution at which the lab promises a base
//!   round-trip time; 0.1 % is far below the share of packets (one round's worth) that a slow-start algorithm needs
//!   to change its mind.
//! * **Any packet later than 5 % of the base round-trip time, but no less than 2 ms and no more than 10 ms.** A
//!   single stall early in slow start, when rounds are short, could pass for a rise of the delay. HyStart and HyStart++
//!   (RFC 9406) react to a rise of an eighth of the round-trip time, 4 ms at least and 16 ms at most; 5 % of it is about
//!   what bin-based detection notices; 2 ms is what an ordinary kernel without preemption can promise.
//!
//! Packets the kernel lost outside the models (TUN queue overflow, failed writes) make a run invalid as well: no loss
//! without a cause.

use serde::{Deserialize, Serialize};

use crate::link::Nanos;

/// Lateness that counts as late.
pub const LATE_NS: Nanos = 1_000_000;
/// Share of late packets above which a run is invalid.
pub const LATE_SHARE: f64 = 0.001;

const BUCKET_NS: Nanos = 10_000;
const BUCKETS: usize = 2_000;

/// How well the emulator kept its times, both directions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Packets handed over.
    pub packets: u64,
    /// Largest lateness, microseconds.
    pub max_late_us: f64,
    /// 99th percentile of lateness, microseconds, rounded up to 10; 20 000 stands for more.
    pub p99_late_us: f64,
    /// Packets more than 1 ms late.
    pub late_packets: u64,
    /// Longest time in which the emulator, busy delivering, did not look for new packets, microseconds: the most by
    /// which it may have taken a packet's arrival too late.
    pub max_read_gap_us: f64,
    /// Packets the kernel refused to take.
    pub write_failures: u64,
    /// Packets the kernel dropped before the emulator could read them.
    pub tun_drops: u64,
    /// The thread ran with real-time priority.
    pub real_time: bool,
    /// Processor time of the emulator's thread, seconds.
    pub cpu_seconds: f64,
    /// Time the emulator ran, seconds.
    pub wall_seconds: f64,
    /// Processor time that the hypervisor took from this host meanwhile, all processors together, seconds: the usual
    /// reason for lateness on virtual machines.
    pub stolen_seconds: f64,
}

impl Health {
    /// Why a run over a link of this base round-trip time must not count; `None` if it may.
    pub fn invalid(&self, base_rtt_us: u64) -> Option<String> {
        let limit_us = (base_rtt_us as f64 * 0.05).clamp(2_000.0, 10_000.0);
        let allowed = (self.packets as f64 * LATE_SHARE) as u64;
        let lost = self.tun_drops + self.write_failures;
        if lost > 0 {
            return Some(format!("{lost} packets were lost outside the link model"));
        }
        let late = if self.late_packets > allowed {
            let (late, packets) = (self.late_packets, self.packets);
            format!("{late} of {packets} packets were more than 1 ms late, {allowed} are allowed")
        } else if self.max_late_us > limit_us {
            format!("a packet was {:.0} us late, {limit_us:.0} us are allowed", self.max_late_us)
        } else {
            return None;
        };
        Some(format!("{late} (the hypervisor took {:.2} s from this host)", self.stolen_seconds))
    }
}

/// Collects lateness as packets are handed over.
pub(super) struct Lateness {
    buckets: Vec<u64>,
    packets: u64,
    late: u64,
    max: Nanos,
}

impl Lateness {
    pub fn new() -> Self {
        Self { buckets: vec![0; BUCKETS + 1], packets: 0, late: 0, max: 0 }
    }

    pub fn add(&mut self, late: Nanos) {
        self.packets += 1;
        self.late += u64::from(late > LATE_NS);
        self.max = self.max.max(late);
        self.buckets[((late / BUCKET_NS) as usize).min(BUCKETS)] += 1;
    }

    pub fn health(&self) -> Health {
        let rank = self.packets - self.packets / 100;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= rank
        };
        let bucket = self.buckets.iter().position(reaches).unwrap_or(0) as u64;
        let p99 = if self.packets == 0 { 0 } else { (bucket + 1) * BUCKET_NS };
        Health {
            packets: self.packets,
            max_late_us: self.max as f64 / 1e3,
            p99_late_us: p99.min(BUCKETS as u64 * BUCKET_NS) as f64 / 1e3,
            late_packets: self.late,
            max_read_gap_us: 0.0,
            write_failures: 0,
            tun_drops: 0,
            real_time: false,
            cpu_seconds: 0.0,
            wall_seconds: 0.0,
            stolen_seconds: 0.0,
        }
    }
}

/// Processor time taken by the hypervisor since the host started, seconds (`steal` in proc(5)'s stat); 0 if unknown.
pub(super) fn stolen_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    // USER_HZ is 100 on every architecture onramp supports.
    ticks.unwrap_or(0) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(late_us: impl IntoIterator<Item = u64>) -> Health {
        let mut lateness = Lateness::new();
        late_us.into_iter().for_each(|late| lateness.add(late * 1_000));
        lateness.health()
    }

    #[test]
    fn percentile_and_maximum() {
        let health = health((0..1_000).map(|number| if number < 985 { 4 } else { 333 }));
        assert_eq!((health.packets, health.late_packets), (1_000, 0));
        assert_eq!((health.p99_late_us, health.max_late_us), (340.0, 333.0));
        assert_eq!(Lateness::new().health().p99_late_us, 0.0);
    }

    #[test]
    fn rules() {
        let with = |late: u64, us| health((0..10_000).map(move |number| if number < late { us } else { 20 }));
        assert_eq!(with(10, 1_500).invalid(600_000), None);
        assert!(with(11, 1_500).invalid(600_000).unwrap().contains("11 of 10000"));
        // 5 % of the round-trip time, within 2 and 10 ms.
        assert_eq!(with(1, 9_900).invalid(600_000), None);
        assert!(with(1, 10_100).invalid(600_000).unwrap().contains("10000 us are allowed"));
        assert!(with(1, 2_100).invalid(10_000).unwrap().contains("2000 us are allowed"));
        assert!(with(1, 2_600).invalid(50_000).unwrap().contains("2500 us are allowed"));
        let lost = Health { tun_drops: 1, ..with(0, 0) };
        assert!(lost.invalid(600_000).unwrap().contains("lost outside"));
    }
}
