//! A plain sender under the shell, for starts: segments of 1,000 bytes over 100 ms.

use onramp_algorithm::shell::{Policy, Shell};
use onramp_algorithm::{Ack, NO_THRESHOLD, Sock, Verdict};

pub const MSS: u32 = 1_000;
pub const RTT_US: u32 = 100_000;

/// An algorithm that has nothing to say.
pub struct Quiet;

impl Policy for Quiet {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        Verdict::default()
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// Leaves at once.
pub struct Leaves;

impl Policy for Leaves {
    fn restart(&mut self) {}

    fn on_ack(&mut self, ack: &Ack) -> Verdict {
        Verdict { outcome: onramp_algorithm::outcome::EXIT, ssthresh: ack.cwnd, ..Verdict::default() }
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

pub fn new_sock() -> Sock {
    Sock {
        now_us: 1_000_000,
        max_pacing_rate: u64::MAX,
        bytes_unsent: 1_000 * MSS,
        srtt_eighths_us: 8 * RTT_US,
        min_rtt_us: RTT_US,
        cwnd_clamp: 10_000,
        mss: MSS,
        cwnd: 10,
        ssthresh: NO_THRESHOLD,
        receive_window: 65_535,
        ..Sock::default()
    }
}

/// Sends what the window allows, and has `segments` of what is on its way acknowledged an RTT later.
pub fn step(shell: &mut Shell, sock: &mut Sock, segments: u32) {
    send(sock);
    sock.now_us += u64::from(RTT_US);
    acknowledge(sock, segments);
    shell.acked(sock, segments, Some(RTT_US), &mut Quiet);
}

pub fn send(sock: &mut Sock) {
    let more = sock.cwnd.saturating_sub(sock.in_flight);
    sock.in_flight += more;
    sock.bytes_sent += u64::from(more * MSS);
    sock.bytes_outstanding += more * MSS;
}

pub fn acknowledge(sock: &mut Sock, segments: u32) {
    sock.in_flight -= segments;
    sock.delivered += segments;
    sock.bytes_acked += u64::from(segments * MSS);
    sock.bytes_outstanding -= segments * MSS;
}

/// The base adds what is acknowledged.
pub fn grow(shell: &mut Shell, sock: &mut Sock, segments: u32) {
    shell.grow(sock, segments, |sock, acked| sock.cwnd += acked);
}
