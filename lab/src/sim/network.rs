// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A link with the hosts at its ends, in virtual time: the next thing that happens is looked for, and happens. The link
//! is the emulator's own ([`Direction`]); hosts take no time.

use super::connection::Connection;
use super::digest::Digest;
use super::receiver::Acks;
use super::segment::{Content, Packet};
use super::sender::Out;
use crate::emulator::Way;
use crate::host::HEADER_BYTES;
use crate::link::{Arrival, Direction, LinkSpec, Nanos, RangeError};

/// See the module.
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
    data: Out,
    acks: Acks,
    openings: Vec<u8>,
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
            data: Out::new(),
            acks: Acks::new(),
            openings: Vec::new(),
        })
    }

    /// The present.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Goes to the next thing that happens, not beyond `limit`. False: nothing happens any more until then.
    pub fn step(&mut self, limit: Nanos) -> bool {
        let due = [self.forward.next_due(), self.back.next_due()].into_iter().flatten();
        let timers = self.connections.iter().filter_map(Connection::next_timer);
        let Some(next) = due.chain(timers).min().filter(|next| *next <= limit) else {
            self.now = limit;
            return false;
        };
        self.now = self.now.max(next);
        while let Some(delivery) = self.forward.deliver(self.now) {
            self.digest.handed_over(Way::Forward, self.now);
            self.deliver(Way::Forward, delivery.packet);
        }
        while let Some(delivery) = self.back.deliver(self.now) {
            self.digest.handed_over(Way::Return, self.now);
            self.deliver(Way::Return, delivery.packet);
        }
        for flow in 0..self.connections.len() {
            let connection = &mut self.connections[flow];
            if connection.next_timer().is_some_and(|at| at <= self.now) {
                connection.timer(self.now, &mut self.data, &mut self.acks, &mut self.openings);
                self.send(flow as u16);
            }
        }
        true
    }

    fn deliver(&mut self, way: Way, packet: Packet) {
        let Some(connection) = self.connections.get_mut(usize::from(packet.flow)) else { return };
        match (way, packet.content) {
            (Way::Forward, Content::Data(data)) => connection.on_data(self.now, &data, &mut self.acks),
            (Way::Return, Content::Ack(ack)) => connection.on_ack(self.now, &ack, &mut self.data),
            (_, Content::Opening(step)) => {
                connection.on_opening(self.now, step, &mut self.data, &mut self.openings);
            }
            _ => {}
        }
        self.send(packet.flow);
    }

    /// What a connection has said goes into the link.
    fn send(&mut self, flow: u16) {
        let connection = &self.connections[usize::from(flow)];
        let own_delay = self.own_delays.get(usize::from(flow)).copied().unwrap_or(0);
        let arrival = |packet, bytes| Arrival { packet, bytes, capable: false, own_delay };
        for step in self.openings.drain(..) {
            let packet = Packet { flow, content: Content::Opening(step) };
            let (way, bytes) = Connection::opening_packet(step);
            let direction = match way {
                Way::Forward => &mut self.forward,
                Way::Return => &mut self.back,
            };
            self.digest.arrived(way, self.now, bytes, step.into());
            if direction.arrive_of(self.now, arrival(packet, bytes)).is_err() {
                self.digest.refused(way, self.now);
            }
        }
        for data in self.data.drain(..) {
            let bytes = HEADER_BYTES + connection.segment_bytes(data.sequence);
            let packet = Packet { flow, content: Content::Data(data) };
            self.digest.arrived(Way::Forward, self.now, bytes, data.sequence.into());
            if self.forward.arrive_of(self.now, arrival(packet, bytes)).is_err() {
                self.digest.refused(Way::Forward, self.now);
            }
        }
        for ack in self.acks.drain(..) {
            let bytes = ack.packet_bytes();
            let packet = Packet { flow, content: Content::Ack(ack) };
            self.digest.arrived(Way::Return, self.now, bytes, ack.next.into());
            if self.back.arrive_of(self.now, arrival(packet, bytes)).is_err() {
                self.digest.refused(Way::Return, self.now);
            }
        }
    }
}
