//! spacing against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::pair_traffic::paired_acks;
use common::random::Random;
use common::spacing_model::{Model, Settings};
use onramp_algorithm::{Flow, find, outcome};

/// Sequences of ACKs, each with its own parameters.
const SEQUENCES: u64 = 100_000;

/// One sequence. Parameters change and slow start begins anew in mid-flow.
fn compare(seed: u64, seen: &mut [u64; outcome::MAX]) {
    let mut random = Random(seed);
    let mut settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::default();
    let mut ssthresh = u32::MAX;
    let length = if random.once_in(100) { 1_500 } else { 60 };
    for (number, mut ack) in paired_acks(&mut random, length).into_iter().enumerate() {
        match random.below(100) {
            0 => {
                flow.restart();
                model = Model::default();
            }
            1 => {
                settings = Settings::random(&mut random);
                flow.tune(settings.parameters());
            }
            2 => assert_eq!(flow.on_loss(&ack, 77), 77),
            3 => ssthresh = 2 + (random.below(100_000) >> random.below(16)) as u32,
            4 => ssthresh = u32::MAX,
            _ => {}
        }
        ack.ssthresh = ssthresh;
        let verdict = flow.on_ack(&ack);
        let (name, mut expected) = model.on_ack(&settings, &ack);
        expected.outcome = verdict.outcome;
        let outcome = flow.algorithm().outcome_name(verdict.outcome);
        assert_eq!((outcome, verdict), (name, expected), "ACK {number}, seed {seed}: {ack:?} {settings:?}");
        seen[verdict.outcome as usize] += 1;
        if verdict.ssthresh != 0 {
            ssthresh = verdict.ssthresh;
        }
    }
}

#[test]
fn spacing_agrees_with_the_model() {
    let first: u64 =
        std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_301);
    println!("seeds {first}..{}", first + SEQUENCES);
    let mut seen = [0; outcome::MAX];
    for seed in first..first + SEQUENCES {
        compare(seed, &mut seen);
    }
    for name in ["unspaced", "spaced", "aimed", "exit", "threshold_kept"] {
        let number = find("spacing").unwrap().outcomes().position(|outcome| outcome.name == name).unwrap();
        println!("{name:20} {}", seen[number]);
        assert!(seen[number] > 2_000, "{name} {}", seen[number]);
    }
}
