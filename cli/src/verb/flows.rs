//! `onramp flows`.

use std::path::{Path, PathBuf};

use clap::Args;
use onramp_loader::abi::Start;
use onramp_loader::algorithm::{Algorithm, Export, OUTCOME_MAX, StartEnd, StartPhase};
use onramp_loader::{Base, Flow, Phase};
use onramp_net::Namespace;
use onramp_net::sock_diag::SockDiag;
use onramp_recording::rows::ExitRecordRow;
use serde::Serialize;

use super::ends::{Ends, canonical};
use super::others::{self, OtherFlow};
use super::why::{Asker, Why};
use crate::failure::{PARTIAL, Usage};
use crate::filter::Filter;
use crate::limits::{self, Limit, Sample};
use crate::output::{Named, Output, say};
use crate::table::Table;
use crate::units::{show_bytes, show_us, show_value};

/// List the flows that use onramp, of this network namespace or of others: where each stands, and why it exited slow start
///
/// Where nothing is attached, these are the flows of all controls, with what is known of them: `others` in JSON.
///
/// FILTER as for ss(8): `src` or `dst` with PREFIX, PREFIX:PORT or :PORT; `sport` or `dport` with a comparison, such
/// as `= :443`, `!= :22`, `>= :1024`; `and`, `or`, `not` and parentheses, read from left to right. IPv6 with a port
/// in brackets. cwnd and ssthresh are in segments; delivered is what the peer has acknowledged; retransmitted in
/// segments; `limited by` is the limit that held longest, as `onramp explain` has it; evidence is the value that the algorithm looks at, and the limit at which it ends slow start: a window in
/// segments, an RTT, or percent.
///
/// State: `idle`: all that was sent is acknowledged, and nothing was sent for a second; then where it stood: `slow start`; `left: REASON at TIME, BYTES` after the first data and acknowledged by then; `draining`: the
/// exit is decided, the window still shrinks; `adopted`: was past its start when this control took it; `detached
/// code`: the algorithm is detached and this flow still runs it; `other build`: another build attached it; `unreadable`:
/// a pin of the algorithm is broken, and the exit code is 5; `initial
/// window`: has been given no more than that to send, and has no state yet; `no state`: the base runs alone, for want of
/// memory, past a deadline, for a guard, or because there was no slow start; `no slow start` yet. Where it started from memory:
/// `start:` with the phase or how it ended, and the window that it jumped to. With `attach --observe` also `observed: would leave at TIME, BYTES`.
///
/// --why: CODE is what the kernel reports: `attached`, that of the attachment there is now; `older`, that of one that has
/// been detached since, which the flow still runs. WHY is derived: the run, rule, route or default that gives a new
/// connection of this flow's addresses, ports and cgroup its control, if that is the flow's. Where it is another, the
/// application has chosen, or things have changed since the flow began.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp flows
  onramp flows dst 198.51.100.0/24 and dport = :443
  onramp flows 'src [2001:db8::/32]:80'
  onramp flows --why dst 198.51.100.0/24
  onramp flows --netns blue
  onramp flows --all --why
  onramp flows --json | jq '.flows[] | select(.exit.reason == \"algorithm\")'")]
