//! Nanoseconds per acknowledgment in slow start, of every algorithm side by side.

use onramp_lab::experiment::{self, Amount, Arm, Clock, Plan};
use onramp_lab::guest;
use onramp_loader::Yardstick;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, Algorithm};
use onramp_loader::cost::{Callback, RunStatistics, callbacks};
use onramp_profiles::Profile;
use serde::Serialize;

use crate::arm::Arms;
use crate::output::Output;
use crate::table::Table;
use onramp_lab::stats::median;

/// Bytes of a transfer: slow start from first to last on the link of [`super::LINK`], of whose window it needs a third.
pub(super) const BYTES: u64 = 20_000_000;
/// The setting that makes an algorithm pace, where it has one.
const SPACED: &str = "pacing";
/// The setting that makes an algorithm exit at a window, where it has one: bytes from which on a transfer is congestion avoidance.
const EXITS: &str = "exit_window_bytes";
const EXITS_BYTES: u32 = 1_000_000;
/// The same in segments.
const EXITS_SEGMENTS: u32 = EXITS_BYTES / 1_448;

#[derive(Serialize)]
pub(super) struct SlowStart {
    rounds: u32,
    bytes: u64,
    /// Instructions that a guest executes in a nanosecond of its time; none outside of one.
    instructions_per_nanosecond: Option<u64>,
    /// Bytes of every flow's state before the algorithm's own.
    header_bytes: usize,
    /// Of each call, what calling and counting take, as of an operation that does nothing.
    call_ns: f64,
    /// Of the kernel's own CUBIC, HyStart included, per ACK: in slow start and in congestion avoidance.
    cubic_ns: f64,
    cubic_avoiding_ns: f64,
    algorithms: Vec<SlowStartRow>,
}

#[derive(Serialize)]
struct SlowStartRow {
    algorithm: &'static str,
    /// The algorithm, with settings where these are not its defaults.
    arm: String,
    /// Of all operations together, per call of `pkts_acked`, which comes with every ACK: median of the rounds.
    per_ack_ns: f64,
    /// The same without what calling and counting take.
    own_ns: f64,
    /// That over CUBIC's.
    to_cubic: f64,
    /// Acknowledgments in all rounds.
    acks: u64,
    /// Of these, the share on which the algorithm gave a verdict.
    evaluated: f64,
    /// Bytes of its own state that each such flow keeps.
    state_bytes: usize,
    operations: Vec<Operation>,
    rounds_ns: Vec<f64>,
}

#[derive(Serialize)]
struct Operation {
    operation: &'static str,
    calls: u64,
    ns_per_call: f64,
}

/// What one arm has run up so far.
struct Account {
    algorithm: Algorithm,
    arm: String,
    operations: Vec<Callback>,
    evaluated: u64,
    rounds_ns: Vec<f64>,
}

impl Account {
    fn open(algorithm: Algorithm, arm: String) -> anyhow::Result<Self> {
        Ok(Self {
            algorithm,
            arm,
            operations: callbacks(algorithm)?,
            evaluated: evaluated(algorithm)?,
            rounds_ns: Vec::new(),
        })
    }

    fn close_round(&mut self) -> anyhow::Result<()> {
        let now = callbacks(self.algorithm)?;
        let (before, after) = (totals(&self.operations), totals(&now));
        self.rounds_ns.push((after.0 - before.0) as f64 / (after.1 - before.1) as f64);
        self.operations = now;
        Ok(())
    }
}

/// Nanoseconds of all operations, and acknowledgments.
fn totals(operations: &[Callback]) -> (u64, u64) {
    let acks = operations.iter().find(|one| one.name == "pkts_acked").map_or(0, |one| one.calls);
    (operations.iter().map(|one| one.nanoseconds).sum(), acks)
}

/// Verdicts so far.
fn evaluated(algorithm: Algorithm) -> anyhow::Result<u64> {
    let state = onramp_loader::attached_state(algorithm)?;
    Ok(state.map_or(0, |state| state.counters.verdicts()))
}

