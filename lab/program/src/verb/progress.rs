//! How far a series of runs is.

use std::time::{Duration, Instant};

use onramp_lab::experiment::{self, Progress, Run};

use crate::output::Output;
use crate::progress::{self, Resumes};

/// Time left, from what runs were expected to take and what they have taken.
pub(super) struct Clock {
    begin: Instant,
    expected: f64,
    done: f64,
    shown: progress::Progress,
}

impl Clock {
    /// For runs that are expected to take so many seconds together.
    pub fn start(expected: f64, resumes: Resumes, output: &Output) -> Self {
        let shown = progress::Progress::begin(output, "runs", resumes);
        Self { begin: Instant::now(), expected, done: 0.0, shown }
    }

    /// Says a line that stays.
    pub fn say(&self, line: &str) {
        self.shown.say(line);
    }

    /// A run that was expected to take so many seconds is over.
    fn finish(&mut self, expected: f64) {
        self.done += expected;
    }

    fn left(&self) -> Duration {
        let pace = if self.done > 0.0 { self.begin.elapsed().as_secs_f64() / self.done } else { 1.0 };
        Duration::from_secs_f64((self.expected - self.done).max(0.0) * pace)
    }
}

/// What the same command does after it was stopped: runs in virtual time are kept, unless they are to be made anew.
pub(super) fn resumes(clock: &experiment::Clock) -> Resumes {
    match clock {
        experiment::Clock::Virtual(guests) if !guests.fresh => Resumes::Yes,
        _ => Resumes::No,
    }
}

/// Says that a run has begun or ended; `expected` is what each takes, seconds.
pub(super) fn show(progress: &Progress<'_>, expected: f64, clock: &mut Clock) {
    match progress {
        Progress::Started { index, total, arm, seed, .. } => {
            clock.shown.set(&format!("[{}/{total}] {arm}, seed {seed}", index + 1), Some(clock.left()));
        }
        Progress::Finished { index, total, attempt, arm, run, .. } => {
            if *attempt == 0 {
                clock.finish(expected);
            }
            clock.say(&format!("[{}/{total}] {arm}: {}", index + 1, outcome(run)));
        }
    }
}

fn outcome(run: &Run) -> String {
    let bound = if run.cut_off { "≥ " } else { "" };
    let mut text =
        format!("{bound}{:.2} s, {bound}{} retransmitted", run.seconds, run.retransmitted_segments);
    if let Some(exit) = &run.exit {
        text += &format!(
            ", exited slow start by {} after {:.2} s at {:.2} MB",
            exit.reason.name(),
            exit.seconds,
            exit.window_bytes as f64 / 1e6
        );
    }
    if let Some(competitor) = &run.competitor {
        text += &format!(", competitor kept {:.0} %", competitor.share * 100.0);
    }
    if let Some(why) = &run.invalid_reason {
        text += &format!("; {}{why}", if run.cut_off { "" } else { "INVALID: " });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_pace() {
        let mut clock = Clock::start(100.0, Resumes::No, &Output::plain());
        assert_eq!(clock.left().as_secs(), 100);
        clock.begin -= Duration::from_secs(50);
        clock.finish(25.0);
        // Twice as slow as expected, and three quarters to go.
        assert!((150..160).contains(&clock.left().as_secs()), "{:?}", clock.left());
        clock.finish(80.0);
        assert_eq!(clock.left(), Duration::ZERO);
    }
}
