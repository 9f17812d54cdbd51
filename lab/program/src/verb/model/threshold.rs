//! `onramp-lab model threshold`.

use std::time::Duration;

use clap::Args;
use onramp_lab::model::packets_per_second;
use onramp_lab::model::threshold::{Bottleneck, LowerThreshold, STANDARD_FACTOR, SafeRate};
use serde::Serialize;

use super::{Load, load, usage};
use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;
use crate::units;

/// Early overflow of a small buffer in slow start, and what avoids it (Barakat et al. 1999)
///
/// One TCP connection and cross traffic share a bottleneck with a drop-tail buffer; every packet is acknowledged.
/// Equations (1) to (6): largest window, window at overflow, whether slow start loses, the largest threshold and the
/// largest sending rate without loss. The defaults are the paper's scenario.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab model threshold
  onramp lab model threshold --spacing 440pps
  onramp lab model threshold --rate 150mbit --rtt 600ms --buffer-packets 500 --cross-traffic 0pps")]
pub(super) struct Threshold {
    /// Rate of the bottleneck: bit, kbit, mbit or gbit per second
    #[arg(long, value_name = "RATE", value_parser = units::rate, default_value = "1500kbit")]
    rate: u64,
    /// Size of all packets, bytes
    #[arg(long, value_name = "SIZE", value_parser = units::packet_bytes, default_value_t = 512)]
    packet_bytes: u64,
    /// Two-way propagation delay: us, ms or s
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "560ms")]
    rtt: Duration,
    /// Buffer of the bottleneck, packets
    #[arg(long, value_name = "PACKETS", default_value_t = 40)]
    buffer_packets: u64,
    /// Rate of the cross traffic: pps, kpps or mpps (packets per second), or as --rate
    #[arg(long, value_name = "LOAD", value_parser = load, default_value = "100pps")]
    cross_traffic: Load,
    /// Rate R at which packets leave in slow start, for the window at overflow (5); as --cross-traffic
    #[arg(long, value_name = "LOAD", value_parser = load)]
    spacing: Option<Load>,
}

#[derive(Serialize)]
struct ThresholdReport {
    rate_bps: u64,
    packet_bytes: u64,
    rtt_us: u64,
    buffer_packets: u64,
    rate_pps: f64,
    cross_traffic_pps: f64,
    available_pps: f64,
    burst_pps: f64,
    largest_window_packets: f64,
    overflow_window_packets: f64,
    normalized_buffer: f64,
    lossless_normalized_buffer: f64,
    lossless: bool,
    largest_factor: f64,
    lower_threshold: LowerThreshold,
    safe_rate: SafeRate,
    /// Where congestion avoidance begins, packets.
    standard_avoidance_window_packets: f64,
    spaced_avoidance_window_packets: f64,
    spacing: Option<Spacing>,
}

#[derive(Serialize)]
struct Spacing {
    rate_pps: f64,
    /// None: the buffer never overflows.
    overflow_window_packets: Option<f64>,
    lossless: bool,
}

impl Threshold {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let rate_pps = packets_per_second(self.rate, self.packet_bytes).map_err(|error| usage(&error))?;
        let cross_traffic_pps = self.cross_traffic.in_packets(self.packet_bytes);
        let path = Bottleneck::new(rate_pps, cross_traffic_pps, self.rtt.as_secs_f64(), self.buffer_packets)
            .map_err(|error| usage(&error))?;
        let half = STANDARD_FACTOR * path.largest_window_packets();
        let report = ThresholdReport {
            rate_bps: self.rate,
            packet_bytes: self.packet_bytes,
            rtt_us: self.rtt.as_micros() as u64,
            buffer_packets: self.buffer_packets,
            rate_pps,
            cross_traffic_pps,
            available_pps: path.available_pps(),
            burst_pps: path.burst_pps(),
            largest_window_packets: path.largest_window_packets(),
            overflow_window_packets: path.overflow_window_packets(),
            normalized_buffer: path.normalized_buffer(),
            lossless_normalized_buffer: path.lossless_normalized_buffer(),
            lossless: path.is_lossless(),
            largest_factor: path.largest_factor(),
            lower_threshold: path.lower_threshold(),
            safe_rate: path.safe_rate(),
            standard_avoidance_window_packets: path.avoidance_window_packets(STANDARD_FACTOR),
            spaced_avoidance_window_packets: half,
            spacing: self.spacing(&path)?,
        };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }

    /// R and the window at which the buffer overflows with it.
    fn spacing(&self, path: &Bottleneck) -> anyhow::Result<Option<Spacing>> {
        let Some(given) = self.spacing else { return Ok(None) };
        let rate_pps = given.in_packets(self.packet_bytes);
        let (least, most) = (path.available_pps(), path.burst_pps());
        if !(least..=most).contains(&rate_pps) {
            return Err(Usage::error(format!(
                "--spacing {rate_pps:.1}pps is out of range: expected {least:.1} (what cross traffic leaves; less makes the sender the bottleneck) to {most:.1} packets per second (what slow start sends by itself)"
            )));
        }
        let overflow_window_packets = path.spaced_overflow_window_packets(rate_pps);
        let threshold = STANDARD_FACTOR * path.largest_window_packets();
        let lossless = overflow_window_packets.is_none_or(|overflow| overflow > threshold);
        Ok(Some(Spacing { rate_pps, overflow_window_packets, lossless }))
    }
}

