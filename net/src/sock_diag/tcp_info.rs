// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `struct tcp_info` (linux/tcp.h), read field by field at its ABI offsets.

use crate::netlink::{u8_at, u16_at, u32_at, u64_at};

/// The kernel's "no threshold yet" (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// States of loss recovery (`enum tcp_ca_state`, include/uapi/linux/tcp.h); 1 is disorder.
pub mod ca_state {
    /// Nothing is missing.
    pub const OPEN: u8 = 0;
    /// The window is reduced after an ECN mark, or for congestion of this host.
    pub const CWR: u8 = 2;
    /// What is lost is retransmitted.
    pub const RECOVERY: u8 = 3;
    /// After a timeout.
    pub const LOSS: u8 = 4;
}

/// What the kernel reports about a TCP connection. Segments are of [`TcpInfo::snd_mss`] bytes.
///
/// The struct grew at its end over the years. A field that an older kernel does not send is 0 (or `None`). All
/// fields here exist in Linux 6.1, onramp's floor, except `total_rto` (6.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes of the struct that the kernel sent, to distinguish a 0 from a field it does not know.
    pub length_bytes: usize,
    /// State of loss recovery, see [`ca_state`].
    pub ca_state: u8,
    /// Consecutive retransmission timeouts of the oldest segment.
    pub consecutive_timeouts: u8,
    /// The delivery rate was measured while the application, not the network, was the limit.
    pub delivery_rate_app_limited: bool,
    /// Retransmission timeout, microseconds.
    pub rto_us: u32,
    /// Maximum segment size when sending, bytes.
    pub snd_mss: u32,
    /// Segments sent and not yet cumulatively acknowledged. For a listening socket: connections waiting.
    pub unacked: u32,
    /// Of `unacked`, segments acknowledged selectively.
    pub sacked: u32,
    /// Of `unacked`, segments marked lost.
    pub lost: u32,
    /// Retransmitted segments now in flight.
    pub retrans: u32,
    /// Time since data was last sent, milliseconds.
    pub last_data_sent_ms: u32,
    /// Time since an acknowledgment was last received, milliseconds.
    pub last_ack_recv_ms: u32,
    /// Path MTU, bytes.
    pub pmtu: u32,
    /// Smoothed round-trip time, microseconds; 0 before the first sample.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time, microseconds.
    pub rttvar_us: u32,
    /// Slow-start threshold, segments; `None` while it is infinite.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Segments retransmitted over the life of the connection.
    pub retrans_total: u32,
    /// Pacing rate, bytes per second; `None` when not limited (`~0`).
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// Upper limit of the pacing rate (`SO_MAX_PACING_RATE`), bytes per second; `None`: there is none.
    pub max_pacing_rate_bytes_per_s: Option<u64>,
    /// Bytes acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes in the send buffer that have not been sent yet.
    pub notsent_bytes: u32,
    /// Minimum round-trip time (over `tcp_min_rtt_wlen`, 300 s by default), microseconds; `None` without sample.
    pub min_rtt_us: Option<u32>,
    /// Data segments sent, with retransmissions.
    pub data_segs_out: u32,
    /// Most recent delivery rate, bytes per second.
    pub delivery_rate_bytes_per_s: u64,
    /// Time with data outstanding or waiting to be sent, microseconds.
    pub busy_time_us: u64,
    /// Of that, time stalled by the receiver's window, microseconds.
    pub rwnd_limited_us: u64,
    /// Of that, time stalled by the send buffer, microseconds.
    pub sndbuf_limited_us: u64,
    /// Segments delivered, retransmissions counted once, the SYN included.
    pub delivered: u32,
    /// Of those, segments acknowledged with an ECN mark.
    pub delivered_ce: u32,
    /// Bytes of data sent, with retransmissions.
    pub bytes_sent: u64,
    /// Bytes of data retransmitted.
    pub bytes_retrans: u64,
    /// Duplicate segments that the peer reported (DSACK).
    pub dsack_dups: u32,
    /// Reordering events seen.
    pub reord_seen: u32,
    /// Window that the peer advertises, bytes.
    pub snd_wnd_bytes: u32,
    /// Retransmission timeouts over the life of the connection.
    pub total_rto: u16,
}

