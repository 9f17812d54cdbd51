//! Recorded flows of links that are known: the link that is fitted is the one that was there.

use std::path::Path;

use onramp_algorithm::Verdict;
use onramp_lab::experiment::{Amount, Arm, Plan};
use onramp_lab::fit::{FitError, Fitted, Known, RecordedFlow, fit};
use onramp_lab::link::spec::RateStep;
use onramp_lab::link::{DirectionSpec, JitterSpec, Limit, LinkSpec, RateSpec};
use onramp_lab::profile::Profile;
use onramp_lab::sim::{self, SourceSpec};
use onramp_recording::rows::AckRow;
use onramp_recording::{Recording, write_rows};

/// A link of constant delay with hosts that do not limit it.
fn profile(forward: DirectionSpec) -> Profile {
    let text = include_str!("../../profiles/geo.toml");
    let mut profile = Profile::parse(text, "geo.toml").expect("a profile");
    let back = DirectionSpec::new(1_000_000_000, forward.delay_us, Limit::Bytes(10_000_000));
    profile.link = LinkSpec { forward, back };
    profile
}

/// What `onramp record --level ack` would keep of a transfer, in a file of its own.
fn record(path: &Path, profile: &Profile, control: &str, bytes: u64) {
    let plan = Plan { amount: Amount::Bytes(bytes), ..Plan::new(profile.clone()) };
    let acks = sim::record(&plan, &Arm::stock(control), 1, SourceSpec::Bulk).expect("a simulated control");
    let rows = (1..).zip(&acks).map(|(sequence, ack)| AckRow {
        sequence,
        slow_starts: 1,
        ..AckRow::new(7, ack, &Verdict::default(), "none".into())
    });
    write_rows(path, rows).expect("a directory to write to");
}

fn fitted(profile: &Profile, control: &str, bytes: u64) -> Fitted {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("acks-000001.parquet");
    record(&path, profile, control, bytes);
    let mut recording = Recording::open(&path).expect("a recording");
    fit(&RecordedFlow::read(&mut recording, None).expect("its only flow")).expect("a path")
}

/// `measured` is within so much of `expected`.
fn near(what: &str, measured: f64, expected: f64, share: f64) {
    assert!((measured / expected - 1.0).abs() <= share, "{what}: {measured}, not {expected}");
}

#[test]
fn a_link_that_was_full_is_found_again() {
    for (rate, one_way, queue) in [(20_000_000, 25_000, 60_000), (100_000_000, 150_000, 4_000_000)] {
        let profile = profile(DirectionSpec::new(rate, one_way, Limit::Bytes(queue)));
        let fitted = fitted(&profile, "reno", 2 * rate);
        near("rate", fitted.rate_bps as f64, rate as f64, 0.02);
        near("round-trip time", fitted.base_rtt_us as f64, 2.0 * one_way as f64, 0.02);
        near("queue", fitted.queue_bytes as f64, queue as f64, 0.1);
        assert_eq!((fitted.rate_known, fitted.queue_known), (Known::Measured, Known::Measured), "{fitted:?}");
        assert_eq!(fitted.jitter_us, 0, "{fitted:?}");
        assert!(fitted.rate_steps.is_empty(), "{fitted:?}");
        assert!(fitted.explained.rtt_error_share < 0.03, "{fitted:?}");
    }
}

#[test]
fn what_a_flow_did_not_reach_is_a_lower_bound() {
    let profile = profile(DirectionSpec::new(1_000_000_000, 25_000, Limit::Bytes(20_000_000)));
    let fitted = fitted(&profile, "reno", 1_000_000);
    assert_eq!((fitted.rate_known, fitted.queue_known), (Known::AtLeast, Known::AtLeast), "{fitted:?}");
    assert!(fitted.rate_bps < 1_000_000_000 && fitted.explained.samples > 100, "{fitted:?}");
}

#[test]
fn a_rate_that_changes_is_followed() {
    let step = |at_us, rate_bps| RateStep { at_us, rate_bps };
    let steps = vec![step(0, 40_000_000), step(6_000_000, 20_000_000)];
    let forward = DirectionSpec::new(30_000_000, 20_000, Limit::Bytes(400_000));
    let profile =
        profile(DirectionSpec { rate: Some(RateSpec::Steps { steps, repeat_us: None }), ..forward });
    let fitted = fitted(&profile, "reno", 50_000_000);
    let at = |at_us: u64| {
        fitted.rate_steps.iter().rfind(|step| step.at_us <= at_us).expect("a rate").rate_bps as f64
    };
    near("rate at 4 s", at(4_000_000), 40e6, 0.05);
    near("rate at 9 s", at(9_000_000), 20e6, 0.05);
    assert!(fitted.explained.rtt_error_share < 0.1, "{fitted:?}");
}