fn text(report: &ThresholdReport, output: &Output) -> String {
    let mut table = Table::new(["QUANTITY", ">VALUE", "UNIT", "EQUATION"]);
    let mut row = |quantity: &str, value: String, unit: &str, equation: &str| {
        table.push([quantity, &value, unit, equation].map(str::to_owned));
    };
    let one = |value: f64| format!("{value:.1}");
    row("rate of the link", one(report.rate_pps), "packets/s", "mu");
    row("left by cross traffic", one(report.available_pps), "packets/s", "mu - lambda");
    row("rate of bursts in slow start", one(report.burst_pps), "packets/s", "2 mu - lambda");
    row("largest window", one(report.largest_window_packets), "packets", "(1) Wmax");
    row("window at overflow", one(report.overflow_window_packets), "packets", "(2) WB");
    row("normalized buffer", format!("{:.3}", report.normalized_buffer), "", "(3) beta");
    row("  lossless above", format!("{:.3}", report.lossless_normalized_buffer), "", "(3) 1/(3 - rho)");
    row(
        "largest threshold without loss",
        format!("{:.3}", report.largest_factor),
        "of Wmax",
        "(4) gamma max",
    );
    let safe = match report.safe_rate {
        SafeRate::Unbounded => "any".to_owned(),
        SafeRate::Below(rate) => one(rate),
    };
    row("largest rate without loss", safe, "packets/s", "(6) Rmax");
    if let Some(Spacing { rate_pps, overflow_window_packets, .. }) = &report.spacing {
        let overflow = overflow_window_packets.map_or_else(|| "never".to_owned(), one);
        row(&format!("window at overflow at {rate_pps:.1} packets/s"), overflow, "packets", "(5) WB(R)");
    }
    let mut text = table.render(output);
    let half = report.spaced_avoidance_window_packets;
    if report.lossless {
        text += &format!(
            "slow start reaches half of the largest window, {half:.1} packets, without loss: neither cure is needed\n"
        );
    } else {
        let standard = report.standard_avoidance_window_packets;
        text += &format!(
            "slow start overflows the buffer below half of the largest window: congestion avoidance begins at {standard:.1} packets\n"
        );
        text += &match report.lower_threshold {
            LowerThreshold::Harms => format!(
                "a lower threshold does not help: without loss it must be below {:.3} of the largest window, and below 0.25 congestion avoidance begins lower than with the loss\n",
                report.largest_factor
            ),
            LowerThreshold::Helps | LowerThreshold::NotNeeded => format!(
                "a threshold between 0.25 and {:.3} of the largest window helps: congestion avoidance begins at up to {:.1} packets\n",
                report.largest_factor, report.overflow_window_packets
            ),
        };
        if let SafeRate::Below(rate) = report.safe_rate {
            text += &format!(
                "spacing helps: at {:.1} to below {rate:.1} packets/s congestion avoidance begins at {half:.1} packets\n",
                report.available_pps
            );
        }
    }
    if let Some(Spacing { rate_pps, lossless, .. }) = &report.spacing {
        let loses = if *lossless { "slow start is free of loss" } else { "slow start still loses" };
        text += &format!("at {rate_pps:.1} packets/s {loses}\n");
    }
    text
}
