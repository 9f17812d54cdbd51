// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which technologies fit into socket buffers.

use crate::Claim;
use onramp_lab::model::buffers::{self, DEFAULT_BYTES, Limit, Place, RECOMMENDED_BYTES, TECHNOLOGIES};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence};

pub(super) const CLAIM: Claim = Claim {
    id: "buffers-map",
    source: "Ataei Kachooei et al. 2022, figure 1",
    statement: "LEO and 4G lie inside Linux's default limit, GEO and 5G outside; all lie inside the recommended limit.",
    trials: Vec::new,
    evaluate,
};

fn evaluate(_: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (default, recommended) = (Limit { bytes: DEFAULT_BYTES }, Limit { bytes: RECOMMENDED_BYTES });
    let (mut comparands, mut checks) = (Vec::new(), Vec::new());
    for technology in &TECHNOLOGIES {
        let bdp = technology.largest.bdp_bytes() as f64;
        // Figure 1 compares the product with the whole buffer.
        let to_default = bdp / default.bytes as f64;
        let inside = if technology.inside_default { "inside" } else { "outside" };
        let place = match technology.place(default.bytes) {
            Place::Inside => "inside",
            Place::Across | Place::Outside => "outside",
        };
        comparands.push(Comparand {
            what: format!("{}: default limit", technology.name),
            source: inside.into(),
            ours: place.into(),
        });
        let what = format!("{}: largest BDP over the default limit ({inside})", technology.name);
        checks.push(if technology.inside_default {
            Check::at_most(what, to_default, 1.0)
        } else {
            Check { holds: to_default > 1.0, ..Check::at_least(what, to_default, 1.0) }
        });
        checks.push(Check::at_most(
            format!("{}: largest BDP over the recommended limit (inside)", technology.name),
            bdp / recommended.bytes as f64,
            1.0,
        ));
    }
    Ok(Evaluation { comparands, checks, figure: buffers::figure(default, recommended, None) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::evaluate;

    #[test]
    fn the_map_holds_and_its_checks_name_every_technology() {
        let evaluation = evaluate(&CLAIM, &Evidence::default());
        assert!(evaluation.holds(), "{evaluation:?}");
        assert_eq!(evaluation.checks.len(), 2 * TECHNOLOGIES.len());
    }
}
