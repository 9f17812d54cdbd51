//! search against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::model::{Model, number};
use common::random::Random;
use common::settings::Settings;
use common::traffic::plausible_acks;
use onramp_algorithm::{Flow, outcome};

/// Sequences of ACKs, each with its own parameters.
const SEQUENCES: u64 = 100_000;
/// ACKs in each.
const LENGTH: usize = 60;

/// One sequence. Parameters change and slow start begins anew in mid-flow. Returns how many ACKs had each outcome.
fn compare(seed: u64, checks: [u32; 3], seen: &mut [u64; outcome::MAX]) {
    let mut random = Random(seed);
    let settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::new(settings);
    let acks = plausible_acks(&mut random, LENGTH);
    for (number, ack) in acks.iter().enumerate() {
        match random.below(100) {
            0 => {
                flow.restart();
                model.restart();
            }
            1 => {
                model.settings = Settings::random(&mut random);
                flow.tune(model.settings.parameters());
            }
            2 => {
                assert_eq!(flow.on_loss(ack, 77), 77);
                model.on_loss();
            }
            _ => {}
        }
        let (ours, expected) = (flow.on_ack(ack), model.on_ack(ack));
        assert_eq!(ours, expected, "verdict on ACK {number}, seed {seed}: {ack:?} {:?}", model.settings);
        // The norm moves with a check only; to read it costs more than all else.
        if checks.contains(&ours.outcome) || number % 16 == 0 || number == LENGTH - 1 {
            let norm = u64::from(flow.export("norm_pct")[0]);
            assert_eq!(norm, model.norm, "norm on ACK {number}, seed {seed}: {ack:?} {:?}", model.settings);
        }
        seen[ours.outcome as usize] += 1;
    }
}

#[test]
fn search_agrees_with_the_model() {
    let first: u64 =
        std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_101);
    println!("seeds {first}..{}", first + SEQUENCES);
    let checks = [outcome::EXIT, outcome::BELOW_THRESHOLD, number("unconfirmed")];
    let threads: Vec<_> = (0..4)
        .map(|part| {
            std::thread::spawn(move || {
                let mut seen = [0; outcome::MAX];
                (first + part..first + SEQUENCES)
                    .step_by(4)
                    .for_each(|seed| compare(seed, checks, &mut seen));
                seen
            })
        })
        .collect();
    let mut seen = [0; outcome::MAX];
    for thread in threads {
        let part = thread.join().expect("a thread that agrees");
        seen.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
    // The sequences reach everything that search can answer, each often enough to mean something.
    let search = onramp_algorithm::find("search").unwrap();
    for (number, outcome) in search.outcomes().enumerate().filter(|(_, outcome)| !outcome.name.is_empty()) {
        println!("{:20} {}", outcome.name, seen[number]);
        assert!(outcome.name == "grow" || seen[number] > 2_000, "{} {}", outcome.name, seen[number]);
    }
}
