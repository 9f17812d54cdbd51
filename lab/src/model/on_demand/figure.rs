// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Figures 3 and 4 of Gotta et al. 2006 from the closed forms.

use super::{Startup, best_factor};
use crate::figure::{Axis, Corner, Dash, Figure, Line, Mark, Panel};
use crate::link::RangeError;

/// Points of a curve.
const POINTS: u32 = 300;
/// The factors of figure 4 go from 1 to this one.
const LAST_FACTOR: f64 = 8.0;
const SECONDS: &str = "completion time, seconds";

/// Completion time against volume for each group of start-ups (one initial window each), with saturation marked, and
/// below it against the factor for each of `volumes` (packets), everything else as in `by_factor`.
///
/// # Errors
/// [`RangeError`] if no start-up is given.
pub fn figure(groups: &[Vec<Startup>], by_factor: Startup, volumes: &[u64]) -> Result<Figure, RangeError> {
    let Some(first) = groups.iter().flatten().next() else {
        return Err(RangeError::new("startups", "none", "expected at least one"));
    };
    Ok(Figure {
        title: "Slow start over bandwidth on demand (Gotta et al. 2006, figures 3 and 4)".into(),
        panels: vec![against_volume(groups, first.factor()), against_factor(by_factor, volumes)?],
    })
}

fn against_volume(groups: &[Vec<Startup>], factor: f64) -> Panel {
    let all = || groups.iter().flatten();
    // Fewer packets than the initial window take no time that the model knows.
    let least = all().map(|one| one.initial_window).fold(1.0, f64::max);
    let most = all().map(Startup::sent_at_saturation_packets).fold(least * 10.0, f64::max) * 3.0;
    let volumes: Vec<f64> =
        (0..=POINTS).map(|at| least * (most / least).powf(f64::from(at) / f64::from(POINTS))).collect();
    let (mut lines, mut marks) = (Vec::new(), Vec::new());
    for (group, dash) in groups.iter().zip([Dash::Solid, Dash::Long, Dash::Short].into_iter().cycle()) {
        for (colour, startup) in group.iter().enumerate() {
            let completion = |packets: &f64| Some((*packets, startup.completion_seconds(*packets)?));
            lines.push(Line {
                name: format!("W0 {}, rho {:.2}", startup.initial_window_packets(), startup.delay_ratio()),
                points: volumes.iter().filter_map(completion).collect(),
                colour,
                dash,
            });
            let saturated = startup.sent_at_saturation_packets();
            if startup.holds() && saturated >= least {
                let name = if marks.is_empty() { "saturation" } else { "" };
                marks.push(Mark { name: name.into(), at: (saturated, startup.saturation_seconds()), colour });
            }
        }
    }
    Panel {
        title: format!("Volume of data, k = {factor}"),
        x: Axis { label: "packets".into(), from: least, to: most, log: true },
        y: seconds(highest(&lines) * 1.05),
        lines,
        regions: Vec::new(),
        marks,
        intervals: Vec::new(),
        legend: Corner::UpperLeft,
    }
}

fn against_factor(startup: Startup, volumes: &[u64]) -> Result<Panel, RangeError> {
    let factors = (0..=POINTS).map(|at| 1.0 + (LAST_FACTOR - 1.0) * f64::from(at) / f64::from(POINTS));
    let startups = factors.map(|factor| startup.with_factor(factor)).collect::<Result<Vec<_>, _>>()?;
    let line = |(colour, packets): (usize, &u64)| Line {
        name: format!("{packets} packets"),
        points: startups
            .iter()
            .filter_map(|one| Some((one.factor(), one.completion_seconds(*packets as f64)?)))
            .collect(),
        colour,
        dash: Dash::Solid,
    };
    let mut lines: Vec<_> = volumes.iter().enumerate().map(line).collect();
    let top = highest(&lines);
    let best = best_factor(startup.delay_ratio());
    lines.push(Line {
        name: format!("k = exp(T s2) at {best:.2}"),
        points: vec![(best, 0.0), (best, top)],
        colour: 6,
        dash: Dash::Long,
    });
    Ok(Panel {
        title: format!(
            "Proportionality factor, W0 {}, rho {:.2}",
            startup.initial_window_packets(),
            startup.delay_ratio()
        ),
        x: Axis { label: "k".into(), from: 1.0, to: LAST_FACTOR, log: false },
        // Room for the legend.
        y: seconds(top * 1.4),
        lines,
        regions: Vec::new(),
        marks: Vec::new(),
        intervals: Vec::new(),
        legend: Corner::UpperLeft,
    })
}

fn seconds(to: f64) -> Axis {
    Axis::from_zero(SECONDS, to)
}

/// The largest value of these curves, above 0.
fn highest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| &line.points).fold(1e-3, |top, (_, value)| top.max(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_and_marks_lie_within_their_panels() {
        for capacity in [3.0, 176.0, 1e7] {
            let startup = |delay, window| Startup::new(0.75, delay, 1.0, window, capacity).unwrap();
            let groups = [1, 2].map(|window| vec![startup(0.0, window), startup(1.296, window)]);
            let figure = figure(&groups, startup(1.296, 1), &[10, 100]).unwrap();
            assert_eq!((figure.panels[0].lines.len(), figure.panels[1].lines.len()), (4, 3));
            for panel in &figure.panels {
                let points = panel.lines.iter().flat_map(|line| &line.points);
                for (x, y) in points.chain(panel.marks.iter().map(|mark| &mark.at)) {
                    assert!(*x >= panel.x.from && *x <= panel.x.to * (1.0 + 1e-9), "{capacity}: {x}");
                    assert!((0.0..=panel.y.to).contains(y), "{capacity}: {y}");
                }
            }
        }
        assert!(figure(&[], Startup::new(0.75, 0.0, 1.0, 1, 176.0).unwrap(), &[1]).is_err());
    }

    #[test]
    fn each_curve_has_its_saturation() {
        let startup = Startup::new(0.75, 1.296, 1.0, 1, 176.0).unwrap();
        let figure = figure(&[vec![startup, startup]], startup, &[10]).unwrap();
        let marks = &figure.panels[0].marks;
        assert_eq!((marks.len(), marks[0].name.as_str(), marks[1].name.as_str()), (2, "saturation", ""));
    }
}
