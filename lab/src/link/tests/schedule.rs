// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Aggregates and bandwidth on demand. The on-demand schedule of return links is in the file above.

use super::*;

fn aggregates(max_packets: u64, max_bytes: u64) -> DirectionSpec {
    let schedule = ScheduleSpec::Aggregate { min_gap_us: 5_000, max_gap_us: 5_000, max_packets, max_bytes };
    DirectionSpec { schedule: Some(schedule), ..DirectionSpec::new(10_000_000, 0, Limit::Packets(1_000)) }
}

/// When packets of these arrivals and sizes are through.
fn through(spec: &DirectionSpec, packets: impl IntoIterator<Item = (Nanos, u32)>) -> Vec<Nanos> {
    let mut link = direction(spec, 1);
    link.start(0);
    for (at, bytes) in packets {
        link.arrive(at, at, bytes).unwrap();
    }
    drain(&mut link, u64::MAX / 2).iter().map(|delivery| delivery.due).collect()
}

fn sizes_of_bursts(dues: &[Nanos], gap: Nanos) -> Vec<usize> {
    dues.chunk_by(|one, next| next - one < gap).map(<[Nanos]>::len).collect()
}

#[test]
fn aggregates_end_at_their_limits_of_packets_and_bytes() {
    let burst = |count: usize, bytes| std::iter::repeat_n((0, bytes), count);
    let dues = through(&aggregates(8, 1_000_000), burst(20, 1_250));
    assert_eq!(sizes_of_bursts(&dues, 5 * MS), [8, 8, 4]);
    // From the end of one aggregate 5 ms of silence, then 1 ms for the first packet of the next.
    assert_eq!(dues[8] - dues[7], 6 * MS);
    // 5 × 1250 bytes are exactly 6250; one byte less has room for 4.
    assert_eq!(sizes_of_bursts(&through(&aggregates(64, 6_250), burst(10, 1_250)), 5 * MS), [5, 5]);
    assert_eq!(sizes_of_bursts(&through(&aggregates(64, 6_249), burst(8, 1_250)), 5 * MS), [4, 4]);
    // A packet above the limit goes alone.
    assert_eq!(sizes_of_bursts(&through(&aggregates(64, 1_500), burst(3, 9_000)), 6 * MS), [1, 1, 1]);
}

#[test]
fn what_comes_after_the_opportunity_waits_for_the_next() {
    let spec = aggregates(64, 1_000_000);
    // The first packet's opportunity is within 5 ms, its transmission takes 1 ms.
    let first = through(&spec, [(0, 1_250)])[0];
    let dues = through(&spec, [(0, 1_250), (first - MS, 1_250), (first - MS + 1, 1_250)]);
    assert_eq!(dues, [first, first + MS, first + 7 * MS]);
}

#[test]
fn acknowledgments_are_compressed_on_the_way_back() {
    // 52 bytes, one each ms; the link takes 41.6 us for each.
    let dues = through(&aggregates(64, 1_000_000), (0..1_000).map(|number| (number * MS, 52)));
    assert_eq!(dues.len(), 1_000);
    let close = dues.windows(2).filter(|pair| pair[1] - pair[0] == 41_600).count();
    // 5 or 6 share an opportunity.
    assert!((750..850).contains(&close), "{close}");
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] < 7 * MS));
}

fn skyplex(factor: f64) -> DirectionSpec {
    let schedule = ScheduleSpec::BandwidthOnDemand {
        request_every_us: 273_000,
        grant_every_us: 819_000,
        propagation_us: 750_000,
        factor,
        frame_slots: 48,
        frame_us: 0,
    };
    DirectionSpec { schedule: Some(schedule), ..DirectionSpec::new(2_112_000, 0, Limit::Packets(10_000)) }
}

#[test]
fn an_idle_terminal_has_one_slot() {
    // 550 bytes at 44 kb/s are 100 ms.
    let dues = through(&skyplex(1.0), [(0, 550), (20 * SECOND, 550)]);
    assert_eq!(dues[0], 100 * MS);
    assert_eq!(dues[1], 20 * SECOND + 100 * MS);
}

#[test]
fn a_burst_is_sent_at_one_slot_until_its_grant_comes() {
    let begin = 10 * SECOND;
    let dues = through(&skyplex(1.0), (0..100).map(|_| (begin, 1_250)));
    let gaps: Vec<_> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // τ at least, and at most Tr and Ta more.
    let faster = gaps.iter().position(|gap| *gap < 227 * MS).unwrap();
    let from = dues[faster] - begin;
    assert!(from + 228 * MS > 750 * MS && from < (750 + 273 + 819) * MS, "{from}");
    // 125 kB in 273 ms, as the mean of three requests: 1221 kb/s, in whole slots 1232 kb/s.
    assert_eq!(gaps[faster + 2], 8_116_883);
    // The packet that the grant found in transmission was slow at first and fast then.
    assert!(gaps[faster] > 8_116_884 && gaps[faster] < 227 * MS);
}

#[test]
fn a_grant_never_exceeds_the_carrier_and_ends_with_the_demand() {
    // 2 Mb/s for 5 s, for which k asks 9.6.
    let stream = (0..1_000).map(|number| (number * 5 * MS, 1_250));
    let dues = through(&skyplex(4.8), stream.chain([(100 * SECOND, 550)]));
    let fastest = dues.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    // 10000 bits at 2.112 Mb/s.
    assert_eq!(fastest, 4_734_848);
    assert_eq!(dues.last(), Some(&(100 * SECOND + 100 * MS)));
}

#[test]
fn slots_of_a_frame_are_one_burst_at_the_carriers_rate() {
    let mut spec = skyplex(1.0);
    if let Some(ScheduleSpec::BandwidthOnDemand { frame_us, .. }) = &mut spec.schedule {
        *frame_us = 272_727;
    }
    // 44 kb/s of 2.112 Mb/s: one slot of 12000 bits in each frame. Two packets of 750 bytes fill it.
    let begin = 10 * SECOND;
    let stream = (0..80).map(|number| (begin + number * 136 * MS, 750));
    let dues = through(&spec, stream);
    let gaps: Vec<_> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let carrier = gaps.iter().filter(|gap| (2_840_000..2_842_000).contains(*gap)).count();
    assert!((30..=40).contains(&carrier), "two packets in a burst: {carrier} of {gaps:?}");
    let frames = gaps.iter().filter(|gap| (269 * MS..271 * MS).contains(*gap)).count();
    assert!((30..=40).contains(&frames), "a frame between bursts: {frames} of {gaps:?}");
}

#[test]
fn bursts_carry_what_smooth_slots_do() {
    let through_with = |frame| {
        let mut spec = skyplex(1.0);
        if let Some(ScheduleSpec::BandwidthOnDemand { frame_us, .. }) = &mut spec.schedule {
            *frame_us = frame;
        }
        // 660 kb/s for 60 s.
        let dues = through(&spec, (0..4_000).map(|number| (number * 15 * MS, 1_250)));
        *dues.last().unwrap()
    };
    let (smooth, bursts) = (through_with(0), through_with(273_000));
    assert!(smooth.abs_diff(bursts) < 2 * 273 * MS, "{smooth} {bursts}");
}
