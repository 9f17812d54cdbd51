// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Bytes per flow.

use crate::Claim;
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, Footprint, NoEvidence};

/// `struct tcp_sock` with its `struct sock`, Chung et al. 2024.
const SOCKET_BYTES: f64 = 2_192.0;
/// Of Chung et al. 2024; CUBIC's include HyStart's 18.
const SOURCE: [(&str, &str); 4] = [
    ("CUBIC", "60 + 12 in ack_sample"),
    ("HyStart", "18 of CUBIC's"),
    ("SEARCH 2.0", "121"),
    ("BBR 1.0", "100 + 56 in rate_sample"),
];

pub(super) const CLAIM: Claim = Claim {
    id: "memory",
    source: "Chung et al. 2024, static memory footprint",
    statement: "SEARCH needs more than HyStart, and little compared with the socket's own 2192 bytes.",
    trials: Vec::new,
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    if evidence.footprints.is_empty() {
        return Err(NoEvidence::Other("sizes of the algorithms' states"));
    }
    let state = |name: &str| {
        let found = evidence.footprints.iter().find(|one| one.algorithm == name);
        found.map_or(f64::NAN, |one| one.state_bytes as f64)
    };
    let source = |name: &str| match name {
        "search" => "121",
        "hystart" => "18",
        _ => "",
    };
    let comparand = |one: &Footprint| Comparand {
        what: format!("{}: own state + what every flow has, bytes", one.algorithm),
        source: source(&one.algorithm).into(),
        ours: format!("{} + {}", one.state_bytes, one.header_bytes),
    };
    let published = SOURCE.iter().map(|(name, bytes)| Comparand {
        what: format!("{name} in the kernel, bytes"),
        source: (*bytes).into(),
        ours: String::new(),
    });
    let of = |one: &Footprint| (one.state_bytes + one.header_bytes) as f64;
    let largest = evidence.footprints.iter().map(of).fold(0.0, f64::max);
    let groups: Vec<_> =
        evidence.footprints.iter().map(|one| (one.algorithm.clone(), vec![of(one)])).collect();
    Ok(Evaluation {
        comparands: published.chain(evidence.footprints.iter().map(comparand)).collect(),
        checks: vec![
            Check::at_least("search over hystart, own state", state("search") / state("hystart"), 1.0),
            Check::at_most("search, own state over the socket", state("search") / SOCKET_BYTES, 0.25),
            Check::at_most("the largest of all, over the socket", largest / SOCKET_BYTES, 1.0),
        ],
        figure: figure("Bytes per flow", vec![columns("State and header", "bytes", &groups)]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;

    #[test]
    fn small_states_hold_and_large_ones_do_not() {
        let evidence = |search, hystart| Evidence {
            footprints: [("search", search), ("hystart", hystart)]
                .map(|(name, state_bytes)| Footprint {
                    algorithm: name.into(),
                    state_bytes,
                    header_bytes: 200,
                })
                .to_vec(),
            ..Evidence::default()
        };
        assert_eq!(failing(&CLAIM, &evidence(400, 100)), [""; 0]);
        assert_eq!(failing(&CLAIM, &evidence(90, 100)).len(), 1);
        assert_eq!(failing(&CLAIM, &evidence(2_000, 100)).len(), 2);
        assert_eq!(failing(&CLAIM, &evidence(400, 0)), [""; 0]);
    }
}
