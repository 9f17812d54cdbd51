// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Captures that are made here: a sender whose windows are known, over a path that is known.

use std::collections::VecDeque;
use std::io::Cursor;
use std::path::Path;

use etherparse::{PacketBuilder, TcpOptionElement};
use onramp_algorithm::NO_THRESHOLD;
use proptest::prelude::*;

use crate::error::Error;
use crate::reader::Recording;
use crate::rows::{AckRow, ExitRow, FlowRow, StateRow};

const MSS: u32 = 1_000;
const RTT_US: u64 = 100_000;
const SENDER: ([u8; 4], u16) = ([192, 0, 2, 1], 443);
const RECEIVER: ([u8; 4], u16) = ([192, 0, 2, 2], 50_000);
/// Near the end of the numbers, so that they begin anew within the flow.
const SENDER_SEQUENCE: u32 = u32::MAX - 20_000;

/// Packets with their times, as pcap of Ethernet.
#[derive(Default)]
struct Packets(Vec<(u64, Vec<u8>)>);

/// One to write.
#[derive(Clone, Copy, Default)]
struct Packet<'a> {
    from_sender: bool,
    syn: bool,
    /// From the first byte of data on.
    sequence: u32,
    acknowledges: Option<u32>,
    bytes: usize,
    window: u16,
    options: &'a [TcpOptionElement],
}

impl Packets {
    fn add(&mut self, at_us: u64, packet: Packet<'_>) {
        let (from, to) = if packet.from_sender { (SENDER, RECEIVER) } else { (RECEIVER, SENDER) };
        let (own, other) = if packet.from_sender { (SENDER_SEQUENCE, 1) } else { (1, SENDER_SEQUENCE) };
        let number = |first: u32, place: u32| first.wrapping_add(1).wrapping_add(place);
        let sequence = if packet.syn { own } else { number(own, packet.sequence) };
        let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(from.0, to.0, 64).tcp(
            from.1,
            to.1,
            sequence,
            packet.window,
        );
        if packet.syn {
            builder = builder.syn();
        }
        if let Some(place) = packet.acknowledges {
            builder = builder.ack(number(other, place));
        }
        let builder = builder.options(packet.options).unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &vec![0; packet.bytes]).unwrap();
        self.0.push((at_us, bytes));
    }

    /// Gives each a number of its own.
    fn number(&mut self) {
        for ((_, bytes), id) in self.0.iter_mut().zip(1_u16..) {
            bytes[18..20].copy_from_slice(&id.to_be_bytes());
        }
    }

    /// The client, which is the receiver, opens; `near`: it passes the sender's end, else the receiver's.
    fn handshake(&mut self, near: bool, with_scale: bool) {
        let mss = TcpOptionElement::MaximumSegmentSize(MSS as u16);
        let options = [mss, TcpOptionElement::WindowScale(7)];
        let options = if with_scale { &options[..] } else { &options[..1] };
        let (answer_us, last_us) = if near { (10, RTT_US) } else { (RTT_US, RTT_US + 10) };
        let syn = Packet { syn: true, window: u16::MAX, options, ..Packet::default() };
        self.add(0, syn);
        self.add(answer_us, Packet { from_sender: true, acknowledges: Some(0), ..syn });
        self.add(last_us, Packet { acknowledges: Some(0), window: 512, ..Packet::default() });
    }

    /// Of each packet at most so many bytes.
    fn pcap(&self, snap: usize) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, snap as u32, 1] {
            file.extend(word.to_le_bytes());
        }
        for (at_us, bytes) in &self.0 {
            let kept = &bytes[..bytes.len().min(snap)];
            let (seconds, us) = (1_700_000_000 + at_us / 1_000_000, at_us % 1_000_000);
            for word in [seconds as u32, us as u32, kept.len() as u32, bytes.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(kept);
        }
        file
    }

    /// The same as pcapng, times in nanoseconds.
    fn pcapng(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = (12 + body.len()) as u32;
            file.extend(kind.to_le_bytes());
            file.extend(length.to_le_bytes());
            file.extend(body);
            file.extend(length.to_le_bytes());
        };
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
        // Resolution: 10^-9.
        let resolution = [words(&[1, 0]), vec![9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]].concat();
        block(1, &resolution);
        for (at_us, bytes) in &self.0 {
            let ns = (1_700_000_000_000_000 + at_us) * 1_000;
            let head = words(&[0, (ns >> 32) as u32, ns as u32, bytes.len() as u32, bytes.len() as u32]);
            let mut padded = [head, bytes.clone()].concat();
            padded.resize(padded.len().next_multiple_of(4), 0);
            block(6, &padded);
        }
        file
    }
}

