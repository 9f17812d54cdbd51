//! What `bpf/algorithm/ramp.h` computes that others need, too.

// SAFETY: as shim.c defines it.
unsafe extern "C" {
    safe fn onramp_ramp_spacing_pct(window: u32, target: u32) -> u32;
}

/// The rate at which `ramp` sends while its window doubles, percent of the bottleneck's (102 to 200), where it would leave
/// slow start at `target`; both in segments.
pub fn spacing_pct(window: u32, target: u32) -> u32 {
    onramp_ramp_spacing_pct(window, target)
}

#[cfg(test)]
mod tests {
    use super::spacing_pct;

    #[test]
    fn the_queue_of_a_round_is_a_24th_of_the_target_at_most() {
        let target = 24_000;
        for window in 1..=target {
            let percent = u64::from(spacing_pct(window, target));
            // What a round sends beyond what leaves the bottleneck meanwhile.
            let queued = u64::from(window) * (percent - 100) / percent;
            assert!(queued <= u64::from(target / 24), "{queued} with a window of {window}");
            assert!((102..=200).contains(&percent), "{percent} with a window of {window}");
        }
        assert_eq!(
            [500, 2_000, 2_001, 12_000].map(|window| spacing_pct(window, target)),
            [200, 200, 199, 102]
        );
        assert_eq!(spacing_pct(u32::MAX, u32::MAX), 102);
    }
}
