// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is sent, and when: in bursts of about a millisecond of the rate (TSO), paced where a control asks for it.

use super::super::outstanding::{APP_LIMITED, Sent};
use super::super::segment::Data;
use super::super::socket::{BURST_BYTES, State};
use super::{Out, Sender};
use crate::link::Nanos;

/// Segments that are not held back.
const UNPACED: u64 = 10;

/// Pacing of bursts.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The next burst may leave then.
    next: Nanos,
    wakes: Option<Nanos>,
    /// Segments sent so far.
    sent: u64,
}

impl Pace {
    /// For how long the next burst is still held back.
    pub fn departs_in(&self, now: Nanos) -> Nanos {
        self.next.saturating_sub(now)
    }

    pub fn wakes(&self) -> Option<Nanos> {
        self.wakes
    }

    pub fn wake(&mut self) {
        self.wakes = None;
    }
}

/// How the window was used (RFC 7661 in Linux's form).
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The window in which the use is looked at ends here.
    ends: u32,
    most: u32,
    /// When the window was used up last, microseconds.
    used_us: u64,
    /// When data were sent last, microseconds.
    sent_us: u64,
}

/// How much may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// All that windows and pacing allow.
    All,
    /// One burst, which is not waited with (`tcp_push_one`).
    One,
    /// One segment, whatever the congestion window.
    Probe,
}

impl Sender {
    /// Sends new data as far as windows and pacing allow.
    pub(super) fn transmit(&mut self, out: &mut Out) {
        self.send_new(Push::All, out);
    }

    /// Sends one new segment, whatever the congestion window.
    pub(super) fn transmit_probe(&mut self, out: &mut Out) {
        self.send_new(Push::Probe, out);
    }

    /// Pacing lets more pass.
    pub(super) fn resume_paced(&mut self, out: &mut Out) {
        if self.socket.lost_out > self.socket.retrans_out {
            self.retransmit(out);
        }
        self.transmit(out);
    }

    fn is_paced_out(&mut self) -> bool {
        if !self.socket.paced || self.pace.next <= self.now {
            return false;
        }
        self.pace.wakes = Some(self.pace.next);
        true
    }

    pub(super) fn send_new(&mut self, push: Push, out: &mut Out) {
        let probe = push == Push::Probe;
        let before = self.next;
        let mut limited = false;
        while self.next < self.layout.written() {
            if self.is_paced_out() {
                break;
            }
            self.control.before_sending(&mut self.socket);
            let most = self.burst();
            let (cwnd, in_flight) = (self.socket.cwnd, self.socket.in_flight());
            let quota =
                if in_flight >= cwnd { u32::from(probe) } else { (cwnd / 2).max(1).min(cwnd - in_flight) };
            if quota == 0 {
                break;
            }
            let fits = self.layout.segments_until(self.next, self.window_end);
            if fits == 0 {
                self.stall();
                break;
            }
            let head = self.queue.head();
            if push == Push::All && head > 1 && self.defers(most, &mut limited) {
                break;
            }
            let count = if probe { 1 } else { quota.min(most).min(fits).min(head) };
            self.send(count, out);
            if push != Push::All {
                break;
            }
        }
        if self.next > before {
            self.resume();
        }
        limited |= self.socket.in_flight() >= self.socket.cwnd;
        if self.next > before || limited {
            self.note_use(limited);
        }
        if self.next > before {
            self.usage.sent_us = self.socket.now_us;
            if self.socket.state == State::Recovery {
                self.recovery.sent += self.next - before;
            }
            if !probe {
                self.set_probe(false);
            }
        }
    }

    /// Segments of a burst: a millisecond of the rate, more on the shortest paths.
    fn burst(&self) -> u32 {
        let least = self.socket.round_trip.least_us().unwrap_or(u32::MAX);
        let near = BURST_BYTES.checked_shr(least >> 9).unwrap_or(0);
        let bytes = (self.socket.pacing_rate >> 10).saturating_add(near.into()).min(BURST_BYTES.into());
        ((bytes / u64::from(self.socket.mss)) as u32).max(self.control.least_burst(&self.socket))
    }

