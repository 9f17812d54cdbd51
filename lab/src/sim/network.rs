// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A link with the hosts at its ends, in virtual time: the next thing that happens is looked for, and happens. The link
//! is the emulator's own ([`Direction`]); hosts take the time of [`host_time`].

use std::collections::VecDeque;

use super::connection::Connection;
use super::digest::Digest;
use super::host_time;
use super::opening;
use super::receiver::Acks;
use super::segment::{Content, Packet};
use super::sender::Out;
use crate::emulator::{BATCH, Way};
use crate::host::HEADER_BYTES;
use crate::link::{Arrival, Direction, LinkSpec, Nanos, RangeError};

/// In the order in which they have their turn.
const WAYS: [Way; 2] = [Way::Forward, Way::Return];

/// A packet that a host has sent, until the link reads it.
struct Sent {
    arrival: Arrival<Packet>,
    /// What the digest has of it.
    number: u32,
    /// The first of those that are read at once.
    first: bool,
}

/// A link with a host at each end.
pub struct Network {
    /// From the sender of data to its receiver.
    pub forward: Direction<Packet>,
    /// From the receiver to the sender.
    pub back: Direction<Packet>,
    /// In the order in which they begin.
    pub connections: Vec<Connection>,
    /// What each has of delay behind the link, each way.
    own_delays: Vec<Nanos>,
    /// Of all that crossed the link.
    pub digest: Digest,
    now: Nanos,
    /// Each way, what the link has not read yet.
    unread: [VecDeque<Sent>; 2],
    /// A source may have more to write.
    writes: bool,
    data: Out,
    acks: Acks,
    openings: Vec<opening::Packet>,
}

impl Network {
    /// A link that begins at time 0 with randomness from `seed`, as an emulator with this seed has it. Connections have the
    /// delay of the same place, or none of their own.
    ///
    /// # Errors
    /// [`RangeError`] for a link out of range.
    pub fn new(
        link: &LinkSpec,
        seed: u64,
        connections: Vec<Connection>,
        own_delays: Vec<Nanos>,
    ) -> Result<Self, RangeError> {
        let [mut forward, mut back] = Direction::pair(link, seed, 0)?;
        forward.start(0);
        back.start(0);
        Ok(Self {
            forward,
            back,
            connections,
            own_delays,
            digest: Digest::default(),
            now: 0,
            unread: Default::default(),
            writes: false,
            data: Out::new(),
            acks: Acks::new(),
            openings: Vec::new(),
        })
    }

    /// The present.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Goes to the next thing that happens, not beyond `limit`; it is over a little later. False: nothing happens any more
    /// until then.
    pub fn step(&mut self, limit: Nanos) -> bool {
        let unread = self.unread.iter().any(|queue| !queue.is_empty()).then_some(self.now);
        let due = [self.forward.next_due(), self.back.next_due(), unread].into_iter().flatten().min();
        let writes = std::mem::take(&mut self.writes).then_some(self.now);
        let timers = self.connections.iter().filter_map(Connection::next_timer);
        let next = timers.chain(due).chain(writes).min().map(|next| next.max(self.now));
        let Some(next) = next.filter(|next| *next <= limit.max(self.now)) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = next;
        if due.is_some_and(|due| due <= self.now) {
            self.now += host_time::WAKE;
            while self.read() | self.hand_over() {}
        }
        for flow in 0..self.connections.len() {
            let connection = &mut self.connections[flow];
            if connection.next_timer().is_some_and(|at| at <= self.now) {
                connection.timer(self.now, &mut self.data, &mut self.acks, &mut self.openings);
                self.send(flow as u16);
            }
        }
        self.run_applications();
        true
    }

    fn direction(&mut self, way: Way) -> &mut Direction<Packet> {
        match way {
            Way::Forward => &mut self.forward,
            Way::Return => &mut self.back,
        }
    }

    /// The link reads what hosts have sent; whether there was anything.
    fn read(&mut self) -> bool {
        let mut any = false;
        for way in WAYS {
            let mut count = 0;
            let queue = way as usize;
            while self.unread[queue].front().is_some_and(|sent| count < BATCH || !sent.first) {
                let Some(sent) = self.unread[queue].pop_front() else { break };
                (any, count) = (true, count + 1);
                self.now += match way {
                    Way::Forward if sent.first => host_time::BURST + host_time::SEGMENT,
                    Way::Forward => host_time::SEGMENT,
                    Way::Return => host_time::ACK,
                };
                let now = self.now;
                self.digest.arrived(way, now, sent.arrival.bytes, sent.number.into());
                if self.direction(way).arrive_of(now, sent.arrival).is_err() {
                    self.digest.refused(way, now);
                }
            }
        }
        any
    }

    /// The link hands over what is due; whether there was anything.
    fn hand_over(&mut self) -> bool {
        let mut any = false;
        for way in WAYS {
            for _ in 0..BATCH {
                let now = self.now;
                let Some(delivery) = self.direction(way).deliver(now) else { break };
                any = true;
                self.digest.handed_over(way, now);
                self.now += host_time::HAND_OVER;
                let takes = match delivery.packet.content {
                    Content::Opening(_) => host_time::TAKE_OPENING,
                    Content::Data(_) => host_time::TAKE_DATA,
                    Content::Ack(_) => host_time::TAKE_ACK,
                };
                self.deliver(way, delivery.packet);
                self.now += takes;
            }
        }
        any
    }

    /// Sinks read, and sources write once each.
    fn run_applications(&mut self) {
        for flow in 0..self.connections.len() {
            let connection = &mut self.connections[flow];
            if connection.read(self.now, &mut self.acks) {
                self.now += host_time::READ;
            }
            let written = connection.write(self.now, &mut self.data);
            self.writes |= written > 0;
            self.now += host_time::WRITE * Nanos::from(written);
            self.send(flow as u16);
        }
    }

    fn deliver(&mut self, way: Way, packet: Packet) {
        let Some(connection) = self.connections.get_mut(usize::from(packet.flow)) else { return };
        match (way, packet.content) {
            (Way::Forward, Content::Data(data)) => connection.on_data(self.now, &data, &mut self.acks),
            (Way::Return, Content::Ack(ack)) => connection.on_ack(self.now, &ack, &mut self.data),
            (_, Content::Opening(packet)) => {
                connection.on_opening(self.now, packet, &mut self.openings);
            }
            _ => {}
        }
        self.send(packet.flow);
    }

    /// What a connection has said waits for the link.
    fn send(&mut self, flow: u16) {
        let connection = &self.connections[usize::from(flow)];
        let own_delay = self.own_delays.get(usize::from(flow)).copied().unwrap_or(0);
        let mut put = |way: Way, content, bytes, number, first| {
            let arrival = Arrival {
                packet: Packet { flow, content },
                bytes,
                capable: false,
                flow: flow.into(),
                own_delay,
            };
            self.unread[way as usize].push_back(Sent { arrival, number, first });
        };
        for packet in self.openings.drain(..) {
            let (way, bytes) = packet.way();
            put(way, Content::Opening(packet), bytes, packet.step.into(), true);
        }
        let mut first = true;
        for data in self.data.drain(..) {
            let bytes = HEADER_BYTES + connection.segment_bytes(data.sequence);
            put(Way::Forward, Content::Data(data), bytes, data.sequence, first);
            first = data.push;
        }
        for ack in self.acks.drain(..) {
            put(Way::Return, Content::Ack(ack), ack.packet_bytes(), ack.next, true);
        }
    }
}
