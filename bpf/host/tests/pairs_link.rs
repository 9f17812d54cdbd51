//! What the way back does to the estimate of ACK pairs, over an ideal link: jitter, batches, short round trips. Shows its
//! table with --nocapture.

mod common;

use common::ways_back::{WAYS, exits};

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
