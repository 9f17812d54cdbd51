//! What `bpf/algorithm/ramp.h` decides that others do, too.

// SAFETY: as shim.c defines it.
unsafe extern "C" {
    safe static onramp_ramp_gain_pct: u32;
}

/// The rate at which `ramp` sends while its window doubles, percent of the bottleneck's.
pub fn gain_pct() -> u32 {
    onramp_ramp_gain_pct
}
