// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The repair of losses: RACK finds them (RFC 8985), without selective acknowledgments NewReno does (RFC 6582),
//! proportional rate reduction sets the window meanwhile (RFC 6937), timestamps and F-RTO show that a timeout was spurious
//! (RFC 3522, RFC 5682).

use super::super::outstanding::{EVER_RETRANSMITTED, LOST, Sent};
use super::super::segment::Ack;
use super::super::socket::State;
use super::{Out, Sender};

/// Duplicates that indicate a loss (RFC 5681).
const DUPLICATES: u32 = 3;

/// What an acknowledgment was found to show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Segments acknowledged in order.
    pub acked: u32,
    /// Bytes of them.
    pub acked_bytes: u64,
    /// There are any.
    pub advanced: bool,
    /// Segments arrived out of order.
    pub sacked: bool,
    /// A segment arrived twice.
    pub duplicate: bool,
    /// Nothing new: 1, else 0.
    pub duplicates: u32,
    /// Segments that were sent before the loss and never again have arrived.
    pub original: bool,
    /// A retransmission was acknowledged.
    pub retransmission_acked: bool,
    /// Sample of the round-trip time, of the segment that was sent last.
    pub rtt_us: Option<u32>,
    /// The delivered segment that was sent last.
    pub latest: Option<Sent>,
    /// Losses marked before this acknowledgment.
    pub lost_before: u64,
    /// The timers begin anew.
    pub set_timer: bool,
    /// What is lost may be retransmitted.
    pub retransmits: bool,
    /// New data go first, to see whether a timeout was none.
    pub new_data_first: bool,
    /// The clock that the acknowledgment echoes, microseconds.
    pub echo_us: u64,
}

/// The segment that was sent last of those that have arrived (RFC 8985, section 5.2).
#[derive(Debug, Default)]
pub(super) struct Rack {
    sent_us: u64,
    sequence: u32,
    rtt_us: u64,
    advanced: bool,
}

impl Rack {
    /// A segment has arrived.
    pub fn advance(&mut self, now_us: u64, least_us: Option<u32>, sequence: u32, sent: &Sent) {
        let rtt_us = now_us - sent.at_us;
        if sent.is(EVER_RETRANSMITTED) && rtt_us < u64::from(least_us.unwrap_or(0)) {
            // It was the original.
            return;
        }
        (self.advanced, self.rtt_us) = (true, rtt_us);
        if (sent.at_us, sequence) > (self.sent_us, self.sequence) {
            (self.sent_us, self.sequence) = (sent.at_us, sequence);
        }
    }
}

/// What is known of a loss that is being repaired.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub rack: Rack,
    /// The first segment that had not been sent when it began.
    pub high_sequence: u32,
    /// Losses marked so far.
    pub marked: u64,
    /// A reduction can be undone.
    undo: bool,
    /// Retransmissions since it that have not proved needless, negative before the first.
    pub retransmitted: i32,
    /// When the first retransmission was sent.
    retransmitted_us: Option<u64>,
    prior_threshold: u32,
    delivered: u32,
    /// Segments sent in this recovery.
    pub sent: u32,
    /// Segments up to which a probe was sent (RFC 8985, section 7), and whether it repeated one.
    pub probe: Option<(u32, bool)>,
}

