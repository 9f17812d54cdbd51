//! What C, Rust and the kernel each believe of the same structures, compared through BTF.

use std::mem::offset_of;

use libbpf_rs::btf::types::{Composite, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType};

use crate::abi::{ABI_VERSION, Attachment, Counters, ExitRecord, FlowHeader, ParameterSlot, Round};
use crate::object::object;
use crate::select::rule;
use crate::shadow::{Counts, Glimpse};
use crate::telemetry::layout::{self, Head, Of, Slot, Telemetry};

fn btf_of(name: &str) -> (tempfile::NamedTempFile, Btf<'static>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object(name).unwrap()).unwrap();
    let btf = Btf::from_path(file.path()).unwrap();
    (file, btf)
}

fn offset(attr: MemberAttr) -> usize {
    match attr {
        MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset as usize,
    }
}

/// Members as (name, byte offset).
fn members(btf: &Btf<'_>, name: &str) -> Vec<(String, usize)> {
    let found: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"));
    found
        .iter()
        .map(|member| (member.name.unwrap().to_string_lossy().into_owned(), offset(member.attr) / 8))
        .collect()
}

macro_rules! offsets {
    ($type:ty: $($field:ident),+) => { vec![$((stringify!($field).to_owned(), offset_of!($type, $field))),+] };
}

#[test]
fn rust_and_c_have_one_version_of_the_abi() {
    let defined = format!("#define ABI_VERSION {ABI_VERSION}\n");
    assert!(include_str!("../../bpf/abi.h").contains(&defined), "{defined}");
}

#[test]
fn rust_and_c_lay_out_the_abi_alike() {
    let (_file, btf) = btf_of("search");
    let ours = [
        ("parameter_slot", offsets!(ParameterSlot: active, generation, telemetry_max, unused, sets)),
        (
            "exit_record",
            offsets!(ExitRecord: at_us, bytes_acked, reason, window, window_after, in_flight, mss, rtt_us, min_rtt_us, undone),
        ),
        (
            "flow_header",
            offsets!(FlowHeader: abi_version, profile, generation, flags, start_us, exit, observed, pacing_rate, undo_limit, growth_limit, slow_starts, told_generation, id, interest, registrations, sequence, netns, filled_us, round, outcomes),
        ),
        (
            "round",
            offsets!(Round: start_us, start_bytes, end_bytes, start_delivered, min_rtt_us, acks, number),
        ),
        (
            "counters",
            offsets!(Counters: flows_started, flows_adopted, flows_ended, flows_without_state, undone, exits, outcomes),
        ),
        (
            "attachment",
            offsets!(Attachment: abi_version, base, generation, attached_at_us, deadline_ns, owner_pid, profiles, observe, tables_crc32, version, profile_names),
        ),
    ];
    for (name, fields) in ours {
        assert_eq!(members(&btf, name), fields, "struct {name}");
    }
}

#[test]
fn rust_and_c_lay_out_telemetry_alike() {
    let (_file, btf) = btf_of("telemetry");
    let ours = [
        (
            "consumer",
            offsets!(Slot: id, lease_ns, lost, lapsed_ns, prefix, mask, pid, level, sampling, ring_bytes, wake_bytes, remote_port, local_port, name),
        ),
        ("telemetry", offsets!(Telemetry: wanted, flows, abi_version, registrations, consumers)),
        ("event", offsets!(Head: version, kind, size, time_ns, flow, lost, sequence, netns, control)),
        ("flow_event", offsets!(layout::Flow: event, told, parameters, header)),
        (
            "flow_told",
            offsets!(layout::FlowTold: local, remote, local_port, remote_port, again, cookie, netns_cookie),
        ),
        ("end_event", offsets!(layout::End: event, told, header)),
        (
            "end_told",
            offsets!(layout::EndTold: bytes_acked, bytes_sent, bytes_retransmitted, smoothed_rtt_us, min_rtt_us, cwnd, ssthresh),
        ),
        ("exit_event", offsets!(layout::Exit: event, record, observed)),
        ("undo_event", offsets!(Of<layout::UndoTold>: event, told)),
        ("undo_told", offsets!(layout::UndoTold: cwnd, restored, exit_undone, unused)),
        (
            "round_event",
            offsets!(layout::Round: event, duration_us, bytes, delivered, acks, min_rtt_us, smoothed_rtt_us, cwnd, ssthresh, in_flight, mss, flags, number),
        ),
        ("loss_event", offsets!(Of<layout::LossTold>: event, told)),
        ("loss_told", offsets!(layout::LossTold: ack, base_ssthresh, ssthresh, asked, unused)),
        ("state_event", offsets!(Of<layout::StateTold>: event, told)),
        (
            "state_told",
            offsets!(layout::StateTold: bytes_retransmitted, from, to, cwnd, ssthresh, in_flight, unused),
        ),
        ("restart_event", offsets!(Of<layout::RestartTold>: event, told)),
        ("restart_told", offsets!(layout::RestartTold: slow_starts, cwnd, ssthresh, unused)),
        ("ack_event", offsets!(Of<layout::AckTold>: event, told)),
        ("ack_told", offsets!(layout::AckTold: ack, verdict, asked, flags, generation, unused)),
    ];
    for (name, fields) in ours {
        assert_eq!(members(&btf, name), fields, "struct {name}");
    }
}

