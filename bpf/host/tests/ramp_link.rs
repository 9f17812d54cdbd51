//! What the way back does to ramp, over an ideal link: jitter, batches, short round trips. Shows its table with --nocapture.

mod common;

use common::ways_back::{WAYS, exits};

/// Slow start ends by ramp's own decision, above what the path holds by the margin, the error of a line and the gaps between
/// ACKs, and nothing is lost, wherever the receiver's clock of milliseconds can show a rate: jitter or batches of a twentieth
/// of the RTT. Beyond that it does not end below four fifths of what the path holds.
#[test]
fn the_way_back_is_seen_through() {
    for (rtt_us, near) in [(600_000, 10_000), (60_000, 3_000), (30_000, 1_000), (15_000, 200)] {
        for (name, back) in WAYS {
            let (exits, drops) = exits("ramp", rtt_us, back);
            let range = exits.first().copied().zip(exits.last().copied());
            println!("{:4} ms  {name:18} {range:.2?}, {drops} of 10 lost", rtt_us / 1_000);
            let late = back.jitter_us + back.hold_us;
            let least = if late <= near { 0.95 } else { 0.8 };
            assert!(exits.iter().all(|part| *part > least), "{rtt_us} {name}: {exits:?}");
            assert!(back.hold_us == 0 || late > 5_000 || drops == 0, "{rtt_us} {name}: {drops}");
            if late <= near {
                let most = 1.28 + 1.2 * late as f64 / rtt_us as f64;
                assert!(
                    exits.len() == 10 && exits[9] < most && drops == 0,
                    "{rtt_us} {name} {exits:?} {drops}"
                );
            }
        }
    }
}
