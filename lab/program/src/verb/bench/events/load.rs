//! The flows, and looks at what they and their consumer have come to.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use onramp_lab::experiment::{self, Arm, Parallel};
use onramp_lab::host::RECEIVER;
use onramp_net::Namespace;

use super::FLOWS;
use crate::consumer::Signals;

/// From the start of the flows to the first look: connections are made, slow start is over.
const WARM_UP: Duration = Duration::from_secs(2);
/// What the flows go on for at least after the last look.
const MARGIN: Duration = Duration::from_secs(1);

/// Counters at one time.
pub(super) struct Look {
    pub at: Instant,
    /// Events of all flows: each flow numbers its own, and what is lost is numbered too.
    pub numbered: u64,
    /// Of those, what the consumer lost.
    pub lost: u64,
    pub unobserved: Duration,
    pub consumer_seconds: f64,
    pub machine_seconds: f64,
}

impl Look {
    fn take(sender: &Namespace, pid: u32) -> anyhow::Result<Self> {
        let consumers = onramp_loader::consumers()?;
        let consumer = consumers.iter().find(|one| one.pid == pid).context("the consumer has ended early")?;
        let flows = sender.run(|| {
            let flows = onramp_loader::flows(|socket| socket.remote.ip().to_canonical() == RECEIVER)?;
            let kept = flows.iter().filter_map(|flow| flow.telemetry);
            Ok::<Vec<u64>, onramp_loader::Error>(kept.map(|kept| kept.sequence.into()).collect())
        })??;
        let (there, all) = (flows.len(), usize::from(FLOWS));
        ensure!(there == all, "{there} of {all} flows are in progress: is the machine too busy?");
        Ok(Self {
            at: Instant::now(),
            numbered: flows.iter().sum(),
            lost: consumer.lost,
            unobserved: consumer.unobserved,
            consumer_seconds: experiment::process_seconds(pid)?,
            machine_seconds: experiment::busy_seconds()?,
        })
    }
}

/// Two looks, and what the flows carried.
pub(super) struct Measured {
    pub first: Look,
    pub last: Look,
    pub goodput_bps: f64,
}

/// How long the flows must run for a measurement of this time, seconds.
pub(super) fn seconds(time: Duration) -> u32 {
    (WARM_UP + time + MARGIN).as_secs_f64().ceil() as u32
}

/// Runs the flows, and looks after the warm-up and so much later at the consumer of this process.
pub(super) fn measure(
    control: &str,
    load: Parallel,
    pid: u32,
    time: Duration,
    signals: &Signals,
) -> anyhow::Result<Measured> {
    let mut looks: Vec<Look> = Vec::new();
    let mut failed = None;
    let mut interrupted = false;
    let flows =
        experiment::parallel_over_veth(&Arm::stock(control), load, Path::new("iperf3"), |sender, elapsed| {
            let due = match looks.as_slice() {
                [] => elapsed >= WARM_UP,
                [first] => first.at.elapsed() >= time,
                _ => false,
            };
            if due {
                match Look::take(sender, pid) {
                    Ok(look) => looks.push(look),
                    Err(error) => failed = Some(error),
                }
            }
            interrupted = signals.came();
            failed.is_none() && !interrupted
        });
    // Ctrl-C also reaches iperf3, whose end would be the error otherwise.
    if interrupted || signals.came() {
        bail!("interrupted; nothing is left of the measurement");
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let goodput_bps = flows?;
    match <[Look; 2]>::try_from(looks) {
        Ok([first, last]) => Ok(Measured { first, last, goodput_bps }),
        Err(_) => bail!("the flows ended before the measurement: is the machine too busy?"),
    }
}
