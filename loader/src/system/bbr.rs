//! Whether the kernel's BBR can be the base.

use crate::system::error::Error;
use crate::system::kernel::{self, BBR, Kernel};

/// BBR's functions that the base calls, on every kernel.
const FUNCTIONS: [&str; 7] = [
    "bbr_main",
    "bbr_init",
    "bbr_ssthresh",
    "bbr_set_state",
    "bbr_undo_cwnd",
    "bbr_min_tso_segs",
    "bbr_sndbuf_expand",
];
/// BBR's fields that the base reads or writes, and one that only its version 1 has.
const FIELDS: [&str; 10] = [
    "next_rtt_delivered",
    "mode",
    "round_start",
    "prev_ca_state",
    "full_bw_reached",
    "full_bw_cnt",
    "prior_cwnd",
    "full_bw",
    "bw",
    "lt_bw",
];

/// Fails unless the kernel's BBR can be the base now.
///
/// # Errors
/// [`Error::NoBbr`], with what to do.
pub(crate) fn require(kernel: &Kernel) -> Result<(), Error> {
    let refused = |missing: String, advice| Err(Error::NoBbr { missing, advice });
    if !kernel.has_type("bbr_main") {
        return if kernel::registered()?.iter().any(|name| name == "bbr") {
            refused(
                format!("the kernel's BBR has no type information ({BBR})"),
                "boot a kernel built with CONFIG_DEBUG_INFO_BTF_MODULES=y, or use --base cubic",
            )
        } else {
            refused(
                "the kernel's BBR is not loaded".to_owned(),
                "run `modprobe tcp_bbr`, or use --base cubic",
            )
        };
    }
    if let Some(name) = FUNCTIONS.into_iter().find(|name| !kernel.has_type(name)) {
        return refused(
            format!("the kernel does not offer {name} to BPF"),
            "5.13 on x86-64, 6.10 elsewhere have it; use --base cubic",
        );
    }
    if let Some(field) = other_version(&kernel.members("bbr")) {
        return refused(
            format!("the kernel's BBR is not version 1 (its state has no {field})"),
            "boot a kernel with the BBR of Linux itself, or use --base cubic",
        );
    }
    Ok(())
}

/// The first field that a BBR of version 1 would have and this one has not.
fn other_version(fields: &[String]) -> Option<&'static str> {
    FIELDS.into_iter().find(|field| fields.iter().all(|have| have != field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(fields: &str) -> Vec<String> {
        fields.split(' ').map(str::to_owned).collect()
    }

    /// Fields of both in their order; version 3 as its authors publish it.
    const VERSION_1: &str = "min_rtt_us min_rtt_stamp probe_rtt_done_stamp bw rtt_cnt next_rtt_delivered cycle_mstamp mode prev_ca_state packet_conservation round_start idle_restart probe_rtt_round_done unused lt_is_sampling lt_rtt_cnt lt_use_bw lt_bw lt_last_delivered lt_last_stamp lt_last_lost pacing_gain cwnd_gain full_bw_reached full_bw_cnt cycle_idx has_seen_rtt unused_b prior_cwnd full_bw ack_epoch_mstamp extra_acked ack_epoch_acked extra_acked_win_rtts extra_acked_win_idx unused_c";
    const VERSION_3: &str = "min_rtt_us min_rtt_stamp probe_rtt_done_stamp probe_rtt_min_us probe_rtt_min_stamp next_rtt_delivered cycle_mstamp mode prev_ca_state round_start ce_state bw_probe_up_rounds try_fast_path idle_restart probe_rtt_round_done init_cwnd unused_1 pacing_gain cwnd_gain full_bw_reached full_bw_cnt cycle_idx has_seen_rtt unused_2 prior_cwnd full_bw ack_epoch_mstamp extra_acked ack_epoch_acked extra_acked_win_rtts extra_acked_win_idx full_bw_now bw_latest bw_lo bw_hi inflight_latest inflight_lo inflight_hi";

    #[test]
    fn version_3_is_distinguished_from_version_1() {
        assert_eq!(other_version(&named(VERSION_1)), None);
        assert_eq!(other_version(&named(VERSION_3)), Some("bw"));
    }

    #[test]
    fn each_field_that_the_base_touches_is_asked_for() {
        for field in FIELDS {
            let without: Vec<_> = named(VERSION_1).into_iter().filter(|name| name != field).collect();
            assert_eq!(other_version(&without), Some(field));
        }
    }
}
