//! Recorded flows of links that are known: the link that is fitted is the one that was there.

use std::path::Path;

use onramp_algorithm::Verdict;
use onramp_lab::experiment::{Amount, Arm, Plan};
use onramp_lab::fit::{Disagreement, FitError, Fitted, Known, RecordedFlow, check, fit};
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;
use onramp_profiles::link::RateStep;
use onramp_profiles::link::{DirectionSpec, JitterSpec, Limit, LinkSpec, RateSpec};
use onramp_recording::rows::{AckRow, FlowRow};
use onramp_recording::{Limits, Manifest, Recording, Writer, write_rows};

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
    let text = toml::to_string(&fitted.profile("fitted", None)).expect("a profile in text");
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

/// Over the profile `geo` acknowledgments come back on demand, later alternately, while the path is all but empty. Bursts show its
/// rate all the same.
#[test]
fn round_trip_times_that_vary_without_a_queue_are_none() {
    let text = include_str!("../../profiles/geo.toml");
    let profile = Profile::parse(text, "geo.toml").expect("a profile");
    let fitted = fitted(&profile, "reno", 5_000_000);
    assert_eq!(fitted.queue_known, Known::AtLeast, "{fitted:?}");
    assert!(fitted.rate_steps.is_empty() && fitted.jitter_us > 50_000, "{fitted:?}");
    near("rate", fitted.rate_bps as f64, 150e6, 0.1);
}

/// What `onramp record` would keep of a transfer that an algorithm drives.
fn record_algorithm(directory: &Path, profile: &Profile, algorithm: &str, bytes: u64, seed: u64, syn: u64) {
    let mut writer = Writer::create(directory, Manifest::default(), Limits::default()).expect("a recording");
    let algorithm_name = algorithm.to_owned().into();
    let flow = FlowRow { flow: 7, event: "start".into(), algorithm: algorithm_name, ..FlowRow::default() };
    writer.push(flow).expect("a row");
    let plan = Plan { amount: Amount::Bytes(bytes), ..Plan::new(profile.clone()) };
    let arm = Arm::stock(&format!("onramp_{algorithm}"));
    let acks = sim::record(&plan, &arm, seed, SourceSpec::Bulk).expect("a simulated control");
    for (sequence, ack) in (1..).zip(&acks) {
        let row = AckRow::new(7, ack, &Verdict::default(), "none".into());
        let acknowledged_bytes = row.acknowledged_bytes + syn;
        writer.push(AckRow { sequence, slow_starts: 1, acknowledged_bytes, ..row }).expect("a row");
    }
    writer.finish(0).expect("a recording");
}

fn of_algorithm(
    profile: &Profile,
    algorithm: &str,
    bytes: u64,
    seed: u64,
) -> Result<(Fitted, RecordedFlow), FitError> {
    let directory = tempfile::tempdir().expect("a directory");
    record_algorithm(directory.path(), profile, algorithm, bytes, seed, 0);
    let mut recording = Recording::open(directory.path()).expect("a recording");
    let flow = RecordedFlow::read(&mut recording, None)?;
    Ok((fit(&flow)?, flow))
}

fn completion(profile: &Profile, arm: &str, bytes: u64, seed: u64) -> f64 {
    let plan = Plan { amount: Amount::Bytes(bytes), ..Plan::new(profile.clone()) };
    sim::run(&plan, &Arm::stock(arm), seed, SourceSpec::Bulk).expect("a simulated control").seconds
}

fn load(name: &str) -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../profiles/{name}.toml"));
    Profile::load(&path).expect("a profile")
}

/// What came of a recording: whether its path is given, and whether arms take another time over it than over the real one.
struct Outcome {
    given: bool,
    wrong: bool,
    text: String,
    /// Of cubic and ramp, seconds: over the real path, over the fitted one.
    times: [(f64, f64); 2],
    disagreements: Vec<Disagreement>,
}

impl Outcome {
    fn word(&self) -> &'static str {
        match (self.given, self.wrong) {
            (true, false) => "given",
            (true, true) => "given, wrong",
            (false, true) => "refused",
            (false, false) => "refused, though right",
        }
    }
}

/// Records, fits, checks and compares.
fn outcome(
    profile: &Profile,
    algorithm: &str,
    (recorded, compared): (u64, u64),
    seed: u64,
) -> Result<Outcome, FitError> {
    let (fitted, flow) = of_algorithm(profile, algorithm, recorded, seed)?;
    let checked = check(&flow, &fitted, compared).expect("a check");
    let path = fitted.profile("fitted", flow.driver.as_ref());
    let mut text = format!("{:<18} {algorithm:<8} {:>2} MB ", profile.name, recorded / 1_000_000);
    let [cubic, ramp] = ["cubic", "onramp_ramp"].map(|arm| {
        let times = (completion(profile, arm, compared, seed), completion(&path, arm, compared, 1));
        text += &format!(" {:>7.2} {:>7.2}", times.0, times.1);
        times
    });
    let far = |(real, made): (f64, f64)| (made / real - 1.0).abs() > 0.1;
    let faster = |one: f64, other: f64| (one - other).abs() > 0.02 * one.min(other) && one < other;
    let other_order = faster(cubic.0, ramp.0) && faster(ramp.1, cubic.1)
        || faster(ramp.0, cubic.0) && faster(cubic.1, ramp.1);
    let wrong = far(cubic) || far(ramp) || other_order;
    let disagreements = checked.disagreements;
    Ok(Outcome { given: disagreements.is_empty(), wrong, text, times: [cubic, ramp], disagreements })
}

