// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The window: what is on its way by the gain, what comes together, and what waits in the hosts (`bbr_set_cwnd`).

use onramp_algorithm::INITIAL_WINDOW;

use super::rate::{self, Gain, Rate, UNIT};
use super::recovery::Window;
use super::{Bbr, Mode, RateSample};
use crate::sim::socket::Socket;

/// Segments of the smallest window: two bursts of two.
pub(super) const LEAST_WINDOW: u32 = 4;
/// Bytes of the largest burst, whatever the device takes: of 64 kB without the headers.
const MOST_BURST_BYTES: u64 = 65_215;
/// Bursts for which the window has room besides: in the sender's queue, in its device, and in the receiver's.
pub(super) const BURSTS: u32 = 3;

impl Bbr {
    /// After the model is updated.
    pub(super) fn set_window(&mut self, socket: &mut Socket, sample: &RateSample) {
        if sample.acked > 0 {
            let (begins, window) = self.recovery.adapt(socket, sample.acked, sample.losses);
            if begins {
                self.rounds.ends = socket.delivered;
            }
            socket.cwnd = match window {
                Window::Conserved(cwnd) => cwnd,
                Window::Open(cwnd) => self.grow(socket, cwnd, sample.acked),
            };
        }
        if self.mode == Mode::ProbeRtt {
            socket.cwnd = socket.cwnd.min(LEAST_WINDOW);
        }
    }

    /// Towards what the path holds by the gain; above that only while it may hold more.
    fn grow(&self, socket: &Socket, cwnd: u32, acked: u32) -> u32 {
        let rate = self.rate();
        let mut target = self.on_the_way(rate, self.window_gain);
        if self.full.reached {
            target += self.aggregation.extra(rate);
        }
        let target = self.with_bursts(socket, target);
        let cwnd = if self.full.reached {
            (cwnd + acked).min(target)
        } else if cwnd < target || socket.delivered < INITIAL_WINDOW {
            cwnd + acked
        } else {
            cwnd
        };
        cwnd.max(LEAST_WINDOW)
    }

    /// Segments on their way at a rate, by a gain (`bbr_bdp`).
    fn on_the_way(&self, rate: Rate, gain: Gain) -> u32 {
        // Without an RTT nothing is known.
        if self.least_rtt.us == u32::MAX {
            return INITIAL_WINDOW;
        }
        rate::in_flight(rate, self.least_rtt.us, gain)
    }

    /// The same and what waits in the hosts (`bbr_quantization_budget`): an even number, for acknowledgments of every second.
    fn with_bursts(&self, socket: &Socket, segments: u32) -> u32 {
        let even = (segments + BURSTS * burst(socket)).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeRate && self.cycle.is_probing();
        even + if probing { 2 } else { 0 }
    }

    /// Segments in flight at the largest rate, by a gain (`bbr_inflight`).
    pub(super) fn held(&self, socket: &Socket, gain: Gain) -> u32 {
        self.with_bursts(socket, self.on_the_way(self.rates.get(), gain))
    }

    /// Of segments in flight, those that will be once the next burst leaves (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network(&self, socket: &Socket, in_flight: u32) -> u32 {
        let delivered = rate::segments_within(self.rate(), socket.departs_in / 1_000);
        let with = in_flight + if self.pacing_gain > UNIT { burst(socket) } else { 0 };
        u64::from(with).saturating_sub(delivered) as u32
    }
}

/// Segments of a burst as it should be (`bbr_tso_segs_goal`).
pub(super) fn burst(socket: &Socket) -> u32 {
    let bytes = (socket.pacing_rate >> 10).min(MOST_BURST_BYTES);
    ((bytes / u64::from(socket.mss)) as u32).max(Bbr::least_burst(socket)).min(0x7f)
}
