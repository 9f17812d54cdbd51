// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A transfer from its first packet to its last byte, as the lab's source and sink make it: an [`Opening`], then data, which
//! the sink reads once it knows that they follow.

use super::control::Control;
use super::host_time;
use super::opening::{self, Event, Opened, Opening};
use super::receiver::{Acks, Receiver, ReceiverSpec};
use super::segment::{Ack, Data};
use super::sender::{Out, Sender, SenderSpec};
use super::source::Source;
use crate::link::Nanos;

/// Time from the begin of the link to the first packet, as it is in a guest, where the hosts are set up meanwhile (over
/// `cable`, `lte`, `wifi`).
pub const SET_UP: Nanos = 2_674_000;
/// Round trips that both connections take until data follow, halves of them.
const OPENING_HALVES: u64 = 5;

/// From the begin of the link to the first data of a transfer, over an empty path of this round-trip time, microseconds.
pub fn opening_us(rtt_us: u64) -> u64 {
    SET_UP / 1_000 + OPENING_HALVES * rtt_us / 2
}

/// One transfer: opening, data, and its end.
pub struct Connection {
    sender_spec: SenderSpec,
    receiver_spec: ReceiverSpec,
    control: Option<Control>,
    source: Source,
    opening: Opening,
    /// When the sink's end of the data connection opened.
    opened: Nanos,
    /// Once the data connection is open there.
    pub sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// When the sink knew that data follow, and when it had all.
    pub began: Option<Nanos>,
    /// When the last byte arrived.
    pub ended: Option<Nanos>,
    /// When the first and the last data were handed over.
    pub first_data: Option<Nanos>,
    /// When the last data were handed over.
    pub last_data: Option<Nanos>,
}

impl Connection {
    /// A transfer that begins `after` the hosts are set up.
    pub fn new(
        sender_spec: SenderSpec,
        receiver_spec: ReceiverSpec,
        control: Control,
        source: Source,
        after: Nanos,
    ) -> Self {
        Self {
            sender_spec,
            receiver_spec,
            control: Some(control),
            source,
            opening: Opening::new(SET_UP + after, sender_spec.sack && sender_spec.fast_retransmit),
            opened: 0,
            sender: None,
            receiver: None,
            began: None,
            ended: None,
            first_data: None,
            last_data: None,
        }
    }

    /// Payload of a segment, bytes.
    pub fn segment_bytes(&self, sequence: u32) -> u32 {
        self.sender.as_ref().map_or(0, |sender| sender.layout.bytes(sequence))
    }

    /// Bytes that the sink has, in order.
    pub fn received_bytes(&self) -> u64 {
        let both = self.sender.as_ref().zip(self.receiver.as_ref());
        both.map_or(0, |(sender, receiver)| sender.layout.begin(receiver.next()))
    }

    /// When [`Connection::timer`] should be called.
    pub fn next_timer(&self) -> Option<Nanos> {
        let sender = self.sender.as_ref().and_then(Sender::next_timer);
        let receiver = self.receiver.as_ref().and_then(Receiver::next_timer);
        [self.opening.next_timer(), sender, receiver, self.source.wakes()].into_iter().flatten().min()
    }

    /// It is [`Connection::next_timer`].
    pub fn timer(
        &mut self,
        now: Nanos,
        data: &mut Out,
        acks: &mut Acks,
        openings: &mut Vec<opening::Packet>,
    ) {
        self.opening.timer(now, openings);
        if let Some(sender) = &mut self.sender {
            if sender.next_timer().is_some_and(|at| at <= now) {
                sender.timer(now, data);
            }
            if let Some(receiver) = &mut self.receiver
                && receiver.next_timer().is_some_and(|at| at <= now)
            {
                receiver.timer(now, &sender.layout, acks);
            }
        }
    }

    /// A packet of the opening arrives, whichever way.
    pub fn on_opening(&mut self, now: Nanos, packet: opening::Packet, openings: &mut Vec<opening::Packet>) {
        match self.opening.arrive(now, packet, openings) {
            Some(Event::SinkOpen) => {
                let mut receiver = Receiver::new(self.receiver_spec, now);
                receiver.expect(self.source.bytes());
                self.receiver = Some(receiver);
                self.opened = now;
            }
            Some(Event::SourceOpen(opened)) => self.begin(now, opened),
            Some(Event::Word) => {
                self.began = Some(now);
                // All of it may be there before.
                self.end(now + host_time::READ);
            }
            None => {}
        }
    }

    fn begin(&mut self, now: Nanos, opened: Opened) {
        let Some((control, receiver)) = self.control.take().zip(self.receiver.as_ref()) else { return };
        let window_end = receiver.first_window();
        self.sender = Some(Sender::new(self.sender_spec, control, now, opened, window_end, self.opened));
    }

    /// The sink has all, if it does.
    fn end(&mut self, now: Nanos) {
        let Some((sender, receiver)) = self.sender.as_ref().zip(self.receiver.as_ref()) else { return };
        let all = sender.layout.begin(receiver.next()) >= self.source.bytes();
        if self.began.is_some() && self.ended.is_none() && all {
            self.ended = Some(now);
        }
    }

    /// Data arrive at the sink.
    pub fn on_data(&mut self, now: Nanos, data: &Data, acks: &mut Acks) {
        let Some((sender, receiver)) = self.sender.as_ref().zip(self.receiver.as_mut()) else { return };
        self.first_data.get_or_insert(now);
        self.last_data = Some(now);
        receiver.arrive(now, data, &sender.layout, acks);
        self.end(now);
    }

    /// An acknowledgment arrives at the source.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, data: &mut Out) {
        let Some(sender) = &mut self.sender else { return };
        sender.acknowledge(now, ack, data);
    }

    /// The sink reads all that waits, if that wakes it; whether it did.
    pub fn read(&mut self, now: Nanos, acks: &mut Acks) -> bool {
        let established = self.began.is_some();
        let both = self.sender.as_ref().zip(self.receiver.as_mut()).filter(|_| established);
        let Some((sender, receiver)) = both else { return false };
        receiver.read(now, &sender.layout, acks)
    }

    /// The source writes once, if there is room; returns how many segments.
    pub fn write(&mut self, now: Nanos, data: &mut Out) -> u32 {
        let Some(sender) = &mut self.sender else { return 0 };
        let before = sender.layout.written();
        self.source.serve(now, sender, data);
        sender.layout.written() - before
    }
}