    /// Whether to wait for the next acknowledgment, so that a burst, of so many segments at most, becomes larger
    /// (`tcp_tso_should_defer`). Not for what is yet to be written: windows alone count.
    fn defers(&self, most: u32, limited: &mut bool) -> bool {
        if self.socket.state >= State::Recovery {
            return false;
        }
        let now_us = self.socket.now_us;
        if now_us > self.usage.sent_us + 1_000 {
            return false;
        }
        let bytes = |segments: u32| u64::from(segments) * u64::from(self.socket.mss);
        let open = self.window_end - self.layout.begin(self.next);
        let unused = bytes(self.socket.cwnd - self.socket.in_flight());
        let allowed = unused.min(open);
        let head_bytes = bytes(self.queue.head());
        let third = bytes(self.socket.cwnd).min(self.socket.receive_window.into()) / 3;
        let whole = self.queue.has_more() && allowed >= head_bytes;
        if allowed >= bytes(most) || allowed >= third || whole {
            return false;
        }
        let Some(head) = self.outstanding.head() else { return false };
        let half_us = u64::from(self.socket.round_trip.smoothed_eighths_us >> 4);
        if now_us < head.at_us + half_us {
            return false;
        }
        *limited |= unused < open && unused <= head_bytes;
        true
    }

    fn send(&mut self, count: u32, out: &mut Out) {
        let first = self.socket.packets_out == 0;
        self.note_start();
        if first {
            let now_us = self.socket.now_us;
            (self.first_us, self.socket.delivered_us) = (now_us, now_us);
            if self.pace.sent > 0 {
                self.control.resumed(now_us, now_us - self.usage.sent_us);
            }
        }
        let flags = if self.socket.app_limited > 0 { APP_LIMITED } else { 0 };
        let sent = Sent {
            at_us: self.socket.now_us,
            delivered_us: self.socket.delivered_us,
            first_us: self.first_us,
            delivered: self.socket.delivered,
            flags,
        };
        for number in 0..count {
            self.outstanding.push(sent);
            let push = (number + 1 == count && count > 1) || self.next + 1 == self.layout.written();
            out.push(Data { sequence: self.next, sent_us: sent.at_us, echo_us: self.echo_us, push });
            self.next += 1;
        }
        self.queue.take(count, self.next);
        self.socket.packets_out += count;
        self.socket.bytes_sent = self.layout.begin(self.next);
        self.pass(count);
        self.on_new_data(first);
    }

    /// Something is sent: with nothing on its way, sending begins.
    fn note_start(&mut self) {
        if self.socket.in_flight() == 0 {
            self.control.transmission_starts(&mut self.socket);
        }
    }

    /// A burst has left: the next may after as long as it takes at the rate.
    fn pass(&mut self, count: u32) {
        self.pace.sent += u64::from(count);
        if !self.socket.paced {
            return;
        }
        let before = self.pace.next;
        self.pace.next = before.max(self.now);
        let rate = self.socket.pacing_rate;
        if rate > 0 && self.pace.sent > UNPACED {
            let bytes = u128::from(count) * u128::from(self.socket.mss);
            let length = (bytes * 1_000_000_000 / u128::from(rate)) as Nanos;
            // Half of what it was late by is made up for.
            let credit = (self.pace.next - before).min(length / 2);
            self.pace.next += length - credit;
        }
    }

    /// Sends lost segments again, as far as the congestion window allows.
    pub(super) fn retransmit(&mut self, out: &mut Out) {
        self.control.before_sending(&mut self.socket);
        let head = self.outstanding.first();
        while let Some(sequence) = self.outstanding.next_lost() {
            if self.is_paced_out() || self.socket.in_flight() >= self.socket.cwnd {
                return;
            }
            self.send_again(sequence, out);
            if sequence == head {
                self.set_retransmission();
            }
        }
    }