/// Bytes of the transfers that are compared.
const COMPARED: u64 = 80_000_000;

#[test]
fn a_path_is_given_where_cubic_and_ramp_take_as_long_over_it_as_over_the_real_one() {
    for (name, algorithm, recorded, seed) in [
        ("geo", "ramp", COMPARED, 3),
        ("cable", "plain", 30_000_000, 1),
        ("terrestrial", "ramp", 30_000_000, 1),
    ] {
        let outcome = outcome(&load(name), algorithm, (recorded, recorded), seed).expect("a path");
        assert!(outcome.given && !outcome.wrong, "{} {:?}", outcome.text, outcome.disagreements);
    }
}

#[test]
fn what_an_early_exit_never_reached_is_named_and_no_path_is_given() {
    let (fitted, flow) = of_algorithm(&load("geo"), "hystart", 3_000_000, 1).expect("a path");
    let checked = check(&flow, &fitted, COMPARED).expect("a check");
    let open =
        |one: &Disagreement| matches!(one, Disagreement::Open { arm, figure: "rate", .. } if arm == "ramp");
    assert!(checked.disagreements.iter().any(open), "{checked:?}");
}

/// A terminal is given as much as it asks for, which the flow decides.
#[test]
fn a_rate_that_is_given_as_the_flow_asks_for_it_is_no_rate_of_the_path() {
    for algorithm in ["ramp", "plain"] {
        let outcome = outcome(&load("bod"), algorithm, (2_000_000, COMPARED), 1).expect("a path");
        assert!(!outcome.given, "{}", outcome.text);
    }
}

#[test]
fn a_recording_that_does_not_name_its_algorithm_cannot_be_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("acks-000001.parquet");
    let profile = load("cable");
    record(&path, &profile, "reno", 10_000_000);
    let mut recording = Recording::open(&path).expect("a recording");
    let flow = RecordedFlow::read(&mut recording, None).expect("its only flow");
    let checked = check(&flow, &fit(&flow).expect("a path"), COMPARED).expect("a check");
    assert!(matches!(checked.disagreements[0], Disagreement::Driver { .. }), "{checked:?}");
}

/// Of a connection that this host opened the kernel counts the SYN as acknowledged.
#[test]
fn both_directions_give_the_same_path() {
    let fits = [0, 1].map(|syn| {
        let directory = tempfile::tempdir().expect("a directory");
        record_algorithm(directory.path(), &load("terrestrial"), "ramp", 6_000_000, 1, syn);
        let mut recording = Recording::open(directory.path()).expect("a recording");
        fit(&RecordedFlow::read(&mut recording, None).expect("its only flow")).expect("a path")
    });
    assert!(fits[0].explained.samples > 500, "{:?}", fits[0]);
    assert_eq!(fits[0], fits[1]);
}

#[test]
fn of_several_flows_none_is_taken_unasked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("acks-000001.parquet");
    let plan = Plan { amount: Amount::Bytes(3_000_000), ..Plan::new(load("cable")) };
    let acks = sim::record(&plan, &Arm::stock("reno"), 1, SourceSpec::Bulk).expect("a simulated control");
    let rows = [7, 8].into_iter().flat_map(|flow| {
        (1..).zip(&acks).map(move |(sequence, ack)| AckRow {
            sequence,
            slow_starts: 1,
            ..AckRow::new(flow, ack, &Verdict::default(), "none".into())
        })
    });
    write_rows(&path, rows).expect("a directory to write to");
    let mut recording = Recording::open(&path).expect("a recording");
    let error = RecordedFlow::read(&mut recording, None).expect_err("which?");
    assert!(matches!(error, FitError::Several { count: 2, .. }), "{error}");
    assert_eq!(RecordedFlow::read(&mut recording, Some(8)).expect("that one").flow, 8);
}

mod minutes {
    use onramp_lab::population::Population;

    use super::*;

    /// Of recordings: fits, given, wrong, and refused though right.
    #[derive(Debug, Default)]
    struct Counts {
        fits: u32,
        given: u32,
        wrong: u32,
        right: u32,
    }

    impl Counts {
        /// Where there is no fit at all, none is wrong.
        fn add(&mut self, outcome: Result<Outcome, FitError>) {
            let Ok(outcome) = outcome else { return };
            println!("{} {}", outcome.text, outcome.word());
            self.fits += 1;
            self.given += u32::from(outcome.given);
            self.wrong += u32::from(outcome.given && outcome.wrong);
            self.right += u32::from(!outcome.given && !outcome.wrong);
        }
    }

