//! What an algorithm as the default takes under load, compared with the kernel's own CUBIC.

mod clients;
mod consumers;
mod cycles;
mod detach;
mod latency;
mod place;
mod shadow;
mod side;
mod turns;

use std::thread;
use std::time::Duration;

use clap::Args;
use onramp_loader::{DEFAULT_SYSCTL, algorithm};
use serde::Serialize;

use super::attached::Attached;
use super::slab::allow_files;
use crate::consumer::Signals;
use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;
use crate::units;
use clients::{Load as Clients, Stop};
use place::Place;

/// What ours is measured against.
const REFERENCE: &str = "cubic";
/// Time of a turn, seconds.
const TURN: std::ops::RangeInclusive<u64> = 1..=600;

/// Measure an algorithm as the default under load, compared with the kernel's own CUBIC
///
/// Two servers in network namespaces of their own, one with the algorithm as its default and one on CUBIC, hold connections
/// and answer short ones over a veth pair: nine of ten ask for 5 kB, one for 100 kB, and each held one sends 1 kB every ten
/// seconds. The servers take turns. Then two consumers read every ACK, `onramp shadow` follows all
/// connections, the algorithm is detached with all that is held, and it is attached
/// and detached again and again. A connection that fails ends the measurement. Use an idle machine.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab bench load\n  onramp lab bench load search --flows 10000 --rate 5000 --pairs 60 --turn 10s --cycles 1000"
)]
pub(super) struct LoadOptions {
    /// Algorithm
    #[arg(value_name = "ALG", default_value = algorithm::default().name())]
    algorithm: String,
    /// Connections that each server holds, 1 to 50000; as many open files must be allowed
    #[arg(long, default_value_t = 10_000, value_parser = units::number(1..=50_000_u32))]
    flows: u32,
    /// Short connections a second, 1 to 100000
    #[arg(long, default_value_t = 1_000, value_parser = units::number(1..=100_000_u32))]
    rate: u32,
    /// Pairs of turns, 1 to 1000
    #[arg(long, default_value_t = 5, value_parser = units::number(1..=1_000_u32))]
    pairs: u32,
    /// Time of a turn, 1s to 600s
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    turn: Duration,
    /// How often it is attached and detached in the end, 1 to 10000
    #[arg(long, default_value_t = 20, value_parser = units::number(1..=10_000_u32))]
    cycles: u32,
}

#[derive(Serialize)]
struct LoadReport {
    flows: u32,
    rate_per_second: u32,
    processors: usize,
    #[serde(flatten)]
    turns: turns::Turns,
    consumers: consumers::Consumers,
    shadow: shadow::Shadow,
    detach: detach::Detach,
    cycles: cycles::Cycles,
}

impl LoadOptions {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let allowed = Duration::from_secs(*TURN.start())..=Duration::from_secs(*TURN.end());
        if !allowed.contains(&self.turn) {
            return Err(Usage::error(format!("--turn {:?} is out of range: give 1s to 600s", self.turn)));
        }
        let algorithm = onramp_loader::find(&self.algorithm)?;
        // Of what two servers hold, each end is in a table of its own.
        allow_files(self.flows.into())?;
        let stop = Stop::new(Signals::take()?);
        output.step(&format!("load: two servers hold {} connections each …", self.flows));
        let attached;
        let (theirs, ours) = (Place::new(Some(REFERENCE))?, Place::new(None)?);
        let previous = ours.server.sysctl_get(DEFAULT_SYSCTL)?;
        attached = ours.server.run(|| Attached::new(algorithm, true))??;
        for place in [&theirs, &ours] {
            place.hold(self.flows)?;
        }
        stop.check()?;
        let loads = [&theirs, &ours].map(|place| Clients { place, rate: self.rate });
        let arms = [(REFERENCE, loads[0]), (algorithm.name(), loads[1])];
        let turns = turns::measure(arms, self.pairs, self.turn, &stop, output)?;
        output.step("load: two consumers of every acknowledgment …");
        let consumers = consumers::measure(loads[1], &stop)?;
        output.step("load: a shadow of every connection …");
        let shadow = shadow::measure(algorithm.name(), loads[0], self.turn, &stop)?;
        output.step("load: detach …");
        let detach = detach::measure(attached, loads[1], &previous, &stop)?;
        output.step(&format!("load: attached and detached {} times …", self.cycles));
        let cycles = cycles::measure(algorithm, loads[1], self.cycles, &stop)?;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let report = LoadReport {
            flows: self.flows,
            rate_per_second: self.rate,
            processors,
            turns,
            consumers,
            shadow,
            detach,
            cycles,
        };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }
}

/// Until what has ended is free again.
fn settle() {
    thread::sleep(Duration::from_secs(2));
}

fn text(report: &LoadReport, output: &Output) -> String {
    let mut table = Table::new([
        "DEFAULT",
        ">CONNECTIONS",
        ">PER SECOND",
        ">GOODPUT",
        ">CPU EACH",
        ">P50",
        ">P99",
        ">MAX",
    ]);
    for arm in &report.turns.arms {
        table.push([
            arm.arm.clone(),
            arm.connections.to_string(),
            format!("{:.0}", arm.connections_per_second),
            units::show_rate(arm.goodput_bps as u64),
            format!("{:.1} us", arm.cpu_us_per_connection),
            format!("{:.0} us", arm.median(|latency| latency.p50_us)),
            format!("{:.0} us", arm.median(|latency| latency.p99_us)),
            units::show_us(arm.max_us().into()),
        ]);
    }
    let LoadReport { turns, consumers, shadow, detach, cycles, .. } = report;
    let mut text = format!(
        "{} connections held, {} short ones a second, {} processors, all of which arrived:\n{}\n",
        report.flows,
        report.rate_per_second,
        report.processors,
        table.render(output)
    );
    text += &format!(
        "{} takes {:.3} x the processor time of {REFERENCE}, {:.3} x its median latency, {:.3} x its 99th percentile\n",
        turns.arms[1].arm, turns.cpu_ratio, turns.p50_ratio, turns.p99_ratio
    );
    text += &format!(
        "memory in use grew by {:.2} bytes per connection\n",
        turns.memory_growth_bytes_per_connection
    );
    for (name, received) in [("first", &consumers.first), ("second", &consumers.second)] {
        text += &format!(
            "{name} consumer: {} events of {} flows, {} lost and counted, {} lost and not counted\n",
            received.events,
            received.flows,
            received.lost,
            received.uncounted()
        );
    }
    text += &format!(
        "shadow of {} connections: {} ends followed, {} passed over, {} observations dropped, {:.0} % of a processor\n",
        shadow.connections,
        shadow.followed,
        shadow.passed_over,
        shadow.dropped,
        shadow.processors * 100.0
    );
    text += &format!(
        "detached in {:.3} s: {} sockets moved; short connections meanwhile took at most {}\n",
        detach.seconds,
        detach.sockets,
        units::show_us(detach.latency.max_us.into())
    );
    text += &format!(
        "attached and detached {} times, {:.3} s each: memory in use grew by {:.0} bytes each; short connections took at most {}\n",
        cycles.cycles,
        cycles.seconds_per_cycle,
        cycles.growth_bytes_per_cycle,
        units::show_us(cycles.latency.max_us.into())
    );
    text
}
