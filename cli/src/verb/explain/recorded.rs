//! Flows of a recording, a packet capture or qlog, as if their sockets had been sampled at each ACK.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::anyhow;
use onramp_files::bounded;
use onramp_loader::ExitReason;
use onramp_loader::algorithm::{CongestionState, NO_THRESHOLD};
use onramp_net::sock_diag::TcpInfo;
use onramp_recording::rows::{ACK_FLAGS, AckRow, ExitRow, FlowRow, StateRow};
use onramp_recording::{ACKS_ARE_RECORDED, Origin, Recording, RoundTrips};

use super::watched::{Watched, WatchedFlow};
use super::would_have;
use crate::filter::Filter;
use crate::limits::{Account, Exit, Sample};
use crate::units::count;

/// What a recording says of its flows.
pub(super) struct Recorded {
    pub watched: Watched,
    /// Flows that the filter leaves out.
    pub filtered_out: usize,
    pub origin: Origin,
    /// From the first ACK to the last, over all flows.
    pub duration_us: u64,
    /// What could not be used.
    pub problems: Vec<String>,
    /// How it is read where it does not say.
    pub notes: Vec<String>,
}

/// Reads it; flows of another kind than the filter's are left out.
///
/// # Errors
/// What the file is instead, or that no ACK is in it.
pub(super) fn read(path: &Path, filter: &Filter) -> anyhow::Result<Recorded> {
    let mut recording = Recording::open_to_explain(path)?;
    let (mut starts, mut ended) = (HashMap::new(), HashMap::new());
    recording.each_row(|row: FlowRow| {
        let rows = if row.event == "end" { &mut ended } else { &mut starts };
        rows.entry(row.flow).or_insert(row);
    });
    let mut states: HashMap<u64, Vec<StateRow>> = HashMap::new();
    recording.each_row(|row: StateRow| states.entry(row.flow).or_default().push(row));
    // What a capture has of them is inferred from the rows of its ACKs.
    let mut exits: HashMap<u64, ExitRow> = HashMap::new();
    if recording.origin == Origin::Recorder {
        recording.each_row(|row: ExitRow| {
            exits.insert(row.flow, row);
        });
    }
    let mut acks: BTreeMap<u64, Vec<AckRow>> = BTreeMap::new();
    recording.each_row(|row: AckRow| {
        if row.event == "ack" && row.mss_bytes > 0 {
            acks.entry(row.flow).or_default().push(row);
        }
    });
    let name = bounded::name(path);
    if acks.is_empty() {
        return Err(anyhow!(
            "{name} holds no acknowledgments that can be explained: record {ACKS_ARE_RECORDED}"
        ));
    }
    let mut would_have = would_have::of_flows(&mut recording);
    let problems: Vec<String> = recording.problems.iter().map(ToString::to_string).collect();
    let (mut watched, mut first_us, mut last_us) = (Watched::new(Filter::default(), None), u64::MAX, 0);
    let (mut filtered_out, mut nameless) = (0, 0);
    for (number, mut rows) in acks {
        rows.sort_by_key(|row| (row.sequence, row.at_us));
        let (start, last) = (starts.get(&number), ended.get(&number));
        let ends = start.or(last).and_then(|row| {
            Some((end(&row.local_address, row.local_port)?, end(&row.remote_address, row.remote_port)?))
        });
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (local, remote) = ends.unwrap_or((nowhere, nowhere));
        if !filter.matches(local, remote) {
            filtered_out += 1;
            continue;
        }
        nameless += usize::from(ends.is_none());
        let mut states = states.remove(&number).unwrap_or_default();
        states.sort_by_key(|row| row.at_us);
        first_us = first_us.min(rows[0].at_us);
        last_us = last_us.max(rows.last().map_or(0, |row| row.at_us));
        let control = start.map(|row| row.algorithm.to_string()).unwrap_or_default();
        let base = recording.manifest.iter().flat_map(|manifest| &manifest.algorithms);
        let base = base.filter(|one| one.algorithm == control).map(|one| one.base.clone()).next();
        let models_path = base.is_some_and(|base| base == "bbr");
        let exit = exits.get(&number).filter(|row| row.event == "exit");
        let account = account(&rows, start, &states, (exit, last), models_path);
        let would_have = would_have.remove(&number);
        let flow = WatchedFlow::of_file(local, remote, (number, control), account, would_have);
        watched.keep_one(flow, last.is_some());
    }
    let duration_us = last_us.saturating_sub(first_us.min(last_us));
    let mut notes = recording.notes;
    if nameless > 0 {
        notes.push(format!("the ends of {} are not known: no row has them", count(nameless, "flow")));
    }
    Ok(Recorded { watched, filtered_out, origin: recording.origin, duration_us, problems, notes })
}

fn end(address: &str, port: u32) -> Option<SocketAddr> {
    Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port.try_into().ok()?))
}

