//! How many events a second each kind of consumer takes, and where it begins to lose some.

mod consumer;
mod load;
mod row;

use std::thread;
use std::time::Duration;

use clap::Args;
use onramp_lab::experiment::Parallel;
use serde::Serialize;

use super::ALGORITHM;
use super::attached::Attached;
use crate::consumer::Signals;
use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;
use crate::units;
use consumer::{Consumer, Kind};
use row::{ConsumerRow, summary};

/// Flows at once.
const FLOWS: u16 = 64;
/// Rates at most.
const RATES_MAX: usize = 32;
/// How long a measurement may take, seconds.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=60;

/// What consumers of telemetry take without a loss: 64 flows at once over a veth pair
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  onramp lab bench events --rates 10mbit,50mbit,unlimited --for 10s")]
pub(super) struct EventsOptions {
    /// Rates of each flow, one after the other, such as 1mbit,20mbit,unlimited; at most 32
    #[arg(
        long,
        value_name = "RATES",
        value_delimiter = ',',
        value_parser = rate,
        default_value = "1mbit,2mbit,5mbit,10mbit,20mbit,50mbit,unlimited"
    )]
    rates: Vec<Rate>,
    /// Time of each measurement, 1s to 60s
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    time: Duration,
}

/// Rate of a flow, bit/s; `None`: as fast as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate(Option<u64>);

fn rate(text: &str) -> Result<Rate, String> {
    if text == "unlimited" {
        return Ok(Rate(None));
    }
    units::rate(text).map(|rate| Rate(Some(rate))).map_err(|error| error + ", or unlimited")
}

impl Rate {
    fn show(self) -> String {
        self.0.map_or_else(|| "unlimited".into(), units::show_rate)
    }
}

#[derive(Serialize)]
struct Events {
    algorithm: &'static str,
    flows: u16,
    processors: usize,
    rows: Vec<ConsumerRow>,
}

impl EventsOptions {
    /// Every rate before every kind of consumer.
    pub fn run(&self, output: &Output) -> anyhow::Result<u8> {
        self.check()?;
        let others = onramp_loader::consumers()?;
        if !others.is_empty() {
            let others = others.iter().map(|one| format!("{} (pid {})", one.name, one.pid));
            return Err(Usage::error(format!(
                "there are other consumers of telemetry: end {} first, because the events of one consumer alone are counted",
                others.collect::<Vec<_>>().join(", ")
            )));
        }
        // From here on a signal ends the measurement, and so everything that was made for it, instead of the process.
        let signals = Signals::take()?;
        let algorithm = onramp_loader::find(ALGORITHM)?;
        let attached = Attached::new(algorithm, false)?;
        let control = algorithm.congestion_control();
        let mut rows = Vec::new();
        for rate in &self.rates {
            for kind in Kind::ALL {
                output.step(&format!("events: {} at {} per flow …", kind.name(), rate.show()));
                let consumer = Consumer::start(kind)?;
                let load = Parallel { flows: FLOWS, rate_bps: rate.0, seconds: load::seconds(self.time) };
                let measured = load::measure(&control, load, consumer.pid(), self.time, &signals)?;
                consumer.stop()?;
                rows.push(ConsumerRow::new(kind, rate.0, &measured));
            }
        }
        drop(attached);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let report = Events { algorithm: ALGORITHM, flows: FLOWS, processors, rows };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.rates.len() > RATES_MAX {
            return Err(Usage::error(format!("{} rates: give at most {RATES_MAX}", self.rates.len())));
        }
        let allowed = Duration::from_secs(*SECONDS.start())..=Duration::from_secs(*SECONDS.end());
        if !allowed.contains(&self.time) {
            return Err(Usage::error(format!("--for {:?} is out of range: give 1s to 60s", self.time)));
        }
        Ok(())
    }
}

fn text(report: &Events, output: &Output) -> String {
    let mut table = Table::new([
        "PER FLOW",
        "CONSUMER",
        "LEVEL",
        ">GOODPUT",
        ">EVENTS/S",
        ">LOST",
        ">CONSUMER CPU",
        ">MACHINE CPU",
    ]);
    for row in &report.rows {
        table.push([
            Rate(row.flow_rate_bps).show(),
            row.consumer.to_owned(),
            row.level.to_owned(),
            units::show_rate(row.goodput_bps as u64),
            format!("{:.0}", row.events_per_second),
            row.lost_events.to_string(),
            format!("{:.0} %", row.consumer_processors * 100.0),
            format!("{:.0} %", row.machine_processors * 100.0),
        ]);
    }
    let mut text = format!(
        "events of {} flows of {} over veth, CPU in percent of one of {} processors:\n{}\n",
        report.flows,
        report.algorithm,
        report.processors,
        table.render(output)
    );
    for kind in Kind::ALL {
        text += &summary(kind.name(), report.rows.iter().filter(|row| row.consumer == kind.name()));
    }
    text
}

#[cfg(test)]
mod tests;
