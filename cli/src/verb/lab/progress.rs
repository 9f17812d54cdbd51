//! How far a series of runs is, on stderr.

use std::time::Instant;

use onramp_lab::experiment::{Progress, Run};

use crate::output::Output;
use crate::units;

/// Time left, from what runs were expected to take and what they have taken.
pub(super) struct Clock {
    begin: Instant,
    expected: f64,
    done: f64,
}

impl Clock {
    /// For runs that are expected to take so many seconds together.
    pub fn start(expected: f64) -> Self {
        Self { begin: Instant::now(), expected, done: 0.0 }
    }

    /// A run that was expected to take so many seconds is over.
    pub fn finish(&mut self, expected: f64) {
        self.done += expected;
    }

    fn left(&self) -> String {
        let pace = if self.done > 0.0 { self.begin.elapsed().as_secs_f64() / self.done } else { 1.0 };
        let seconds = (self.expected - self.done).max(0.0) * pace;
        format!("about {} left", units::show_us((seconds.ceil() * 1e6) as u64))
    }
}

/// Says that a run has begun or ended; `expected` is what each takes, seconds.
pub(super) fn show(progress: &Progress<'_>, expected: f64, clock: &mut Clock, output: &Output) {
    match progress {
        Progress::Started { index, total, arm, seed, .. } => {
            output.progress(&format!("[{}/{total}] {arm}, seed {seed} … ({})", index + 1, clock.left()));
        }
        Progress::Finished { index, total, attempt, arm, run, .. } => {
            if *attempt == 0 {
                clock.finish(expected);
            }
            output.progress(&format!("[{}/{total}] {arm}: {}", index + 1, outcome(run)));
        }
    }
}

fn outcome(run: &Run) -> String {
    let mut text = format!("{:.2} s, {} retransmitted", run.seconds, run.retransmitted_segments);
    if let Some(exit) = &run.exit {
        text += &format!(
            ", left slow start by {} after {:.2} s at {:.2} MB",
            exit.reason.name(),
            exit.seconds,
            exit.window_bytes as f64 / 1e6
        );
    }
    if let Some(competitor) = &run.competitor {
        text += &format!(", competitor kept {:.0} %", competitor.share * 100.0);
    }
    if let Some(why) = &run.invalid_reason {
        text += &format!("; INVALID: {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_pace() {
        let mut clock = Clock::start(100.0);
        assert_eq!(clock.left(), "about 100 s left");
        clock.begin -= std::time::Duration::from_secs(50);
        clock.finish(25.0);
        // Twice as slow as expected, and three quarters to go.
        assert!(clock.left().starts_with("about 2 min 3"), "{}", clock.left());
        clock.finish(80.0);
        assert_eq!(clock.left(), "about 0 us left");
    }
}
