// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One direction of a connection: what its sender has sent and what came back, from the packets alone.

use std::collections::VecDeque;

use onramp_algorithm::CongestionState;

use super::packets::Segment;
use crate::round_trips::RoundTrips;

/// Segments beyond which what the receiver has is certain to show a loss (RFC 6675: DupThresh).
const DUPLICATES: u64 = 3;
/// The least time that a retransmission timeout takes (TCP_RTO_MIN).
const TIMEOUT_US: u64 = 200_000;
/// Before a round trip is known, nothing is sent again sooner.
const COPY_US: u64 = 1_000;
/// A number that is further beyond all before is believed only with a second one near it, bytes.
const FAR: u64 = 1 << 20;
/// Without a handshake.
const MSS: u32 = 1_448;
/// What the clock option takes from a segment's data.
const CLOCK_BYTES: u32 = 12;

/// A range of bytes that is outstanding.
#[derive(Clone, Copy, Debug)]
struct Sent {
    begin: u64,
    end: u64,
    /// When, the last time, and by which number of IP.
    at_us: u64,
    id: u16,
    /// Which transmission an acknowledgment is of is not known (Karn).
    repeated: bool,
    received: bool,
    /// The capture does not have it.
    missed: bool,
}

/// The sender when an ACK had come, before it answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub at_us: u64,
    /// Bytes from the first of the data on.
    pub acknowledged: u64,
    pub sent: u64,
    /// Acknowledged or received.
    pub delivered: u64,
    /// In flight before and after it.
    pub before: u64,
    pub in_flight: u64,
    pub rtt_us: Option<u32>,
    pub smoothed_us: u32,
    pub min_rtt_us: u32,
    /// 0: not known.
    pub receive_window: u32,
    pub receiver_clock: u32,
    pub state: CongestionState,
}

/// A change of the state of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub at_us: u64,
    pub from: CongestionState,
    pub to: CongestionState,
    pub in_flight: u64,
    pub retransmitted: u64,
}

/// What is known of a sender.
#[derive(Debug)]
pub(super) struct Sender {
    /// Sequence number of its first data; none: nothing is known yet.
    first: Option<u32>,
    sent: u64,
    acknowledged: u64,
    outstanding: VecDeque<Sent>,
    received: u64,
    highest_received: u64,
    retransmitted: u64,
    /// Of the peer's handshake; none: it was not captured.
    mss: Option<u16>,
    with_clock: bool,
    largest: u32,
    scale: Option<u8>,
    /// Bytes that the receiver has taken or offered room for, by that scale.
    allowed: u64,
    /// It sent more: the scale is another one than the capture shows.
    pub exceeded_window: bool,
    round_trips: RoundTrips,
    last_ack_us: u64,
    last_sent_us: u64,
    state: CongestionState,
    recovered_at: u64,
    /// When the first data was sent.
    pub started_us: Option<u64>,
    pub points: Vec<Point>,
    pub changes: Vec<Change>,
    /// Bytes that were acknowledged and that the capture does not have.
    pub missed: u64,
    /// Numbers that were not believed, and the last of them, by direction.
    pub strange: u64,
    far: [Option<u64>; 2],
    /// Segments that are there twice.
    pub copied: u64,
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            first: None,
            sent: 0,
            acknowledged: 0,
            outstanding: VecDeque::new(),
            received: 0,
            highest_received: 0,
            retransmitted: 0,
            mss: None,
            with_clock: false,
            largest: 0,
            scale: None,
            allowed: 0,
            exceeded_window: false,
            round_trips: RoundTrips::default(),
            last_ack_us: 0,
            last_sent_us: 0,
            state: CongestionState::Open,
            recovered_at: 0,
            started_us: None,
            points: Vec::new(),
            changes: Vec::new(),
            missed: 0,
            strange: 0,
            far: [None; 2],
            copied: 0,
        }
    }
}

impl Sender {
    /// Bytes of the data of a full segment.
    pub fn mss(&self) -> u32 {
        let options = if self.with_clock { CLOCK_BYTES } else { 0 };
        match self.mss {
            Some(mss) => u32::from(mss).saturating_sub(options).max(1),
            // Of what was sent: more is what segmentation offload takes at once.
            None if (1..=9_000).contains(&self.largest) => self.largest,
            None => MSS,
        }
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent
    }

    pub fn acknowledged_bytes(&self) -> u64 {
        self.acknowledged
    }

    pub fn retransmitted_bytes(&self) -> u64 {
        self.retransmitted
    }

    pub fn handshake_was_seen(&self) -> bool {
        self.mss.is_some()
    }

    /// Bytes that the network holds.
    fn in_flight(&self) -> u64 {
        let outstanding = self.sent - self.acknowledged - self.received;
        outstanding.saturating_sub(self.lost())
    }

