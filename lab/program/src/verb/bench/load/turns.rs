//! The same load on two controls, which take turns.

use std::time::Duration;

use serde::Serialize;

use super::super::slab::slab_bytes;
use super::clients::{Load, Stop};
use super::latency::Quantiles;
use super::settle;
use crate::output::Output;
use onramp_lab::stats::median;

/// Both controls' figures, ours last.
#[derive(Serialize)]
pub(super) struct Turns {
    pub arms: [Arm; 2],
    /// Ours over the other's in the same pair of turns, median of the pairs.
    pub cpu_ratio: f64,
    pub p50_ratio: f64,
    pub p99_ratio: f64,
    /// By which memory in use grew from the end of the first pair to that of the last, bytes per connection.
    pub memory_growth_bytes_per_connection: f64,
}

#[derive(Serialize)]
pub(super) struct Arm {
    pub arm: String,
    /// All of which had all they asked for.
    pub connections: u64,
    pub connections_per_second: f64,
    pub goodput_bps: f64,
    /// Of both ends: median of the turns.
    pub cpu_us_per_connection: f64,
    pub turns: Vec<Turn>,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Turn {
    connections: u64,
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
    latency: Quantiles,
}

impl Turn {
    fn take(load: Load<'_>, time: Duration, stop: &Stop) -> anyhow::Result<Self> {
        let stretch = load.run(time, stop)?;
        Ok(Self {
            connections: stretch.latency.count() as u64,
            bytes: stretch.bytes,
            seconds: stretch.seconds,
            cpu_seconds: stretch.cpu_seconds,
            latency: stretch.latency.quantiles(),
        })
    }

    fn cpu_us_per_connection(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.connections as f64
    }
}

impl Arm {
    fn new(arm: &str, turns: Vec<Turn>) -> Self {
        let connections = turns.iter().map(|turn| turn.connections).sum();
        let seconds: f64 = turns.iter().map(|turn| turn.seconds).sum();
        let bytes: u64 = turns.iter().map(|turn| turn.bytes).sum();
        Self {
            arm: arm.to_owned(),
            connections,
            connections_per_second: connections as f64 / seconds,
            goodput_bps: bytes as f64 * 8.0 / seconds,
            cpu_us_per_connection: median(turns.iter().map(Turn::cpu_us_per_connection)),
            turns,
        }
    }

    /// Of a quantile, microseconds: median of the turns.
    pub fn median(&self, quantile: impl Fn(&Quantiles) -> u32) -> f64 {
        median(self.turns.iter().map(|turn| f64::from(quantile(&turn.latency))))
    }

    /// The longest time of a connection, microseconds.
    pub fn max_us(&self) -> u32 {
        self.turns.iter().map(|turn| turn.latency.max_us).max().unwrap_or(0)
    }
}

/// So many pairs of turns of this time each. The first in one pair is the second in the next.
pub(super) fn measure(
    arms: [(&str, Load<'_>); 2],
    pairs: u32,
    time: Duration,
    stop: &Stop,
    output: &Output,
) -> anyhow::Result<Turns> {
    let mut turns = [Vec::new(), Vec::new()];
    let mut first = None;
    for pair in 0..pairs {
        output.step(&format!("load: pair {} of {pairs} …", pair + 1));
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for at in order {
            turns[at].push(Turn::take(arms[at].1, time, stop)?);
        }
        if first.is_none() {
            settle();
            first = Some(slab_bytes()?);
        }
    }
    settle();
    let last = slab_bytes()? as f64;
    let [theirs, ours] = turns;
    let ratio = |of: &dyn Fn(&Turn) -> f64| {
        median(ours.iter().zip(&theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
    };
    let since_first: u64 = theirs.iter().chain(&ours).map(|turn| turn.connections).sum::<u64>()
        - theirs[0].connections
        - ours[0].connections;
    Ok(Turns {
        cpu_ratio: ratio(&Turn::cpu_us_per_connection),
        p50_ratio: ratio(&|turn| turn.latency.p50_us.into()),
        p99_ratio: ratio(&|turn| turn.latency.p99_us.into()),
        memory_growth_bytes_per_connection: first.map_or(0.0, |first| last - first as f64)
            / since_first.max(1) as f64,
        arms: [Arm::new(arms[0].0, theirs), Arm::new(arms[1].0, ours)],
    })
}