/// What a sender does.
#[derive(Clone, Copy)]
struct Behaviour {
    segments: u32,
    /// Doubles up to there, then gains a segment a round trip.
    exit_at: u32,
    /// This segment is lost once.
    lost: Option<u32>,
    /// What the receiver offers, of 128 bytes.
    window: u16,
    /// The capture has the option of windows' scale.
    with_scale: bool,
}

const DOUBLES: Behaviour =
    Behaviour { segments: 2_000, exit_at: u32::MAX, lost: None, window: u16::MAX, with_scale: true };

/// Its packets where it sends: ACKs of each segment a round trip later, in order.
fn packets(behaviour: Behaviour) -> Packets {
    let mut packets = Packets::default();
    packets.handshake(true, behaviour.with_scale);
    let (mut now_us, mut cwnd, mut gained) = (RTT_US + 100, 10_u32, 0);
    let (mut next, mut acknowledged, mut received) = (0_u32, 0_u32, Vec::<u32>::new());
    let mut on_the_way: VecDeque<(u64, u32)> = VecDeque::new();
    let (mut lost, mut recovers_to) = (behaviour.lost, None);
    while acknowledged < behaviour.segments {
        let room = cwnd.min(u32::from(behaviour.window) * 128 / MSS);
        let flight = next - acknowledged - received.len() as u32;
        for _ in flight..room {
            if next < behaviour.segments {
                send(&mut packets, now_us, next);
                if lost == Some(next) {
                    lost = None
                } else {
                    on_the_way.push_back((now_us + RTT_US, next))
                }
                next += 1;
            }
        }
        let Some((at_us, segment)) = on_the_way.pop_front() else { break };
        now_us = at_us.max(now_us + 5);
        let before = acknowledged;
        received.push(segment);
        received.sort_unstable();
        while received.first() == Some(&acknowledged) {
            received.remove(0);
            acknowledged += 1;
        }
        let block = received.first().map(|first| (place(*first), place(received[received.len() - 1] + 1)));
        let options = block.map(|block| TcpOptionElement::SelectiveAcknowledgement(block, [None; 3]));
        let ack =
            Packet { acknowledges: Some(acknowledged * MSS), window: behaviour.window, ..Packet::default() };
        packets.add(now_us, Packet { options: options.as_slice(), ..ack });
        if received.len() == 3 && recovers_to.is_none() {
            recovers_to = Some(next);
            cwnd = cwnd * 7 / 10;
            send(&mut packets, now_us + 1, acknowledged);
            on_the_way.push_back((now_us + 1 + RTT_US, acknowledged));
        }
        if recovers_to.is_some_and(|to| acknowledged >= to) {
            recovers_to = None;
        }
        let gain = acknowledged - before;
        if behaviour.lost.is_some() && lost.is_none() && cwnd >= 100 || recovers_to.is_some() {
            continue;
        }
        if cwnd < behaviour.exit_at {
            cwnd = (cwnd + gain).min(behaviour.exit_at);
        } else {
            gained += gain;
            if gained >= cwnd {
                (cwnd, gained) = (cwnd + 1, 0);
            }
        }
    }
    packets
}

/// The number of a segment's first byte as a selective acknowledgment has it.
fn place(segment: u32) -> u32 {
    SENDER_SEQUENCE.wrapping_add(1).wrapping_add(segment * MSS)
}

fn send(packets: &mut Packets, at_us: u64, segment: u32) {
    let sequence = segment * MSS;
    let data = Packet { from_sender: true, sequence, bytes: MSS as usize, window: 512, ..Packet::default() };
    packets.add(at_us, Packet { acknowledges: Some(0), ..data });
}

fn read(file: Vec<u8>) -> Result<Recording, Error> {
    super::recording(Box::new(Cursor::new(file)), Path::new("capture.pcap"))
}

fn exit(recording: &mut Recording) -> Option<(String, u32, u64)> {
    let rows: Vec<ExitRow> = recording.rows();
    rows.first().map(|row| (row.reason.to_string(), row.cwnd_segments, row.since_start_us))
}

