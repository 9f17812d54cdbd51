//! Every algorithm stands every start: initial windows of 10 to 200 segments, as a rule or a route gives them, which leave in a
//! burst, and starts that are faster than doubling, which pace. No algorithm that estimates the path is misled by them.

use std::path::Path;

use onramp_lab::experiment::{Amount, Arm, Plan, START};
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;

/// Starts that are faster than doubling.
const FASTER: [&str; 2] = ["fast", "suss"];

fn profile(name: &str) -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../profiles/{name}.toml"));
    Profile::load(&path).expect("a profile")
}

/// Bytes of the window in which slow start ended, the median of seven seeds; the most there is where it did not.
fn exit_window(profile: &Profile, algorithm: &str, start: &str) -> u64 {
    let plan = Plan { amount: Amount::Bytes(60_000_000), ..Plan::new(profile.clone()) };
    let parameters = [(START.to_owned(), start.to_owned())].into();
    let arm = Arm { parameters, ..Arm::stock(&format!("onramp_{algorithm}")) };
    let mut windows: Vec<_> = (1..=7)
        .map(|seed| {
            let run = sim::run(&plan, &arm, seed, SourceSpec::Bulk).expect("a simulated control");
            run.exit.map_or(u64::MAX, |exit| exit.window_bytes)
        })
        .collect();
    windows.sort_unstable();
    windows[3]
}

/// Exits are no earlier than four fifths of where they are with ten segments that are doubled, or of `enough` bytes.
fn stands(mut profile: Profile, algorithm: &str, enough: u64) {
    profile.host.initial_window_segments = Some(10);
    let doubled = exit_window(&profile, algorithm, "double").min(enough);
    let windows = [20, 32, 45, 64, 90, 200].map(|segments| (segments, "double"));
    for (segments, start) in windows.into_iter().chain(FASTER.iter().map(|start| (10, *start))) {
        profile.host.initial_window_segments = Some(segments);
        let window = exit_window(&profile, algorithm, start);
        assert!(
            window / 4 >= doubled / 5,
            "{} {algorithm}, {segments}, {start}: {window} for {doubled} bytes",
            profile.name
        );
    }
}

#[test]
fn slow_start_ends_no_earlier_than_four_fifths_of_where_it_does_with_ten_segments() {
    for algorithm in ["ramp", "spacing", "best", "search"] {
        stands(profile("geo"), algorithm, u64::MAX);
    }
}

/// Not over `bod` and `geo-ramp`, which open while slow start runs: who is faster finds less. Nor over `policer`, which drops.
#[test]
fn over_every_path_that_stays_as_it_is_it_ends_no_earlier_than_where_that_is_full() {
    for name in ["5g", "cable", "leo-100", "leo-handover", "leo", "lte", "terrestrial", "thin-return", "wifi"]
    {
        let profile = profile(name);
        let full = profile.link.bdp_bytes();
        for algorithm in ["ramp", "search"] {
            stands(profile.clone(), algorithm, full);
        }
    }
}
