//! hystartpp against an independent model of it: the same verdict on every ACK of every sequence.

mod common;

use common::differential::{Seen, assert_reached, compare, same, seeds};
use common::hystartpp_model::Model;

#[test]
fn hystartpp_agrees_with_the_model() {
    let mut seen = Seen::default();
    for seed in seeds(20_260_301) {
        let (flow, model) = compare(seed, &mut seen, |model: &mut Model, _, answer| {
            same(answer.verdict, model.on_ack(answer.ack))
        });
        let exports = ["phase", "css_entries", "css_rounds"].map(|name| flow.export(name)[0]);
        let expected = [u32::from(model.conservative()), model.entries, model.rounds_in_css];
        assert_eq!(exports, expected, "phase, entries and rounds, seed {seed}");
    }
    assert_reached("hystartpp", &seen, &["grow", "app_limited"]);
}
