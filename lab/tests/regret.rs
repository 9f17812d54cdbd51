// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a flow's own acknowledgments say that its exit cost, compared with what the link's rate and delay say.

use onramp_algorithm::ExitReason;
use onramp_lab::experiment::{Amount, Arm, LinkRegret, Plan};
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;
use onramp_recording::replay::{Exit, Generations, Known, Options, PathEstimate, Regret, Replay};
use onramp_recording::rows::ExitRecordRow;
use onramp_recording::{Run, Sample};

/// An exit at this many bandwidth-delay products: the truth, and the estimate.
fn costs(profile: &Profile, bdp: f64, bytes: u64) -> (LinkRegret, Option<Regret>) {
    let (truth, estimate, _) = costs_and_given(profile, bdp, bytes);
    (truth, estimate)
}

/// The same, and what the path gave the flow.
fn costs_and_given(
    profile: &Profile,
    bdp: f64,
    bytes: u64,
) -> (LinkRegret, Option<Regret>, Option<PathEstimate>) {
    let window = (profile.link.bdp_bytes() as f64 * bdp) as u64;
    let mut arm = Arm::stock("onramp_fixed");
    arm.parameters.insert("exit_window_bytes".into(), window.to_string());
    let plan = Plan { amount: Amount::Bytes(bytes), repetitions: 1, ..Plan::new(profile.clone()) };
    let run = sim::run(&plan, &arm, 1, SourceSpec::Bulk).expect("a simulated arm");
    let acks = sim::record(&plan, &arm, 1, SourceSpec::Bulk).expect("a simulated arm");
    let samples: Vec<_> = acks.into_iter().map(|ack| Sample { ack, ..Sample::default() }).collect();
    let exit = run.exit.expect("an exit");
    let known = Known {
        recorded_exit: Some(ExitRecordRow {
            reason: exit.reason.name().into(),
            since_start_us: (exit.seconds * 1e6) as u64,
            window_bytes: exit.window_bytes,
            ..ExitRecordRow::default()
        }),
        ..Known::default()
    };
    let mut replay = Replay::new(Vec::new(), Options { regret: true, ..Options::default() });
    let all = Run { flow: 1, samples: &samples, verdicts: &[] };
    replay.feed(&all, &known, &Generations::default());
    let flow = replay.finish().into_iter().next().expect("the flow");
    (run.regret.expect("a flow that had the link to itself"), flow.regret, flow.given)
}

fn profile(text: &str) -> Profile {
    Profile::parse(text, "test.toml").expect("a profile")
}

fn geo() -> Profile {
    profile(include_str!("../../profiles/geo.toml"))
}

/// Rounds within which an estimate and the link agree. From a little below what a path of short rounds holds, the
/// link carries almost its rate for several before it carries enough.
fn rounds(profile: &Profile, bdp: f64) -> u64 {
    if profile.name == "terrestrial" && (0.75..1.0).contains(&bdp) { 4 } else { 1 }
}

#[test]
fn a_flow_that_fills_its_path_finds_what_its_exit_cost() {
    let terrestrial = profile(include_str!("../../profiles/terrestrial.toml"));
    for (profile, bytes) in [(geo(), 900_000_000), (terrestrial, 200_000_000)] {
        let round_us = profile.link.base_rtt_us();
        for bdp in [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.2, 1.5, 1.9, 2.5, 4.0] {
            let (LinkRegret { cost: truth, at_least }, estimate) = costs(&profile, bdp, bytes);
            let estimate = estimate.expect("rounds that the window limited");
            let both = format!("{} at {bdp}: {truth:?}, {estimate:?}", profile.name);
            assert!(!at_least, "{both}");
            assert!((estimate.window_to_bdp / truth.window_to_bdp - 1.0).abs() < 0.015, "{both}");
            // A round is about its resolution.
            let fine_us = round_us * rounds(&profile, bdp);
            assert!(estimate.early_us.abs_diff(truth.early_us) < fine_us, "{both}");
            let [queue_us, found_us] = [truth, estimate].map(|cost| cost.queue_us.expect("an RTT"));
            // Further on losses make a peak between the ends of rounds.
            assert!(bdp > 2.5 || found_us.abs_diff(queue_us) < round_us / 4, "{both}");
            assert_eq!(truth.early_us == 0, truth.window_to_bdp >= 1.0, "{both}");
        }
    }
}

#[test]
fn what_an_exit_would_have_cost_is_what_it_costs_where_it_is_made() {
    let terrestrial = profile(include_str!("../../profiles/terrestrial.toml"));
    for (profile, bytes) in [(geo(), 900_000_000), (terrestrial, 200_000_000)] {
        // Of a flow that leaves at the path's window, as another algorithm might.
        let (.., given) = costs_and_given(&profile, 1.0, bytes);
        let given = given.expect("rounds that the window limited");
        for bdp in [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0, 1.5] {
            let (LinkRegret { cost: truth, .. }, _) = costs(&profile, bdp, bytes);
            let window_bytes = (truth.window_to_bdp * given.window_bytes as f64) as u64;
            let exit = Exit {
                ack: 1,
                reason: ExitReason::Algorithm,
                at_us: 0,
                since_start_us: 0,
                acknowledged_bytes: 0,
                cwnd_segments: (window_bytes / 1448) as u32,
                window_bytes,
                in_flight_segments: 0,
                rtt_us: 0,
                min_rtt_us: 0,
                target_segments: None,
                ssthresh_segments: None,
            };
            let would = given.regret_of(&exit);
            let both = format!("{} at {bdp}: {truth:?}, {would:?}", profile.name);
            let (off_us, round_us) = (would.early_us.abs_diff(truth.early_us), profile.link.base_rtt_us());
            // Looks at the link are 10 ms apart.
            let fine_us = round_us * rounds(&profile, bdp) + 10_000;
            assert!(off_us < fine_us || off_us < truth.early_us / 5, "{both}");
            assert_eq!(would.early_us == 0, truth.early_us == 0, "{both}");
        }
    }
}

#[test]
fn what_a_flow_that_ended_before_could_not_find_the_link_shows_at_least() {
    let (LinkRegret { cost: truth, at_least }, estimate) = costs(&geo(), 0.25, 80_000_000);
    let estimate = estimate.expect("rounds that the window limited");
    assert!(at_least);
    assert!(estimate.window_to_bdp > 1.5 * truth.window_to_bdp, "{truth:?}, {estimate:?}");
    assert!(estimate.early_us < truth.early_us, "{truth:?}, {estimate:?}");
}

#[test]
fn who_shares_the_link_has_no_regret_against_it() {
    let bulk = SourceSpec::Bulk;
    let plan = Plan { amount: Amount::Bytes(1_000_000), flows: 2, repetitions: 1, ..Plan::new(geo()) };
    let run = sim::run(&plan, &Arm::stock("cubic"), 1, bulk).expect("a simulated arm");
    assert!(run.exit.is_some() && run.regret.is_none(), "{:?}", run.regret);
}