#[test]
fn rust_and_c_lay_out_glimpses_alike() {
    let (_file, btf) = btf_of("shadow");
    let ours = [
        (
            "glimpse",
            offsets!(Glimpse: time_ns, flow, bytes_acked, bytes_sent, bytes_retransmitted, pacing_rate, kind, sequence, under_way, state, new_state, snd_una, snd_nxt, rcv_nxt, cwnd, ssthresh, mss, srtt, min_rtt_us, rack_rtt_us, packets_out, sacked_out, lost_out, retrans_out, delivered, gso_max_size, flags, ecn, receiver_clock, unused, netns, local, remote, local_port, remote_port, control),
        ),
        ("glimpse_counts", offsets!(Counts: flows, lost, under_way, unfollowed)),
    ];
    for (name, fields) in ours {
        assert_eq!(members(&btf, name), fields, "struct {name}");
    }
}

#[test]
fn rust_and_c_lay_out_rules_alike() {
    let (_file, btf) = btf_of("select");
    let rule = offsets!(rule::Layout: control, initial_window, bits);
    assert_eq!(members(&btf, "select_rule"), rule, "struct select_rule");
    let key = [("bits", 0), ("what", 4), ("side", 5), ("unused", 6), ("value", 8)];
    assert_eq!(members(&btf, "select_key"), key.map(|(name, offset)| (name.to_owned(), offset)));
    let header = include_str!("../../bpf/select.h");
    let most = format!("#define SELECT_RULES_MAX {}\n", rule::RULES_MAX);
    assert!(header.contains(&most), "{most}");
}

/// Size in bytes of what a member's type comes down to.
fn size(of: BtfType<'_>) -> Option<usize> {
    let of = of.skip_mods_and_typedefs();
    libbpf_rs::btf_type_match!(match of {
        BtfKind::Int(t) => Some((t.bits as usize).div_ceil(8)),
        BtfKind::Array(t) => Some(t.capacity() * size(t.contained_type())?),
        _ => None,
    })
}

/// A kernel member by name, also inside anonymous structs, unions and cacheline groups: (size, bits of a bit field).
fn find<'a>(btf: &'a Btf<'a>, of: BtfType<'a>, name: &str) -> Option<(Option<usize>, u8)> {
    let composite = Composite::try_from(of.skip_mods_and_typedefs()).ok()?;
    for member in composite.iter() {
        let inner: BtfType<'_> = btf.type_by_id(member.ty)?;
        match member.name.and_then(|name| name.to_str()).filter(|name| !name.is_empty()) {
            Some(have) if have == name => {
                let bits = match member.attr {
                    MemberAttr::BitField { size, .. } => size,
                    MemberAttr::Normal { .. } => 0,
                };
                return Some((size(inner), bits));
            }
            Some(_) => {}
            None => {
                if let Some(found) = find(btf, inner, name) {
                    return Some(found);
                }
            }
        }
    }
    None
}

/// `only`: the state of a base, which is in the kernel's own types unless the base is a module.
fn compare_with_the_running_kernel(object: &str, only: &str) {
    let kernel = Btf::from_path("/sys/kernel/btf/vmlinux").unwrap();
    let (_file, ours) = btf_of(object);
    let mut compared = 0;
    let names = [
        "tcp_sock",
        "inet_connection_sock",
        "sock",
        "sock_common",
        "net",
        "ns_common",
        "minmax_sample",
        "ack_sample",
        only,
    ];
    for name in names {
        let structure: Struct<'_> = ours.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"));
        let Some(theirs) = kernel.type_by_name::<BtfType<'_>>(name) else {
            assert_eq!(name, only, "the kernel has no struct {name}");
            continue;
        };
        for member in structure.iter() {
            let field = member.name.unwrap().to_str().unwrap();
            let bits = match member.attr {
                MemberAttr::BitField { size, .. } => size,
                MemberAttr::Normal { .. } => 0,
            };
            let found = find(&kernel, theirs, field).unwrap_or_else(|| panic!("no field {name}.{field}"));
            assert_eq!(found, (size(ours.type_by_id(member.ty).unwrap()), bits), "{name}.{field}");
            compared += 1;
        }
    }
    assert!(compared > 25, "only {compared} fields were compared");
}

#[test]
#[ignore = "in a guest: make test"]
fn every_field_that_the_shells_read_is_the_running_kernels() {
    compare_with_the_running_kernel("search", "bictcp");
    compare_with_the_running_kernel("search_bbr", "bbr");
}