#[test]
fn bytes_rtts_windows_and_ends_are_those_of_the_sender_in_both_formats() {
    let packets = packets(DOUBLES);
    for file in [packets.pcap(96), packets.pcapng()] {
        let mut recording = read(file).unwrap();
        assert!(recording.problems.is_empty(), "{:?}", recording.problems);
        let flows: Vec<FlowRow> = recording.rows();
        let [start, end] = &flows[..] else { panic!("{flows:?}") };
        assert_eq!((&*start.event, &*start.local_address, start.local_port), ("start", "192.0.2.1", 443));
        assert_eq!((&*start.remote_address, start.remote_port), ("192.0.2.2", 50_000));
        assert_eq!((end.acknowledged_bytes, end.retransmitted_bytes), (2_000_000, 0));
        let acks: Vec<AckRow> = recording.rows();
        assert_eq!(acks.len(), 2_000);
        assert_eq!(acks[0].at_us - start.started_us, RTT_US);
        assert!(acks.iter().all(|row| row.ssthresh_segments == NO_THRESHOLD && row.mss_bytes == MSS));
        assert!(acks.iter().all(|row| row.rtt_us as u64 >= RTT_US && row.min_rtt_us as u64 == RTT_US));
        let last = acks.last().unwrap();
        assert_eq!((last.acknowledged_bytes, last.outstanding_bytes), (2_000_000, 0));
        assert_eq!(last.receive_window_bytes, u32::from(u16::MAX) << 7);
        // It doubles by each ACK: 10 segments, then one more for each that is acknowledged.
        for (at, row) in acks.iter().enumerate().take(900) {
            assert_eq!(row.cwnd_segments as usize, 10 + at, "{at}");
        }
        assert_eq!(exit(&mut recording), None);
    }
}

#[test]
fn an_exit_is_found_within_the_round_by_its_window() {
    for exit_at in [20, 64, 150, 300] {
        let mut recording =
            read(packets(Behaviour { exit_at, segments: 4_000, ..DOUBLES }).pcap(96)).unwrap();
        let (reason, window, _) = exit(&mut recording).unwrap_or_else(|| panic!("{exit_at}"));
        assert_eq!(reason, "algorithm");
        assert!((exit_at * 9 / 10..=exit_at + 4).contains(&window), "{exit_at}: {window}");
    }
}

#[test]
fn a_loss_is_told_from_an_exit_and_its_recovery_has_a_begin_and_an_end() {
    let mut recording = read(packets(Behaviour { lost: Some(300), ..DOUBLES }).pcap(96)).unwrap();
    let states: Vec<StateRow> = recording.rows();
    let changes: Vec<_> = states.iter().map(|row| (&*row.from_state, &*row.to_state)).collect();
    assert_eq!(changes, [("open", "recovery"), ("recovery", "open")]);
    assert_eq!(exit(&mut recording).unwrap().0, "loss");
    let flows: Vec<FlowRow> = recording.rows();
    assert_eq!(flows[1].retransmitted_bytes, u64::from(MSS));
}

/// Senders of before RFC 6928 begin with less, and are seen to double.
#[test]
fn a_flow_that_never_fills_an_initial_window_is_limited_by_its_application() {
    let limited = |segments: u32| {
        let mut recording = read(packets(Behaviour { segments, ..DOUBLES }).pcap(96)).unwrap();
        let flags: Vec<_> = recording.rows::<AckRow>().iter().map(|row| row.flags & 1 != 0).collect();
        flags
    };
    assert_eq!(limited(9), [true; 9]);
    assert!(!limited(11)[0]);
}

#[test]
fn what_the_receiver_limits_is_no_exit() {
    let mut recording = read(packets(Behaviour { window: 500, ..DOUBLES }).pcap(96)).unwrap();
    assert_eq!(exit(&mut recording), None);
    let limited = recording.rows::<AckRow>().iter().filter(|row| row.flags & 1 != 0).count();
    assert!(limited < 70, "{limited} are limited by the application");
}

