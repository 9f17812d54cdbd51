// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation, as `net/ipv4/tcp_rate.c` makes them): of the segments
//! delivered since the last of an acknowledgment's segments was sent, over the longer of the times in which they were sent and
//! acknowledged.

use super::super::control::RateSample;
use super::super::outstanding::APP_LIMITED;
use super::Sender;
use super::recover::Found;

impl Sender {
    /// The sample of an acknowledgment, before which so many segments had been delivered and were in flight.
    pub(super) fn sample_rate(&mut self, found: &Found, before: u32, in_flight: u32) -> RateSample {
        let socket = &mut self.socket;
        if socket.app_limited > 0 && (socket.delivered.wrapping_sub(socket.app_limited) as i32) > 0 {
            socket.app_limited = 0;
        }
        let now_us = socket.now_us;
        if socket.delivered != before {
            socket.delivered_us = now_us;
        }
        let mut sample = RateSample {
            acked: socket.delivered.wrapping_sub(before),
            losses: (self.recovery.marked - found.lost_before) as u32,
            prior_in_flight: in_flight,
            rtt_us: found.rtt_us,
            ..RateSample::default()
        };
        let Some(sent) = found.latest else { return sample };
        self.first_us = sent.at_us;
        let delivered = socket.delivered.wrapping_sub(sent.delivered);
        let single = found.acked == 1 && !found.sacked && delivered == 1;
        sample.delayed = single && found.acked_bytes < socket.mss.into();
        sample.prior_delivered = sent.delivered;
        sample.delivered = Some(delivered);
        sample.app_limited = sent.is(APP_LIMITED);
        let interval_us = (sent.at_us - sent.first_us).max(now_us - sent.delivered_us);
        if interval_us < u64::from(socket.round_trip.least_us().unwrap_or(0)) {
            return sample;
        }
        let interval_us = u32::try_from(interval_us).unwrap_or(u32::MAX);
        sample.interval_us = Some(interval_us);
        let faster = u64::from(delivered) * u64::from(socket.rate_interval_us)
            >= u64::from(socket.rate_delivered) * u64::from(interval_us);
        if !sample.app_limited || faster {
            socket.rate_delivered = delivered;
            socket.rate_interval_us = interval_us;
            socket.rate_app_limited = sample.app_limited;
        }
        sample
    }
}
