//! What leaves a flow, as `bpf/record.h` has it: names of exits, states and events, and what the records come to.

use crate::contract::{
    AckPayload, ExitRecord, FlowCounts, RoundPayload, Verdict, after_exit, congestion_state, event_kind,
    exit_reason, start_end, start_phase, start_policy,
};

include!(concat!(env!("OUT_DIR"), "/records.rs"));

impl AckPayload {
    /// The algorithm's verdict; `None`: it was not called, because the flow was not in slow start.
    pub fn answer(&self) -> Option<Verdict> {
        (self.called != 0).then_some(self.verdict)
    }
}

impl ExitRecord {
    /// The window at detection.
    pub fn window_bytes(&self) -> u64 {
        u64::from(self.window) * u64::from(self.mss)
    }
}

impl RoundPayload {
    /// Bytes that arrived in the round, as far as the sender knows. What is acknowledged jumps instead where a hole is
    /// filled: data that arrived before is acknowledged all at once.
    pub fn delivered_bytes(&self) -> u64 {
        u64::from(self.delivered) * u64::from(self.mss)
    }

    /// Delivery rate of the round, bits per second; 0 for a round without duration.
    pub fn rate_bps(&self) -> u64 {
        let bits = u128::from(self.delivered_bytes()) * 8;
        (bits * 1_000_000).checked_div(u128::from(self.duration_us)).unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_reason_has_a_number_and_a_name_of_its_own() {
        for reason in ExitReason::ALL {
            assert_eq!(ExitReason::from_number(reason as u32), Some(reason));
            assert_eq!(ExitReason::from_name(reason.name()), Some(reason));
            assert_eq!(ExitReason::try_from(reason.name().to_owned()), Ok(reason));
        }
        assert_eq!(ExitReason::from_number(exit_reason::NONE), None);
        assert_eq!(ExitReason::CachedSsthresh.name(), "cached_ssthresh");
    }

    #[test]
    fn names_that_there_are_not_are_refused_with_those_that_there_are() {
        assert_eq!(ExitReason::from_name("verdict"), None);
        assert!(ExitReason::try_from("verdict".to_owned()).unwrap_err().contains("local_congestion"));
    }

    #[test]
    fn congestion_states_have_the_kernels_numbers() {
        let names = CongestionState::ALL.map(CongestionState::name);
        assert_eq!(names, ["open", "disorder", "cwr", "recovery", "loss"]);
        assert_eq!(CongestionState::from_number(4), Some(CongestionState::Loss));
    }
}