    /// Bytes that are lost: in a recovery what the receiver lacks below what it has, and has not been sent again.
    fn lost(&self) -> u64 {
        let below = match self.state {
            CongestionState::Loss => self.recovered_at,
            CongestionState::Recovery => {
                self.highest_received.saturating_sub(DUPLICATES * u64::from(self.mss()))
            }
            _ => return 0,
        };
        let lost = self.outstanding.iter().take_while(|one| one.end <= below);
        lost.filter(|one| !one.received && !one.repeated).map(|one| one.end - one.begin).sum()
    }

    /// Where a sequence number is, in bytes from the first of the data on; below 0: before it.
    fn place(&self, first: u32, sequence: u32) -> i64 {
        let near = first.wrapping_add(self.sent as u32);
        self.sent as i64 + i64::from(sequence.wrapping_sub(near) as i32)
    }

    fn change(&mut self, at_us: u64, to: CongestionState) {
        if self.state != to {
            let (in_flight, retransmitted) = (self.in_flight(), self.retransmitted);
            self.changes.push(Change { at_us, from: self.state, to, in_flight, retransmitted });
            self.state = to;
        }
    }

    /// It has sent a segment.
    pub fn sends(&mut self, segment: &Segment) {
        // What a SYN carries (RFC 7413) comes after its own number.
        let sequence = segment.sequence.wrapping_add(segment.syn.into());
        if segment.syn {
            self.first = Some(sequence);
        }
        if segment.payload == 0 {
            return;
        }
        self.with_clock |= segment.clock.is_some();
        self.largest = self.largest.max(segment.payload);
        let first = *self.first.get_or_insert(sequence);
        let begin = self.place(first, sequence);
        if !self.believes(0, begin) {
            return;
        }
        let end = begin + i64::from(segment.payload);
        // What is of before the capture, and the probe of an idle connection, are nothing new.
        if end <= self.acknowledged as i64 {
            return;
        }
        let begin = begin.max(self.acknowledged as i64) as u64;
        let end = end as u64;
        if begin < self.sent {
            let again = end.min(self.sent);
            if self.is_copy(segment, begin, again) {
                self.copied += 1;
            } else {
                self.sends_again(segment, begin, again);
            }
        }
        if begin > self.sent {
            let hole = Sent {
                begin: self.sent,
                end: begin,
                at_us: segment.at_us,
                id: 0,
                repeated: true,
                received: false,
                missed: true,
            };
            self.outstanding.push_back(hole);
            self.sent = begin;
        }
        if end > self.sent {
            self.started_us.get_or_insert(segment.at_us);
        }
        // Segmentation offload takes several at once, of which the receiver may get a part.
        while self.sent < end {
            let (begin, end) = (self.sent, end.min(self.sent + u64::from(self.mss())));
            let new = Sent {
                begin,
                end,
                at_us: segment.at_us,
                id: segment.id,
                repeated: false,
                received: false,
                missed: false,
            };
            self.outstanding.push_back(new);
            self.sent = end;
        }
        if segment.cwr && self.state == CongestionState::Open {
            self.recovered_at = self.sent;
            self.change(segment.at_us, CongestionState::Cwr);
        }
        self.last_sent_us = segment.at_us;
    }

    /// Whether a number that is at this place may be its peer's or its own; `of`: 0 what it sends, 1 what is acknowledged.
    fn believes(&mut self, of: usize, place: i64) -> bool {
        let far = u64::try_from(place).ok().filter(|place| *place > self.sent + FAR);
        let before = std::mem::replace(&mut self.far[of], far);
        let Some(far) = far else { return true };
        let agrees = before.is_some_and(|before| before != far && before.abs_diff(far) <= FAR);
        self.strange += u64::from(!agrees);
        agrees
    }

    /// Whether these bytes, which were sent, are there once more in the same packet, or sooner than an answer to it could have
    /// come.
    fn is_copy(&self, segment: &Segment, begin: u64, end: u64) -> bool {
        let soonest_us = match self.round_trips.min_us {
            0 => COPY_US,
            least => u64::from(least) / 2,
        };
        let at = self.outstanding.partition_point(|one| one.end <= begin);
        let mut of = self.outstanding.iter().skip(at).take_while(|one| one.begin < end);
        of.all(|one| {
            let is_same = one.id != 0 && one.id == segment.id;
            !one.missed && (is_same || segment.at_us.saturating_sub(one.at_us) < soonest_us)
        })
    }

