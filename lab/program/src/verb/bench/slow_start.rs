//! Nanoseconds per acknowledgment in slow start, of every algorithm side by side.

use onramp_lab::experiment::{self, Amount, Clock, Plan};
use onramp_lab::guest;
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
const BYTES: u64 = 20_000_000;
/// The setting that makes an algorithm pace, where it has one.
const SPACED: &str = "pacing";
/// Nanoseconds per acknowledgment over the reference's that no algorithm should exceed, with and without pacing.
const TARGET: f64 = 1.2;
const TARGET_SPACED: f64 = 1.3;

#[derive(Serialize)]
pub(super) struct SlowStart {
    rounds: u32,
    bytes: u64,
    target_to_plain: f64,
    spaced_target_to_plain: f64,
    /// Algorithms that exceed theirs.
    over_target: Vec<String>,
    /// Instructions that a guest executes in a nanosecond of its time; none outside of one.
    instructions_per_nanosecond: Option<u64>,
    /// Bytes of every flow's state before the algorithm's own.
    header_bytes: usize,
    algorithms: Vec<SlowStartRow>,
}

#[derive(Serialize)]
struct SlowStartRow {
    algorithm: &'static str,
    /// With pacing=on, besides the algorithm's defaults.
    paced: bool,
    /// Of all operations together, per call of `pkts_acked`, which comes with every ACK: median of the rounds.
    per_ack_ns: f64,
    /// The same over the reference's in the same round: median of the rounds.
    to_plain: f64,
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

/// What one algorithm has run up so far.
struct Account {
    algorithm: Algorithm,
    paced: bool,
    operations: Vec<Callback>,
    evaluated: u64,
    rounds_ns: Vec<f64>,
}

impl Account {
    fn open(algorithm: Algorithm, paced: bool) -> anyhow::Result<Self> {
        Ok(Self {
            algorithm,
            paced,
            operations: callbacks(algorithm)?,
            evaluated: evaluated(algorithm)?,
            rounds_ns: Vec::new(),
        })
    }

    /// Nanoseconds of all operations, and acknowledgments.
    fn totals(operations: &[Callback]) -> (u64, u64) {
        let acks = operations.iter().find(|one| one.name == "pkts_acked").map_or(0, |one| one.calls);
        (operations.iter().map(|one| one.nanoseconds).sum(), acks)
    }

    fn close_round(&mut self) -> anyhow::Result<()> {
        let now = callbacks(self.algorithm)?;
        let (before, after) = (Self::totals(&self.operations), Self::totals(&now));
        self.rounds_ns.push((after.0 - before.0) as f64 / (after.1 - before.1) as f64);
        self.operations = now;
        Ok(())
    }
}

/// Verdicts so far.
fn evaluated(algorithm: Algorithm) -> anyhow::Result<u64> {
    let state = onramp_loader::attached_state(algorithm)?;
    Ok(state.map_or(0, |state| state.counters.verdicts()))
}

/// Transfers of every algorithm over the link, in turns, while the kernel counts; then of those that can pace.
pub(super) fn measure(profile: &Profile, rounds: u32, output: &Output) -> anyhow::Result<SlowStart> {
    let _counting = RunStatistics::enable("bench")?;
    let can_space = |one: &Algorithm| one.declarations().any(|parameter| parameter.name == SPACED);
    let mut rows = turns(profile, rounds, algorithm::all().collect(), false, output)?;
    let reference = std::iter::once(algorithm::baseline());
    let paced = reference.chain(algorithm::all().filter(can_space)).collect();
    rows.extend(turns(profile, rounds, paced, true, output)?.into_iter().filter(|row| row.paced));
    Ok(SlowStart {
        rounds,
        bytes: BYTES,
        target_to_plain: TARGET,
        spaced_target_to_plain: TARGET_SPACED,
        over_target: rows.iter().filter(|row| row.to_plain > row.target()).map(SlowStartRow::name).collect(),
        instructions_per_nanosecond: guest::inside::is_here().then_some(guest::INSTRUCTIONS_PER_NANOSECOND),
        header_bytes: size_of::<FlowHeader>(),
        algorithms: rows,
    })
}

/// Transfers of these, the reference among them, in turns.
fn turns(
    profile: &Profile,
    rounds: u32,
    algorithms: Vec<Algorithm>,
    paced: bool,
    output: &Output,
) -> anyhow::Result<Vec<SlowStartRow>> {
    let names: Vec<String> = algorithms.iter().map(|one| one.name().to_owned()).collect();
    let of_ours = |name: &&String| paced && *name != algorithm::baseline().name();
    let settings: Vec<_> = names.iter().filter(of_ours).map(|name| format!("{name}.{SPACED}=on")).collect();
    let arms = Arms::prepare(&names, profile, &settings, &Clock::Machine)?;
    let plan = Plan { amount: Amount::Bytes(BYTES), repetitions: 1, ..Plan::new(profile.clone()) };
    let open = |one: Algorithm| Account::open(one, paced && one != algorithm::baseline());
    let mut accounts: Vec<Account> = algorithms.into_iter().map(open).collect::<Result<_, _>>()?;
    let before: Vec<_> = accounts.iter().map(|one| (one.operations.clone(), one.evaluated)).collect();
    for round in 0..rounds {
        // The first in one round is the last in the next.
        for turn in 0..accounts.len() {
            let at = (round as usize + turn) % accounts.len();
            let (account, arm) = (&mut accounts[at], &arms.arms[at]);
            output.step(&format!("slow start: round {} of {rounds}, {} …", round + 1, arm.name));
            experiment::run_once(&plan, arm, u64::from(round))?;
            account.close_round()?;
        }
    }
    let reference: Vec<f64> = accounts
        .iter()
        .find(|one| one.algorithm == algorithm::baseline())
        .map_or_else(Vec::new, |one| one.rounds_ns.clone());
    let accounts = accounts.into_iter().zip(before);
    accounts
        .map(|(account, (operations, verdicts))| row(account, &operations, verdicts, &reference))
        .collect()
}

impl SlowStartRow {
    fn name(&self) -> String {
        if self.paced { format!("{} {SPACED}=on", self.algorithm) } else { self.algorithm.to_owned() }
    }

