// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The source's throughputs, by the source's TCP: Tahoe, which starts anew after every loss.

use super::{MARGIN, tahoe};
use crate::Claim;
use crate::small_buffer::{AVAILABLE, packets_per_second};
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence};

const TRIAL: &str = "early-loss-tahoe";

/// Label, arm, and the source's packets per second.
const ARMS: [(&str, &str, f64); 5] = [
    ("standard", "plain:base=tahoe", 161.0),
    ("γ = 0.34", "threshold:gamma=fixed:gamma_pct=34:base=tahoe", 172.0),
    ("γ = 0.2", "threshold:gamma=fixed:gamma_pct=20:base=tahoe", 153.0),
    ("spaced at 440 pkt/s", "spacing:rate_bytes_per_s=225280:exit_pct=0:base=tahoe", 195.0),
    ("spaced at 300 pkt/s", "spacing:rate_bytes_per_s=153600:exit_pct=0:base=tahoe", 195.0),
];

pub(crate) const CLAIM: Claim = Claim {
    id: "early-loss",
    source: "Barakat et al. 1999, figures 5 to 9",
    statement: "Tahoe over a small buffer reaches 161 packets per second, 60.5 % of what is available; 172 with a threshold of 0.34 \
                of the window at loss, 153 with less than a quarter, and 195 with packets spaced at 440 or at 300 per second.",
    trials: || vec![tahoe::<40>(TRIAL, &ARMS.map(|(_, arm, _)| arm))],
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut each, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, arm, source) in ARMS {
        let arm = evidence.arm(TRIAL, arm)?;
        let rate = arm.mean(packets_per_second);
        comparands.push(Comparand::new(format!("{name}, packets/s"), format!("{source}"), rate, 1));
        let lost = arm.mean(|run| run.queue_drops as f64);
        comparands.push(Comparand::new(format!("{name}, packets dropped"), "", lost, 0));
        let what = format!("{name}, packets/s over the source's {source}");
        checks.push(Check::between(what, rate / source, 1.0 - MARGIN, 1.0 + MARGIN));
        each.push((name.to_owned(), arm.each(packets_per_second)));
        rates.push(rate);
    }
    let [standard, better, worse, fast, slow] = rates[..] else {
        return Err(NoEvidence::Other("results of all five arms"));
    };
    comparands.push(Comparand::new("standard, share of what is available", "0.605", standard / AVAILABLE, 3));
    checks.extend([
        Check::at_least("throughput, γ = 0.34 over standard", better / standard, 1.0),
        Check::at_most("throughput, γ = 0.2 over standard", worse / standard, 1.0),
        Check::at_least("throughput, spaced at 440 over γ = 0.34", fast / better, 1.0),
        Check::between("throughput, spaced at 300 over 440", slow / fast, 1.0 - MARGIN, 1.0 + MARGIN),
    ]);
    Ok(Evaluation {
        comparands,
        checks,
        figure: figure(
            "Tahoe over a small buffer",
            vec![columns("Throughput of long connections", "packets per second", &each)],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_buffer::PAYLOAD_BYTES;
    use crate::testing::failing;
    use onramp_lab::experiment::Run;
    use onramp_lab::question::testing::{add, run};

    fn evidence(rates: [f64; 5]) -> Evidence {
        let mut evidence = Evidence::default();
        let of = |rate: f64| Run { goodput_bps: rate * 8.0 * PAYLOAD_BYTES, ..run(200.0, 0) };
        add(
            &mut evidence,
            TRIAL,
            ARMS.iter().zip(rates).map(|((_, arm, _), rate)| (*arm, of(rate))).collect(),
        );
        evidence
    }

    #[test]
    fn the_sources_figures_hold_within_5_percent_and_others_do_not() {
        assert_eq!(failing(&CLAIM, &evidence([161.0, 172.0, 153.0, 195.0, 195.0])), [""; 0]);
        assert_eq!(failing(&CLAIM, &evidence([154.0, 180.0, 146.0, 187.0, 187.0])), [""; 0]);
        assert_eq!(failing(&CLAIM, &evidence([176.0, 172.0, 153.0, 195.0, 195.0])).len(), 2);
        assert_eq!(failing(&CLAIM, &evidence([161.0, 172.0, 153.0, 195.0, 165.0])).len(), 2);
    }
}
