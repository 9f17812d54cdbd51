//! Ways back that jitter and bunch ACKs, and at which window slow start ends over each.

use onramp_algorithm::{Flow, find};

use super::link::SEGMENT;
use super::paced_link::{Back, Path, Transfer};

/// Ways back by name: ACKs as they come, jittered, in batches; 42 us are an ACK at 10 Mb/s.
pub const WAYS: [(&str, Back); 8] = [
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
pub fn exits(algorithm: &str, rtt_us: u64, back: Back) -> (Vec<f64>, usize) {
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
