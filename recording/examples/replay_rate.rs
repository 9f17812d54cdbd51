// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How many acknowledgments a second replay feeds to each algorithm on one core, from memory and from files:
//! `cargo run --release -p onramp-recording --example replay_rate`.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use onramp_algorithm::{Ack, Verdict, all};
use onramp_recording::replay::{Candidate, Generations, Known, Options, Replay, replay};
use onramp_recording::rows::{AckRow, FlowRow};
use onramp_recording::{Error, Limits, Manifest, Recording, Run, SCHEMA, Sample, Writer};

/// Flows, and acknowledgments of each: slow starts of 500 ms round trips over ever faster links.
const FLOWS: u64 = 200;
const ACKS: u64 = 20_000;
/// Of the same measurement; the fastest counts, as others only ever take time away.
const ROUNDS: usize = 5;
const ALL: Options = Options { keep_going: true, beyond: false, regret: false };

fn main() -> Result<(), Error> {
    let flows: Vec<Vec<Sample>> = (0..FLOWS).map(flow).collect();
    for algorithm in all() {
        let candidate = Candidate { algorithm, settings: Vec::new() };
        let rate = best(|| {
            let mut replay = Replay::new(vec![candidate.clone()], ALL);
            for (flow, samples) in flows.iter().enumerate() {
                let run = Run { flow: flow as u64, samples, verdicts: &[] };
                replay.feed(&run, &Known::default(), &Generations::default());
            }
            black_box(replay.finish());
            Ok(())
        })?;
        println!("{:10} {:6.1} million acknowledgments a second from memory", algorithm.name(), rate / 1e6);
    }
    let directory = std::env::temp_dir().join(format!("onramp-replay-rate-{}", std::process::id()));
    let measured = from_files(&directory, &flows);
    let _ = std::fs::remove_dir_all(&directory);
    measured
}

fn from_files(directory: &Path, flows: &[Vec<Sample>]) -> Result<(), Error> {
    let begin = Instant::now();
    let manifest = Manifest { schema: SCHEMA, ..Manifest::default() };
    let mut writer = Writer::create(directory, manifest, Limits::default())?;
    for (flow, samples) in flows.iter().enumerate() {
        let flow = flow as u64;
        writer.push(FlowRow {
            flow,
            event: "start".into(),
            algorithm: "search".into(),
            ..FlowRow::default()
        })?;
        for sample in samples {
            let row = AckRow::new(flow, &sample.ack, &Verdict::default(), "grow".into());
            writer.push(AckRow { slow_starts: 1, ..row })?;
        }
    }
    let bytes: u64 = writer.finish(0)?.files.iter().map(|file| file.bytes).sum();
    let count = (FLOWS * ACKS) as f64;
    println!(
        "writing    {:6.1} million acknowledgments a second, {:.1} bytes each",
        count / begin.elapsed().as_secs_f64() / 1e6,
        bytes as f64 / count
    );
    for algorithm in all() {
        let candidate = Candidate { algorithm, settings: Vec::new() };
        let rate = best(|| {
            let mut recording = Recording::open(directory)?;
            black_box(replay(&mut recording, Replay::new(vec![candidate.clone()], ALL)));
            Ok(())
        })?;
        println!("{:10} {:6.1} million acknowledgments a second from files", algorithm.name(), rate / 1e6);
    }
    Ok(())
}

fn best(mut measured: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        measured()?;
        least = least.min(begin.elapsed().as_secs_f64());
    }
    Ok((FLOWS * ACKS) as f64 / least)
}

fn flow(number: u64) -> Vec<Sample> {
    let interval_us = 20 + number;
    let sample = |index: u64| {
        let (acked, cwnd) = (index + 1, 10 + index as u32);
        let ack = Ack {
            now_us: 500_000 + index * interval_us,
            bytes_acked: acked * 1_448,
            bytes_sent: (2 * acked + 10) * 1_448,
            bytes_outstanding: (acked as u32 + 10) * 1_448,
            delivered: acked as u32,
            acked: 1,
            rtt_us: 500_000 + (index % 977) as i32,
            smoothed_rtt_us: 500_400,
            min_rtt_us: 500_000,
            cwnd,
            ssthresh: 0x7fff_ffff,
            in_flight: cwnd,
            mss: 1_448,
            gso_max_size: 65_536,
            ..Ack::default()
        };
        Sample { ack, slow_starts: 1, ..Sample::default() }
    };
    (0..ACKS).map(sample).collect()
}
