//! `onramp-lab model bod`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onramp_files::bounded;
use onramp_lab::model::on_demand::{
    Startup, allocation_delay_seconds, best_factor, delay_equation_best_factor, figure,
};
use onramp_lab::model::packets_per_second;
use serde::Serialize;

use super::usage;
use crate::drawn;
use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;
use crate::units;

/// Factors of the second table, besides the best one.
const FACTORS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
/// Volumes, packets.
const VOLUMES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;
/// Curves and columns at most.
const LIST: usize = 7;

/// Slow start over bandwidth on demand (Gotta et al. 2006)
///
/// A terminal asks for K times its incoming rate and has it the allocation delay later. Equations (1) to (16): how fast
/// the window grows, when the channel is saturated, how long a volume of data takes, and the best K. The first table
/// and panel are figure 3: initial windows against no allocation delay (RHO 1), that of one round-trip time (RHO 2) and
/// that of the periods given. The second are figure 4: completion time against K for the first initial window.
/// UNAPPROX. is the growth without the approximation (6): where it is far from S2, so are the times. The defaults are
/// the measured platform's; the packet size is chosen.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab model bod -o bod.svg
  onramp lab model bod --factor 4.8 --initial-window 10
  onramp lab model bod --rate 8mbit --rtt 600ms --request-period 100ms --allocation-period 200ms")]
pub(super) struct Bod {
    /// Mean round-trip time: us, ms or s
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "750ms")]
    rtt: Duration,
    /// Time between two requests of a terminal
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "273ms")]
    request_period: Duration,
    /// Time between two assignments
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "819ms")]
    allocation_period: Duration,
    /// K, rate asked for over incoming rate
    #[arg(long, value_name = "K", default_value_t = 1.0)]
    factor: f64,
    /// Rate of the channel: bit, kbit, mbit or gbit per second
    #[arg(long, value_name = "RATE", value_parser = units::rate, default_value = "2112kbit")]
    rate: u64,
    /// Size of packets, bytes
    #[arg(long, value_name = "SIZE", value_parser = units::packet_bytes, default_value_t = 1_500)]
    packet_bytes: u64,
    /// Initial windows, packets
    #[arg(long, value_name = "PACKETS,…", value_delimiter = ',', default_value = "1,2,3")]
    initial_window: Vec<u64>,
    /// Volumes of data, packets
    #[arg(long, value_name = "PACKETS,…", value_delimiter = ',', default_value = "10,100,1000")]
    volumes: Vec<u64>,
    /// Draw both figures to this file, SVG; - is standard output, in place of the report
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct BodReport<'a> {
    rate_bps: u64,
    packet_bytes: u64,
    rtt_us: u64,
    request_period_us: u64,
    allocation_period_us: u64,
    factor: f64,
    capacity_pps: f64,
    allocation_delay_seconds: f64,
    delay_seconds: f64,
    delay_ratio: f64,
    best_factor: f64,
    /// Without the approximation of the delay (6).
    delay_equation_best_factor: f64,
    /// Figure 3.
    startups: Vec<BodRow>,
    /// Figure 4.
    factors: Vec<BodRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<&'a PathBuf>,
}

#[derive(Serialize)]
struct BodRow {
    initial_window_packets: u64,
    allocation_delay_seconds: f64,
    delay_ratio: f64,
    factor: f64,
    roots_per_second: (f64, f64),
    /// Without the approximation.
    delay_equation_growth_per_second: f64,
    doubling_seconds: f64,
    equivalent_rtt_seconds: f64,
    saturation_seconds: f64,
    sent_at_saturation_packets: f64,
    /// Whether what the closed forms neglect is small at saturation.
    holds: bool,
    completions: Vec<Completion>,
}

#[derive(Serialize)]
struct Completion {
    packets: u64,
    /// None: too few packets for the approximation.
    seconds: Option<f64>,
}

