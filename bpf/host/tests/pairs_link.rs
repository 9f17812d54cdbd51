//! What the way back does to the estimate of ACK pairs, over an ideal link: jitter, batches, short round trips. Shows its
//! table with --nocapture.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::link::SEGMENT;
use common::paced_link::{Back, Path, Transfer};
use onramp_algorithm::{Flow, find};

/// Ways back by name: ACKs as they come, jittered, in batches; 42 us are an ACK at 10 Mb/s.
const WAYS: [(&str, Back); 8] = [
    ("as it comes", Back { jitter_us: 0, hold_us: 0, gap_us: 0 }),
    ("jitter to 0.2 ms", Back { jitter_us: 200, hold_us: 0, gap_us: 42 }),
    ("jitter to 1 ms", Back { jitter_us: 1_000, hold_us: 0, gap_us: 42 }),
    ("jitter to 3 ms", Back { jitter_us: 3_000, hold_us: 0, gap_us: 42 }),
    ("jitter to 10 ms", Back { jitter_us: 10_000, hold_us: 0, gap_us: 42 }),
    ("batches of 2 ms", Back { jitter_us: 0, hold_us: 2_000, gap_us: 42 }),
    ("batches of 5 ms", Back { jitter_us: 0, hold_us: 5_000, gap_us: 42 }),
    ("batches of 10 ms", Back { jitter_us: 0, hold_us: 10_000, gap_us: 42 }),
];

fn carry(algorithm: &str, path: Path) -> Transfer {
    let segments = 4 * path.bdp() + 40_000_000 / SEGMENT;
    path.carry(&mut Flow::new(find(algorithm).unwrap().parameters()), segments)
}

/// Windows at the exit in parts of the bandwidth-delay product, sorted, with ten seeds of the jitter; and how many of
/// these transfers lost something.
fn exits(algorithm: &str, rtt_us: u64, back: Back) -> (Vec<f64>, usize) {
    let mut exits = Vec::new();
    let mut drops = 0;
    for seed in 1..=10 {
        let path = Path { rate: 150_000_000, rtt_us, queue_pct: 100, back, seed };
        let transfer = carry(algorithm, path);
        exits.extend(transfer.exit.map(|(_, window)| f64::from(window) / path.bdp() as f64));
        drops += usize::from(transfer.drop_us.is_some());
    }
    exits.sort_by(f64::total_cmp);
    (exits, drops)
}

/// Slow start ends at what the path holds wherever jitter and batches are short compared with the RTT: up to 10 ms of 600.
/// Where they are not it ends later or by loss, but not early.
#[test]
fn the_way_back_does_not_end_slow_start_early() {
    for (rtt_us, near) in [(600_000, 10_000), (60_000, 2_000), (30_000, 1_000), (15_000, 200)] {
        for (name, back) in WAYS {
            for algorithm in ["best", "spacing"] {
                let (exits, drops) = exits(algorithm, rtt_us, back);
                let range = exits.first().copied().zip(exits.last().copied());
                println!("{:4} ms  {name:18} {algorithm:8} {range:.2?}, {drops} of 10 lost", rtt_us / 1_000);
                assert!(exits.iter().all(|part| *part > 0.9), "{algorithm} {rtt_us} {name}: {exits:?}");
                if back.jitter_us + back.hold_us <= near {
                    assert!(exits.len() == 10 && exits[9] < 1.2 && drops == 0, "{algorithm} {rtt_us} {name}");
                    assert!(rtt_us < 600_000 || exits[9] < 1.1, "{algorithm} {name}: {exits:?}");
                }
            }
        }
    }
}
