// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The first N bytes over GEO, with HyStart and without.

use super::geo_download::{OBJECTS, trial};
use crate::Claim;
use onramp_lab::figure::Dash;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence};

pub(super) const CLAIM: Claim = Claim {
    id: "geo-objects",
    source: "Ataei Kachooei et al. 2022, figure 4; Peters et al. 2021",
    statement: "1 MB takes 50 % longer with HyStart, larger objects up to twice as long.",
    trials: || vec![trial()],
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (on, off) = (evidence.arm("geo", "cubic")?, evidence.arm("geo", "plain")?);
    let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for bytes in OBJECTS {
        let (on, off) = (on.object(bytes)?, off.object(bytes)?);
        let megabytes = bytes as f64 / 1e6;
        with.push((megabytes, on));
        without.push((megabytes, off));
        ratios.push((megabytes, on / off));
    }
    let of = |megabytes: f64| {
        ratios.iter().find(|(size, _)| *size == megabytes).map_or(f64::NAN, |(_, ratio)| *ratio)
    };
    let largest = ratios.iter().fold(0.0, |most: f64, (_, ratio)| most.max(*ratio));
    let source = |megabytes: f64| match megabytes {
        1.0 => "1.5",
        5.0 => "2 (Peters et al. 2021)",
        _ => "up to 2",
    };
    let comparand = |(size, ratio): &(f64, f64)| {
        Comparand::new(format!("{size} MB, HyStart on over off"), source(*size), *ratio, 2)
    };
    let panel = curves(
        "Time to download the first N bytes",
        "MB",
        "seconds",
        vec![("HyStart on".into(), with, Dash::Solid), ("HyStart off".into(), without, Dash::Solid)],
    );
    Ok(Evaluation {
        comparands: ratios.iter().map(comparand).collect(),
        checks: vec![
            Check::between("1 MB, HyStart on over off (50 % longer)", of(1.0), 1.2, 2.0),
            Check::between("largest ratio of all sizes (up to 2, within a half)", largest, 1.5, 3.0),
            Check::at_least(
                "50 MB over 1 MB, ratio of the ratios (grows with the size)",
                of(50.0) / of(1.0),
                1.0,
            ),
        ],
        figure: figure("Objects over GEO", vec![panel]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::experiment::{Measures, ObjectTime, Run};
    use onramp_lab::question::testing::{add, run};

    fn objects(time: impl Fn(f64) -> f64) -> Run {
        let object = |bytes: &u64| ObjectTime {
            bytes: *bytes,
            seconds: Some(time(*bytes as f64 / 1e6)),
            utilization: None,
        };
        let objects = OBJECTS.iter().map(object).collect();
        Run { measures: Measures { objects, ..Measures::default() }, ..run(30.0, 0) }
    }

    #[test]
    fn ratios_decide() {
        let evaluate = |on: fn(f64) -> f64| {
            let mut evidence = Evidence::default();
            add(
                &mut evidence,
                "geo",
                vec![("cubic", objects(on)), ("plain", objects(|size| 3.0 + size / 10.0))],
            );
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate(|size| 4.5 + size / 4.0), [""; 0]);
        // As fast as without.
        assert_eq!(evaluate(|size| 3.0 + size / 10.0).len(), 2);
    }
}