impl TcpInfo {
    /// Reads the struct; never fails, see the type about missing fields.
    pub fn parse(bytes: &[u8]) -> Self {
        let b1 = |at| u8_at(bytes, at).unwrap_or(0);
        let b4 = |at| u32_at(bytes, at).unwrap_or(0);
        let b8 = |at| u64_at(bytes, at).unwrap_or(0);
        Self {
            length_bytes: bytes.len(),
            ca_state: b1(1),
            consecutive_timeouts: b1(2),
            delivery_rate_app_limited: bitfield_at_7(b1(7)),
            rto_us: b4(8),
            snd_mss: b4(16),
            unacked: b4(24),
            sacked: b4(28),
            lost: b4(32),
            retrans: b4(36),
            last_data_sent_ms: b4(44),
            last_ack_recv_ms: b4(56),
            pmtu: b4(60),
            rtt_us: b4(68),
            rttvar_us: b4(72),
            snd_ssthresh: u32_at(bytes, 76).filter(|segments| *segments < INFINITE_SSTHRESH),
            snd_cwnd: b4(80),
            retrans_total: b4(100),
            pacing_rate_bytes_per_s: u64_at(bytes, 104).filter(|rate| *rate != u64::MAX),
            max_pacing_rate_bytes_per_s: u64_at(bytes, 112).filter(|rate| *rate != u64::MAX),
            bytes_acked: b8(120),
            bytes_received: b8(128),
            notsent_bytes: b4(144),
            min_rtt_us: u32_at(bytes, 148).filter(|rtt| *rtt != u32::MAX),
            data_segs_out: b4(156),
            delivery_rate_bytes_per_s: b8(160),
            busy_time_us: b8(168),
            rwnd_limited_us: b8(176),
            sndbuf_limited_us: b8(184),
            delivered: b4(192),
            delivered_ce: b4(196),
            bytes_sent: b8(200),
            bytes_retrans: b8(208),
            dsack_dups: b4(216),
            reord_seen: b4(220),
            snd_wnd_bytes: b4(228),
            total_rto: u16_at(bytes, 240).unwrap_or(0),
        }
    }

    /// Segments the kernel counts as in the network (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        self.unacked.saturating_sub(self.sacked).saturating_sub(self.lost).saturating_add(self.retrans)
    }

    /// Congestion window in bytes.
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.snd_cwnd) * u64::from(self.snd_mss)
    }

    /// Whether the window still grows by slow start: below the threshold, or there is none yet.
    pub fn in_slow_start(&self) -> bool {
        self.snd_ssthresh.is_none_or(|threshold| self.snd_cwnd < threshold)
    }
}

/// `tcpi_delivery_rate_app_limited:1` is the first bit of its byte, which depends on the byte order.
fn bitfield_at_7(byte: u8) -> bool {
    byte & if cfg!(target_endian = "little") { 0x01 } else { 0x80 } != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    #[test]
    fn fields_are_read_at_their_offsets() {
        let mut bytes = vec![0; 280];
        for (at, value) in [(16, 1448), (24, 100), (28, 10), (32, 5), (36, 2), (68, 600_000), (80, 77)] {
            put(&mut bytes, at, value);
        }
        put(&mut bytes, 76, INFINITE_SSTHRESH);
        put(&mut bytes, 148, u32::MAX);
        bytes[104..120].fill(0xff);
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.snd_mss, info.rtt_us, info.snd_cwnd, info.in_flight()), (1448, 600_000, 77, 87));
        assert_eq!((info.snd_ssthresh, info.min_rtt_us, info.pacing_rate_bytes_per_s), (None, None, None));
        assert_eq!(info.max_pacing_rate_bytes_per_s, None);
        assert!(info.in_slow_start());
        assert_eq!(info.cwnd_bytes(), 77 * 1448);
        put(&mut bytes, 76, 77);
        assert!(!TcpInfo::parse(&bytes).in_slow_start());
    }

    #[test]
    fn any_length_is_accepted() {
        let bytes = [0x11; 300];
        for length in 0..bytes.len() {
            assert_eq!(TcpInfo::parse(&bytes[..length]).length_bytes, length);
        }
        assert_eq!(TcpInfo::parse(&bytes[..84]).snd_cwnd, 0x1111_1111);
        assert_eq!(TcpInfo::parse(&bytes[..83]).snd_cwnd, 0);
    }

    #[test]
    fn offsets_agree_with_libc() {
        // libc knows the struct as far as tcpi_total_retrans.
        assert_eq!(std::mem::offset_of!(libc::tcp_info, tcpi_rtt), 68);
        assert_eq!(std::mem::offset_of!(libc::tcp_info, tcpi_snd_cwnd), 80);
        assert_eq!(std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans), 100);
    }
}