pub(crate) struct Flows {
    /// What chose the control of each flow, and whether it runs older code; in JSON always
    #[arg(long)]
    why: bool,
    /// Those of another network namespace: its name as in ip(8), a path, or the number of a process in it
    #[arg(long, value_name = "NAME|PATH|PID", conflicts_with = "all")]
    netns: Option<String>,
    /// Those of all network namespaces that can be found
    #[arg(long)]
    all: bool,
    /// Only flows that match, in the syntax of ss(8)
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

#[derive(Serialize)]
struct Listing {
    flows: Vec<ListedFlow>,
    /// Where nothing is attached: flows of other controls.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<Vec<OtherFlow>>,
    /// Algorithms whose pins cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Broken>,
    /// With --all: where it could not be looked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<String>,
}

/// An algorithm whose flows are listed without what it keeps of them.
#[derive(Serialize)]
struct Broken {
    algorithm: &'static str,
    error: String,
}

impl Broken {
    fn all() -> Result<Vec<Self>, onramp_loader::Error> {
        let broken = onramp_loader::unreadable()?.into_iter();
        Ok(broken.map(|(algorithm, error)| Self { algorithm: algorithm.name(), error }).collect())
    }
}

/// Flows of a network namespace, with what is printed of each.
struct Found {
    /// The namespace, where it is not this one or not the only one.
    namespace: Option<String>,
    flows: Vec<Flow>,
    whys: Vec<Option<Why>>,
    /// Where nothing is attached.
    others: Option<Vec<OtherFlow>>,
}

#[derive(Serialize)]
struct ListedFlow {
    /// With --netns and --all.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(flatten)]
    ends: Ends,
    tcp_state: &'static str,
    cookie: u64,
    algorithm: &'static str,
    base: Option<&'static str>,
    profile: Option<String>,
    state: &'static str,
    /// All that was sent is acknowledged, and nothing was sent for a second.
    idle: bool,
    cwnd_segments: u32,
    window_bytes: u64,
    ssthresh_segments: Option<u32>,
    mss_bytes: u32,
    smoothed_rtt_us: u32,
    rttvar_us: u32,
    min_rtt_us: Option<u32>,
    delivered_segments: u32,
    acknowledged_bytes: u64,
    sent_bytes: u64,
    outstanding_segments: u32,
    retransmitted_segments: u32,
    retransmitted_bytes: u64,
    lost_segments: u32,
    busy_us: u64,
    receive_window_limited_us: u64,
    send_buffer_limited_us: u64,
    idle_us: Option<u64>,
    /// The limit that held longest: by these counters, the rest as it is now. None: it has sent nothing.
    limited: Option<Limit>,
    pacing_rate_bytes_per_s: Option<u64>,
    delivery_rate_bytes_per_s: u64,
    delivery_rate_app_limited: bool,
    parameters_generation: Option<u32>,
    slow_starts: Option<u32>,
    exit: Option<ExitRecordRow>,
    observed: Option<ExitRecordRow>,
    /// It starts from memory, or has.
    start: Option<ListedStart>,
    /// Counted since the flow had a subscriber.
    outcomes: Option<Named<u32>>,
    exports: Option<Named<ExportValue>>,
    /// In JSON always.
    why: Option<Why>,
}

/// A start from memory.
#[derive(Serialize)]
struct ListedStart {
    phase: Option<StartPhase>,
    /// None: it is not over.
    end: Option<StartEnd>,
    jump_segments: Option<u32>,
    /// Remembered, or less where the first ACKs came slower.
    rate_bits_per_s: u64,
    min_rtt_us: u32,
}

impl ListedStart {
    fn new(start: &Start) -> Self {
        Self {
            phase: start.phase(),
            end: start.end(),
            jump_segments: start.jump(),
            rate_bits_per_s: start.rate.saturating_mul(8),
            min_rtt_us: start.rtt_us,
        }
    }
}

/// One number, or several.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ExportValue {
    One(u32),
    Several(Vec<u32>),
}

impl Flows {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let filter = Filter::parse(&self.filter).map_err(Usage::error)?;
        let ask = self.why || output.json();
        let mut unseen = Vec::new();
        let mut found = Vec::new();
        if self.all {
            let survey = Namespace::survey()?;
            for namespace in survey.namespaces() {
                found.push(find_in(&namespace?, &filter, ask)?);
            }
            unseen = survey.unseen();
        } else if let Some(given) = &self.netns {
            found.push(find_in(&named_namespace(given)?, &filter, ask)?);
        } else {
            found.push(find(None, &filter, ask)?);
        }
        let flows = found.iter_mut().flat_map(rows).collect();
        let others: Vec<_> = found.iter_mut().filter_map(|found| found.others.take()).collect();
        let others = (!others.is_empty()).then(|| others.into_iter().flatten().collect());
        let listing = Listing { flows, others, unreadable: Broken::all()?, unseen };
        output.data(&listing, || match &listing.others {
            Some(others) if listing.flows.is_empty() => others::text(others, output),
            _ => self.text(&found, &listing.flows, output),
        })?;
        for place in &listing.unseen {
            say(&format!("warning: not looked into, so there may be more: {place}"));
        }
        for Broken { algorithm, error } in &listing.unreadable {
            say(&format!("warning: the state of {algorithm}'s flows cannot be read: {error}"));
        }
        Ok(if listing.unreadable.is_empty() { 0 } else { PARTIAL })
    }

    /// A table; with --all one for each network namespace that has flows.
    fn text(&self, found: &[Found], mut rows: &[ListedFlow], output: &Output) -> String {
        let mut text = String::new();
        for Found { namespace, flows, .. } in found {
            let of_this;
            (of_this, rows) = rows.split_at(flows.len());
            if flows.is_empty() && self.all {
                continue;
            }
            if let Some(namespace) = namespace {
                text += &format!("network namespace {namespace}\n");
            }
            text += &if self.why { why_text(flows, of_this, output) } else { table_text(flows, output) };
        }
        if text.is_empty() { "no network namespace has flows of onramp\n".into() } else { text }
    }
}

