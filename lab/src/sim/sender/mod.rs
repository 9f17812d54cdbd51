// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A TCP sender, as Linux is one: what it takes from the application ([`buffer`]), what it does with acknowledgments
//! ([`acknowledge`]), how it measures its rate ([`rate`]), what it does with losses ([`recover`]), when its timers fire
//! ([`timer`]), and what it sends ([`transmit`]).

mod acknowledge;
mod buffer;
mod rate;
mod recover;
mod timer;
mod transmit;
mod write;

use super::control::Control;
use super::opening::Opened;
use super::outstanding::Outstanding;
use super::segment::{Data, Layout};
use super::socket::Socket;
use crate::link::Nanos;
use timer::Timer;

/// What can be set about a sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderSpec {
    /// Bytes of a full segment.
    pub mss: u32,
    /// First window, segments.
    pub initial_window: u32,
    /// Selective acknowledgments are agreed upon.
    pub sack: bool,
    /// Three duplicate acknowledgments repair a loss; else only the timer does.
    pub fast_retransmit: bool,
    /// Initial and largest send buffer, bytes (`tcp_wmem`).
    pub buffer_bytes: [u64; 2],
    /// Its device paces (`fq`).
    pub paced: bool,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCounts {
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Times that the retransmission timer fired.
    pub timeouts: u64,
    /// Time stalled by the receiver's window.
    pub receive_window_limited: Nanos,
    /// Most segments that the window held.
    pub most_cwnd: u32,
}

/// A TCP sender with its timers.
#[derive(Debug)]
pub struct Sender {
    spec: SenderSpec,
    /// What its control shares with it.
    pub socket: Socket,
    /// Decides on the window.
    pub control: Control,
    /// Segments of what the application has written.
    pub layout: Layout,
    /// Totals.
    pub counts: SenderCounts,
    outstanding: Outstanding,
    buffer: buffer::Buffer,
    queue: write::Queue,
    /// The next segment to be sent for the first time.
    next: u32,
    /// The byte of the stream up to which the receiver has room.
    window_end: u64,
    /// The largest window that the receiver offered, bytes.
    largest_window: u64,
    recovery: recover::Recovery,
    /// When the first segment of the present flight was sent, microseconds.
    first_us: u64,
    pace: transmit::Pace,
    usage: transmit::Usage,
    timer: Timer,
    /// The receiver's clock of the last acknowledgment, microseconds.
    echo_us: u64,
    /// The clock in nanoseconds.
    now: Nanos,
    /// Since when the receiver's window stalls it.
    stalled_since: Option<Nanos>,
}

/// Segments to be sent now, in order.
pub type Out = Vec<Data>;

impl Sender {
    /// An established connection at `now`; the receiver has room for `window_end` bytes, as it said at `said`.
    pub fn new(
        spec: SenderSpec,
        mut control: Control,
        now: Nanos,
        opened: Opened,
        window_end: u64,
        said: Nanos,
    ) -> Self {
        let first_window = if opened.one_segment { 1 } else { spec.initial_window };
        let mut socket = Socket::new(spec.mss, first_window);
        socket.now_us = now / 1_000;
        socket.delivered_us = socket.now_us;
        socket.paced = spec.paced;
        socket.ssthresh = control.first_threshold();
        socket.receive_window = window_end as u32;
        socket.round_trip.sample(opened.rtt_us, 0, 0);
        socket.round_trip.sample_least(opened.rtt_us);
        socket.update_pacing_rate();
        control.begin(&mut socket);
        Self {
            spec,
            layout: Layout::new(spec.mss),
            counts: SenderCounts { most_cwnd: socket.cwnd, ..SenderCounts::default() },
            outstanding: Outstanding::default(),
            buffer: buffer::Buffer::new(spec.mss, spec.buffer_bytes, control.buffered_windows()),
            queue: write::Queue::default(),
            next: 0,
            window_end,
            largest_window: window_end,
            recovery: recover::Recovery::default(),
            first_us: socket.now_us,
            pace: transmit::Pace::default(),
            usage: transmit::Usage::default(),
            timer: Timer::default(),
            echo_us: said / 1_000,
            now,
            stalled_since: None,
            socket,
            control,
        }
    }

    fn at(&mut self, now: Nanos) {
        self.now = now;
        self.socket.now_us = now / 1_000;
        self.socket.bytes_written = self.layout.begin(self.layout.written());
        self.socket.departs_in = self.pace.departs_in(now);
    }

    /// When [`Sender::timer`] should be called; `None` while there is nothing to wait for.
    pub fn next_timer(&self) -> Option<Nanos> {
        match (self.timer.at(), self.pace.wakes()) {
            (Some(timer), Some(pace)) => Some(timer.min(pace)),
            (timer, pace) => timer.or(pace),
        }
    }

    /// All that was written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.outstanding.first() == self.layout.written()
    }

    /// Counts what is over when the run ends.
    pub fn finish(&mut self, now: Nanos) {
        if let Some(since) = self.stalled_since.take() {
            self.counts.receive_window_limited += now - since;
        }
    }
}

/// A new sender under Reno, of segments of 1,448 bytes, with a send buffer of so many bytes at first.
#[cfg(test)]
fn new_sender(rtt_us: u32, buffer: u64, receive_window: u64) -> Sender {
    use super::control::{Base, Start};

    let spec = SenderSpec {
        mss: 1_448,
        initial_window: 10,
        sack: true,
        fast_retransmit: true,
        buffer_bytes: [buffer, 4_194_304],
        paced: false,
    };
    let opened = Opened { rtt_us, one_segment: false };
    Sender::new(spec, Control::new(Base::Reno, Start::Base), 0, opened, receive_window, 0)
}
