//! search against an independent model of it: the same verdict on every ACK of every sequence, with pacing off and on,
//! and the same norm.

mod common;

use common::differential::{Seen, assert_reached, compare, same, seeds};
use common::model::{LENGTH, Model};
use common::rounds::outcome_number;
use onramp_algorithm::outcome;

#[test]
fn search_agrees_with_the_model() {
    let seeds = seeds(20_260_101);
    let checks = [outcome::EXIT, outcome::BELOW_THRESHOLD, outcome_number("search", "unconfirmed")];
    let threads: Vec<_> = (0..4)
        .map(|part| {
            let seeds = seeds.clone().skip(part).step_by(4);
            std::thread::spawn(move || {
                let (mut seen, mut paced) = (Seen::default(), 0);
                for seed in seeds {
                    compare(seed, &mut seen, |model: &mut Model, _, answer| {
                        same(answer.verdict, model.on_ack(answer.ack))?;
                        paced += u64::from(model.settings.pacing.and(model.policy.paced_at()).is_some());
                        // The norm moves with a check only; to read it costs more than all else.
                        let check = checks.contains(&answer.verdict.outcome);
                        if check || answer.number % 16 == 0 || answer.number == LENGTH - 1 {
                            let norm = u64::from(answer.flow.export("norm_pct")[0]);
                            same(("norm", norm), ("norm", model.norm))?;
                        }
                        Ok(())
                    });
                }
                (seen, paced)
            })
        })
        .collect();
    let (mut seen, mut paced) = (Seen::default(), 0);
    for thread in threads {
        let (part, paced_here) = thread.join().expect("a thread that agrees");
        paced += paced_here;
        seen.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
    assert_reached("search", &seen, &["grow"]);
    assert!(paced > 20_000, "ACKs whose answer is paced: {paced}");
}