impl Sender {
    /// The state machine.
    pub(super) fn repair(&mut self, found: &mut Found) {
        let dubious =
            found.sacked || found.duplicate || found.duplicates > 0 || self.socket.state != State::Open;
        if !dubious {
            self.recovery.retransmitted_us = None;
            return;
        }
        if self.socket.state == State::Open {
            self.recovery.retransmitted_us = None;
        } else if self.outstanding.first() >= self.recovery.high_sequence
            && self.socket.state == State::Recovery
        {
            self.end_recovery(found);
            if self.socket.state == State::Recovery {
                return;
            }
        }
        match self.socket.state {
            State::Recovery => {
                if !self.spec.sack {
                    self.count_duplicates(found);
                }
                self.undo_if_duplicates(found);
                self.find_losses(found);
                if self.socket.state != State::Recovery {
                    if self.socket.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery();
                }
            }
            State::Loss => {
                if self.on_ack_after_timeout(found) {
                    self.find_losses(found);
                }
                if self.socket.state != State::Open {
                    return;
                }
                if self.socket.lost_out > 0 {
                    self.enter_recovery();
                }
            }
            State::Open | State::Disorder | State::Reduced => {
                if !self.spec.sack {
                    self.count_duplicates(found);
                }
                self.undo_if_duplicates(found);
                self.find_losses(found);
                if self.socket.lost_out == 0 {
                    self.settle();
                    return;
                }
                if self.socket.state != State::Loss {
                    self.enter_recovery();
                }
            }
        }
        found.retransmits = true;
    }

    /// Open, or not quite while something is out of order.
    fn settle(&mut self) {
        let repaired = self.socket.retrans_out == 0;
        if repaired {
            self.recovery.retransmitted_us = None;
        }
        let open = self.socket.sacked_out + self.socket.lost_out == 0 && repaired;
        self.enter(if open { State::Open } else { State::Disorder });
    }

    fn enter(&mut self, state: State) {
        if self.socket.state != state {
            self.control.state(&mut self.socket, state);
            self.socket.state = state;
        }
    }

    fn enter_recovery(&mut self) {
        self.begin_undo();
        self.recovery.prior_threshold = self.socket.current_threshold();
        self.recovery.high_sequence = self.next;
        (self.recovery.delivered, self.recovery.sent, self.recovery.probe) = (0, 0, None);
        self.socket.cwnd_count = 0;
        self.socket.prior_cwnd = self.socket.cwnd;
        self.socket.ssthresh = self.control.threshold(&mut self.socket);
        self.enter(State::Recovery);
    }

    fn begin_undo(&mut self) {
        let out = self.socket.retrans_out as i32;
        (self.recovery.undo, self.recovery.retransmitted) = (true, if out > 0 { out } else { -1 });
    }

    /// All that had been sent when the loss was found is acknowledged.
    fn end_recovery(&mut self, found: &Found) {
        if !self.spec.sack {
            self.socket.sacked_out = 0;
        }
        if self.may_undo(found) {
            self.undo(false);
        } else if !self.spec.sack && self.outstanding.first() == self.recovery.high_sequence {
            // RFC 6582, section 3.2, step 1: not to repair the same loss again.
            return;
        }
        self.end_reduction();
        self.enter(State::Open);
    }

    fn end_reduction(&mut self) {
        if self.recovery.undo && !self.control.controls() {
            self.socket.cwnd = self.socket.ssthresh;
        }
        self.recovery.undo = false;
    }

