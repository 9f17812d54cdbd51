//! Processor time and throughput over a veth pair, against the kernel's own CUBIC.

use std::path::Path;

use onramp_lab::experiment::{self, Arm, Clock, VethRun};
use onramp_profiles::Profile;
use serde::Serialize;

use onramp_lab::stats::median;

use super::ALGORITHM;
use crate::arm::Arms;
use crate::output::Output;

/// Bytes of a transfer.
const BYTES: u64 = 20_000_000_000;

#[derive(Serialize)]
pub(super) struct Veth {
    arm: String,
    pairs: u32,
    bytes: u64,
    /// Processor seconds per gigabyte, ours over CUBIC's, median of the pairs.
    cpu_ratio: f64,
    /// Goodput, ours over CUBIC's, median of the pairs.
    throughput_ratio: f64,
    runs: Vec<Pair>,
}

#[derive(Serialize)]
pub(super) struct Pair {
    cubic_cpu_seconds_per_gigabyte: f64,
    ours_cpu_seconds_per_gigabyte: f64,
    cubic_goodput_bps: f64,
    ours_goodput_bps: f64,
}

/// Pairs of transfers that take turns.
pub(super) fn measure(profile: &Profile, pairs: u32, output: &Output) -> anyhow::Result<Veth> {
    let arms = Arms::prepare(&[ALGORITHM.to_owned()], profile, &[], &Clock::Machine)?;
    let cubic = Arm::stock("cubic");
    let mut runs = Vec::new();
    for pair in 0..pairs {
        output.step(&format!("veth: pair {} of {pairs} …", pair + 1));
        let run = |arm: &Arm| experiment::over_veth(arm, BYTES, Path::new("iperf3"));
        // The first in one pair is the second in the next.
        let (theirs, ours) = if pair.is_multiple_of(2) {
            let theirs = run(&cubic)?;
            (theirs, run(&arms.arms[0])?)
        } else {
            let ours = run(&arms.arms[0])?;
            (run(&cubic)?, ours)
        };
        let per_gigabyte = |run: VethRun| run.cpu_seconds / (run.bytes as f64 / 1e9);
        runs.push(Pair {
            cubic_cpu_seconds_per_gigabyte: per_gigabyte(theirs),
            ours_cpu_seconds_per_gigabyte: per_gigabyte(ours),
            cubic_goodput_bps: theirs.goodput_bps,
            ours_goodput_bps: ours.goodput_bps,
        });
    }
    Ok(Veth {
        arm: ALGORITHM.to_owned(),
        pairs,
        bytes: BYTES,
        cpu_ratio: median(
            runs.iter().map(|pair| pair.ours_cpu_seconds_per_gigabyte / pair.cubic_cpu_seconds_per_gigabyte),
        ),
        throughput_ratio: median(runs.iter().map(|pair| pair.ours_goodput_bps / pair.cubic_goodput_bps)),
        runs,
    })
}

pub(super) fn text(veth: &Veth) -> String {
    format!(
        "veth, {} pairs of {:.0} GB: {} takes {:.3} x the processor time of the kernel's CUBIC per gigabyte, at {:.3} x its throughput\n",
        veth.pairs,
        veth.bytes as f64 / 1e9,
        veth.arm,
        veth.cpu_ratio,
        veth.throughput_ratio
    )
}
