//! What consumers of telemetry cost: nanoseconds per acknowledgment without consumers, and with consumers of each
//! level.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onramp_lab::experiment::{self, Amount, Clock, Plan};
use onramp_loader::cost::{Callback, RunStatistics, callbacks};
use onramp_loader::telemetry::{Item, Level, Options, Stream};
use onramp_profiles::Profile;
use serde::Serialize;

use onramp_lab::stats::median;

use super::ALGORITHM;
use crate::arm::Arms;
use crate::output::Output;
use crate::table::Table;

/// Bytes of a transfer, as in [`super::slow_start`].
const BYTES: u64 = 20_000_000;
/// The consumers.
const AUDIENCES: [(&str, &[Level]); 5] = [
    ("none", &[]),
    ("exit", &[Level::Exit]),
    ("round", &[Level::Round]),
    ("ack", &[Level::Ack]),
    ("ack twice", &[Level::Ack, Level::Ack]),
];

#[derive(Serialize)]
pub(super) struct Telemetry {
    arm: &'static str,
    rounds: u32,
    bytes: u64,
    audiences: Vec<TelemetryRow>,
}

#[derive(Serialize)]
struct TelemetryRow {
    consumers: &'static str,
    /// Of all operations together, per call of `pkts_acked`: median of the rounds.
    per_ack_ns: f64,
    /// Over that without consumers in the same round: median of the rounds.
    to_no_consumer: f64,
    /// Of all listeners together, per acknowledgment.
    events_per_ack: f64,
    lost_events: u64,
    /// What an event adds, nanoseconds: median of the rounds; none where there are fewer than one in ten ACKs.
    per_event_ns: Option<f64>,
}

/// What one audience has run up.
#[derive(Default)]
struct Account {
    rounds_ns: Vec<f64>,
    rounds_events: Vec<f64>,
    lost: u64,
}

/// A consumer that reads and counts.
pub(super) struct Listener {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(u64, u64), onramp_loader::Error>>,
}

impl Listener {
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        let mut stream = Stream::open(options)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut events, mut lost) = (0, 0);
            loop {
                match stream.next_within(Duration::from_millis(200))? {
                    Some(Item::Event(_)) => events += 1,
                    Some(Item::Lost(some)) => lost += some.events,
                    None if stopped.load(Ordering::Relaxed) => return Ok((events, lost)),
                    None => {}
                }
            }
        });
        Ok(Self { stop, thread })
    }

    /// Events read and lost.
    pub fn stop(self) -> anyhow::Result<(u64, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        let counted = self.thread.join().map_err(|_| anyhow::anyhow!("a listener has panicked"))?;
        Ok(counted?)
    }
}

fn totals(operations: &[Callback]) -> (u64, u64) {
    let acks = operations.iter().find(|one| one.name == "pkts_acked").map_or(0, |one| one.calls);
    (operations.iter().map(|one| one.nanoseconds).sum(), acks)
}

/// Transfers in slow start before each audience, in turns, while the kernel counts.
pub(super) fn measure(profile: &Profile, rounds: u32, output: &Output) -> anyhow::Result<Telemetry> {
    let arms = Arms::prepare(&[ALGORITHM.to_owned()], profile, &[], &Clock::Machine)?;
    let algorithm = onramp_loader::find(ALGORITHM)?;
    let _counting = RunStatistics::enable("bench")?;
    let plan = Plan { amount: Amount::Bytes(BYTES), repetitions: 1, ..Plan::new(profile.clone()) };
    let mut accounts: Vec<Account> = AUDIENCES.iter().map(|_| Account::default()).collect();
    for round in 0..rounds {
        for turn in 0..AUDIENCES.len() {
            let at = (round as usize + turn) % AUDIENCES.len();
            let (name, levels) = AUDIENCES[at];
            output.step(&format!("telemetry: round {} of {rounds}, {name} …", round + 1));
            let listeners = levels.iter().map(|level| Listener::start(&Options::new("bench", *level)));
            let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
            let before = totals(&callbacks(algorithm)?);
            experiment::run_once(&plan, &arms.arms[0], u64::from(round))?;
            let after = totals(&callbacks(algorithm)?);
            let acks = (after.1 - before.1) as f64;
            let account = &mut accounts[at];
            let mut events = 0;
            for listener in listeners {
                let (read, lost) = listener.stop()?;
                events += read;
                account.lost += lost;
            }
            account.rounds_ns.push((after.0 - before.0) as f64 / acks);
            account.rounds_events.push(events as f64 / acks);
        }
    }
    let none = accounts[0].rounds_ns.clone();
    let rows = AUDIENCES.iter().zip(accounts).map(|((name, _), account)| row(name, account, &none));
    Ok(Telemetry { arm: ALGORITHM, rounds, bytes: BYTES, audiences: rows.collect() })
}

fn row(consumers: &'static str, account: Account, none: &[f64]) -> TelemetryRow {
    let with = || account.rounds_ns.iter().zip(none);
    let events_per_ack = median(account.rounds_events.iter().copied());
    let added = with().zip(&account.rounds_events).map(|((ours, none), events)| (ours - none) / events);
    TelemetryRow {
        consumers,
        per_ack_ns: median(account.rounds_ns.iter().copied()),
        to_no_consumer: median(with().map(|(ours, none)| ours / none)),
        per_event_ns: (events_per_ack >= 0.1).then(|| median(added)),
        events_per_ack,
        lost_events: account.lost,
    }
}

pub(super) fn text(report: &Telemetry, output: &Output) -> String {
    let mut table = Table::new(["CONSUMERS", ">NS/ACK", ">TO NONE", ">EVENTS/ACK", ">NS/EVENT", ">LOST"]);
    for row in &report.audiences {
        table.push([
            row.consumers.to_owned(),
            format!("{:.0}", row.per_ack_ns),
            format!("{:.2}", row.to_no_consumer),
            format!("{:.3}", row.events_per_ack),
            row.per_event_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}")),
            row.lost_events.to_string(),
        ]);
    }
    format!("telemetry of {}:\n{}", report.arm, table.render(output))
}
