//! An algorithm that only wants something.

use onramp_algorithm::shell::Policy;
use onramp_algorithm::{Ack, Verdict};

/// Paces at this rate, bytes per second, and leaves with this threshold, if either is not 0.
#[derive(Default)]
pub struct Wants {
    pub rate: u64,
    pub ssthresh: u32,
}

impl Policy for Wants {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        Verdict { pacing_rate: self.rate, ssthresh: self.ssthresh, ..Verdict::default() }
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}
