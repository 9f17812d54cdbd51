//! hystartpp against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::hystartpp_model::{Model, Settings};
use common::random::Random;
use common::rounds::slow_start_acks;
use onramp_algorithm::{Flow, outcome};

/// Sequences of ACKs, each with its own parameters.
const SEQUENCES: u64 = 100_000;
/// ACKs in each.
const LENGTH: usize = 80;

/// One sequence. Parameters change and slow start begins anew in mid-flow. Counts outcomes.
fn compare(seed: u64, seen: &mut [u64; outcome::MAX]) {
    let mut random = Random(seed);
    let settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::new(settings);
    for (number, ack) in slow_start_acks(&mut random, LENGTH).iter().enumerate() {
        match random.below(200) {
            0 => {
                flow.restart();
                model.restart();
            }
            // The divisor stays: how much of a segment is left over means nothing under another.
            1 => {
                let css_growth_divisor = model.settings.css_growth_divisor;
                model.settings = Settings { css_growth_divisor, ..Settings::random(&mut random) };
                flow.tune(model.settings.parameters());
            }
            2 => assert_eq!(flow.on_loss(ack, 77), 77),
            _ => {}
        }
        let (ours, expected) = (flow.on_ack(ack), model.on_ack(ack));
        assert_eq!(ours, expected, "verdict on ACK {number}, seed {seed}: {ack:?} {:?}", model.settings);
        seen[ours.outcome as usize] += 1;
    }
    let exports = ["phase", "css_entries", "css_rounds"].map(|name| flow.export(name)[0]);
    let expected = [u32::from(model.conservative()), model.entries, model.rounds_in_css];
    assert_eq!(exports, expected, "phase, entries and rounds, seed {seed}");
}

#[test]
fn hystartpp_agrees_with_the_model() {
    let first: u64 =
        std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_301);
    println!("seeds {first}..{}", first + SEQUENCES);
    let mut seen = [0; outcome::MAX];
    (first..first + SEQUENCES).for_each(|seed| compare(seed, &mut seen));
    // The sequences reach everything that hystartpp can answer, each often enough to mean something.
    let hystartpp = onramp_algorithm::find("hystartpp").unwrap();
    for (number, outcome) in hystartpp.outcomes().enumerate().filter(|(_, outcome)| !outcome.name.is_empty())
    {
        println!("{:20} {}", outcome.name, seen[number]);
        let never = ["grow", "app_limited"].contains(&outcome.name);
        assert!(never || seen[number] > 2_000, "{} {}", outcome.name, seen[number]);
    }
}