#[test]
fn jitter_shows_and_is_no_queue() {
    let mut profile = profile(DirectionSpec::new(10_000_000, 30_000, Limit::Bytes(80_000)));
    profile.link.back.jitter = vec![JitterSpec::Uniform { max_us: 4_000 }];
    let fitted = fitted(&profile, "reno", 10_000_000);
    near("rate", fitted.rate_bps as f64, 10e6, 0.03);
    // Packets keep their order, which hides some of it.
    assert!((1_500..=5_000).contains(&fitted.jitter_us), "{fitted:?}");
    near("queue", fitted.queue_bytes as f64, 80_000.0, 0.15);
}

#[test]
fn the_profile_is_one_that_simulates_like_the_recorded_path() {
    let forward = DirectionSpec::new(50_000_000, 40_000, Limit::Bytes(500_000));
    let known = profile(forward);
    let fitted = fitted(&known, "reno", 60_000_000);
    let text = toml::to_string(&fitted.profile("fitted")).expect("a profile in text");
    let again = Profile::parse(&text, "fitted.toml").expect("a profile that can be read");
    let run = |profile: &Profile| {
        let plan = Plan { amount: Amount::Bytes(20_000_000), ..Plan::new(profile.clone()) };
        sim::run(&plan, &Arm::stock("cubic"), 1, SourceSpec::Bulk).expect("a simulated control").seconds
    };
    near("completion", run(&again), run(&known), 0.05);
}

#[test]
fn what_makes_no_path_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("acks-000001.parquet");
    let profile = profile(DirectionSpec::new(10_000_000, 30_000, Limit::Bytes(80_000)));
    record(&path, &profile, "reno", 50_000);
    let mut recording = Recording::open(&path).expect("a recording");
    let short = RecordedFlow::read(&mut recording, None).expect_err("too short").to_string();
    assert!(short.contains("flow 7") && short.contains("100 at least"), "{short}");
    let missing = RecordedFlow::read(&mut recording, Some(8)).expect_err("another flow").to_string();
    assert!(missing.contains("flow 8") && missing.contains("7 ("), "{missing}");
    write_rows(&path, Vec::<AckRow>::new()).expect("an empty file");
    let mut recording = Recording::open(&path).expect("a recording");
    let empty = RecordedFlow::read(&mut recording, None).expect_err("nothing");
    assert!(matches!(empty, FitError::NoAcks), "{empty}");
    std::fs::write(&path, "now_us,rtt_us\n1,2\n").expect("a file");
    let mut recording = Recording::open(&path).expect("a file that is there");
    assert!(RecordedFlow::read(&mut recording, None).is_err());
    assert!(recording.problems[0].to_string().contains("acks-000001.parquet"), "{:?}", recording.problems);
}

/// What `onramp record` kept of a download of 6 MB over the profile `terrestrial` with kernel TCP (6.12, `search`): 100 Mb/s,
/// 30 ms, a queue of 375 kB that overflowed.
#[test]
fn a_path_of_the_lab_is_found_again_from_what_the_kernel_did() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/terrestrial-acks.parquet");
    let mut recording = Recording::open(&path).expect("a recording");
    let fitted = fit(&RecordedFlow::read(&mut recording, None).expect("the download")).expect("a path");
    near("rate", fitted.rate_bps as f64, 100e6, 0.01);
    near("round-trip time", fitted.base_rtt_us as f64, 30_000.0, 0.02);
    near("queue", fitted.queue_bytes as f64, 375_000.0, 0.02);
    assert_eq!((fitted.rate_known, fitted.queue_known), (Known::Measured, Known::Measured), "{fitted:?}");
    let explained = fitted.explained;
    assert!(
        explained.rtt_error_share < 0.01 && explained.rtt_variance.is_some_and(|share| share > 0.99),
        "{explained:?}"
    );
}

/// Over the profile `geo` acknowledgments come back on demand, later by turns, while the path is all but empty.
#[test]
fn round_trip_times_that_vary_without_a_queue_are_none() {
    let text = include_str!("../../profiles/geo.toml");
    let profile = Profile::parse(text, "geo.toml").expect("a profile");
    let fitted = fitted(&profile, "reno", 5_000_000);
    assert_eq!((fitted.rate_known, fitted.queue_known), (Known::AtLeast, Known::AtLeast), "{fitted:?}");
    assert!(fitted.rate_steps.is_empty() && fitted.rate_bps > 10_000_000, "{fitted:?}");
}
