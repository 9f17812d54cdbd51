//! hystart against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::hystart_model::{Model, Settings};
use common::random::Random;
use common::rounds::slow_start_acks;
use onramp_algorithm::{Flow, outcome};

/// Sequences of ACKs, each with its own parameters.
const SEQUENCES: u64 = 100_000;
/// ACKs in each.
const LENGTH: usize = 80;

/// One sequence. Parameters change and slow start begins anew in mid-flow. Counts outcomes, and exits by detector.
fn compare(seed: u64, seen: &mut [u64; outcome::MAX], detected: &mut [u64; 4]) {
    let mut random = Random(seed);
    let settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::new(settings);
    for (number, ack) in slow_start_acks(&mut random, LENGTH).iter().enumerate() {
        match random.below(100) {
            0 => {
                flow.restart();
                model.restart();
            }
            1 => {
                model.settings = Settings::random(&mut random);
                flow.tune(model.settings.parameters());
            }
            2 => assert_eq!(flow.on_loss(ack, 77), 77),
            _ => {}
        }
        let (ours, expected) = (flow.on_ack(ack), model.on_ack(ack));
        assert_eq!(ours, expected, "verdict on ACK {number}, seed {seed}: {ack:?} {:?}", model.settings);
        if ours.outcome == outcome::EXIT {
            let by = flow.export("detected")[0];
            assert_eq!(by, model.detected, "detector on ACK {number}, seed {seed}: {ack:?}");
            detected[by as usize] += 1;
        }
        seen[ours.outcome as usize] += 1;
    }
}

#[test]
fn hystart_agrees_with_the_model() {
    let first: u64 =
        std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_201);
    println!("seeds {first}..{}", first + SEQUENCES);
    let (mut seen, mut detected) = ([0; outcome::MAX], [0; 4]);
    (first..first + SEQUENCES).for_each(|seed| compare(seed, &mut seen, &mut detected));
    // The sequences reach everything that hystart can answer, each often enough to mean something.
    println!("exits by train {}, delay {}, both {}", detected[1], detected[2], detected[3]);
    assert!(detected[1..].iter().all(|count| *count > 2_000), "{detected:?}");
    let hystart = onramp_algorithm::find("hystart").unwrap();
    for (number, outcome) in hystart.outcomes().enumerate().filter(|(_, outcome)| !outcome.name.is_empty()) {
        println!("{:20} {}", outcome.name, seen[number]);
        assert!(outcome.name == "app_limited" || seen[number] > 2_000, "{} {}", outcome.name, seen[number]);
    }
}
