//! The guard of an attachment, as `bpf/guard.h` computes it in the kernel.

use crate::contract::GUARD_METRIC_MAX;
pub use crate::contract::{
    GUARD_BYTES_MIN, GUARD_EVIDENCE, GUARD_FIRST_BYTES, GUARD_FLOWS_MAX, GUARD_FLOWS_MIN,
    GUARD_GOODPUT_LEAST, GUARD_MEAN_BITS, GUARD_TAU_GOODPUT_BITS, GUARD_TAU_RETRANSMITS_BITS, GUARD_UNSEEN,
    GUARD_VALUE_BITS, Guard, GuardArm, GuardSums, guard_arm_index, guard_metric,
};

// SAFETY: as guard.c defines them.
unsafe extern "C" {
    safe fn onramp_guard_arm_of(guard: &Guard, hash: u32) -> u32;
    safe fn onramp_guard_log2(number: u64) -> u32;
    safe fn onramp_guard_retransmits(again: u64, sent: u64) -> u32;
    safe fn onramp_guard_goodput(bytes: u64, jiffies: u32) -> u32;
    safe fn onramp_guard_first(jiffies: u32) -> u32;
    safe fn onramp_guard_record(
        guard: &mut Guard,
        arm: u32,
        observed: &[u32; GUARD_METRIC_MAX],
        now_ns: u64,
    ) -> bool;
}

impl Guard {
    /// The arm (`guard_arm_index`) of a flow by its hash.
    pub fn arm_of(&self, hash: u32) -> u32 {
        onramp_guard_arm_of(self, hash)
    }

    /// Adds a flow that has ended, with an observation of each metric or [`GUARD_UNSEEN`], and looks. Whether the guard has
    /// tripped.
    pub fn record(&mut self, arm: u32, observed: [u32; GUARD_METRIC_MAX], now_ns: u64) -> bool {
        onramp_guard_record(self, arm, &observed, now_ns)
    }
}

/// Logarithm to base 2 in 1/1024, rounded down; of what is not 0.
pub fn log2(number: u64) -> u32 {
    onramp_guard_log2(number)
}

/// What is observed of a flow that sent so many bytes, some of them again.
pub fn retransmits(again: u64, sent: u64) -> u32 {
    onramp_guard_retransmits(again, sent)
}

/// What is observed of a flow that had so many bytes acknowledged while it had data to send for so many jiffies.
pub fn goodput(bytes: u64, jiffies: u32) -> u32 {
    onramp_guard_goodput(bytes, jiffies)
}

/// What is observed of a flow that had data to send for so many jiffies until its first 64 kB were acknowledged; 0: they never were.
pub fn first(jiffies: u32) -> u32 {
    onramp_guard_first(jiffies)
}