#[test]
fn a_window_that_the_sender_exceeds_is_unknown_and_a_problem() {
    // The receiver scales by 128, and the capture does not show that it does.
    let mut recording =
        read(packets(Behaviour { window: 500, with_scale: false, ..DOUBLES }).pcap(96)).unwrap();
    let windows: Vec<u32> = recording.rows::<AckRow>().iter().map(|row| row.receive_window_bytes).collect();
    assert_eq!((windows.len(), windows.iter().max()), (2_000, Some(&0)));
    let problem = recording.problems[0].to_string();
    assert!(recording.problems.len() == 1 && problem.contains("scale"), "{problem}");
    // Where none is exceeded, a handshake without the option is one without scale.
    let mut recording = read(
        packets(Behaviour { segments: 60, exit_at: 30, window: u16::MAX, with_scale: false, ..DOUBLES })
            .pcap(96),
    )
    .unwrap();
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    assert!(recording.rows::<AckRow>().iter().all(|row| row.receive_window_bytes == u32::from(u16::MAX)));
}

#[test]
fn a_flow_of_one_host_is_read_and_the_end_that_is_taken_is_noted() {
    let mut packets = Packets::default();
    packets.handshake(true, true);
    packets.0.iter_mut().for_each(|(at_us, _)| *at_us = (*at_us).min(20));
    for segment in 0..50 {
        let at_us = 100 + u64::from(segment) * 100;
        send(&mut packets, at_us, segment);
        let acknowledges = Some((segment + 1) * MSS);
        packets.add(at_us + 20, Packet { acknowledges, window: 512, ..Packet::default() });
    }
    let recording = read(packets.pcap(96)).unwrap();
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    assert!(recording.notes[0].starts_with("1 flow does not"), "{:?}", recording.notes);
}

#[test]
fn a_capture_of_the_receivers_end_is_refused_and_says_so() {
    let mut far = Packets::default();
    far.handshake(false, true);
    for segment in 0..50 {
        let at_us = 2 * RTT_US + u64::from(segment) * 100;
        send(&mut far, at_us, segment);
        far.add(
            at_us + 20,
            Packet { acknowledges: Some((segment + 1) * MSS), window: 512, ..Packet::default() },
        );
    }
    let Err(Error::NotARecording { reason, .. }) = read(far.pcap(96)) else { panic!("it is read") };
    assert!(reason.contains("capture at the sender"), "{reason}");
}

#[test]
fn what_is_cut_off_or_has_no_tcp_is_named() {
    let packets = packets(DOUBLES);
    let Err(Error::NotARecording { reason, .. }) = read(packets.pcap(40)) else { panic!("it is read") };
    assert!(reason.contains("128 bytes"), "{reason}");
    let Err(Error::NotARecording { reason, .. }) = read(Packets::default().pcap(96)) else {
        panic!("it is read")
    };
    assert!(reason.contains("0 packets"), "{reason}");
    let whole = packets.pcap(96);
    let recording = read(whole[..whole.len() - 7].to_vec()).unwrap();
    assert_eq!(recording.problems.len(), 1, "{:?}", recording.problems);
    // Packets that the capture has lost.
    let mut lossy = packets;
    lossy.0.drain(100..140);
    let recording = read(lossy.pcap(96)).unwrap();
    assert_eq!(recording.problems.len(), 1, "{:?}", recording.problems);
}

/// As by an interface and the bridge that it is a port of: at once, a little later, or after a queue between them, where only
/// the number of the packet tells.
#[test]
fn a_packet_that_is_there_twice_counts_once_and_is_noted() {
    for behaviour in [DOUBLES, Behaviour { lost: Some(300), ..DOUBLES }] {
        for (late_us, with_ids) in [(0, false), (3, false), (70_000, true)] {
            let mut once = packets(behaviour);
            if with_ids {
                once.number();
            }
            let mut twice = Packets::default();
            for (at_us, bytes) in &once.0 {
                twice.0.extend([(*at_us, bytes.clone()), (at_us + late_us, bytes.clone())]);
            }
            twice.0.sort_by_key(|(at_us, _)| *at_us);
            let (mut once, mut twice) = (read(once.pcap(96)).unwrap(), read(twice.pcap(96)).unwrap());
            assert!(twice.problems.is_empty(), "{:?}", twice.problems);
            assert!(twice.notes[0].contains("packets are in it twice"), "{:?}", twice.notes);
            assert_eq!(twice.rows::<FlowRow>(), once.rows::<FlowRow>());
            assert_eq!(twice.rows::<AckRow>(), once.rows::<AckRow>());
            assert_eq!(twice.rows::<StateRow>(), once.rows::<StateRow>());
        }
    }
}