    /// Sends one segment again.
    pub(super) fn send_again(&mut self, sequence: u32, out: &mut Out) {
        self.note_start();
        let sent = Sent {
            at_us: self.socket.now_us,
            delivered_us: self.socket.delivered_us,
            first_us: self.first_us,
            delivered: self.socket.delivered,
            flags: 0,
        };
        self.outstanding.resend(sequence, |known| *known = Sent { flags: known.flags, ..sent });
        out.push(Data { sequence, sent_us: sent.at_us, echo_us: self.echo_us, push: false });
        self.socket.retrans_out += 1;
        self.counts.retransmitted += 1;
        self.pass(1);
        self.note_retransmission();
    }

    fn stall(&mut self) {
        let now = self.now;
        self.stalled_since.get_or_insert(now);
    }

    fn resume(&mut self) {
        if let Some(since) = self.stalled_since.take() {
            self.counts.receive_window_limited += self.now - since;
        }
    }

    /// Whether the window was used, for its growth.
    fn note_use(&mut self, limited: bool) {
        let (socket, usage) = (&mut self.socket, &mut self.usage);
        let over = self.outstanding.first() >= usage.ends;
        if over || limited || (!socket.cwnd_limited && socket.packets_out > socket.max_packets_out) {
            socket.cwnd_limited = limited;
            socket.max_packets_out = socket.packets_out;
            usage.ends = self.next;
        }
        if socket.is_cwnd_limited() {
            (usage.most, usage.used_us) = (0, socket.now_us);
            return;
        }
        usage.most = usage.most.max(socket.packets_out);
        if socket.now_us - usage.used_us >= socket.round_trip.timeout_us() {
            let used = usage.most.max(self.spec.initial_window);
            if socket.state == State::Open && used < socket.cwnd && !self.control.controls() {
                socket.ssthresh = socket.current_threshold();
                socket.cwnd = (socket.cwnd + used) / 2;
            }
            (usage.most, usage.used_us) = (0, socket.now_us);
        }
    }

    /// After an idle time the window is what it was at first, or half for each timeout (RFC 5681, section 4.1).
    pub(super) fn restart_after_idle(&mut self) {
        let timeout_us = self.socket.round_trip.timeout_us();
        let mut idle_us = self.socket.now_us.saturating_sub(self.usage.sent_us);
        if self.pace.sent == 0 || idle_us <= timeout_us || self.control.controls() {
            return;
        }
        self.control.restarted();
        self.socket.ssthresh = self.socket.current_threshold();
        let restart = self.spec.initial_window.min(self.socket.cwnd);
        while idle_us > timeout_us && self.socket.cwnd > restart {
            idle_us -= timeout_us;
            self.socket.cwnd /= 2;
        }
        self.socket.cwnd = self.socket.cwnd.max(restart);
        self.usage.used_us = self.socket.now_us;
    }
}

#[cfg(test)]
mod tests {
    use super::super::new_sender;
    use super::*;

    const MSS: u64 = 1_448;

    /// A receiver that acknowledges only every second segment would be waited for until its timer.
    #[test]
    fn a_burst_is_not_waited_for_where_a_third_of_the_smaller_window_is_free_however_little_is_left_to_send()
    {
        let defers = |written, receive_window, cwnd| {
            let (mut out, mut sender) = (Out::new(), new_sender(100, 1_000_000, receive_window * MSS));
            sender.write(0, written * MSS, &mut out);
            assert_eq!(out.len(), 10);
            sender.socket.cwnd = cwnd;
            sender.at(900_000);
            sender.defers(44, &mut false)
        };
        // Of the receiver's window 5 and 4 of 15 are free, of the congestion window more.
        assert!(!defers(40, 15, 200) && defers(40, 14, 200));
        // Of the congestion window 5 of 15, where one segment is left.
        assert!(!defers(11, 200, 15) && defers(11, 200, 14));
    }
}