    fn sends_again(&mut self, segment: &Segment, begin: u64, end: u64) {
        let at_us = segment.at_us;
        let is_late = self.outstanding.iter().any(|one| one.missed && one.begin <= begin && end <= one.end);
        if is_late {
            // The capture has it later than it was sent.
            return;
        }
        self.retransmitted += end - begin;
        let is_open =
            matches!(self.state, CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr);
        let shows_loss = self.received > 0;
        let quiet_us = at_us.saturating_sub(self.last_ack_us.max(self.last_sent_us));
        let timeout_us = self.round_trips.timeout_us().max(TIMEOUT_US);
        let is_first = begin <= self.acknowledged;
        if is_open && (shows_loss || is_first) {
            let timed_out = !shows_loss && quiet_us >= timeout_us;
            self.recovered_at = self.sent;
            self.change(at_us, if timed_out { CongestionState::Loss } else { CongestionState::Recovery });
        } else if self.state == CongestionState::Recovery && is_first && quiet_us >= timeout_us {
            self.recovered_at = self.sent;
            self.change(at_us, CongestionState::Loss);
        }
        for one in self.outstanding.iter_mut().skip_while(|one| one.end <= begin) {
            if one.begin >= end {
                break;
            }
            one.repeated = true;
            (one.at_us, one.id) = (at_us, segment.id);
        }
    }

    /// Its peer has sent a segment, which may acknowledge data.
    pub fn hears(&mut self, segment: &Segment) {
        if segment.syn {
            self.mss = segment.mss.or(Some(536));
            self.with_clock = segment.clock.is_some();
            self.scale = Some(segment.scale.unwrap_or(0));
            self.allowed = segment.window.into();
            return;
        }
        let (Some(acknowledged), Some(first)) = (segment.acknowledged, self.first) else { return };
        let place = self.place(first, acknowledged);
        if place < self.acknowledged as i64 || segment.reset || !self.believes(1, place) {
            return;
        }
        let before = self.in_flight();
        let mut place = place as u64;
        // The FIN takes a number and is no byte.
        if place == self.sent + 1 {
            place = self.sent;
        }
        if place > self.sent {
            self.missed += place - self.sent;
            self.sent = place;
        }
        let delivered_before = self.acknowledged + self.received;
        let mut sample = None;
        while let Some(one) = self.outstanding.front_mut() {
            if one.begin >= place {
                break;
            }
            let end = one.end.min(place);
            if one.received {
                self.received -= end - one.begin;
            } else if !one.repeated {
                sample = Some(one.at_us);
            }
            if one.missed {
                self.missed += end - one.begin;
            }
            if end < one.end {
                one.begin = end;
                break;
            }
            self.outstanding.pop_front();
        }
        self.acknowledged = place;
        let receive_window = self.receive_window(segment.window);
        for (begin, end) in segment.selective.into_iter().flatten() {
            let (begin, end) = (self.place(first, begin), self.place(first, end));
            // A block below is of what was received twice (RFC 2883).
            if begin >= place as i64 && end <= self.sent as i64 && begin < end {
                let late = self.receives(begin as u64, end as u64);
                sample = sample.max(late);
            }
        }
        if self.acknowledged + self.received == delivered_before {
            return;
        }
        let rtt_us = sample.map(|sent_us| segment.at_us.saturating_sub(sent_us));
        let rtt_us = rtt_us.map(|us| u32::try_from(us).unwrap_or(u32::MAX));
        rtt_us.into_iter().for_each(|us| self.round_trips.take(us));
        if self.state != CongestionState::Open && place >= self.recovered_at {
            self.change(segment.at_us, CongestionState::Open);
        }
        self.last_ack_us = segment.at_us;
        self.points.push(Point {
            at_us: segment.at_us,
            acknowledged: self.acknowledged,
            sent: self.sent,
            delivered: self.acknowledged + self.received,
            before,
            in_flight: self.in_flight(),
            rtt_us,
            smoothed_us: self.round_trips.smoothed_us,
            min_rtt_us: self.round_trips.min_us,
            receive_window,
            receiver_clock: segment.clock.map_or(0, |(value, _)| value),
            state: self.state,
        });
    }

    /// What it offers, 0 where its scale is not known: an option that is missing from the handshake may have been there. Then no
    /// window before this one is known.
    fn receive_window(&mut self, unscaled: u16) -> u32 {
        let Some(scale) = self.scale else { return 0 };
        let offered = u32::from(unscaled) << scale;
        self.allowed = self.allowed.max(self.acknowledged + u64::from(offered));
        // The probe of a window that is closed goes beyond it.
        if self.sent <= self.allowed + u64::from(self.mss()) {
            return offered;
        }
        self.scale = None;
        self.exceeded_window = true;
        self.points.iter_mut().for_each(|point| point.receive_window = 0);
        0
    }

    /// The receiver has these bytes; returns when the newest of them was sent, if it was sent once.
    fn receives(&mut self, begin: u64, end: u64) -> Option<u64> {
        let at = self.outstanding.partition_point(|one| one.end <= begin);
        let mut newest = None;
        for one in self.outstanding.iter_mut().skip(at) {
            if one.begin >= end {
                break;
            }
            if one.received || one.begin < begin || one.end > end {
                continue;
            }
            one.received = true;
            self.received += one.end - one.begin;
            if !one.repeated {
                newest = newest.max(Some(one.at_us));
            }
        }
        self.highest_received = self.highest_received.max(end);
        newest
    }
}
