// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an acknowledgment does, in the kernel's order: the scoreboard, the round-trip time, the control's look at it,
//! the repair of losses, the window, and what may be sent now.

use super::super::control::RateSample;
use super::super::outstanding::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED, Sent};
use super::super::segment::Ack;
use super::super::socket::State;
use super::recover::Found;
use super::{Out, Sender};
use crate::link::Nanos;

/// What one acknowledgment delivers.
#[derive(Default)]
struct Delivered {
    /// Segments acknowledged in order.
    acked: u32,
    /// When the first and the last segment that was never retransmitted was sent, of those acknowledged in order.
    first_us: Option<u64>,
    last_us: Option<u64>,
    /// The same of those that arrived out of order.
    sacked_us: Option<(u64, u64)>,
    /// The segment that was sent last.
    latest: Option<Sent>,
}

impl Sender {
    /// An acknowledgment arrives.
    pub fn acknowledge(&mut self, now: Nanos, ack: &Ack, out: &mut Out) {
        self.at(now);
        let (before, in_flight) = (self.socket.delivered, self.socket.in_flight());
        if let Some(mut found) = self.take(ack) {
            self.repair(&mut found);
            if found.set_timer {
                self.set_timer();
            }
            let sample = self.sample_rate(&found, before, in_flight);
            self.adapt_window(&found, &sample);
            self.retransmit_lost(&found, out);
        }
        self.transmit(out);
        self.free_buffer();
        self.counts.most_cwnd = self.counts.most_cwnd.max(self.socket.cwnd);
    }

    /// Scoreboard, round-trip time and the control's look. `None`: nothing was outstanding, or the acknowledgment is old.
    fn take(&mut self, ack: &Ack) -> Option<Found> {
        if ack.next < self.outstanding.first() {
            return None;
        }
        self.echo_us = ack.sent_us;
        self.socket.receiver_ms = (ack.sent_us / 1_000) as u32;
        let widened = ack.window_end > self.window_end;
        self.window_end = self.window_end.max(ack.window_end);
        let offered = self.window_end - self.layout.begin(ack.next);
        self.socket.receive_window = offered as u32;
        self.largest_window = self.largest_window.max(offered);
        if self.outstanding.is_empty() {
            return None;
        }
        let mut delivered = Delivered::default();
        let mut found =
            Found { duplicate: ack.duplicate.is_some(), echo_us: ack.echo_us, ..Found::default() };
        let lost_before = self.recovery.marked;
        if self.spec.sack {
            self.take_blocks(ack, &mut delivered, &mut found);
        }
        self.take_acknowledged(ack, &mut delivered, &mut found);
        found.lost_before = lost_before;
        found.latest = delivered.latest;
        self.measure_rtt(ack, &delivered, &mut found);
        if delivered.acked > 0 {
            self.control.acked(&mut self.socket, delivered.acked, found.rtt_us);
        }
        self.end_probe(ack);
        let carries_news = found.advanced || widened || found.sacked || found.duplicate;
        found.duplicates = u32::from(!carries_news && ack.next == self.outstanding.first());
        found.set_timer = found.advanced || found.sacked;
        Some(found)
    }

    fn take_blocks(&mut self, ack: &Ack, delivered: &mut Delivered, found: &mut Found) {
        let Self { outstanding, socket, recovery, .. } = self;
        let (now_us, least) = (socket.now_us, socket.round_trip.least_us());
        for block in ack.blocks().iter().rev() {
            outstanding.sack(*block, |sequence, sent| {
                found.sacked = true;
                socket.sacked_out += 1;
                socket.delivered = socket.delivered.wrapping_add(1);
                if sent.is(LOST) {
                    socket.lost_out -= 1;
                }
                if sent.is(RETRANSMITTED) {
                    socket.retrans_out -= 1;
                }
                recovery.rack.advance(now_us, least, sequence, &sent);
                if !sent.is(EVER_RETRANSMITTED) {
                    if sequence < recovery.high_sequence {
                        found.original = true;
                    }
                    let first = delivered.sacked_us.map_or(sent.at_us, |(first, _)| first);
                    delivered.sacked_us = Some((first, sent.at_us));
                }
                note_latest(delivered, &sent);
            });
        }
    }

