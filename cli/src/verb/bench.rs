//! `onramp bench`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use onramp_lab::experiment::{self, Arm, Plan, VethRun};
use onramp_lab::profile::Profile;
use onramp_loader::algorithm;
use onramp_loader::cost::{RunStatistics, callbacks};
use serde::Serialize;

use crate::arm::Arms;
use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;

/// A link on which the whole transfer is slow start, where algorithms work on every ACK: its product is about the
/// transfer's size, and its queue never fills.
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
/// Bytes of a transfer over that link.
const LINK_BYTES: u64 = 40_000_000;
/// Transfers over that link, per algorithm, taking turns.
const ROUNDS: u32 = 3;
/// Bytes of a transfer over veth.
const VETH_BYTES: u64 = 20_000_000_000;
/// Which of ours is compared with the kernel's CUBIC over veth.
const VETH_ARM: &str = "search";

/// Measure what the algorithms cost on this machine
///
/// Nanoseconds per call of every operation, from the kernel's run-time statistics of BPF programs, which are on only
/// meanwhile and add some nanoseconds themselves; the traffic is a transfer that is slow start from first to last,
/// where algorithms work most. Then processor time and throughput over a veth pair against the kernel's own CUBIC, in
/// pairs that take turns. Takes about two minutes; use an idle machine.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  onramp bench\n  onramp bench --json --pairs 9")]
pub(crate) struct Bench {
    /// Pairs of transfers over veth, 1 to 100
    #[arg(long, default_value_t = 5)]
    pairs: u32,
}

#[derive(Serialize)]
struct Report {
    callbacks: Vec<Callback>,
    /// Nanoseconds of all operations together per acknowledgement.
    per_ack_ns: BTreeMap<String, f64>,
    /// The same, over `plain`.
    per_ack_ratio: BTreeMap<String, f64>,
    /// Bytes per flow: header and algorithm.
    state_bytes: BTreeMap<String, usize>,
    veth: Veth,
}

#[derive(Serialize)]
struct Callback {
    algorithm: String,
    callback: String,
    calls: u64,
    ns_per_call: f64,
    verified_instructions: u32,
    jited_bytes: u32,
}

#[derive(Serialize)]
struct Veth {
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
struct Pair {
    cubic_cpu_seconds_per_gigabyte: f64,
    ours_cpu_seconds_per_gigabyte: f64,
    cubic_goodput_bps: f64,
    ours_goodput_bps: f64,
}

impl Bench {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if !(1..=100).contains(&self.pairs) {
            return Err(Usage::error(format!("--pairs {} is out of range: give 1 to 100", self.pairs)));
        }
        let profile = Profile::parse(LINK, "bench")?;
        let callbacks = measure_callbacks(&profile, output)?;
        let per_ack_ns = per_ack(&callbacks);
        let plain = per_ack_ns.get("plain").copied().unwrap_or(f64::NAN);
        let header = size_of::<onramp_loader::abi::FlowHeader>();
        let report = Report {
            per_ack_ratio: per_ack_ns.iter().map(|(name, ns)| (name.clone(), ns / plain)).collect(),
            state_bytes: algorithm::all()
                .map(|one| (one.name().to_owned(), header + one.state_size()))
                .collect(),
            veth: measure_veth(&profile, self.pairs, output)?,
            callbacks,
            per_ack_ns,
        };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }
}