    /// Timestamps show that the original had arrived before the retransmission was sent.
    fn may_undo(&self, found: &Found) -> bool {
        let early = self.recovery.retransmitted_us.is_some_and(|at| found.echo_us / 1_000 < at / 1_000);
        self.recovery.undo && (self.recovery.retransmitted == 0 || early)
    }

    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.outstanding.unmark_lost();
            self.socket.lost_out = 0;
        }
        self.socket.cwnd = self.control.undo(&mut self.socket);
        self.socket.ssthresh = self.socket.ssthresh.max(self.recovery.prior_threshold);
        self.recovery.undo = false;
    }

    /// All retransmissions were needless (RFC 3708).
    fn undo_if_duplicates(&mut self, found: &Found) {
        if found.duplicate && self.recovery.undo {
            self.recovery.retransmitted -= i32::from(self.recovery.retransmitted > 0);
            if self.recovery.retransmitted == 0 {
                self.undo(false);
                self.settle();
            }
        }
    }

    /// Duplicates stand for segments that have arrived.
    fn count_duplicates(&mut self, found: &Found) {
        let socket = &mut self.socket;
        if found.advanced {
            let arrived = found.acked.saturating_sub(1).min(socket.sacked_out);
            socket.sacked_out = if socket.state == State::Recovery { socket.sacked_out - arrived } else { 0 };
        } else if found.duplicates > 0 && socket.sacked_out + socket.lost_out < socket.packets_out {
            socket.sacked_out += 1;
            socket.delivered = socket.delivered.wrapping_add(1);
        }
    }

    fn find_losses(&mut self, found: &Found) {
        if self.outstanding.is_empty() || !self.spec.fast_retransmit {
            return;
        }
        if !self.spec.sack {
            let first = self.outstanding.first();
            let recovering = self.socket.state == State::Recovery;
            if self.control.starts_anew() && self.socket.sacked_out >= DUPLICATES {
                self.start_anew(false);
            } else if (!recovering && self.socket.sacked_out >= DUPLICATES) || (recovering && found.advanced)
            {
                self.mark_lost(first);
            }
            return;
        }
        if std::mem::take(&mut self.recovery.rack.advanced) {
            self.find_by_time();
        }
    }

    /// RFC 8985, section 6.2, step 5. Links keep the order of packets, so nothing is waited for once there is a loss.
    pub(super) fn find_by_time(&mut self) {
        let rack = &self.recovery.rack;
        let (sent_us, last, rtt_us) = (rack.sent_us, rack.sequence, rack.rtt_us);
        let wait_us = if self.socket.state >= State::Recovery || self.socket.sacked_out >= DUPLICATES {
            0
        } else {
            u64::from(self.socket.round_trip.least_us().unwrap_or(0) / 4)
                .min(u64::from(self.socket.round_trip.smoothed_eighths_us >> 6))
        };
        while let Some((sequence, sent)) = self.outstanding.oldest() {
            if (sent.at_us, sequence) >= (sent_us, last) {
                break;
            }
            let until_us = sent.at_us + rtt_us + wait_us;
            if until_us > self.socket.now_us {
                self.wait_for_order(until_us);
                break;
            }
            self.mark_lost(sequence);
        }
    }

    /// Marks a segment as lost, if it is not.
    pub(super) fn mark_lost(&mut self, sequence: u32) {
        let before = self.outstanding.get(sequence).copied();
        let (Some(before), Some(again)) = (before, self.outstanding.mark_lost(sequence)) else { return };
        self.recovery.marked += 1;
        self.socket.lost = self.socket.lost.wrapping_add(1);
        if again {
            self.socket.retrans_out -= 1;
        }
        if !before.is(LOST) {
            self.socket.lost_out += 1;
        }
    }

    /// Whether losses are looked for, after a timeout.
    fn on_ack_after_timeout(&mut self, found: &mut Found) -> bool {
        let recovered = self.outstanding.first() >= self.recovery.high_sequence;
        if found.advanced && self.may_undo(found) {
            self.undo(true);
            self.enter(State::Open);
            return false;
        }
        if self.socket.in_doubt {
            if found.original {
                self.undo(true);
                self.enter(State::Open);
                return false;
            }
            if self.next > self.recovery.high_sequence {
                self.socket.in_doubt &= !(found.sacked || found.duplicates > 0);
            } else if found.advanced && !recovered {
                self.recovery.high_sequence = self.next;
                if self.next < self.layout.written() {
                    found.new_data_first = true;
                    found.retransmits = true;
                    return true;
                }
                self.socket.in_doubt = false;
            }
        }
        if recovered {
            if !self.spec.sack {
                self.socket.sacked_out = 0;
            }
            self.recovery.undo = false;
            self.enter(State::Open);
            return true;
        }
        if !self.spec.sack {
            self.socket.sacked_out = 0;
        }
        found.retransmits = true;
        true
    }

    /// Proportional rate reduction.
    pub(super) fn reduce_window(&mut self, delivered: u32, lost: bool, advanced: bool) {
        if delivered == 0 || self.socket.prior_cwnd == 0 {
            return;
        }
        let (socket, recovery) = (&mut self.socket, &mut self.recovery);
        recovery.delivered += delivered;
        let in_flight = socket.in_flight();
        let owed = i64::from(recovery.delivered) - i64::from(recovery.sent);
        let send = if in_flight > socket.ssthresh {
            let share = u64::from(socket.ssthresh) * u64::from(recovery.delivered);
            share.div_ceil(u64::from(socket.prior_cwnd)) as i64 - i64::from(recovery.sent)
        } else {
            // In slow start, as long as nothing more is lost.
            let bound = owed.max(delivered.into()) + i64::from(advanced && !lost);
            bound.min(i64::from(socket.ssthresh - in_flight))
        };
        // The first retransmission goes at once.
        let least = i64::from(recovery.sent == 0);
        socket.cwnd = in_flight + send.max(least) as u32;
    }

    /// The retransmission timer has fired, or a loss is treated as if it had: all is retransmitted from one segment on.
    pub(super) fn start_anew(&mut self, timeout: bool) {
        let first = self.socket.state <= State::Disorder
            || self.outstanding.first() >= self.recovery.high_sequence
            || (self.socket.state == State::Loss && self.timer.backoff() == 0);
        let new = self.socket.state < State::Recovery;
        let last = self.next;
        if !self.spec.sack {
            self.socket.sacked_out = 0;
        }
        let rtt_us = self.recovery.rack.rtt_us;
        for sequence in self.outstanding.first()..last {
            let recent = self.spec.sack
                && self.spec.fast_retransmit
                && sequence != self.outstanding.first()
                && self
                    .outstanding
                    .get(sequence)
                    .is_some_and(|sent| sent.at_us + rtt_us > self.socket.now_us);
            if !recent {
                self.mark_lost(sequence);
            }
        }
        if first {
            self.recovery.prior_threshold = self.socket.current_threshold();
            self.socket.prior_cwnd = self.socket.cwnd;
            self.socket.ssthresh = self.control.threshold(&mut self.socket);
            self.begin_undo();
        }
        self.socket.cwnd = self.socket.in_flight() + 1;
        self.socket.cwnd_count = 0;
        if !timeout {
            self.control.state(&mut self.socket, State::Recovery);
        }
        // The kernel says so each time, also where it is in this state.
        self.control.state(&mut self.socket, State::Loss);
        self.socket.state = State::Loss;
        self.recovery.high_sequence = self.next;
        self.recovery.probe = None;
        self.socket.in_doubt = timeout && self.spec.fast_retransmit && (new || self.timer.backoff() > 0);
    }

    /// Sends what is lost again, as far as the window allows.
    pub(super) fn retransmit_lost(&mut self, found: &Found, out: &mut Out) {
        if !found.retransmits {
            return;
        }
        if found.new_data_first {
            self.transmit(out);
            if self.next > self.recovery.high_sequence {
                return;
            }
            self.socket.in_doubt = false;
        }
        self.retransmit(out);
    }

    /// A retransmission was sent.
    pub(super) fn note_retransmission(&mut self) {
        let now_us = self.socket.now_us;
        self.recovery.retransmitted_us.get_or_insert(now_us);
        self.recovery.retransmitted = self.recovery.retransmitted.max(0) + 1;
        if self.socket.state == State::Recovery {
            self.recovery.sent += 1;
        }
    }

    /// After a probe: has it been acknowledged, and what did it show (RFC 8985, section 7.4)?
    pub(super) fn end_probe(&mut self, ack: &Ack) {
        let Some((until, repeated)) = self.recovery.probe else { return };
        if ack.next < until {
            return;
        }
        if !repeated || ack.duplicate.is_some() {
            self.recovery.probe = None;
        } else if ack.next > until {
            // The probe has repaired a loss, for which the window is reduced.
            self.recovery.probe = None;
            self.socket.prior_cwnd = self.socket.cwnd;
            self.socket.ssthresh = self.control.threshold(&mut self.socket);
            self.control.state(&mut self.socket, State::Reduced);
            if !self.control.controls() {
                self.socket.cwnd = self.socket.cwnd.min(self.socket.ssthresh);
            }
        }
    }
}