/// What the kernel's own CUBIC takes for the same transfer.
struct Cubic {
    /// Nanoseconds of a call that does nothing.
    call_ns: f64,
    /// Per ACK without these.
    own_ns: f64,
}

impl Cubic {
    /// `threshold`: segments at which slow start ends; 0: it does not.
    fn measure(plan: &Plan, rounds: u32, threshold: u32, output: &Output) -> anyhow::Result<Self> {
        let registered = Yardstick::register(threshold)?;
        for round in 0..rounds {
            output.step(&format!("slow start: round {} of {rounds}, CUBIC …", round + 1));
            experiment::run_once(plan, &Arm::stock(Yardstick::CONTROL), u64::from(round))?;
        }
        let operations = registered.callbacks()?;
        let (empty, others): (Vec<_>, Vec<Callback>) =
            operations.into_iter().partition(|one| one.name == Yardstick::EMPTY);
        let call_ns = empty.iter().map(|one| one.nanoseconds as f64 / one.calls as f64).sum();
        Ok(Self { call_ns, own_ns: own_ns(&others, call_ns) })
    }
}

/// Nanoseconds of these operations per ACK without what calls that do nothing take.
fn own_ns(operations: &[Callback], call_ns: f64) -> f64 {
    let (nanoseconds, acks) = totals(operations);
    let calls: u64 = operations.iter().map(|one| one.calls).sum();
    (nanoseconds as f64 - calls as f64 * call_ns) / acks as f64
}

/// Transfers of every algorithm over the link, in turns, while the kernel counts; of those that can pace; of one that leaves
/// slow start early; and of CUBIC.
pub(super) fn measure(
    profile: &Profile,
    rounds: u32,
    bytes: u64,
    output: &Output,
) -> anyhow::Result<SlowStart> {
    let _counting = RunStatistics::enable("bench")?;
    let has = |one: &Algorithm, setting| one.declarations().any(|parameter| parameter.name == setting);
    let with = |setting: &'static str, value: String| {
        let able = algorithm::all().filter(move |one| has(one, setting));
        able.map(move |one| (one, format!("{}:{setting}={value}", one.name()))).collect()
    };
    let plan = Plan { amount: Amount::Bytes(bytes), repetitions: 1, ..Plan::new(profile.clone()) };
    let cubic = Cubic::measure(&plan, rounds, 0, output)?;
    let avoiding = Cubic::measure(&plan, rounds, EXITS_SEGMENTS, output)?;
    let named = algorithm::all().map(|one| (one, one.name().to_owned())).collect();
    let mut algorithms = turns(&plan, rounds, named, &cubic, output)?;
    algorithms.extend(turns(&plan, rounds, with(SPACED, "on".to_owned()), &cubic, output)?);
    algorithms.extend(turns(&plan, rounds, with(EXITS, EXITS_BYTES.to_string()), &avoiding, output)?);
    Ok(SlowStart {
        rounds,
        bytes,
        instructions_per_nanosecond: guest::inside::is_here().then_some(guest::INSTRUCTIONS_PER_NANOSECOND),
        header_bytes: size_of::<FlowHeader>(),
        call_ns: cubic.call_ns,
        cubic_ns: cubic.own_ns,
        cubic_avoiding_ns: avoiding.own_ns,
        algorithms,
    })
}