/// Transfers of every algorithm over the link, in turns, while the kernel counts.
fn measure_callbacks(profile: &Profile, output: &Output) -> anyhow::Result<Vec<Callback>> {
    let names: Vec<String> = algorithm::all().map(|algorithm| algorithm.name().to_owned()).collect();
    let arms = Arms::prepare(&names, profile, &[])?;
    let _counting = RunStatistics::enable()?;
    let plan = Plan { bytes: LINK_BYTES, repetitions: 1, ..Plan::new(profile.clone()) };
    for round in 0..ROUNDS {
        for arm in &arms.arms {
            output.progress(&format!("slow start: round {} of {ROUNDS}, {} …", round + 1, arm.name));
            experiment::run_once(&plan, arm, u64::from(round))?;
        }
    }
    let mut all = Vec::new();
    for algorithm in algorithm::all() {
        for callback in callbacks(algorithm)?.into_iter().filter(|callback| callback.calls > 0) {
            all.push(Callback {
                algorithm: algorithm.name().to_owned(),
                callback: callback.name,
                calls: callback.calls,
                ns_per_call: callback.nanoseconds as f64 / callback.calls as f64,
                verified_instructions: callback.verified_instructions,
                jited_bytes: callback.jited_bytes,
            });
        }
    }
    Ok(all)
}

/// All operations together, per call of `pkts_acked`, which comes once with every ACK.
fn per_ack(callbacks: &[Callback]) -> BTreeMap<String, f64> {
    let mut totals: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    for one in callbacks {
        let (nanoseconds, acks) = totals.entry(one.algorithm.clone()).or_default();
        *nanoseconds += one.ns_per_call * one.calls as f64;
        if one.callback == "pkts_acked" {
            *acks += one.calls;
        }
    }
    totals.into_iter().map(|(name, (nanoseconds, acks))| (name, nanoseconds / acks as f64)).collect()
}

fn measure_veth(profile: &Profile, pairs: u32, output: &Output) -> anyhow::Result<Veth> {
    let arms = Arms::prepare(&[VETH_ARM.to_owned()], profile, &[])?;
    let cubic = Arm::stock("cubic");
    let mut runs = Vec::new();
    for pair in 0..pairs {
        output.progress(&format!("veth: pair {} of {pairs} …", pair + 1));
        let run = |arm: &Arm| experiment::over_veth(arm, VETH_BYTES, Path::new("iperf3"));
        // Whoever is first in one pair is second in the next.
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
        arm: VETH_ARM.to_owned(),
        pairs,
        bytes: VETH_BYTES,
        cpu_ratio: median(&runs, |pair| {
            pair.ours_cpu_seconds_per_gigabyte / pair.cubic_cpu_seconds_per_gigabyte
        }),
        throughput_ratio: median(&runs, |pair| pair.ours_goodput_bps / pair.cubic_goodput_bps),
        runs,
    })
}

/// Of the pairs' ratios: a pair that the hypervisor or another process disturbed does not decide.
fn median(pairs: &[Pair], ratio: fn(&Pair) -> f64) -> f64 {
    let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
    (low + high) / 2.0
}

fn text(report: &Report, output: &Output) -> String {
    let mut operations = Table::new(["ALGORITHM", "OPERATION", ">CALLS", ">NS/CALL", ">VERIFIED", ">JITED"]);
    for one in &report.callbacks {
        operations.push([
            one.algorithm.clone(),
            one.callback.clone(),
            one.calls.to_string(),
            format!("{:.0}", one.ns_per_call),
            one.verified_instructions.to_string(),
            format!("{} B", one.jited_bytes),
        ]);
    }
    let mut totals = Table::new(["ALGORITHM", ">NS/ACK", ">TO PLAIN", ">STATE"]);
    for (name, nanoseconds) in &report.per_ack_ns {
        totals.push([
            name.clone(),
            format!("{nanoseconds:.0}"),
            format!("{:.2}", report.per_ack_ratio.get(name).copied().unwrap_or(f64::NAN)),
            format!("{} B", report.state_bytes.get(name).copied().unwrap_or(0)),
        ]);
    }
    let veth = &report.veth;
    format!(
        "{}\n{}\nveth, {} pairs of {:.0} GB: {} takes {:.3} x the processor time of the kernel's CUBIC per gigabyte, at {:.3} x its throughput\n",
        operations.render(output),
        totals.render(output),
        veth.pairs,
        veth.bytes as f64 / 1e9,
        veth.arm,
        veth.cpu_ratio,
        veth.throughput_ratio
    )
}