fn account(
    rows: &[AckRow],
    start: Option<&FlowRow>,
    states: &[StateRow],
    (exit, end): (Option<&ExitRow>, Option<&FlowRow>),
    models_path: bool,
) -> Account {
    let first = &rows[0];
    let began_us = start.map(|row| row.started_us).filter(|us| *us > 0 && *us <= first.at_us);
    let began_us = began_us.unwrap_or_else(|| first.at_us.saturating_sub(first.rtt_us.max(0) as u64));
    let mut info = TcpInfo {
        snd_mss: first.mss_bytes,
        snd_cwnd: first.cwnd_segments,
        snd_ssthresh: threshold(first),
        snd_wnd_bytes: first.receive_window_bytes,
        notsent_bytes: 1,
        ..TcpInfo::default()
    };
    if start.is_some_and(|row| row.event != "start") {
        info.bytes_acked = first.acknowledged_bytes;
    }
    // What is acknowledged by the first row counts as well.
    info.delivered = first.delivered_segments.wrapping_sub(first.newly_acknowledged_segments);
    let mut account = Account::new(Sample { at_us: began_us, info, models_path, ..Sample::default() });
    if let Some(exit) = exit.and_then(|row| recorded_exit(row, began_us)) {
        account.recorded_exit(exit);
    }
    let mut states = states.iter().peekable();
    let mut before: Option<&AckRow> = None;
    let mut round_trips = RoundTrips::default();
    for row in rows {
        while let Some(state) = states.next_if(|state| state.at_us <= row.at_us) {
            info.ca_state = state_number(&state.to_state);
            info.retrans_total = (state.retransmitted_bytes / u64::from(row.mss_bytes)) as u32;
        }
        if let (true, Some(end)) = (std::ptr::eq(row, &rows[rows.len() - 1]), end) {
            let segments = end.retransmitted_bytes / u64::from(row.mss_bytes);
            info.retrans_total = info.retrans_total.max(segments as u32);
        }
        let at_us = before.map_or(began_us, |before| before.at_us);
        step(&mut info, &mut round_trips, before, row, row.at_us.saturating_sub(at_us));
        account.add(Sample { at_us: row.at_us, info, models_path, ..Sample::default() });
        before = Some(row);
    }
    account
}

/// `None`: its reason is not known here.
fn recorded_exit(row: &ExitRow, began_us: u64) -> Option<Exit> {
    Some(Exit {
        reason: ExitReason::from_name(&row.reason)?,
        at_us: row.at_us.saturating_sub(began_us),
        resolution_us: 0,
        window_segments: row.cwnd_segments,
        window_bytes: u64::from(row.cwnd_segments) * u64::from(row.mss_bytes),
    })
}

/// From one ACK to when the next comes.
fn step(
    info: &mut TcpInfo,
    round_trips: &mut RoundTrips,
    before: Option<&AckRow>,
    row: &AckRow,
    time_us: u64,
) {
    let mss = u64::from(row.mss_bytes);
    let acknowledged = before.map_or(0, |before| before.acknowledged_bytes);
    let outstanding = row.sent_bytes.saturating_sub(acknowledged);
    // With nothing outstanding what this ACK is of was sent later.
    let was_idle = before.is_some_and(|before| before.outstanding_bytes == 0);
    let idle_us = if was_idle { time_us.saturating_sub(row.rtt_us.max(0) as u64) } else { 0 };
    let busy_us = time_us - idle_us;
    let window = before.map_or(0, |before| u64::from(before.receive_window_bytes));
    info.busy_time_us += busy_us;
    if window > 0 && outstanding + mss > window && info.ca_state == 0 {
        info.rwnd_limited_us += busy_us;
    }
    let in_flight = row.in_flight_segments.saturating_add(row.newly_acknowledged_segments);
    info.unacked = u32::try_from(outstanding.div_ceil(mss)).unwrap_or(u32::MAX).max(in_flight);
    info.sacked = info.unacked - in_flight;
    let app_limited = ACK_FLAGS.iter().position(|flag| *flag == "app_limited");
    info.notsent_bytes = u32::from(app_limited.is_none_or(|bit| row.flags >> bit & 1 == 0));
    info.snd_mss = row.mss_bytes;
    info.snd_cwnd = row.cwnd_segments;
    info.snd_ssthresh = threshold(row);
    info.snd_wnd_bytes = window as u32;
    info.pacing_rate_bytes_per_s = Some(row.pacing_rate_bytes_per_s).filter(|rate| *rate > 0);
    info.bytes_acked = row.acknowledged_bytes;
    info.delivered = row.delivered_segments;
    info.min_rtt_us = Some(row.min_rtt_us).filter(|us| *us > 0);
    if let Ok(sample) = u32::try_from(row.rtt_us) {
        round_trips.take(sample);
    }
    info.rttvar_us = round_trips.deviation_us;
    info.rtt_us = row.smoothed_rtt_us;
}

fn threshold(row: &AckRow) -> Option<u32> {
    Some(row.ssthresh_segments).filter(|segments| *segments < NO_THRESHOLD)
}

fn state_number(name: &str) -> u8 {
    CongestionState::from_name(name).map_or(0, |state| state as u8)
}