    fn take_acknowledged(&mut self, ack: &Ack, delivered: &mut Delivered, found: &mut Found) {
        let Self { outstanding, socket, recovery, .. } = self;
        let (now_us, least) = (socket.now_us, socket.round_trip.least_us());
        let from = outstanding.first();
        while outstanding.first() < ack.next {
            let sequence = outstanding.first();
            let Some(sent) = outstanding.pop() else { break };
            delivered.acked += 1;
            socket.packets_out -= 1;
            if sent.is(LOST) {
                socket.lost_out -= 1;
            }
            if sent.is(RETRANSMITTED) {
                socket.retrans_out -= 1;
            }
            if sent.is(SACKED) {
                socket.sacked_out -= 1;
            } else {
                socket.delivered = socket.delivered.wrapping_add(1);
                recovery.rack.advance(now_us, least, sequence, &sent);
                note_latest(delivered, &sent);
            }
            if sent.is(EVER_RETRANSMITTED) {
                found.retransmission_acked = true;
            } else if !sent.is(SACKED) {
                delivered.first_us.get_or_insert(sent.at_us);
                delivered.last_us = Some(sent.at_us);
                if sequence < recovery.high_sequence {
                    found.original = true;
                }
            }
        }
        outstanding.forget_sacked();
        found.acked = delivered.acked;
        found.advanced = delivered.acked > 0;
        if found.advanced {
            found.acked_bytes = self.layout.begin(ack.next) - self.layout.begin(from);
            self.socket.bytes_acked += found.acked_bytes;
        }
    }

    /// Samples of the round-trip time (RFC 6298, with Karn's rule; RFC 7323 where it has none).
    fn measure_rtt(&mut self, ack: &Ack, delivered: &Delivered, found: &mut Found) {
        let now_us = self.socket.now_us;
        let first = delivered.first_us.filter(|_| !found.retransmission_acked);
        let mut rtt_us = first.map(|at| now_us - at);
        let mut latest_us = first.and(delivered.last_us).map(|at| now_us - at);
        if let Some((first, last)) = delivered.sacked_us {
            rtt_us = rtt_us.or(Some(now_us - first));
            latest_us = Some(now_us - last);
        }
        if rtt_us.is_none() && found.advanced {
            // Timestamps count milliseconds.
            let echoed = (now_us / 1_000).saturating_sub(ack.echo_us / 1_000).max(1) * 1_000;
            (rtt_us, latest_us) = (Some(echoed), Some(echoed));
        }
        let (Some(rtt_us), Some(latest_us)) = (rtt_us, latest_us) else { return };
        found.rtt_us = Some(latest_us as u32);
        // A single segment may have waited for a second one.
        let waited =
            found.acked == 1 && !found.sacked && self.socket.state == State::Open && !self.is_last(ack.next);
        let least = self.socket.round_trip.least_us();
        if !waited || least.is_none_or(|least| latest_us < u64::from(least)) {
            self.socket.round_trip.sample_least(latest_us.max(1) as u32);
        }
        self.socket.round_trip.sample(rtt_us as u32, self.outstanding.first(), self.next);
        self.timer.forget_backoff();
    }

    /// The last segment may be short, and is then not waited for.
    fn is_last(&self, next: u32) -> bool {
        next == self.layout.written()
    }

    fn adapt_window(&mut self, found: &Found, sample: &RateSample) {
        if self.control.controls() {
            self.control.control(&mut self.socket, sample, self.recovery.retransmitted);
            return;
        }
        if self.socket.state == State::Recovery {
            self.reduce_window(sample.acked, sample.losses > 0, found.advanced);
        } else if found.advanced {
            self.control.grow(&mut self.socket, sample.acked);
        }
        self.socket.update_pacing_rate();
    }
}

/// Of several segments the one that was sent last shows the rate.
fn note_latest(delivered: &mut Delivered, sent: &Sent) {
    if delivered.latest.is_none_or(|latest| sent.delivered >= latest.delivered) {
        delivered.latest = Some(*sent);
    }
}
