// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Slow start over a small buffer: a smaller threshold after loss, and spaced packets.
//!
//! Barakat et al. 1999 simulates Tahoe, which starts anew after every loss; kernel TCP does so only after a timeout. Here Reno
//! with SACK stands for it: it repairs the losses of a slow start in about the time that Tahoe needs to come back to
//! its threshold (without SACK it repairs one in each round trip, 70 of them in 40 s). It does not start anew, so a
//! connection meets the small buffer in slow start once. Therefore throughputs are compared by order, not by value, and
//! losses of the first slow start are evaluated directly.

use super::small_buffer::{AVAILABLE, PAYLOAD_BYTES, packets_per_second, path};
use crate::Claim;
use onramp_lab::experiment::Amount;
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial, Valid};

const TRIAL: &str = "early-loss";
/// Label, arm, and the source's packets per second.
const ARMS: [(&str, &str, &str); 5] = [
    ("standard", "plain:base=reno", "161 (60.5 %)"),
    ("γ = 0.34", "threshold:gamma=fixed:gamma_pct=34:base=reno", "172"),
    ("γ = 0.2", "threshold:gamma=fixed:gamma_pct=20:base=reno", "153"),
    ("spaced at 440 pkt/s", "spacing:rate_bytes_per_s=225280:exit_pct=0:base=reno", "195"),
    ("spaced at 300 pkt/s", "spacing:rate_bytes_per_s=153600:exit_pct=0:base=reno", "195"),
];

pub(super) const CLAIM: Claim = Claim {
    id: "early-loss",
    source: "Barakat et al. 1999, figures 5 to 8",
    statement: "Slow start overflows a small buffer before the path is used. Spacing the packets uses the path best, a threshold \
                of 0.34 of the window at loss better than half of it, and one below a quarter worse.",
    trials: || {
        let arms = ARMS.map(|(_, arm, _)| arm);
        vec![Trial {
            adapt: path::<40>,
            amount: Amount::Seconds(120),
            repetitions: 5,
            quick: 1,
            ..Trial::new(TRIAL, "geo", &arms)
        }]
    },
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let mut arms = Vec::new();
    for (name, arm, source) in ARMS {
        arms.push((name, evidence.arm(TRIAL, arm)?, source));
    }
    let rate = |arm: Valid<'_>| arm.mean(packets_per_second);
    let rates: Vec<f64> = arms.iter().map(|(_, arm, _)| rate(*arm)).collect();
    let [standard, better, worse, fast, slow] = rates[..] else {
        return Err(NoEvidence::Other("results of all five arms"));
    };
    let window = |arm: Valid<'_>| arm.median_exit(|exit| exit.window_bytes as f64 / PAYLOAD_BYTES);
    let (standard_window, slow_window) = (window(arms[0].1)?, window(arms[4].1)?);
    // Equation (1): the window that the path holds.
    let holds = 40.0 * AVAILABLE / (AVAILABLE + 100.0) + 0.56 * AVAILABLE + 1.0;
    let mut comparands: Vec<_> = arms
        .iter()
        .map(|(name, arm, source)| Comparand::new(format!("{name}, pkt/s"), *source, rate(*arm), 0))
        .collect();
    comparands.push(Comparand::new(
        "standard, window at the first loss, packets",
        "75 to 150",
        standard_window,
        0,
    ));
    comparands.push(Comparand::new("spaced at 300 pkt/s, the same", "larger", slow_window, 0));
    let each = |value: &dyn Fn(Valid<'_>) -> Vec<f64>| {
        arms.iter().map(|(name, arm, _)| ((*name).to_owned(), value(*arm))).collect::<Vec<_>>()
    };
    let throughput = each(&|arm| arm.each(packets_per_second));
    let windows = each(&|arm| arm.exits(|exit| exit.window_bytes as f64 / PAYLOAD_BYTES));
    Ok(Evaluation {
        comparands,
        checks: vec![
            Check::at_most(
                "standard, window at the first loss over what the path holds",
                standard_window / holds,
                0.95,
            ),
            Check::at_least(
                "window at the first loss, spaced at 300 pkt/s over standard",
                slow_window / standard_window,
                1.1,
            ),
            Check::at_most("standard, share of what is available (not all)", standard / AVAILABLE, 0.9),
            Check::at_least("throughput, spaced at 300 pkt/s over standard", slow / standard, 1.0),
            Check::at_least("throughput, spaced at 440 pkt/s over standard", fast / standard, 1.0),
            Check::at_least("throughput, γ = 0.34 over standard", better / standard, 1.0),
            Check::at_least("throughput, γ = 0.34 over γ = 0.2", better / worse, 1.0),
            Check::at_most("throughput, γ = 0.2 over standard", worse / standard, 1.0),
        ],
        figure: figure(
            "Slow start over a small buffer",
            vec![
                columns("Throughput over two minutes", "packets per second", &throughput),
                columns("Window when slow start was left", "packets", &windows),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exit, failing};
    use onramp_lab::experiment::Run;
    use onramp_lab::question::testing::{add, run};

    fn evidence(figures: [(f64, f64); 5]) -> Evidence {
        let of = |(rate, window): (f64, f64)| Run {
            goodput_bps: rate * 8.0 * PAYLOAD_BYTES,
            exit: exit(3.0, (window * PAYLOAD_BYTES) as u64),
            ..run(120.0, 50)
        };
        let mut evidence = Evidence::default();
        let arms = ARMS.into_iter().zip(figures).map(|((_, arm, _), figure)| (arm, of(figure)));
        add(&mut evidence, TRIAL, arms.collect());
        evidence
    }

    #[test]
    fn the_sources_order_holds_and_another_does_not() {
        let source = [(161.0, 100.0), (172.0, 100.0), (153.0, 100.0), (195.0, 150.0), (195.0, 160.0)];
        assert_eq!(failing(&CLAIM, &evidence(source)), [""; 0]);
        let spacing_hurts = [(161.0, 100.0), (172.0, 100.0), (153.0, 100.0), (150.0, 100.0), (150.0, 100.0)];
        assert_eq!(failing(&CLAIM, &evidence(spacing_hurts)).len(), 3);
    }

    #[test]
    fn the_path_is_that_of_the_source() {
        assert!((AVAILABLE - 266.2).abs() < 0.1);
        let text = include_str!("../../../profiles/geo.toml");
        let mut profile = onramp_profiles::Profile::parse(text, "geo.toml").unwrap();
        path::<40>(&mut profile);
        profile.validate().unwrap();
        assert_eq!(profile.link.base_rtt_us(), 560_000);
    }
}
