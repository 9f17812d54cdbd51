//! What a flow did over time, in bounded memory.

/// Points that are kept.
const POINTS_MAX: usize = 512;
/// Between two points at first, microseconds.
const STEP_US: u64 = 10_000;

/// A flow at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    /// Monotonic clock, microseconds.
    pub at_us: u64,
    /// Segments.
    pub cwnd: u32,
    /// Segments; `None`: no threshold yet.
    pub ssthresh: Option<u32>,
    /// Segments.
    pub in_flight: u32,
    /// Microseconds; `None`: no sample.
    pub rtt_us: Option<u32>,
    /// Delivery rate of the newest round, bits per second; `None`: no round is over.
    pub rate_bps: Option<u64>,
}

/// Points of the flow's whole life, evenly: when there is no room for more, every second one goes, and from then on
/// they are taken half as often.
#[derive(Clone, Debug)]
pub(super) struct History {
    points: Vec<Point>,
    step_us: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { points: Vec::new(), step_us: STEP_US }
    }
}

impl History {
    /// Adds a point, unless the last is too near.
    pub fn add(&mut self, point: Point) {
        if self.points.last().is_some_and(|last| point.at_us < last.at_us + self.step_us) {
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step_us *= 2;
        }
        self.points.push(point);
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_points_stays_bounded_and_spans_all_of_the_time() {
        let mut history = History::default();
        for step in 0..100_000 {
            history.add(Point { at_us: step * 5_000, ..Point::default() });
            assert!(history.points().len() <= POINTS_MAX);
        }
        let points = history.points();
        assert!(points.len() > POINTS_MAX / 4, "{}", points.len());
        assert_eq!(points[0].at_us, 0);
        assert!(points[points.len() - 1].at_us > 490_000_000);
        let steps: Vec<u64> = points.windows(2).map(|pair| pair[1].at_us - pair[0].at_us).collect();
        assert!(steps.iter().max() <= steps.iter().min().map(|least| least * 3).as_ref(), "{steps:?}");
    }
}