impl Bod {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        self.check_lists()?;
        let capacity_pps = packets_per_second(self.rate, self.packet_bytes).map_err(|error| usage(&error))?;
        let rtt = self.rtt.as_secs_f64();
        let allocation_delay = allocation_delay_seconds(
            rtt,
            self.request_period.as_secs_f64(),
            self.allocation_period.as_secs_f64(),
        );
        let startup = |delay: f64, window: u64| {
            Startup::new(rtt, delay, self.factor, window, capacity_pps).map_err(|error| usage(&error))
        };
        let mut groups = Vec::new();
        for window in &self.initial_window {
            let group = [0.0, rtt, allocation_delay].map(|delay| startup(delay, *window));
            groups.push(group.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        let first = startup(allocation_delay, self.initial_window[0])?;
        let delay_ratio = first.delay_ratio();
        let best = best_factor(delay_ratio);
        let mut factors = FACTORS.to_vec();
        factors.push(best);
        factors.sort_by(f64::total_cmp);
        let by_factor = factors.into_iter().map(|factor| first.with_factor(factor));
        let by_factor = by_factor.collect::<Result<Vec<_>, _>>().map_err(|error| usage(&error))?;
        if let Some(path) = &self.output {
            let figure = figure(&groups, first, &self.volumes).map_err(|error| usage(&error))?;
            drawn::write(path, &figure)?;
            if bounded::is_standard(path) {
                return Ok(0);
            }
        }
        let report = BodReport {
            rate_bps: self.rate,
            packet_bytes: self.packet_bytes,
            rtt_us: self.rtt.as_micros() as u64,
            request_period_us: self.request_period.as_micros() as u64,
            allocation_period_us: self.allocation_period.as_micros() as u64,
            factor: self.factor,
            capacity_pps,
            allocation_delay_seconds: allocation_delay,
            delay_seconds: rtt + allocation_delay,
            delay_ratio,
            best_factor: best,
            delay_equation_best_factor: delay_equation_best_factor(delay_ratio),
            startups: groups.iter().flatten().map(|one| BodRow::new(one, &self.volumes)).collect(),
            factors: by_factor.iter().map(|one| BodRow::new(one, &self.volumes)).collect(),
            figure: self.output.as_ref(),
        };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }

    fn check_lists(&self) -> anyhow::Result<()> {
        for (name, list) in [("initial-window", &self.initial_window), ("volumes", &self.volumes)] {
            if list.is_empty() || list.len() > LIST {
                return Err(Usage::error(format!("--{name} has {} values: give 1 to {LIST}", list.len())));
            }
        }
        if let Some(bad) = self.volumes.iter().find(|packets| !VOLUMES.contains(packets)) {
            let (least, most) = (VOLUMES.start(), VOLUMES.end());
            return Err(Usage::error(format!(
                "--volumes {bad} is out of range: expected {least} to {most} packets"
            )));
        }
        Ok(())
    }
}

impl BodRow {
    fn new(startup: &Startup, volumes: &[u64]) -> Self {
        let completion = |packets: &u64| Completion {
            packets: *packets,
            seconds: startup.completion_seconds(*packets as f64),
        };
        Self {
            initial_window_packets: startup.initial_window_packets(),
            allocation_delay_seconds: startup.allocation_delay_seconds(),
            delay_ratio: startup.delay_ratio(),
            factor: startup.factor(),
            roots_per_second: startup.roots(),
            delay_equation_growth_per_second: startup.delay_equation_growth(),
            doubling_seconds: startup.doubling_seconds(),
            equivalent_rtt_seconds: startup.equivalent_rtt_seconds(),
            saturation_seconds: startup.saturation_seconds(),
            sent_at_saturation_packets: startup.sent_at_saturation_packets(),
            holds: startup.holds(),
            completions: volumes.iter().map(completion).collect(),
        }
    }
}

fn text(report: &BodReport<'_>, output: &Output) -> String {
    let volumes = report.startups.first().map_or_else(String::new, |row| {
        row.completions.iter().map(|one| one.packets.to_string()).collect::<Vec<_>>().join(" / ")
    });
    let mut text = format!(
        "allocation delay {:.3} s, T {:.3} s, rho {:.2}; channel {:.1} packets/s; times to send {volumes} packets, seconds\n",
        report.allocation_delay_seconds, report.delay_seconds, report.delay_ratio, report.capacity_pps
    );
    text += &format!("\nk = {}\n", report.factor);
    let mut table = Table::new([
        ">W0",
        ">RHO",
        ">S1 1/s",
        ">S2 1/s",
        ">UNAPPROX.",
        ">DOUBLES s",
        ">EQUIV. RTT s",
        ">SATURATED s",
        ">SENT BY THEN",
        ">TO SEND s",
    ]);
    for row in &report.startups {
        table.push([
            row.initial_window_packets.to_string(),
            format!("{:.2}", row.delay_ratio),
            format!("{:.3}", row.roots_per_second.0),
            format!("{:.3}", row.roots_per_second.1),
            format!("{:.3}", row.delay_equation_growth_per_second),
            format!("{:.2}", row.doubling_seconds),
            format!("{:.2}", row.equivalent_rtt_seconds),
            if row.holds { format!("{:.2}", row.saturation_seconds) } else { "-".into() },
            if row.holds { format!("{:.0}", row.sent_at_saturation_packets) } else { "-".into() },
            completions(row),
        ]);
    }
    text += &table.render(output);
    text +=
        &format!("\nW0 = {}, rho = {:.2}\n", report.startups[0].initial_window_packets, report.delay_ratio);
    let mut table = Table::new([">K", ">S2 1/s", ">UNAPPROX.", ">DOUBLES s", ">SATURATED s", ">TO SEND s"]);
    for row in &report.factors {
        table.push([
            format!("{:.2}", row.factor),
            format!("{:.3}", row.roots_per_second.1),
            format!("{:.3}", row.delay_equation_growth_per_second),
            format!("{:.2}", row.doubling_seconds),
            if row.holds { format!("{:.2}", row.saturation_seconds) } else { "-".into() },
            completions(row),
        ]);
    }
    text += &table.render(output);
    text += &format!(
        "best k: {:.2} by (16); {:.1} without the approximation (6)\n",
        report.best_factor, report.delay_equation_best_factor
    );
    if let Some(figure) = report.figure {
        text += &format!("figure: {}\n", figure.display());
    }
    text
}

fn completions(row: &BodRow) -> String {
    let one =
        |one: &Completion| one.seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}"));
    row.completions.iter().map(one).collect::<Vec<_>>().join(" / ")
}
