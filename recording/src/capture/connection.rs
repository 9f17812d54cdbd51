// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A connection of two ends, and at which of them it was captured.

use std::net::SocketAddr;

use super::packets::Segment;
use super::sender::Sender;
use crate::monotone::Monotone;

/// Of a round trip, in quarters: so much of it passes on the far side of where it was captured.
const NEAR_QUARTERS: u64 = 3;
/// A round trip that is shorter is within one host, microseconds.
const LOCAL_US: u64 = 100;

/// At which end it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Of the ends, this.
    At(usize),
    /// Neither: both are far, or both are here.
    Unknown,
}

/// Both directions.
#[derive(Debug)]
pub(super) struct Connection {
    /// The first that was seen to send, and its peer.
    pub ends: [SocketAddr; 2],
    pub senders: [Sender; 2],
    pub times: Monotone,
    /// By which interface each one's first packet came: others have the same packets once more.
    interfaces: [Option<u32>; 2],
    /// When each one's SYN passed, and the first ACK after both.
    syn_us: [Option<u64>; 2],
    syn_sequence: Option<u32>,
    acknowledged_us: Option<u64>,
    opened_by: usize,
    /// Of each: a value of its clock and when it was seen; and the least time until the peer echoed one.
    clock: [Option<(u32, u64)>; 2],
    echo_us: [Option<u64>; 2],
    pub closed: bool,
}

impl Connection {
    pub fn new(first: &Segment) -> Self {
        Self {
            ends: [first.from, first.to],
            senders: Default::default(),
            times: Monotone::default(),
            interfaces: [None; 2],
            syn_us: [None; 2],
            syn_sequence: None,
            acknowledged_us: None,
            opened_by: 0,
            clock: [None; 2],
            echo_us: [None; 2],
            closed: false,
        }
    }

    /// Whether a segment begins another connection of the same ends.
    pub fn is_over(&self, segment: &Segment) -> bool {
        segment.syn
            && segment.acknowledged.is_none()
            && self.syn_sequence != Some(segment.sequence)
            && (self.closed
                || self.syn_sequence.is_some()
                || self.senders.iter().any(|one| one.sent_bytes() > 0))
    }

    pub fn take(&mut self, segment: &Segment) {
        let who = usize::from(segment.from != self.ends[0]);
        let interface = *self.interfaces[who].get_or_insert(segment.interface);
        if interface != segment.interface {
            return;
        }
        let segment = &Segment { at_us: self.times.at(segment.at_us), ..*segment };
        self.time(who, segment);
        self.closed |= segment.fin || segment.reset;
        self.senders[who].sends(segment);
        self.senders[1 - who].hears(segment);
    }

    fn time(&mut self, who: usize, segment: &Segment) {
        if segment.syn {
            // Of one that is repeated the answer may be to the first.
            if self.syn_us[who].is_none() {
                self.syn_us[who] = Some(segment.at_us);
            }
            if segment.acknowledged.is_none() {
                self.opened_by = who;
                self.syn_sequence = Some(segment.sequence);
            }
        } else if who == self.opened_by && self.syn_us.iter().all(Option::is_some) {
            self.acknowledged_us.get_or_insert(segment.at_us);
        }
        let Some((value, echo)) = segment.clock else { return };
        if let Some((asked, at_us)) = self.clock[1 - who] {
            if echo == asked {
                let us = segment.at_us.saturating_sub(at_us);
                self.echo_us[1 - who] = Some(self.echo_us[1 - who].map_or(us, |least| least.min(us)));
                self.clock[1 - who] = None;
            } else if echo.wrapping_sub(asked) as i32 > 0 {
                self.clock[1 - who] = None;
            }
        }
        if self.clock[who].is_none() {
            self.clock[who] = Some((value, segment.at_us));
        }
    }

    /// The end that its answers take longest to come back to.
    pub fn side(&self) -> Side {
        let handshake = || {
            let opened = self.syn_us[self.opened_by]?;
            let answered = self.syn_us[1 - self.opened_by]?;
            let acknowledged = self.acknowledged_us?;
            let mut far = [0; 2];
            far[self.opened_by] = answered.saturating_sub(opened);
            far[1 - self.opened_by] = acknowledged.saturating_sub(answered);
            Some(far)
        };
        let echoes = || Some([self.echo_us[0]?, self.echo_us[1]?]);
        let Some(far) = handshake().or_else(echoes) else { return Side::Unknown };
        let whole = far[0] + far[1];
        if whole < LOCAL_US {
            return Side::Unknown;
        }
        (0..2).find(|end| 4 * far[*end] >= NEAR_QUARTERS * whole).map_or(Side::Unknown, Side::At)
    }
}