/// By its name as in ip(8), its path, or the number of a process in it.
fn named_namespace(given: &str) -> anyhow::Result<Namespace> {
    let path = if given.contains('/') {
        PathBuf::from(given)
    } else if given.bytes().all(|byte| byte.is_ascii_digit()) {
        PathBuf::from(format!("/proc/{given}/ns/net"))
    } else {
        Path::new("/run/netns").join(given)
    };
    Namespace::open(&path).map_err(|error| {
        Usage::error(format!(
            "--netns {given:?}: {error}; expected a name of `ip netns`, the path of a namespace, or the number of a process"
        ))
    })
}

fn find_in(namespace: &Namespace, filter: &Filter, ask: bool) -> anyhow::Result<Found> {
    namespace.run(|| find(Some(namespace.to_string()), filter, ask))?
}

/// In the current namespace.
fn find(namespace: Option<String>, filter: &Filter, ask: bool) -> anyhow::Result<Found> {
    let mut flows = onramp_loader::flows(|socket| filter.matches(socket.local, socket.remote))?;
    flows.sort_by_key(|flow| (flow.remote, flow.local));
    let mut asker = ask.then(Asker::here).transpose()?;
    let whys = flows.iter().map(|flow| asker.as_mut().map(|asker| asker.ask(flow))).collect();
    let others = others::list(&mut SockDiag::open()?, namespace.as_deref(), |local, remote| {
        filter.matches(local, remote)
    })?;
    Ok(Found { namespace, flows, whys, others })
}

fn rows(found: &mut Found) -> impl Iterator<Item = ListedFlow> {
    let Found { namespace, flows, whys, .. } = found;
    flows.iter().zip(whys).map(|(flow, why)| row(namespace.clone(), flow, why.take()))
}

fn row(namespace: Option<String>, flow: &Flow, why: Option<Why>) -> ListedFlow {
    let info = &flow.info;
    let header = flow.header.as_ref();
    let exit = match flow.phase() {
        Phase::Left(_, record) | Phase::Exiting(_, record) => Some(ExitRecordRow::new(&record)),
        _ => None,
    };
    ListedFlow {
        namespace,
        ends: Ends::new(flow.local, flow.remote),
        tcp_state: flow.state.name(),
        cookie: flow.cookie,
        algorithm: flow.algorithm.name(),
        base: flow.base.map(|base| base.name()),
        profile: flow.profile.clone(),
        state: state(flow),
        idle: idle(flow),
        cwnd_segments: info.snd_cwnd,
        window_bytes: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
        ssthresh_segments: info.snd_ssthresh,
        mss_bytes: info.snd_mss,
        smoothed_rtt_us: info.rtt_us,
        rttvar_us: info.rttvar_us,
        min_rtt_us: info.min_rtt_us,
        delivered_segments: info.delivered,
        acknowledged_bytes: info.bytes_acked,
        sent_bytes: info.bytes_sent,
        outstanding_segments: info.unacked,
        retransmitted_segments: info.retrans_total,
        retransmitted_bytes: info.bytes_retrans,
        lost_segments: info.lost,
        busy_us: info.busy_time_us,
        receive_window_limited_us: info.rwnd_limited_us,
        send_buffer_limited_us: info.sndbuf_limited_us,
        idle_us: flow.idle_us(),
        limited: limited(flow),
        pacing_rate_bytes_per_s: info.pacing_rate_bytes_per_s,
        delivery_rate_bytes_per_s: info.delivery_rate_bytes_per_s,
        delivery_rate_app_limited: info.delivery_rate_app_limited,
        parameters_generation: header.map(|header| header.generation),
        slow_starts: header.map(|header| header.slow_starts.into()),
        exit,
        observed: flow.observed().map(|record| ExitRecordRow::new(&record)),
        start: flow.start.as_ref().map(ListedStart::new),
        outcomes: flow.telemetry.map(|kept| outcomes(flow.algorithm, kept.outcomes)),
        exports: header.map(|_| named(flow.exports())),
        why,
    }
}

/// Verdicts by outcome.
pub(super) fn outcomes(algorithm: Algorithm, counted: [u32; OUTCOME_MAX]) -> Named<u32> {
    let named = algorithm.outcomes().zip(counted);
    Named(named.filter(|(one, _)| !one.name.is_empty()).map(|(one, number)| (one.name, number)).collect())
}

/// Exports by name.
pub(super) fn named(exports: Vec<(Export, Vec<u32>)>) -> Named<ExportValue> {
    let words = |values: Vec<u32>| match values[..] {
        [one] => ExportValue::One(one),
        _ => ExportValue::Several(values),
    };
    Named(exports.into_iter().map(|(export, values)| (export.name, words(values))).collect())
}

