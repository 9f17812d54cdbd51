// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Does the emulated link do what its description says? Measured from outside, with UDP between the two namespaces.
//!
//! What varies (AQM, loss, schedule, rates, delays) is left out: unit tests compare it with closed forms. The link has its mean rate and smallest delay. Times of arrival are the kernel's, taken when the emulator
//! hands a packet over, so that a busy receiver does not count. Three measurements:
//!
//! * **Base round-trip time**: the fastest of a series of echoes, less their transmission times.
//! * **Rate**: bytes over time at the receiver while the queue is never empty, median of ten pieces.
//! * **Queue limit**: how much longer packets take that fill the queue (the next one is dropped) than packets of the
//!   same link at 80 % load, in packets.

use anyhow::{Context, bail};
use onramp_lab::emulator::{Health, MTU};
use onramp_lab::host::Hosts;
use onramp_profiles::host::HostSpec;
use onramp_profiles::link::LinkSpec;

use super::probe::Probe;

/// Length of the saturating stream.
const SATURATED_SECONDS: f64 = 1.0;
/// Load and length of the stream to compare with.
const BASELINE_LOAD: f64 = 0.8;
const BASELINE_SECONDS: f64 = 0.5;
/// How much faster than the link the saturating stream comes.
const OVERLOAD: f64 = 1.1;
/// How much more than the queue holds is sent at once to fill it, since some of it leaves meanwhile.
const FILL: f64 = 1.125;
const ECHOES: u32 = 25;
/// Pieces of the saturating stream whose rates are compared.
const RATE_WINDOWS: usize = 10;

/// A measured value compared with the described one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What the description says.
    pub expected: f64,
    /// What was measured.
    pub measured: f64,
    /// By how much they may differ.
    pub tolerance: f64,
}

impl Measured {
    /// Whether they differ by no more than that.
    pub fn holds(&self) -> bool {
        (self.measured - self.expected).abs() <= self.tolerance
    }
}

/// Result of [`calibrate`].
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Forward rate, bit/s, within 1 %.
    pub rate_bps: Measured,
    /// Base round-trip time, microseconds, within 1 ms.
    pub base_rtt_us: Measured,
    /// Forward queue limit, packets of 1500 bytes, within one.
    pub queue_packets: Measured,
    /// How the emulator kept up.
    pub health: Health,
}

impl Calibration {
    /// Whether the link does what its description says.
    pub fn holds(&self) -> bool {
        self.rate_bps.holds() && self.base_rtt_us.holds() && self.queue_packets.holds()
    }
}

/// One line for people.
impl std::fmt::Display for Calibration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rate_bps, base_rtt_us, queue_packets, health } = self;
        write!(
            f,
            "rate {:.2} of {:.2} Mb/s, base RTT {:.2} of {:.2} ms, queue {:.1} of {:.0} packets, \
             late p99 {:.0} us, max {:.0} us, emulator {:.0} % of a processor: {}",
            rate_bps.measured / 1e6,
            rate_bps.expected / 1e6,
            base_rtt_us.measured / 1e3,
            base_rtt_us.expected / 1e3,
            queue_packets.measured,
            queue_packets.expected,
            health.p99_late_us,
            health.max_late_us,
            100.0 * health.cpu_seconds / health.wall_seconds.max(1e-9),
            if self.holds() { "good" } else { "OFF" }
        )
    }
}

/// Builds the link without what varies and measures it, which takes a few seconds plus the time in which the full
/// queue drains.
pub fn calibrate(link: &LinkSpec) -> anyhow::Result<Calibration> {
    let link = link.constant();
    // Buffers are TCP's; the probes are UDP.
    let host = HostSpec::new([4_096, 131_072, 6_291_456], [4_096, 16_384, 4_194_304]);
    let hosts = Hosts::set_up(&host, &link, 1, 0)?;
    let probe = Probe::open(&hosts)?;

    let rate_bps = link.forward.rate_bps as f64;
    let packet_seconds = MTU as f64 * 8.0 / rate_bps;
    let limit_packets = match (link.forward.queue_bytes, link.forward.queue_packets) {
        (Some(bytes), _) => bytes / MTU as u64,
        (None, packets) => packets.unwrap_or(0),
    };

    let rtt_seconds = probe.fastest_echo(ECHOES, &link)?;
    let count = (BASELINE_SECONDS / packet_seconds * BASELINE_LOAD) as u64;
    let quiet = probe.stream(count.max(20), packet_seconds / BASELINE_LOAD, 0, &link)?;
    let fill = (limit_packets as f64 * FILL) as u64 + 10;
    // Enough to fill the queue at once, then a steady overload.
    let count = (SATURATED_SECONDS / packet_seconds * OVERLOAD) as u64;
    let full = probe.stream(count.max(20), packet_seconds / OVERLOAD, fill, &link)?;

    // Windows, because the sender may be held up long enough for the queue to run empty.
    let windows = full.chunks(full.len().div_ceil(RATE_WINDOWS).max(2)).filter_map(|seen| {
        let seconds = seen.last()?.arrived - seen.first()?.arrived;
        (seconds > 0.0).then(|| (seen.len() - 1) as f64 * MTU as f64 * 8.0 / seconds)
    });
    let measured_rate =
        quantile(windows.collect(), 0.5).context("no packet of the rate measurement arrived")?;

    // A low quantile, because a sender that was held up catches up with a burst that queues.
    let quiet_delay = quantile(quiet.iter().map(|seen| seen.arrived - seen.sent).collect(), 0.1);
    // A packet whose successor was dropped has filled the queue, whatever pauses the sender made before.
    let filled = full.windows(2).filter(|pair| pair[1].number > pair[0].number + 1);
    let full_delay = quantile(filled.map(|pair| pair[0].arrived - pair[0].sent).collect(), 0.5);
    let (Some(quiet_delay), Some(full_delay)) = (quiet_delay, full_delay) else {
        bail!("no packet of the queue measurement arrived");
    };
    // It waits for all packets in the queue, itself included; alone it waits for its own transmission only.
    let measured_queue = (full_delay - quiet_delay) / packet_seconds + 1.0;

    let report = hosts.stop()?;
    Ok(Calibration {
        rate_bps: Measured { expected: rate_bps, measured: measured_rate, tolerance: rate_bps * 0.01 },
        base_rtt_us: Measured {
            expected: link.base_rtt_us() as f64,
            measured: rtt_seconds * 1e6,
            tolerance: 1_000.0,
        },
        queue_packets: Measured { expected: limit_packets as f64, measured: measured_queue, tolerance: 1.0 },
        health: report.health,
    })
}

fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * share) as usize).copied()
}
