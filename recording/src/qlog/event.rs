// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! An event of a log, as far as flows are explained by it.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use crate::monotone::END_US;

/// What a trace says of all its events.
#[derive(Default)]
pub(super) struct Trace {
    pub is_tcp: bool,
    group: String,
    /// Times are since the event before.
    is_delta: bool,
}

impl Trace {
    pub fn new(trace: &Value) -> Self {
        let common = &trace["common_fields"];
        let protocols = &common["protocol_type"];
        let format = common["time_format"].as_str().unwrap_or_default();
        Self {
            is_tcp: protocols.as_str() == Some("TCP")
                || protocols.as_array().is_some_and(|all| all.iter().any(|one| one == "TCP")),
            group: text(&common["group_id"]),
            is_delta: matches!(format, "delta" | "relative_to_previous_event"),
        }
    }
}

/// The time of a trace's newest event.
#[derive(Default)]
pub(super) struct Clock {
    ms: f64,
    /// Events with times that are none.
    pub beyond: u64,
}

impl Clock {
    /// Another trace begins.
    pub fn begin(&mut self) {
        self.ms = 0.0;
    }

    /// Microseconds, of an event with this time in milliseconds; `None`: it is no time.
    fn at_us(&mut self, ms: f64, is_delta: bool) -> Option<u64> {
        let ms = if is_delta { self.ms + ms } else { ms };
        let us = (ms * 1e3).round();
        if us >= END_US as f64 {
            self.beyond += 1;
            return None;
        }
        self.ms = ms;
        Some(us.max(0.0) as u64)
    }
}

/// What happened.
pub(super) struct Event<'a> {
    pub at_us: u64,
    /// Of which connection.
    pub group: String,
    /// Without its namespace, which has changed from draft to draft.
    pub name: &'a str,
    pub data: &'a Value,
}

impl<'a> Event<'a> {
    /// `None`: it is none.
    pub fn new(event: &'a Value, trace: &Trace, clock: &mut Clock) -> Option<Self> {
        let name = event["name"].as_str()?;
        let at_us = clock.at_us(event["time"].as_f64()?, trace.is_delta)?;
        let group = event.get("group_id").map_or_else(|| trace.group.clone(), text);
        Some(Self { at_us, group, name: name.rsplit(':').next().unwrap_or(name), data: &event["data"] })
    }

    /// A number of its data.
    pub fn number(&self, name: &str) -> Option<u64> {
        number(&self.data[name])
    }

    /// The same of a time in milliseconds, microseconds.
    pub fn time_us(&self, name: &str) -> Option<u32> {
        let us = self.data[name].as_f64()? * 1e3;
        (us > 0.0).then_some(us.round().min(f64::from(u32::MAX)) as u32)
    }

    /// Space and number of its packet: spaces number on their own (RFC 9000, section 12.3).
    pub fn packet(&self) -> Option<(u8, u64)> {
        let header = &self.data["header"];
        Some((space(&header["packet_type"]), number(&header["packet_number"])?))
    }

    /// Bytes of its packet.
    pub fn bytes(&self) -> u64 {
        let places = [&self.data["raw"]["length"], &self.data["header"]["packet_size"]];
        places.into_iter().find_map(number).unwrap_or(0)
    }

    /// Space, first and last number of the packets that it acknowledges.
    pub fn acknowledged(&self) -> Vec<(u8, u64, u64)> {
        if self.name == "packets_acked" {
            let space = space(&self.data["packet_number_space"]);
            let numbers = self.data["packet_numbers"].as_array().into_iter().flatten();
            return numbers.filter_map(number).map(|one| (space, one, one)).collect();
        }
        let space = space(&self.data["header"]["packet_type"]);
        let frames = self.frames("ack");
        let ranges = frames.flat_map(|frame| frame["acked_ranges"].as_array().into_iter().flatten());
        let ends = ranges.filter_map(|range| {
            let first = number(range.get(0)?)?;
            Some((space, first, range.get(1).and_then(number).unwrap_or(first)))
        });
        ends.collect()
    }

    /// The most that the peer lets be sent in all, bytes (MAX_DATA).
    pub fn max_data(&self) -> Option<u64> {
        self.frames("max_data").filter_map(|frame| number(&frame["maximum"])).max()
    }

    fn frames(&self, kind: &'static str) -> impl Iterator<Item = &'a Value> {
        let frames = self.data["frames"].as_array().into_iter().flatten();
        frames.filter(move |frame| frame["frame_type"] == kind)
    }

    /// The ends of the connection that begins, the one that logs first.
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let end = |name: &str, before: &str| {
            // Until draft 08 an address and a port, then an object for each end.
            let (address, port) = (&self.data[format!("{before}_ip")], &self.data[format!("{before}_port")]);
            let object = &self.data[name];
            let address =
                [address, &object["ip_v4"], &object["ip_v6"]].into_iter().find_map(Value::as_str)?;
            let port = [port, &object["port_v4"], &object["port_v6"]].into_iter().find_map(number)?;
            Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, u16::try_from(port).ok()?))
        };
        Some((end("local", "src")?, end("remote", "dst")?))
    }
}

fn space(kind: &Value) -> u8 {
    match kind.as_str().unwrap_or_default() {
        "initial" => 1,
        "handshake" => 2,
        _ => 0,
    }
}

/// A whole number, also as a decimal (`12000.0`), or one in quotes, as large ones are in some logs.
fn number(value: &Value) -> Option<u64> {
    let decimal =
        || value.as_f64().filter(|number| (0.0..1e15).contains(number)).map(|number| number.round() as u64);
    value.as_u64().or_else(decimal).or_else(|| value.as_str()?.parse().ok())
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}
