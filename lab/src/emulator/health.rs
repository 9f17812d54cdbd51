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

use super::MTU;
use crate::guest::INSTRUCTIONS_PER_NANOSECOND;
use crate::link::Nanos;

/// Lateness that counts as late.
pub const LATE_NS: Nanos = 1_000_000;
/// Share of late packets above which a run is invalid.
pub const LATE_SHARE: f64 = 0.001;

/// Bits of a full packet.
const FULL_BITS: f64 = MTU as f64 * 8.0;

const BUCKET_NS: Nanos = 10_000;
const BUCKETS: usize = 2_000;

/// How well the emulator kept its times, both directions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Packets handed over.
    pub packets: u64,
    /// Of these, full packets: data, not acknowledgments.
    #[serde(default)]
    pub full_packets: u64,
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
    /// Time that the processors of this host were busy meanwhile with any process, all together, seconds.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Time the emulator ran, seconds.
    pub wall_seconds: f64,
    /// Processor time that the hypervisor took from this host meanwhile, all processors together, seconds: the usual
    /// reason for lateness on virtual machines.
    pub stolen_seconds: f64,
}

impl Health {
    /// Why a run over a link of this base round-trip time must not count; `None` if it may.
    pub fn invalid(&self, base_rtt_us: u64) -> Option<String> {
        self.lost().or_else(|| {
            let late = self.late(base_rtt_us)?;
            Some(format!("{late} (the hypervisor took {:.2} s from this host)", self.stolen_seconds))
        })
    }

    /// The same for a guest, whose clock counts its own processor's instructions: lateness is then not caused by other processes,
    /// and the reason says what the run would have needed.
    pub fn invalid_in_virtual_time(&self, base_rtt_us: u64) -> Option<String> {
        self.lost().or_else(|| {
            let late = self.late(base_rtt_us)?;
            let Some(instructions) = self.instructions_per_full_packet() else { return Some(late) };
            let carried = FULL_BITS * INSTRUCTIONS_PER_NANOSECOND as f64 / instructions * 1e3;
            Some(format!(
                "{late}: a packet of data cost {instructions:.0} instructions with all that belongs to it, and a processor \
                 that does {INSTRUCTIONS_PER_NANOSECOND} in a nanosecond carries {carried:.0} Mb/s of them at most; choose \
                 a lower rate or --clock machine"
            ))
        })
    }

    /// What a full packet cost a guest with all that belongs to it, acknowledgments and the whole host included. `None`
    /// without full packets.
    fn instructions_per_full_packet(&self) -> Option<f64> {
        let instructions = self.busy_seconds * 1e9 * INSTRUCTIONS_PER_NANOSECOND as f64;
        (self.full_packets > 0).then(|| instructions / self.full_packets as f64)
    }

    fn lost(&self) -> Option<String> {
        let lost = self.tun_drops + self.write_failures;
        (lost > 0).then(|| format!("{lost} packets were lost outside the link model"))
    }

    fn late(&self, base_rtt_us: u64) -> Option<String> {
        let limit_us = (base_rtt_us as f64 * 0.05).clamp(2_000.0, 10_000.0);
        let allowed = (self.packets as f64 * LATE_SHARE) as u64;
        if self.late_packets > allowed {
            let (late, packets) = (self.late_packets, self.packets);
            Some(format!("{late} of {packets} packets were more than 1 ms late, {allowed} are allowed"))
        } else if self.max_late_us > limit_us {
            Some(format!("a packet was {:.0} us late, {limit_us:.0} us are allowed", self.max_late_us))
        } else {
            None
        }
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
            full_packets: 0,
            max_late_us: self.max as f64 / 1e3,
            p99_late_us: p99.min(BUCKETS as u64 * BUCKET_NS) as f64 / 1e3,
            late_packets: self.late,
            max_read_gap_us: 0.0,
            write_failures: 0,
            tun_drops: 0,
            real_time: false,
            cpu_seconds: 0.0,
            busy_seconds: 0.0,
            wall_seconds: 0.0,
            stolen_seconds: 0.0,
        }
    }
}

/// Processor time since the host started, all processors together, seconds; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProcessorTime {
    /// Idle. It is measured, where the kernel only samples what it is busy with at each tick.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub stolen: f64,
}

impl ProcessorTime {
    pub fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// Of proc(5)'s stat: user nice system idle iowait irq softirq steal.
    fn parse(text: &str) -> Option<Self> {
        let words = text.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, _, _, idle, io_wait, _, _, steal] = ticks.try_into().ok()?;
        // USER_HZ is 100 on every architecture onramp supports.
        let seconds = |ticks: u64| ticks as f64 / 100.0;
        Some(Self { idle: seconds(idle + io_wait), stolen: seconds(steal) })
    }
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
        assert!(with(1, 10_100).invalid(600_000).unwrap().contains("10000 us"));
        assert!(with(1, 2_100).invalid(10_000).unwrap().contains("2000 us"));
        assert!(with(1, 2_600).invalid(50_000).unwrap().contains("2500 us"));
        let lost = Health { tun_drops: 1, ..with(0, 0) };
        assert!(lost.invalid(600_000).unwrap().contains("lost outside"));
        assert!(lost.invalid_in_virtual_time(600_000).unwrap().contains("lost outside"));
    }

    #[test]
    fn in_virtual_time_lateness_says_what_it_would_need() {
        let late = health([3_000; 100]);
        let late = Health { full_packets: 60, busy_seconds: 0.0012, ..late };
        let reason = late.invalid_in_virtual_time(600_000).unwrap();
        assert!(reason.starts_with("100 of 100 packets were more than 1 ms late"), "{reason}");
        assert!(reason.contains("80000 instructions") && reason.contains("600 Mb/s"), "{reason}");
        assert_eq!(health([20; 100]).invalid_in_virtual_time(600_000), None);
    }

    #[test]
    fn processor_time_is_what_proc_says() {
        let time = ProcessorTime::parse("cpu  100 200 300 400 500 600 700 800 90 0\ncpu0 1\n").unwrap();
        assert_eq!(time, ProcessorTime { idle: 9.0, stolen: 8.0 });
        assert_eq!(ProcessorTime::parse("cpu 1 2"), None);
    }
}