/// The state as a stable word.
fn state(flow: &Flow) -> &'static str {
    match flow.phase() {
        _ if flow.other_build => "other_build",
        _ if flow.unreadable => "unreadable",
        _ if flow.base.is_none() => "detached_code",
        Phase::Unknown if flow.in_initial_window() => "initial_window",
        Phase::Unknown if flow.header.is_none() => "no_state",
        Phase::Unknown => "no_slow_start",
        Phase::SlowStart => "slow_start",
        Phase::Exiting(..) => "draining",
        Phase::Left(..) => "left",
        Phase::Adopted => "adopted",
    }
}

/// Whether all that was sent is acknowledged, and nothing was sent for a second: its window says nothing of the path.
fn idle(flow: &Flow) -> bool {
    let info = &flow.info;
    info.bytes_sent > 0 && info.unacked == 0 && info.notsent_bytes == 0 && info.last_data_sent_ms >= 1_000
}

fn limited(flow: &Flow) -> Option<Limit> {
    let models_path = flow.base == Some(Base::Bbr);
    let now = Sample { at_us: 0, info: flow.info, memory: flow.memory, models_path };
    limits::of_life(now, flow.idle_us().unwrap_or(0))
}

fn state_text(flow: &Flow) -> String {
    let observed = flow.observed().map(|record| {
        format!("; observed: would leave at {}, {}", show_us(record.at_us), show_bytes(record.bytes_acked))
    });
    let idle = if idle(flow) { "idle; " } else { "" };
    let start = flow.start.as_ref().map(start_text).unwrap_or_default();
    format!("{idle}{}{start}{}", phase_text(flow), observed.unwrap_or_default())
}

/// `; start: validated, jump to 402`.
fn start_text(start: &Start) -> String {
    let at = start.end().map(StartEnd::name).or(start.phase().map(StartPhase::name)).unwrap_or("unknown");
    let jump = start.jump().map(|segments| format!(", jump to {segments}"));
    format!("; start: {}{}", at.replace('_', " "), jump.unwrap_or_default())
}

fn phase_text(flow: &Flow) -> String {
    match flow.phase() {
        Phase::Left(reason, record) if flow.base.is_some() => format!(
            "left: {} at {}, {}",
            reason.name().replace('_', " "),
            show_us(record.at_us),
            show_bytes(record.bytes_acked)
        ),
        _ => state(flow).replace('_', " "),
    }
}

fn table_text(flows: &[Flow], output: &Output) -> String {
    let mut table = Table::new([
        "LOCAL",
        "REMOTE",
        "ALGORITHM",
        "PROFILE",
        "BASE",
        "STATE",
        "LIMITED BY",
        ">CWND",
        ">SSTHRESH",
        ">RTT",
        ">MIN RTT",
        ">DELIVERED",
        ">RETRANSMITTED",
        ">EVIDENCE",
    ]);
    let dash = || "-".to_owned();
    for flow in flows {
        let info = &flow.info;
        table.push([
            canonical(flow.local),
            canonical(flow.remote),
            flow.algorithm.name().to_owned(),
            flow.profile.clone().unwrap_or_else(dash),
            flow.base.map_or("-", |base| base.name()).to_owned(),
            state_text(flow),
            limited(flow).map_or_else(dash, Limit::title),
            info.snd_cwnd.to_string(),
            info.snd_ssthresh.map_or_else(dash, |segments| segments.to_string()),
            show_us(info.rtt_us.into()),
            info.min_rtt_us.map_or_else(dash, |us| show_us(us.into())),
            show_bytes(info.bytes_acked),
            info.retrans_total.to_string(),
            evidence_text(flow).unwrap_or_else(dash),
        ]);
    }
    table.render(output)
}

/// `21 % of 26 %`: the value that the algorithm shows, and its limit.
fn evidence_text(flow: &Flow) -> Option<String> {
    let (track, reading) = flow.evidence()?;
    let value = show_value(track.unit, reading.value?);
    Some(match reading.limit {
        Some(limit) => format!("{value} of {}", show_value(track.unit, limit)),
        None => value,
    })
}

fn why_text(flows: &[Flow], rows: &[ListedFlow], output: &Output) -> String {
    let mut table = Table::new(["LOCAL", "REMOTE", "ALGORITHM", "PROFILE", "CODE", "WHY"]);
    for (flow, row) in flows.iter().zip(rows) {
        let (code, why) = row.why.as_ref().map_or(("", ""), |why| (why.code, &why.explanation));
        let (local, remote) = (canonical(flow.local), canonical(flow.remote));
        let profile = row.profile.clone().unwrap_or_else(|| "-".into());
        let code = code.replace('_', " ");
        table.push([local, remote, row.algorithm.to_owned(), profile, code, why.to_owned()]);
    }
    table.render(output)
}
