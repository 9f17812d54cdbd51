//! Attaching and detaching the default again and again, under load.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use onramp_loader::algorithm::Algorithm;
use serde::Serialize;

use super::super::attached::Attached;
use super::super::slab::slab_bytes;
use super::clients::{Load, Stop};
use super::latency::Quantiles;
use super::settle;

/// In which connections begin on what is attached.
const ATTACHED: Duration = Duration::from_millis(20);
/// Cycles before memory is looked at for the first time: what is kept from then on is there.
const WARM_UP: u32 = 10;
/// Where /proc/meminfo counts what programs and maps take outside of slabs.
const BESIDE_SLABS: [&str; 2] = ["VmallocUsed", "Percpu"];

#[derive(Serialize)]
pub(super) struct Cycles {
    pub cycles: u32,
    pub seconds_per_cycle: f64,
    /// Of the short connections.
    pub latency: Quantiles,
    /// By which memory in use grew, of slabs and of what programs and maps take in addition.
    pub growth_bytes_per_cycle: f64,
}

pub(super) fn measure(
    algorithm: Algorithm,
    load: Load<'_>,
    cycles: u32,
    stop: &Stop,
) -> anyhow::Result<Cycles> {
    let run = |cycles| load.run_beside(stop, || (0..cycles).try_for_each(|_| cycle(algorithm, load, stop)));
    run(WARM_UP)?;
    settle();
    let before = memory()?;
    let begin = Instant::now();
    let ((), stretch) = run(cycles)?;
    let seconds_per_cycle = begin.elapsed().as_secs_f64() / f64::from(cycles);
    settle();
    let growth_bytes_per_cycle = (memory()? - before) / f64::from(cycles);
    Ok(Cycles { cycles, seconds_per_cycle, latency: stretch.latency.quantiles(), growth_bytes_per_cycle })
}

fn cycle(algorithm: Algorithm, load: Load<'_>, stop: &Stop) -> anyhow::Result<()> {
    stop.check()?;
    let attached = load.place.server.run(|| Attached::new(algorithm, true))??;
    thread::sleep(ATTACHED);
    let detached = attached.detach()?;
    ensure!(detached.held.copies == 0, "{} is still loaded after it was detached", algorithm.name());
    Ok(())
}

/// Bytes in use.
fn memory() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    Ok(slab_bytes()? as f64 + next_to_slabs(&text)? as f64)
}

fn next_to_slabs(meminfo: &str) -> anyhow::Result<u64> {
    let of = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024).with_context(|| format!("{name} of /proc/meminfo"))
    };
    BESIDE_SLABS.into_iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_next_to_slabs_is_that_of_programs_and_of_each_processor() {
        let meminfo =
            "MemTotal:  8 kB\nVmallocTotal:   34359738367 kB\nVmallocUsed:   20 kB\nPercpu:   3 kB\n";
        assert_eq!(next_to_slabs(meminfo).unwrap(), 23 * 1024);
        assert!(next_to_slabs("VmallocUsed: 20 kB\n").unwrap_err().to_string().contains("Percpu"));
    }
}
