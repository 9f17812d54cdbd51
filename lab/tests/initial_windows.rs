//! Initial windows of 10 to 200 segments, as a rule or a route gives them: no algorithm that estimates the path is misled by the
//! burst that they leave in.

use std::path::Path;

use onramp_lab::experiment::{Amount, Arm, Plan};
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;

/// Bytes of the window in which slow start ended, the median of three seeds.
fn exit_window(profile: &Profile, algorithm: &str) -> u64 {
    let plan = Plan { amount: Amount::Bytes(60_000_000), ..Plan::new(profile.clone()) };
    let arm = Arm::stock(&format!("onramp_{algorithm}"));
    let mut windows: Vec<_> = (1..=3)
        .map(|seed| {
            let run = sim::run(&plan, &arm, seed, SourceSpec::Bulk).expect("a simulated control");
            run.exit.expect("an exit").window_bytes
        })
        .collect();
    windows.sort_unstable();
    windows[1]
}

#[test]
fn slow_start_ends_no_earlier_than_four_fifths_of_where_it_does_with_ten_segments() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/geo.toml");
    let mut profile = Profile::load(&path).expect("a profile");
    for algorithm in ["ramp", "spacing", "best", "search"] {
        profile.host.initial_window_segments = Some(10);
        let with_ten = exit_window(&profile, algorithm);
        for segments in [20, 32, 45, 64, 90, 200] {
            profile.host.initial_window_segments = Some(segments);
            let window = exit_window(&profile, algorithm);
            assert!(window * 5 >= with_ten * 4, "{algorithm}, {segments}: {window} for {with_ten} bytes");
        }
    }
}