/// Transfers of these arms, each of another algorithm, in turns.
fn turns(
    plan: &Plan,
    rounds: u32,
    named: Vec<(Algorithm, String)>,
    cubic: &Cubic,
    output: &Output,
) -> anyhow::Result<Vec<SlowStartRow>> {
    let names: Vec<_> = named.iter().map(|(_, name)| name.clone()).collect();
    let arms = Arms::prepare(&names, &plan.profile, &[], &Clock::Machine)?;
    let open = |(one, name)| Account::open(one, name);
    let mut accounts: Vec<Account> = named.into_iter().map(open).collect::<Result<_, _>>()?;
    let before: Vec<_> = accounts.iter().map(|one| (one.operations.clone(), one.evaluated)).collect();
    for round in 0..rounds {
        // The first in one round is the last in the next.
        for turn in 0..accounts.len() {
            let at = (round as usize + turn) % accounts.len();
            let (account, arm) = (&mut accounts[at], &arms.arms[at]);
            output.step(&format!("slow start: round {} of {rounds}, {} …", round + 1, arm.name));
            experiment::run_once(plan, arm, u64::from(round))?;
            account.close_round()?;
        }
    }
    let accounts = accounts.into_iter().zip(before);
    accounts.map(|(account, (operations, verdicts))| row(account, &operations, verdicts, cubic)).collect()
}

fn row(account: Account, before: &[Callback], verdicts: u64, cubic: &Cubic) -> anyhow::Result<SlowStartRow> {
    let since: Vec<_> = account.operations.iter().filter_map(|now| run_up(now, before)).collect();
    let (acks, own_ns) = (totals(&since).1, own_ns(&since, cubic.call_ns));
    let operations = since.iter().map(|one| Operation {
        operation: one.name,
        calls: one.calls,
        ns_per_call: one.nanoseconds as f64 / one.calls as f64,
    });
    Ok(SlowStartRow {
        algorithm: account.algorithm.name(),
        per_ack_ns: median(account.rounds_ns.iter().copied()),
        own_ns,
        to_cubic: own_ns / cubic.own_ns,
        acks,
        evaluated: (evaluated(account.algorithm)? - verdicts) as f64 / acks as f64,
        state_bytes: if account.arm.contains(SPACED) {
            account.algorithm.state_size()
        } else {
            account.algorithm.kept_size()
        },
        operations: operations.collect(),
        rounds_ns: account.rounds_ns,
        arm: account.arm,
    })
}

/// What an operation has run up since; `None`: nothing.
fn run_up(now: &Callback, before: &[Callback]) -> Option<Callback> {
    let then = before.iter().find(|then| then.name == now.name);
    let calls = now.calls - then.map_or(0, |then| then.calls);
    let nanoseconds = now.nanoseconds - then.map_or(0, |then| then.nanoseconds);
    (calls > 0).then_some(Callback { name: now.name, calls, nanoseconds })
}

pub(super) fn text(report: &SlowStart, output: &Output) -> String {
    // What a guest's time counts are its instructions.
    let (call, ack, per_ns) = match report.instructions_per_nanosecond {
        Some(instructions) => (">INSTRUCTIONS/CALL", ">INSTRUCTIONS/ACK", instructions as f64),
        None => (">NS/CALL", ">NS/ACK", 1.0),
    };
    let mut operations = Table::new(["ALGORITHM", "OPERATION", ">CALLS", call]);
    let mut rows =
        Table::new(["ALGORITHM", ">ACKS", ">EVALUATED", ack, ">OWN", ">TO CUBIC", ">STATE", ">WITH HEADER"]);
    for row in &report.algorithms {
        for one in &row.operations {
            operations.push([
                row.arm.clone(),
                one.operation.to_owned(),
                one.calls.to_string(),
                format!("{:.0}", one.ns_per_call * per_ns),
            ]);
        }
        rows.push([
            row.arm.clone(),
            row.acks.to_string(),
            format!("{:.0} %", 100.0 * row.evaluated),
            format!("{:.0}", row.per_ack_ns * per_ns),
            format!("{:.0}", row.own_ns * per_ns),
            format!("{:.2}", row.to_cubic),
            format!("{} B", row.state_bytes),
            format!("{} B", report.header_bytes + row.state_bytes),
        ]);
    }
    let cubic = format!(
        "CUBIC's own {:.0}, in congestion avoidance {:.0}; a call that does nothing {:.0}",
        report.cubic_ns * per_ns,
        report.cubic_avoiding_ns * per_ns,
        report.call_ns * per_ns
    );
    format!("{}\n{}\n{cubic}\n", operations.render(output), rows.render(output))
}
