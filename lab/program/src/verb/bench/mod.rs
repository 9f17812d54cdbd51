//! `onramp-lab bench`.

mod attached;
mod events;
mod load;
mod memory;
mod programs;
mod slab;
mod slow_start;
mod telemetry;
mod veth;

use clap::{Args, Subcommand};
use onramp_profiles::Profile;
use serde::Serialize;

use crate::failure::Usage;
use crate::output::Output;
use crate::units;

/// Whose flows are measured where one algorithm stands for all: its verdicts differ from ACK to ACK.
const ALGORITHM: &str = "search";

/// A link on which a whole transfer is slow start, where algorithms work on every ACK: the window stays below its
/// bandwidth-delay product of 37.5 MB, so that nothing queues, no RTT grows and no delivery falls behind: no algorithm
/// has a reason to leave.
const LINK: &str = r#"
version = 1
name = "bench"
about = "1 Gb/s, 300 ms, no jitter: the transfer ends before slow start does"
algorithm = "plain"
[link.forward]
rate_bps = 1_000_000_000
delay_us = 150_000
queue_bytes = 100_000_000
[link.return]
rate_bps = 1_000_000_000
delay_us = 150_000
queue_bytes = 100_000_000
[host]
tcp_rmem = [4_096, 131_072, 268_435_456]
tcp_wmem = [4_096, 131_072, 268_435_456]
"#;

/// Measure what the algorithms cost on this machine
///
/// First what the kernel makes of each operation: instructions that its verifier walks, bytes of machine code. Then
/// nanoseconds per ACK from the kernel's run-time statistics of BPF programs, which are on only meanwhile and add some
/// nanoseconds themselves: transfers that are slow start from first to last, of all algorithms in turns and of the kernel's
/// own CUBIC; EVALUATED says for how many of the ACKs there is a verdict, OWN what all operations take without what calls that
/// do nothing take; and the same for one algorithm with consumers of telemetry at each level. Last, processor time and
/// throughput over a veth pair against the kernel's own CUBIC, in pairs that take turns. Takes some minutes; use an idle
/// machine.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  onramp lab bench\n  onramp lab bench --json --rounds 9 --pairs 9\n  onramp lab bench programs\n  onramp lab guest --program ip --program ss -- onramp-lab bench slow-start\n  onramp lab bench events --rates 10mbit,50mbit,unlimited --for 10s"
)]
pub(crate) struct Bench {
    /// Transfers of each algorithm in slow start, 1 to 100
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Pairs of transfers over veth, 1 to 100
    #[arg(long, default_value_t = 5)]
    pairs: u32,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// Only what the kernel makes of each operation: no traffic, nothing is attached
    #[command(after_help = "Examples:\n  onramp lab bench programs")]
    Programs,
    /// Only nanoseconds per ACK in slow start: in a guest of `onramp lab guest`, instructions per ACK
    #[command(
        after_help = "Examples:\n  onramp lab guest --program ip --program ss -- onramp-lab bench slow-start"
    )]
    SlowStart {
        /// Transfers of each algorithm, 1 to 100
        #[arg(long, default_value_t = 1, value_parser = units::number(1..=100_u32))]
        rounds: u32,
        /// Bytes of a transfer, 15,000 to 20,000,000: from an initial window and a half to windows of 7,000 segments
        #[arg(long, default_value_t = slow_start::BYTES, value_parser = units::number(15_000..=slow_start::BYTES))]
        bytes: u64,
    },
    Events(events::EventsOptions),
    Load(load::LoadOptions),
    Memory(memory::MemoryOptions),
}

#[derive(Serialize)]
struct BenchReport {
    #[serde(flatten)]
    programs: programs::Programs,
    slow_start: slow_start::SlowStart,
    telemetry: telemetry::Telemetry,
    veth: veth::Veth,
}

impl Bench {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        for (name, value) in [("rounds", self.rounds), ("pairs", self.pairs)] {
            if !(1..=100).contains(&value) {
                return Err(Usage::error(format!("--{name} {value} is out of range: give 1 to 100")));
            }
        }
        if let Some(Part::Events(events)) = self.part {
            return events.run(output);
        }
        if let Some(Part::Load(load)) = self.part {
            return load.run(output);
        }
        let profile = Profile::parse(LINK, "bench")?;
        if let Some(Part::Memory(memory)) = self.part {
            return memory.run(&profile, output);
        }
        if let Some(Part::SlowStart { rounds, bytes }) = self.part {
            let slow_start = slow_start::measure(&profile, rounds, bytes, output)?;
            output.data(&slow_start, || slow_start::text(&slow_start, output))?;
            return Ok(0);
        }
        let programs = programs::measure()?;
        if let Some(Part::Programs) = self.part {
            output.data(&programs, || programs::text(&programs, output))?;
            return Ok(0);
        }
        let report = BenchReport {
            programs,
            slow_start: slow_start::measure(&profile, self.rounds, slow_start::BYTES, output)?,
            telemetry: telemetry::measure(&profile, self.rounds, output)?,
            veth: veth::measure(&profile, self.pairs, output)?,
        };
        output.data(&report, || {
            [
                programs::text(&report.programs, output),
                slow_start::text(&report.slow_start, output),
                telemetry::text(&report.telemetry, output),
                veth::text(&report.veth),
            ]
            .join("\n")
        })?;
        Ok(0)
    }
}