#[test]
fn a_number_that_cannot_be_is_not_used_and_a_gap_is_when_a_second_one_is_near_it() {
    let whole = packets(DOUBLES);
    let end = |recording: &mut Recording| recording.rows::<FlowRow>().pop().unwrap();
    let expected = end(&mut read(whole.pcap(96)).unwrap());
    let at = whole.0.iter().position(|(at_us, _)| *at_us > 3 * RTT_US).unwrap();
    let at_us = whole.0[at].0;
    for (from_sender, sequence, acknowledges) in [(true, 1 << 30, 0), (false, 0, 1 << 30)] {
        let mut strange = Packets(whole.0.clone());
        let bytes = usize::from(from_sender) * MSS as usize;
        let packet =
            Packet { from_sender, sequence, acknowledges: Some(acknowledges), bytes, ..Packet::default() };
        strange.add(at_us, packet);
        let last = strange.0.pop().unwrap();
        strange.0.insert(at, last);
        let mut recording = read(strange.pcap(96)).unwrap();
        assert_eq!(end(&mut recording), expected);
        let problem = recording.problems[0].to_string();
        assert!(recording.problems.len() == 1 && problem.contains("1 packet has a number"), "{problem}");
    }
    // 1.4 MB that the capture has lost.
    let mut lossy = whole;
    let from = lossy.0.iter().position(|(_, bytes)| bytes.len() > 1_000).unwrap() + 300;
    lossy.0.drain(from..from + 2_800);
    let last = end(&mut read(lossy.pcap(96)).unwrap());
    assert_eq!(last.acknowledged_bytes, expected.acknowledged_bytes);
}

#[test]
fn what_a_syn_carries_is_sent() {
    let mut fast_open = Packets::default();
    let options = [TcpOptionElement::MaximumSegmentSize(MSS as u16)];
    let syn = Packet { syn: true, window: u16::MAX, options: &options, ..Packet::default() };
    fast_open.add(0, Packet { from_sender: true, bytes: 500, ..syn });
    fast_open.add(RTT_US, Packet { acknowledges: Some(500), ..syn });
    let data = Packet { from_sender: true, sequence: 500, bytes: 500, window: 512, ..Packet::default() };
    fast_open.add(RTT_US + 10, Packet { acknowledges: Some(0), ..data });
    fast_open.add(2 * RTT_US, Packet { acknowledges: Some(1_000), window: 512, ..Packet::default() });
    let mut recording = read(fast_open.pcap(96)).unwrap();
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    let end = recording.rows::<FlowRow>().pop().unwrap();
    assert_eq!((end.sent_bytes, end.acknowledged_bytes, end.retransmitted_bytes), (1_000, 1_000, 0));
}

#[test]
fn a_clock_that_is_set_back_is_a_problem_and_times_go_on() {
    let mut packets = packets(DOUBLES);
    let half = packets.0.len() / 2;
    packets.0.iter_mut().for_each(|(at_us, _)| *at_us += 3_600_000_000);
    packets.0[half..].iter_mut().for_each(|(at_us, _)| *at_us -= 3_600_000_000);
    let mut recording = read(packets.pcap(96)).unwrap();
    let problem = recording.problems[0].to_string();
    assert!(recording.problems.len() == 1 && problem.contains("1 time the clock"), "{problem}");
    let acks: Vec<AckRow> = recording.rows();
    assert!(acks.is_sorted_by_key(|row| row.at_us));
    assert!(acks[1_999].at_us - acks[0].at_us < 10 * RTT_US);
    assert!(acks.iter().all(|row| (row.rtt_us as u64) < 2 * RTT_US));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes there are, it ends, and what is read holds together.
    #[test]
    fn hostile_captures_are_read_or_refused(damage in proptest::collection::vec((24_usize..40_000, any::<u8>()), 0..40), cut in 0_usize..40_000) {
        let mut file = packets(Behaviour { segments: 200, ..DOUBLES }).pcap(96);
        for (at, byte) in damage {
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
        }
        file.truncate(file.len().saturating_sub(cut));
        if let Ok(mut recording) = read(file) {
            for row in recording.rows::<AckRow>() {
                prop_assert!(row.mss_bytes > 0 && row.acknowledged_bytes <= row.sent_bytes);
                prop_assert!(row.cwnd_segments > 0);
            }
        }
    }
}
