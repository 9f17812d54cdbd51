//! hystart against an independent model of it: the same verdict on every ACK of every sequence, by the same detector.

mod common;

use common::differential::{Seen, assert_reached, compare, same, seeds};
use common::hystart_model::Model;
use onramp_algorithm::outcome;

#[test]
fn hystart_agrees_with_the_model() {
    let (mut seen, mut detected) = (Seen::default(), [0; 4]);
    for seed in seeds(20_260_201) {
        compare(seed, &mut seen, |model: &mut Model, _, answer| {
            same(answer.verdict, model.on_ack(answer.ack))?;
            if answer.verdict.outcome == outcome::EXIT {
                let by = answer.flow.export("detected")[0];
                same(("detector", by), ("detector", model.detected))?;
                detected[by as usize] += 1;
            }
            Ok(())
        });
    }
    println!("exits by train {}, delay {}, both {}", detected[1], detected[2], detected[3]);
    assert!(detected[1..].iter().all(|count| *count > 2_000), "{detected:?}");
    assert_reached("hystart", &seen, &["app_limited"]);
}
