//! ramp against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::differential::{Seen, assert_reached, compare, same, seeds};
use common::ramp_model::Model;

#[test]
fn ramp_agrees_with_the_model() {
    let mut seen = Seen::default();
    for seed in seeds(20_261_122) {
        compare(seed, &mut seen, |model: &mut Model, settings, answer| {
            let (name, mut expected) = model.on_ack(settings, answer.ack);
            expected.outcome = answer.verdict.outcome;
            same((answer.name(), answer.verdict), (name, expected))
        });
    }
    assert_reached("ramp", &seen, &["grow", "no_rtt_sample", "app_limited", "warming_up", "below_threshold"]);
}
