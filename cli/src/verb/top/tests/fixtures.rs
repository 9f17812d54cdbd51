//! Events of made-up flows.

use onramp_loader::ExitReason;
use onramp_loader::abi::{ExitRecord, FlowHeader, flow_flag};
use onramp_loader::algorithm::{Algorithm, NO_THRESHOLD, OUTCOME_MAX, RoundPayload, find};
use onramp_loader::telemetry::{EndEvent, EndPayload, Event, ExitEvent, FlowEvent, Item, RoundEvent, What};

use crate::verb::top::app::App;

/// No threshold yet.
pub(super) const NONE: u32 = NO_THRESHOLD;
const ROUND_US: u64 = 50_000;

pub(super) fn event(flow: u64, algorithm: &str, at_us: u64, what: What) -> Item {
    let algorithm = find(algorithm).unwrap();
    Item::Event(Event { time_ns: at_us * 1_000, flow, sequence: 0, netns: 1, algorithm, what })
}

/// A state with these exports, zero otherwise.
fn state(algorithm: Algorithm, values: &[(&str, &[u32])]) -> Vec<u8> {
    let words = algorithm.state_size() as u32 / 4;
    // Where an export lies is found by reading it from a state that holds its own numbers.
    let probe: Vec<u8> = (0..words).flat_map(u32::to_ne_bytes).collect();
    let mut state = vec![0; algorithm.state_size()];
    for (name, values) in values {
        let export = algorithm.exports().find(|export| export.name == *name).unwrap();
        for (at, value) in export.read(&probe).into_iter().zip(*values) {
            state[at as usize * 4..][..4].copy_from_slice(&value.to_ne_bytes());
        }
    }
    state
}

pub(super) fn begin(flow: u64, algorithm: &str, remote: &str) -> Item {
    let known = find(algorithm).unwrap();
    event(
        flow,
        algorithm,
        1_000_000,
        What::Flow(Box::new(FlowEvent {
            local: "192.0.2.1:40000".parse().unwrap(),
            remote: remote.parse().unwrap(),
            again: false,
            cookie: None,
            netns_cookie: 1,
            parameters: known.parameters(),
            profile: 0,
            generation: 0,
            header: FlowHeader {
                flags: (flow_flag::STARTED | flow_flag::SLOW_START) as u16,
                start_us: 1_000_000,
                ..FlowHeader::default()
            },
            state: state(known, &[]),
        })),
    )
}

pub(super) fn end(flow: u64, algorithm: &str) -> Item {
    let end = EndEvent {
        payload: EndPayload {
            bytes_acked: 1,
            bytes_sent: 1,
            cwnd: 10,
            ssthresh: NONE,
            ..EndPayload::default()
        },
        header: FlowHeader::default(),
        outcomes: [0; OUTCOME_MAX],
    };
    event(flow, algorithm, 3_000_000, What::End(Box::new(end)))
}

pub(super) fn round(flow: u64, algorithm: &str, number: u32, values: &[(&str, &[u32])]) -> Item {
    let cwnd = 10 << number.min(6);
    let past = number > 6;
    event(
        flow,
        algorithm,
        1_000_000 + ROUND_US * u64::from(number + 1),
        What::Round(Box::new(RoundEvent {
            payload: RoundPayload {
                number,
                duration_us: ROUND_US,
                bytes: u64::from(cwnd) * 1_448,
                delivered: cwnd,
                acks: cwnd / 2,
                min_rtt_us: 50_000 + 1_000 * number,
                smoothed_rtt_us: 50_500,
                cwnd,
                ssthresh: if past { cwnd } else { NONE },
                in_flight: cwnd * 9 / 10,
                mss: 1_448,
                flags: if past { 0 } else { flow_flag::SLOW_START as u16 },
                ..RoundPayload::default()
            },
            state: state(find(algorithm).unwrap(), values),
        })),
    )
}

fn exit(flow: u64, algorithm: &str, reason: ExitReason) -> Item {
    exit_at(flow, algorithm, reason, 7 * ROUND_US, 640)
}

/// So long after the first data, with a window of so many segments.
pub(super) fn exit_at(flow: u64, algorithm: &str, reason: ExitReason, at_us: u64, window: u32) -> Item {
    let record = ExitRecord {
        at_us,
        bytes_acked: 1_840_000,
        reason: 1,
        window,
        window_after: window,
        in_flight: 600,
        mss: 1_448,
        rtt_us: 57_000,
        min_rtt_us: 50_000,
        ..ExitRecord::default()
    };
    event(flow, algorithm, 1_000_000 + record.at_us, What::Exit(ExitEvent { reason, record, observed: None }))
}

/// A round of 100 ms that has ended so long after the first data, in which so many segments were delivered; the window was the
/// limit for so long.
pub(super) fn carried(flow: u64, end_us: u64, segments: u32, cwnd_limited_us: u32) -> Item {
    let payload = RoundPayload {
        duration_us: 100_000,
        bytes: u64::from(segments) * 1_448,
        delivered: segments,
        min_rtt_us: 100_000,
        mss: 1_448,
        cwnd_limited_us,
        ..RoundPayload::default()
    };
    let state = state(find("plain").unwrap(), &[]);
    event(flow, "plain", 1_000_000 + end_us, What::Round(Box::new(RoundEvent { payload, state })))
}

/// Bins of SEARCH: a ramp that flattens, and a norm near its threshold.
const SEARCH: [(&str, &[u32]); 4] = [
    ("norm_pct", &[21]),
    ("index", &[9]),
    ("bin_us", &[17_500]),
    ("acked", &[0, 10_000, 25_000, 50_000, 90_000, 150_000, 230_000, 320_000, 410_000, 500_000]),
];

pub(super) fn app() -> App {
    let mut app = App::default();
    let mut add = |item| app.model.add(&item);
    for (id, algorithm, remote) in [
        (1, "search", "198.51.100.7:443"),
        (2, "best", "198.51.100.8:443"),
        (3, "hystartpp", "[2001:db8::7]:8443"),
        (4, "plain", "203.0.113.9:80"),
    ] {
        add(begin(id, algorithm, remote));
    }
    for number in 0..10 {
        add(round(1, "search", number, &SEARCH));
        if number == 6 {
            add(exit(1, "search", ExitReason::Algorithm));
        }
    }
    add(round(2, "best", 0, &[("estimate", &[12_500]), ("pairs", &[u32::MAX; 16])]));
    add(round(3, "hystartpp", 3, &[("phase", &[1]), ("css_rounds", &[2]), ("css_entries", &[1])]));
    for number in 0..8 {
        add(round(4, "plain", number, &[]));
    }
    add(exit(4, "plain", ExitReason::Loss));
    app
}
