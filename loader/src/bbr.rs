//! Whether the kernel's BBR can be the base.

use std::ffi::{CStr, CString};
use std::path::Path;

use crate::error::Error;
use crate::kernel::{self, Kernel};

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
/// Types of BBR where it is a module that is loaded.
const MODULE: &str = "/sys/kernel/btf/tcp_bbr";

/// Fails unless the kernel's BBR can be the base now.
///
/// # Errors
/// [`Error::NoBbr`], with what to do.
pub(crate) fn require(kernel: &Kernel) -> Result<(), Error> {
    let refused = |missing: String, advice| Err(Error::NoBbr { missing, advice });
    let types = if kernel.has_type("bbr_main") {
        Types {
            missing: FUNCTIONS.into_iter().find(|name| !kernel.has_type(name)),
            fields: kernel.members("bbr"),
        }
    } else if let Some(module) = Module::load() {
        module.types()
    } else if kernel::registered()?.iter().any(|name| name == "bbr") {
        return refused(
            format!("the kernel's BBR has no type information ({MODULE})"),
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF_MODULES=y, or use --base cubic",
        );
    } else {
        return refused(
            "the kernel's BBR is not loaded".to_owned(),
            "run `modprobe tcp_bbr`, or use --base cubic",
        );
    };
    if let Some(name) = types.missing {
        return refused(
            format!("the kernel does not offer {name} to BPF"),
            "5.13 on x86-64, 6.10 elsewhere have it; use --base cubic",
        );
    }
    if let Some(field) = other_version(&types.fields) {
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

/// What type information says of BBR.
struct Types {
    /// The first function that is missing.
    missing: Option<&'static str>,
    /// Names of its state's fields.
    fields: Vec<String>,
}

/// Type information of the module, which refers to that of the kernel.
struct Module {
    kernel: *mut libbpf_sys::btf,
    module: *mut libbpf_sys::btf,
}

impl Module {
    fn load() -> Option<Self> {
        if !Path::new(MODULE).exists() {
            return None;
        }
        // SAFETY: no argument; null or an object that is ours.
        let kernel = unsafe { libbpf_sys::btf__load_vmlinux_btf() };
        if kernel.is_null() {
            return None;
        }
        // SAFETY: a string that ends with NUL, and an object that outlives what is made of it.
        let module = unsafe { libbpf_sys::btf__load_module_btf(c"tcp_bbr".as_ptr(), kernel) };
        let types = Self { kernel, module };
        (!module.is_null()).then_some(types)
    }

    fn types(&self) -> Types {
        Types {
            missing: FUNCTIONS.into_iter().find(|name| self.id(name, libbpf_sys::BTF_KIND_FUNC).is_none()),
            fields: self.fields("bbr"),
        }
    }

    fn id(&self, name: &str, kind: u32) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: an object that lives as long as self, and a string that ends with NUL.
        let id = unsafe { libbpf_sys::btf__find_by_name_kind(self.module, name.as_ptr(), kind) };
        u32::try_from(id).ok().filter(|id| *id > 0)
    }

    fn fields(&self, structure: &str) -> Vec<String> {
        let Some(id) = self.id(structure, libbpf_sys::BTF_KIND_STRUCT) else { return Vec::new() };
        // SAFETY: an id of this object. Its members follow a struct's type, as many as the low half of `info` says.
        let members = unsafe {
            let found = libbpf_sys::btf__type_by_id(self.module, id);
            let count = (*found).info & 0xffff;
            std::slice::from_raw_parts(found.add(1).cast::<libbpf_sys::btf_member>(), count as usize)
        };
        // SAFETY: null, or a string of this object that ends with NUL.
        let name = |offset| unsafe {
            let name = libbpf_sys::btf__name_by_offset(self.module, offset);
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        members.iter().filter_map(|member| name(member.name_off)).collect()
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards, the one that refers to the other first; null is allowed.
        unsafe {
            libbpf_sys::btf__free(self.module);
            libbpf_sys::btf__free(self.kernel);
        }
    }
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
    fn version_3_is_told_from_version_1() {
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