    /// Every profile, recorded under four algorithms and in two sizes.
    #[test]
    #[ignore = "takes two minutes: cargo test --release --workspace --test fit -- --ignored --nocapture"]
    fn over_every_profile_arms_take_as_long_as_over_the_real_path_or_there_is_none() {
        let names = [
            "5g",
            "bod",
            "cable",
            "geo",
            "geo-ramp",
            "geo-tail-drop-100",
            "geo-tail-drop-25",
            "geo-tail-drop-50",
            "leo",
            "leo-100",
            "leo-handover",
            "lte",
            "policer",
            "terrestrial",
            "thin-return",
            "wifi",
        ];
        if !Path::new(env!("CARGO_MANIFEST_DIR")).exists() {
            // A guest has the program alone, and nothing here takes a kernel.
            return;
        }
        let mut counts = Counts::default();
        println!("path               recorded          cubic: real, fitted  ramp: real, fitted");
        for name in names {
            let profile = load(name);
            for first_seed in [1, 101] {
                for (algorithm, seed) in [("ramp", 0), ("plain", 1), ("hystart", 2), ("search", 3)] {
                    // Over the narrowest link 80 MB take minutes.
                    let sizes = if name == "bod" { &[3_000_000][..] } else { &[30_000_000, 80_000_000] };
                    for recorded in sizes {
                        let sizes = (*recorded, *recorded);
                        counts.add(outcome(&profile, algorithm, sizes, first_seed + seed));
                    }
                }
            }
        }
        println!("{counts:?}");
        assert!(counts.given * 10 >= counts.fits && counts.wrong == 0, "{counts:?}");
    }

    /// Paths of a population, which meet random losses, others' packets, AQM and policers as well.
    #[test]
    #[ignore = "takes two minutes: cargo test --release --workspace --test fit -- --ignored --nocapture"]
    fn over_paths_at_random_arms_take_as_long_as_over_the_real_path_or_there_is_none() {
        let population = Population::parse(include_str!("../populations/default.toml"), "default.toml");
        let population = population.expect("a population");
        let mut counts = Counts::default();
        for (seed, paths) in [(21, 50), (9_001, 100)] {
            for number in 0..paths {
                let profile = population.path(seed, number).profile;
                for (algorithm, megabytes) in [("ramp", 5), ("hystart", 20), ("plain", 20)] {
                    let sizes = (megabytes * 1_000_000, megabytes * 1_000_000);
                    counts.add(outcome(&profile, algorithm, sizes, seed + number));
                }
            }
        }
        println!("{counts:?}");
        assert!(counts.given * 10 >= counts.fits && counts.wrong == 0, "{counts:?}");
    }

    /// Rows that were drawn once the rules were final: paths of populations and profiles, algorithms, sizes. Prints what comes of
    /// each, which the file has behind it.
    #[test]
    #[ignore = "takes minutes: cargo test --release --workspace --test fit -- --ignored --nocapture"]
    fn over_paths_that_no_rule_was_made_for_none_that_is_given_is_wrong() {
        if !Path::new(env!("CARGO_MANIFEST_DIR")).exists() {
            // A guest has the program alone, and nothing here takes a kernel.
            return;
        }
        let populations = ["default", "requests"].map(|name| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("populations/{name}.toml"));
            (
                name,
                Population::parse(&std::fs::read_to_string(path).expect("a file"), name)
                    .expect("a population"),
            )
        });
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evaluation/fitted-paths-simulated.csv");
        let file = std::fs::read_to_string(path).expect("a list");
        let mut counts = Counts::default();
        let mut others = Vec::new();
        for line in file.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let [source, seed, number, algorithm, megabytes, ..] = fields[..] else { panic!("{line}") };
            let [seed, number, megabytes] =
                [seed, number, megabytes].map(|text| text.parse::<u64>().expect("a number"));
            let bytes = megabytes * 1_000_000;
            let population = populations.iter().find(|(name, _)| *name == source);
            let profile =
                population.map_or_else(|| load(source), |(_, drawn)| drawn.path(seed, number).profile);
            let outcome = outcome(&profile, algorithm, (bytes, bytes), seed + number);
            let row = match &outcome {
                Ok(outcome) => {
                    let [cubic, ramp] = outcome.times;
                    let kinds: Vec<String> = outcome.disagreements.iter().map(kind).collect();
                    format!(
                        "{},{:.3},{:.3},{:.3},{:.3},{}",
                        outcome.word().replace(',', ""),
                        cubic.0,
                        cubic.1,
                        ramp.0,
                        ramp.1,
                        kinds.join(" ")
                    )
                }
                Err(_) => "no path,,,,,".to_owned(),
            };
            let row = format!("{source},{seed},{number},{algorithm},{megabytes},{row}");
            println!("ROW {row}");
            if row != line {
                others.push(row);
            }
            counts.add(outcome);
        }
        println!("{counts:?}");
        assert!(counts.wrong == 0 && others.is_empty(), "{counts:?}: {others:?}");
    }

    /// Its kind, as JSON has it.
    fn kind(disagreement: &Disagreement) -> String {
        let json = serde_json::to_value(disagreement).expect("JSON");
        json["kind"].as_str().unwrap_or_default().to_owned()
    }
}