    fn target(&self) -> f64 {
        if self.paced { TARGET_SPACED } else { TARGET }
    }
}

fn row(
    account: Account,
    before: &[Callback],
    verdicts: u64,
    reference: &[f64],
) -> anyhow::Result<SlowStartRow> {
    let acks = Account::totals(&account.operations).1 - Account::totals(before).1;
    let mut operations = Vec::new();
    for now in &account.operations {
        let then = before.iter().find(|then| then.name == now.name);
        let calls = now.calls - then.map_or(0, |then| then.calls);
        let nanoseconds = now.nanoseconds - then.map_or(0, |then| then.nanoseconds);
        if calls > 0 {
            let ns_per_call = nanoseconds as f64 / calls as f64;
            operations.push(Operation { operation: now.name, calls, ns_per_call });
        }
    }
    Ok(SlowStartRow {
        algorithm: account.algorithm.name(),
        paced: account.paced,
        per_ack_ns: median(account.rounds_ns.iter().copied()),
        to_plain: median(account.rounds_ns.iter().zip(reference).map(|(ours, plain)| ours / plain)),
        acks,
        evaluated: (evaluated(account.algorithm)? - verdicts) as f64 / acks as f64,
        state_bytes: if account.paced {
            account.algorithm.state_size()
        } else {
            account.algorithm.kept_size()
        },
        operations,
        rounds_ns: account.rounds_ns,
    })
}

pub(super) fn text(report: &SlowStart, output: &Output) -> String {
    // What a guest's time counts are its instructions.
    let (call, ack, per_ns) = match report.instructions_per_nanosecond {
        Some(instructions) => (">INSTRUCTIONS/CALL", ">INSTRUCTIONS/ACK", instructions as f64),
        None => (">NS/CALL", ">NS/ACK", 1.0),
    };
    let mut operations = Table::new(["ALGORITHM", "OPERATION", ">CALLS", call]);
    let mut totals =
        Table::new(["ALGORITHM", ">ACKS", ">EVALUATED", ack, ">TO PLAIN", ">STATE", ">WITH HEADER"]);
    for row in &report.algorithms {
        for one in &row.operations {
            operations.push([
                row.name(),
                one.operation.to_owned(),
                one.calls.to_string(),
                format!("{:.0}", one.ns_per_call * per_ns),
            ]);
        }
        totals.push([
            row.name(),
            row.acks.to_string(),
            format!("{:.0} %", 100.0 * row.evaluated),
            format!("{:.0}", row.per_ack_ns * per_ns),
            format!("{:.2}", row.to_plain),
            format!("{} B", row.state_bytes),
            format!("{} B", report.header_bytes + row.state_bytes),
        ]);
    }
    let verdict = if report.over_target.is_empty() {
        format!("none takes more than {TARGET} x plain per ACK, or {TARGET_SPACED} x with {SPACED}=on")
    } else {
        format!(
            "over {TARGET} x plain per ACK, or {TARGET_SPACED} x with {SPACED}=on: {}",
            report.over_target.join(", ")
        )
    };
    format!("{}\n{}\n{verdict}\n", operations.render(output), totals.render(output))
}
