// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A recording from a packet capture of the sender's side.
//!
//! What packets show is exact: times, bytes, RTTs, what the receiver has, its window. Congestion window, threshold and
//! limits no packet carries; they are what was in flight makes likely ([`window`]).

mod connection;
mod packets;
mod sender;
mod tables;
#[cfg(test)]
mod tests;
mod window;

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;

use crate::error::{Error, counted};
use crate::monotone::SET_BACK;
use crate::reader::{Origin, Recording};
use connection::{Connection, Side};
use packets::Segment;
use tables::Tables;

/// Connections and ACKs that are kept; of more nothing is read.
const CONNECTIONS: usize = 100_000;
const POINTS: usize = 2_000_000;

/// Reads a capture as a recording, a flow for each connection that its sender's side shows.
///
/// # Errors
/// [`Error::NotARecording`]: it holds no sender's side of a connection. What else cannot be used is a problem of the
/// recording.
pub(crate) fn recording(source: Box<dyn Read>, path: &Path) -> Result<Recording, Error> {
    let mut capture = Capture::default();
    let passed = packets::read(source, |segment| capture.take(&segment));
    let mut problems = Vec::new();
    let passed = passed.unwrap_or_else(|reason| {
        problems.push(reason);
        packets::Passed::default()
    });
    let (mut tables, mut counts) = (Tables::default(), Counts::default());
    capture.ended.extend(capture.open.into_values());
    capture.ended.sort_by_key(|(number, _)| *number);
    for (number, connection) in &capture.ended {
        counts.add(connection, *number, &mut tables);
    }
    if tables.flows.is_empty() {
        let reason = problems.into_iter().next().unwrap_or_else(|| counts.nothing(&passed));
        return Err(Error::NotARecording { path: path.to_owned(), reason });
    }
    if passed.ends_early {
        problems.push("it ends within a packet".into());
    }
    problems.extend(counts.problems(&passed, capture.too_many));
    let problem = |reason| Error::Capture { path: path.to_owned(), reason };
    let mut recording = Recording::of_rows(path, Origin::Capture, |rows| {
        rows.add(tables.flows);
        rows.add(tables.acks);
        rows.add(tables.states);
        rows.add(tables.exits);
    });
    recording.problems = problems.into_iter().map(problem).collect();
    recording.notes.extend(counts.notes());
    Ok(recording)
}

/// The connections so far.
#[derive(Default)]
struct Capture {
    open: HashMap<(SocketAddr, SocketAddr), (u64, Connection)>,
    ended: Vec<(u64, Connection)>,
    connections: u64,
    points: usize,
    /// Segments beyond what is kept.
    too_many: u64,
}

impl Capture {
    fn take(&mut self, segment: &Segment) {
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        if let Some((_, connection)) = self.open.get(&key)
            && connection.is_over(segment)
            && let Some(over) = self.open.remove(&key)
        {
            self.ended.push(over);
        }
        let is_new = !self.open.contains_key(&key);
        if self.points >= POINTS || is_new && self.open.len() + self.ended.len() >= CONNECTIONS {
            self.too_many += 1;
            return;
        }
        let connections = &mut self.connections;
        let (_, connection) = self.open.entry(key).or_insert_with(|| {
            *connections += 1;
            (*connections, Connection::new(segment))
        });
        let points =
            |connection: &Connection| connection.senders.iter().map(|one| one.points.len()).sum::<usize>();
        let before = points(connection);
        connection.take(segment);
        self.points += points(connection) - before;
    }
}

/// What became of connections.
#[derive(Default)]
struct Counts {
    used: u64,
    /// Of which it does not show at which end they were captured.
    unknown_side: u64,
    /// Captured at the end that received.
    received: u64,
    /// Bytes of those that are used that were acknowledged and not captured.
    missed: u64,
    /// Segments and ACKs of those with numbers far from all before and after.
    strange: u64,
    /// How often the clocks of those went back.
    set_back: u64,
    /// Segments of those that it has twice.
    copied: u64,
    /// Flows that sent more than the windows that are read allow.
    exceeded_window: u64,
}

impl Counts {
    fn add(&mut self, connection: &Connection, number: u64, tables: &mut Tables) {
        let sent = |end: usize| connection.senders[end].points.len();
        let end = match connection.side() {
            Side::At(end) => end,
            Side::Unknown => usize::from(
                connection.senders[1].acknowledged_bytes() > connection.senders[0].acknowledged_bytes(),
            ),
        };
        if sent(end) == 0 {
            self.received += u64::from(sent(1 - end) > 0);
            return;
        }
        self.received += u64::from(connection.side() == Side::At(end) && sent(1 - end) > sent(end));
        self.used += 1;
        self.unknown_side += u64::from(connection.side() == Side::Unknown);
        self.missed += connection.senders[end].missed;
        self.strange += connection.senders[end].strange;
        self.copied += connection.senders[end].copied;
        self.set_back += connection.times.set_back;
        self.exceeded_window += u64::from(connection.senders[end].exceeded_window);
        let (local, remote) = (connection.ends[end], connection.ends[1 - end]);
        tables.add(number, local, remote, &connection.senders[end]);
    }

    /// Why there is no flow.
    fn nothing(&self, passed: &packets::Passed) -> String {
        if self.received > 0 {
            return "it was captured where the data arrived: capture at the sender".into();
        }
        if passed.unknown_link > 0 {
            return "it is of a link layer that is not known: capture Ethernet, Linux cooked or raw IP"
                .into();
        }
        if passed.cut > 0 {
            return "it holds too little of each packet: capture 128 bytes or more (tcpdump -s 128)".into();
        }
        format!("it holds no TCP connection that sends data ({} packets)", passed.packets)
    }

    /// What cannot be used, and how much.
    fn problems(&self, passed: &packets::Passed, too_many: u64) -> impl Iterator<Item = String> {
        [
            (
                passed.cut,
                "packet of TCP is cut off within its headers, or a fragment: it is not used",
                "packets of TCP are cut off within their headers, or fragments: they are not used",
            ),
            (
                self.missed,
                "byte was acknowledged that it does not have: the capture lost packets",
                "bytes were acknowledged that it does not have: the capture lost packets",
            ),
            (
                self.strange,
                "packet has a number that is far from all others of its connection: it is not used",
                "packets have numbers that are far from all others of their connections: they are not used",
            ),
            (self.set_back, SET_BACK[0], SET_BACK[1]),
            (
                too_many,
                "packet is not used: there are more connections or ACKs than are kept",
                "packets are not used: there are more connections or ACKs than are kept",
            ),
            (
                self.exceeded_window,
                "flow sent more than the receive window by its handshake: the window's scale, and with it the window, is unknown",
                "flows sent more than the receive windows by their handshakes: the windows' scales, and with them the windows, are unknown",
            ),
        ]
        .into_iter()
        .filter_map(|(number, one, several)| counted(number, one, several))
    }

    /// How what is used is read where it does not say.
    fn notes(&self) -> impl Iterator<Item = String> {
        [
            (
                self.unknown_side,
                "flow does not show at which end it was captured: it is read as at the sender",
                "flows do not show at which end they were captured: they are read as at the sender",
            ),
            (
                self.copied,
                "packet is in it twice, as by several interfaces: the second is not used",
                "packets are in it twice, as by several interfaces: the second ones are not used",
            ),
        ]
        .into_iter()
        .filter_map(|(number, one, several)| counted(number, one, several))
    }
}
