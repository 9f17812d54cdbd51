// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The cases, in the order of RFC 9743.

use std::time::Duration;

use super::{Case, Measure};
use crate::emulator::Way;
use crate::experiment::{Amount, Competitor, LinkChange};
use crate::link::spec::DelayStep;
use crate::link::{AqmSpec, Change, JitterSpec, LossSpec, OutageSpec, ReorderingSpec};
use crate::profile::Profile;
use crate::question::Trial;

/// What the wired path is made of; see [`wired_path`].
const WIRED: &str = "terrestrial";
/// 8 s of it.
const WIRED_BYTES: u64 = 25_000_000;
/// What the longer of two RTTs has besides the shorter, microseconds.
const LONGER_US: u64 = 120_000;
/// Sizes of what a browser asks for.
const OBJECTS: [u64; 5] = [15_000, 100_000, 500_000, 1_000_000, 5_000_000];

/// All cases.
pub static CASES: [Case; 16] = [
    Case {
        id: "itself",
        source: "RFC 9743, section 5.1.4",
        statement: "Four flows of the same algorithm, each begun 2 s after the one before, share the link.",
        paths: || vec![Trial { adapt: wired_path, ..together(WIRED) }, together("geo-tail-drop-50")],
        measure: Measure::Together,
    },
    Case {
        id: "rtts",
        source: "RFC 9743, section 5.1.4",
        statement: "Two flows of the same algorithm, of 40 and 160 ms, share the link.",
        paths: || vec![rtts("rtts-1-to-4", Amount::Seconds(40))],
        measure: Measure::Rtts,
    },
    Case {
        id: "short",
        source: "RFC 9743, section 5.1.5",
        statement: "Objects of 15 kB to 5 MB on empty paths.",
        paths: || {
            let wired = Trial { adapt: wired_path, ..objects(WIRED) };
            std::iter::once(wired).chain(["leo-100", "lte", "geo"].map(objects)).collect()
        },
        measure: Measure::Objects,
    },
    Case {
        id: "neighbour-cubic",
        source: "RFC 9743, section 5.2.1",
        statement: "A flow of stock CUBIC that was there before meets the arm for 20 s.",
        paths: || {
            let wired = Trial { adapt: wired_path, ..neighbour("cubic", WIRED) };
            let others = ["lte", "wifi", "cable", "geo-tail-drop-50"].map(|path| neighbour("cubic", path));
            std::iter::once(wired).chain(others).collect()
        },
        measure: Measure::Neighbour,
    },
    Case {
        id: "neighbour-bbr",
        source: "RFC 9743, section 5.2.1",
        statement: "A flow of BBR that was there before meets the arm for 20 s.",
        paths: || vec![Trial { adapt: wired_path, ..neighbour("bbr", WIRED) }, neighbour("bbr", "geo-ramp")],
        measure: Measure::Neighbour,
    },
    Case {
        id: "rtts-neighbour-cubic",
        source: "RFC 9743, section 5.2.1",
        statement: "A flow of stock CUBIC that was there before, of 160 or of 40 ms, meets the arm of 40 or of 160 ms.",
        paths: || {
            vec![
                Trial { extra_rtt_us: vec![0, LONGER_US], ..rtts_met("cubic-of-160-ms") },
                Trial { extra_rtt_us: vec![LONGER_US, 0], ..rtts_met("cubic-of-40-ms") },
            ]
        },
        measure: Measure::Neighbour,
    },
    Case {
        id: "short-next-to-long",
        source: "RFC 9743, section 5.2.3",
        statement: "A flow of stock CUBIC that was there before meets a download of 2 MB.",
        paths: || {
            let wired = Trial { adapt: wired_path, ..short_next_to_long(WIRED) };
            std::iter::once(wired).chain(["lte", "geo-tail-drop-50"].map(short_next_to_long)).collect()
        },
        measure: Measure::Neighbour,
    },
    Case {
        id: "tail-drop",
        source: "RFC 9743, sections 5.1.2, 5.1.3, 6.1 and 6.3",
        statement: "A wired path with a queue of 0.1 to 5 BDP that drops what does not fit.",
        paths: || {
            vec![
                wired("queue-0.1-bdp", queue::<10>),
                wired("queue-0.25-bdp", queue::<25>),
                wired("queue-0.5-bdp", queue::<50>),
                wired("queue-1-bdp", queue::<100>),
                wired("queue-2-bdp", queue::<200>),
                wired("queue-5-bdp", queue::<500>),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "wireless",
        source: "RFC 9743, section 6.4",
        statement: "LTE, and a wired path that loses 0.01, 0.1 and 1 % of packets at random.",
        paths: || {
            vec![
                download("lte", 25_000_000),
                wired("loss-0.01-percent", loss::<1>),
                wired("loss-0.1-percent", loss::<10>),
                wired("loss-1-percent", loss::<100>),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "aqm",
        source: "RFC 9743, section 7.1",
        statement: "CoDel that drops and that marks (ECN), a queue that drops at random from half of it on, and a policer.",
        paths: || {
            vec![
                wired("codel", codel::<false>),
                wired("codel-ecn", codel::<true>),
                wired("random-drop", random_drop),
                wired("policed", policed),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "varying-delay",
        source: "RFC 9743, section 7.3",
        statement: "A path that grows by 50 ms in the middle of slow start, as at a handover, and one whose delay goes up and down by 40 ms.",
        paths: || vec![wired("handover", handover), wired("wave", wave)],
        measure: Measure::Download,
    },
    Case {
        id: "high-delay",
        source: "RFC 9743, section 7.5",
        statement: "Geostationary satellites: an AQM, a small queue, capacity on demand, a path that opens slowly.",
        paths: || {
            vec![
                download("geo", 79_000_000),
                download("geo-tail-drop-25", 79_000_000),
                download("bod", 2_000_000),
                download("geo-ramp", 40_000_000),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "reordering",
        source: "RFC 9743, section 7.7",
        statement: "A wired path on which packets arrive later than others that were sent after them.",
        paths: || {
            vec![
                wired("1-percent-5-ms", reordering::<10, 5>),
                wired("1-percent-40-ms", reordering::<10, 40>),
                wired("20-percent-5-ms", reordering::<200, 5>),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "transient",
        source: "RFC 9743, section 7.8",
        statement: "A wired path that is silent for a second: in slow start, or two seconds later.",
        paths: || vec![wired("silent-in-slow-start", silent::<400>), wired("silent-later", silent::<2_000>)],
        measure: Measure::Download,
    },
    Case {
        id: "sudden-change",
        source: "RFC 9743, section 7.9",
        statement: "A wired path whose rate falls to a fifth or rises fivefold after 2 s, or whose delay grows by 50 ms.",
        paths: || {
            vec![
                changed("rate-falls", wired_path, Change { rate_bps: Some(5_000_000), ..Change::default() }),
                changed("rate-rises", slow, Change { rate_bps: Some(25_000_000), ..Change::default() }),
                changed("delay-rises", wired_path, Change { delay_us: Some(90_000), ..Change::default() }),
            ]
        },
        measure: Measure::Download,
    },
    Case {
        id: "other-path",
        source: "RFC 9743, sections 7.3 and 7.9",
        statement: "Packets take another path, to one of 50 Mb/s and 160 ms or to one of 10 Mb/s and 40 ms, in slow start or \
later; those in progress end on the one they took.",
        paths: || {
            vec![
                other_path("faster-and-longer", small_path, 2_000, large_path, 30_000_000),
                other_path("faster-and-longer-in-slow-start", small_path, 200, large_path, 30_000_000),
                other_path("slower-and-shorter", large_path, 2_000, small_path, 15_000_000),
                other_path("slower-and-shorter-in-slow-start", large_path, 1_000, small_path, 10_000_000),
            ]
        },
        measure: Measure::OtherPath,
    },
];

/// Seven runs of each arm; one with `--quick`.
fn path(name: impl Into<String>, profile: &'static str, amount: Amount) -> Trial {
    Trial { amount, repetitions: 7, quick: 1, ..Trial::new(name, profile, &[]) }
}

fn download(profile: &'static str, bytes: u64) -> Trial {
    path(profile, profile, Amount::Bytes(bytes))
}

fn wired(name: &str, adapt: fn(&mut Profile)) -> Trial {
    Trial { adapt, ..path(name, WIRED, Amount::Bytes(WIRED_BYTES)) }
}

fn changed(name: &str, adapt: fn(&mut Profile), change: Change) -> Trial {
    let at = Duration::from_secs(2);
    Trial { changes: vec![LinkChange { at, way: Way::Forward, change }], ..wired(name, adapt) }
}

fn together(profile: &'static str) -> Trial {
    let name = format!("four-{profile}");
    Trial { flows: 4, stagger: Duration::from_secs(2), ..path(name, profile, Amount::Seconds(20)) }
}

/// Two flows, of 40 and 160 ms.
fn rtts(name: &str, amount: Amount) -> Trial {
    let extra_rtt_us = vec![0, LONGER_US];
    let stagger = Duration::from_secs(2);
    Trial { flows: 2, stagger, extra_rtt_us, adapt: mean_of_rtts, ..path(name, WIRED, amount) }
}

/// A flow of each; who has which RTT is to be said.
fn rtts_met(name: &str) -> Trial {
    Trial { adapt: mean_of_rtts, ..met("cubic", name.to_owned(), WIRED, Amount::Seconds(30)) }
}

fn other_path(
    name: &str,
    adapt: fn(&mut Profile),
    after_ms: u64,
    other: fn(&mut Profile),
    bytes: u64,
) -> Trial {
    let paths = vec![(Duration::from_millis(after_ms), other)];
    Trial { paths, adapt, ..path(name, WIRED, Amount::Bytes(bytes)) }
}

fn objects(profile: &'static str) -> Trial {
    // Longer than the largest, so that its end is not that of the connection.
    let amount = Amount::Bytes(2 * OBJECTS[OBJECTS.len() - 1]);
    Trial { objects: OBJECTS.into(), ..path(format!("objects-{profile}"), profile, amount) }
}

fn neighbour(control: &str, profile: &'static str) -> Trial {
    met(control, format!("{control}-{profile}"), profile, Amount::Seconds(20))
}

fn short_next_to_long(profile: &'static str) -> Trial {
    met("cubic", format!("short-{profile}"), profile, Amount::Bytes(2_000_000))
}

fn met(control: &str, name: String, profile: &'static str, amount: Amount) -> Trial {
    let competitor = Some(Competitor { congestion_control: control.to_owned(), lead_seconds: 15 });
    Trial { competitor, ..path(name, profile, amount) }
}

/// 25 Mb/s, 80 ms, a queue of one BDP: as many round trips as a wide-area path has, and packets that a guest is soon
/// through with.
fn wired_path(profile: &mut Profile) {
    wire(profile, 25_000_000, 40_000);
}

fn wire(profile: &mut Profile, rate_bps: u64, delay_us: u64) {
    let link = &mut profile.link;
    (link.forward.rate_bps, link.back.rate_bps) = (rate_bps, 10_000_000);
    (link.forward.delay_us, link.back.delay_us) = (delay_us, delay_us);
    link.forward.queue_bytes = Some(link.bdp_bytes());
}

/// 25 Mb/s, 40 ms, and a queue of one BDP at 100 ms, the mean of the RTTs.
fn mean_of_rtts(profile: &mut Profile) {
    wire(profile, 25_000_000, 50_000);
    (profile.link.forward.delay_us, profile.link.back.delay_us) = (20_000, 20_000);
}

/// 10 Mb/s, 40 ms.
fn small_path(profile: &mut Profile) {
    wire(profile, 10_000_000, 20_000);
}

/// 50 Mb/s, 160 ms.
fn large_path(profile: &mut Profile) {
    wire(profile, 50_000_000, 80_000);
}

fn queue<const PERCENT: u64>(profile: &mut Profile) {
    wired_path(profile);
    profile.link.forward.queue_bytes = Some(profile.link.bdp_bytes() * PERCENT / 100);
}

fn loss<const HUNDREDTHS_OF_PERCENT: u32>(profile: &mut Profile) {
    wired_path(profile);
    let probability = f64::from(HUNDREDTHS_OF_PERCENT) / 1e4;
    profile.link.forward.loss = Some(LossSpec::Random { probability });
}

/// RFC 8289's constants.
fn codel<const ECN: bool>(profile: &mut Profile) {
    queue::<500>(profile);
    profile.host.tcp_ecn = ECN;
    profile.link.forward.aqm = Some(AqmSpec::CoDel { target_us: 5_000, interval_us: 100_000, ecn: ECN });
}

fn random_drop(profile: &mut Profile) {
    queue::<200>(profile);
    profile.link.forward.aqm = Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.1 });
}

/// A line of twice the rate, policed to it.
fn policed(profile: &mut Profile) {
    wired_path(profile);
    let rate_bps = profile.link.forward.rate_bps;
    profile.link.forward.rate_bps = 2 * rate_bps;
    profile.link.forward.aqm = Some(AqmSpec::Policer { rate_bps, burst_bytes: 200_000 });
}

/// 0.3 s after the link's begin, until its end.
fn handover(profile: &mut Profile) {
    wired_path(profile);
    let steps = vec![DelayStep { at_us: 0, extra_us: 0 }, DelayStep { at_us: 300_000, extra_us: 50_000 }];
    profile.link.forward.jitter.push(JitterSpec::Steps { steps, repeat_us: None });
}

fn wave(profile: &mut Profile) {
    wired_path(profile);
    profile.link.forward.jitter.push(JitterSpec::Wave { period_us: 5_000_000, peak_to_peak_us: 40_000 });
}

/// So many of a thousand packets take so much longer.
fn reordering<const PERMILLE: u32, const LATER_MS: u64>(profile: &mut Profile) {
    wired_path(profile);
    let probability = f64::from(PERMILLE) / 1e3;
    profile.link.forward.reordering = Some(ReorderingSpec { probability, later_us: LATER_MS * 1_000 });
}

fn silent<const FROM_MS: u64>(profile: &mut Profile) {
    wired_path(profile);
    profile.link.forward.outages.push(OutageSpec::Scheduled {
        first_us: FROM_MS * 1_000,
        period_us: 1_000_000_000,
        duration_us: 1_000_000,
    });
}

/// A fifth of its rate.
fn slow(profile: &mut Profile) {
    wired_path(profile);
    profile.link.forward.rate_bps /= 5;
}
