// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Timers: retransmission (RFC 6298), the probe at the end of a flight (RFC 8985, section 7), and the wait for what may
//! come out of order.

use super::super::outstanding::{RETRANSMITTED, SACKED};
use super::super::round_trip::LEAST_VARIANCE_US;
use super::super::segment::Data;
use super::super::socket::State;
use super::recover::Found;
use super::{Out, Sender};
use crate::link::Nanos;

/// The kernel's timers are never nearer, microseconds: two ticks of 250 Hz.
const LEAST_US: u64 = 8_000;
/// Most that the timeout is doubled to, microseconds.
const MOST_US: u64 = 120_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Retransmit,
    Probe,
    Order,
}

/// There is one at a time.
#[derive(Debug, Default)]
pub(super) struct Timer {
    due: Option<(Nanos, Purpose)>,
    backoff: u32,
}

impl Timer {
    pub fn at(&self) -> Option<Nanos> {
        self.due.map(|(at, _)| at)
    }

    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    pub fn forget_backoff(&mut self) {
        self.backoff = 0;
    }

    fn is(&self, purpose: Purpose) -> bool {
        self.due.is_some_and(|(_, set)| set == purpose)
    }
}

impl Sender {
    fn set(&mut self, after_us: u64, purpose: Purpose) {
        self.timer.due = Some((self.now + after_us * 1_000, purpose));
    }

    fn timeout_us(&self) -> u64 {
        (self.socket.round_trip.timeout_us() << self.timer.backoff.min(20)).min(MOST_US)
    }

    /// What is left of the timeout, counted from when the first outstanding segment was sent.
    fn timeout_left_us(&self) -> u64 {
        let sent_us = self.outstanding.head().map_or(self.socket.now_us, |sent| sent.at_us);
        (sent_us + self.timeout_us()).saturating_sub(self.socket.now_us)
    }

    /// Something was acknowledged: a probe if that may be, else the retransmission timer.
    pub(super) fn set_timer(&mut self) {
        if self.timer.is(Purpose::Order) {
            return;
        }
        if !self.set_probe(true) {
            self.set_retransmission();
        }
    }

    pub(super) fn set_retransmission(&mut self) {
        if self.outstanding.is_empty() {
            self.timer.due = None;
            return;
        }
        let late = self.timer.is(Purpose::Probe) || self.timer.is(Purpose::Order);
        let after_us = if late { self.timeout_left_us().max(1) } else { self.timeout_us() };
        self.set(after_us, Purpose::Retransmit);
    }

    /// New data were sent: the timer runs from now if nothing was out before, and a probe is put off.
    pub(super) fn on_new_data(&mut self, first: bool) {
        if first || self.timer.is(Purpose::Probe) {
            self.set_retransmission();
        }
    }

    /// Two round-trip times, after which the last segment is retransmitted or a new one; false where that is not done.
    pub(super) fn set_probe(&mut self, from_now: bool) -> bool {
        let open = self.socket.state == State::Open;
        if self.outstanding.is_empty() || !self.spec.sack || !self.spec.fast_retransmit || !open {
            return false;
        }
        let more_us = if self.socket.packets_out == 1 { u64::from(LEAST_VARIANCE_US) } else { LEAST_US };
        let probe_us = u64::from(self.socket.round_trip.smoothed_eighths_us >> 2) + more_us;
        let timeout_us = if from_now { self.timeout_us() } else { self.timeout_left_us() };
        let after_us = if timeout_us > 0 { probe_us.min(timeout_us) } else { probe_us };
        self.set(after_us, Purpose::Probe);
        true
    }

    /// What may come out of order is waited for until then.
    pub(super) fn wait_for_order(&mut self, until_us: u64) {
        let after_us = until_us.saturating_sub(self.socket.now_us) + LEAST_US;
        self.set(after_us, Purpose::Order);
    }

    /// It is [`Sender::next_timer`].
    pub fn timer(&mut self, now: Nanos, out: &mut Out) {
        self.at(now);
        if self.pace.wakes().is_some_and(|at| at <= now) {
            self.pace.wake();
            self.resume_paced(out);
        }
        let Some((at, purpose)) = self.timer.due else { return };
        if at > now {
            return;
        }
        self.timer.due = None;
        match purpose {
            Purpose::Retransmit => self.time_out(out),
            Purpose::Probe => self.probe(out),
            Purpose::Order => {
                self.find_by_time();
                if self.socket.lost_out > 0 && self.socket.state < State::Recovery {
                    let mut found = Found { sacked: true, ..Found::default() };
                    self.repair(&mut found);
                }
                self.retransmit(out);
                if self.timer.due.is_none() {
                    self.set_retransmission();
                }
            }
        }
    }

    fn time_out(&mut self, out: &mut Out) {
        if self.outstanding.is_empty() {
            return;
        }
        self.counts.timeouts += 1;
        self.start_anew(true);
        self.timer.backoff += 1;
        self.retransmit(out);
        self.set(self.timeout_us(), Purpose::Retransmit);
    }

    fn probe(&mut self, out: &mut Out) {
        if self.recovery.probe.is_none() {
            let before = self.next;
            self.transmit_probe(out);
            if self.next > before || self.repeat_last(out) {
                self.recovery.probe = Some((self.next, self.next == before));
                // The timeout runs from the probe.
                return self.set_retransmission();
            }
        }
        self.timer.due = Some((self.now, Purpose::Probe));
        self.set_retransmission();
    }

    /// Sends the last segment again; false if a retransmission of it is on its way.
    fn repeat_last(&mut self, out: &mut Vec<Data>) -> bool {
        let Some(last) = self.next.checked_sub(1) else { return false };
        let open = self.outstanding.get(last).is_some_and(|sent| !sent.is(RETRANSMITTED | SACKED));
        if open {
            self.send_again(last, out);
        }
        open
    }
}
