//! `bpf/events.h` in Rust: who listens, and events as they lie in a ring. The sizes are asserted on both sides, and a
//! test compares every field with the BTF of the built objects.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use onramp_algorithm::{Ack, Verdict};

use crate::abi::{ExitRecord, FlowHeader, PARAMETER_MAX};

/// Consumers at once.
pub const CONSUMER_MAX: usize = 8;

/// `struct consumer`, in memory shared with the kernel.
#[repr(C)]
pub(crate) struct Slot {
    pub id: AtomicU64,
    pub lease_ns: AtomicU64,
    pub lost: AtomicU64,
    pub lapsed_ns: AtomicU64,
    pub prefix: [AtomicU64; 2],
    pub mask: [AtomicU64; 2],
    pub pid: AtomicU32,
    pub level: AtomicU32,
    pub sampling: AtomicU32,
    pub ring_bytes: AtomicU32,
    pub wake_bytes: AtomicU32,
    pub remote_port: AtomicU16,
    pub local_port: AtomicU16,
    pub name: [AtomicU8; 16],
}

/// `struct telemetry`, in memory shared with the kernel.
#[repr(C)]
pub(crate) struct Telemetry {
    pub wanted: AtomicU64,
    pub flows: AtomicU64,
    pub abi_version: AtomicU32,
    pub registrations: AtomicU32,
    pub consumers: [Slot; CONSUMER_MAX],
}

/// `enum event_kind`.
pub(crate) mod kind {
    pub const FLOW: u16 = 1;
    pub const END: u16 = 2;
    pub const EXIT: u16 = 3;
    pub const UNDO: u16 = 4;
    pub const ROUND: u16 = 5;
    pub const LOSS: u16 = 6;
    pub const STATE: u16 = 7;
    pub const RESTART: u16 = 8;
    pub const ACK: u16 = 9;
}

/// `struct event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub version: u16,
    pub kind: u16,
    pub size: u32,
    pub time_ns: u64,
    pub flow: u64,
    pub lost: u64,
    pub sequence: u32,
    pub netns: u32,
    pub control: [u8; 16],
}

/// An event of a head and what is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Of<T> {
    pub event: Head,
    pub told: T,
}

/// `struct flow_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FlowTold {
    pub local: [u8; 16],
    pub remote: [u8; 16],
    pub local_port: u16,
    pub remote_port: u16,
    pub again: u32,
    pub cookie: u64,
    pub netns_cookie: u64,
}

/// `struct flow_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub event: Head,
    pub told: FlowTold,
    pub parameters: [u64; PARAMETER_MAX],
    pub header: FlowHeader,
}

/// `struct end_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EndTold {
    pub bytes_acked: u64,
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    pub smoothed_rtt_us: u32,
    pub min_rtt_us: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
}

/// `struct end_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub event: Head,
    pub told: EndTold,
    pub header: FlowHeader,
}

/// `struct exit_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    pub event: Head,
    pub record: ExitRecord,
    pub observed: ExitRecord,
}

/// `struct undo_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UndoTold {
    pub cwnd: u32,
    pub restored: u32,
    pub exit_undone: u32,
    pub unused: u32,
}

/// `struct round_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub event: Head,
    pub duration_us: u64,
    pub bytes: u64,
    pub delivered: u32,
    pub acks: u32,
    pub min_rtt_us: u32,
    pub smoothed_rtt_us: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub in_flight: u32,
    pub mss: u32,
    pub flags: u32,
    pub number: u32,
}

/// `struct loss_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LossTold {
    pub ack: Ack,
    pub base_ssthresh: u32,
    pub ssthresh: u32,
    pub asked: u32,
    pub unused: u32,
}

/// `struct state_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StateTold {
    pub bytes_retransmitted: u64,
    pub from: u32,
    pub to: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub in_flight: u32,
    pub unused: u32,
}

/// `struct restart_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RestartTold {
    pub slow_starts: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub unused: u32,
}

/// `struct ack_told`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AckTold {
    pub ack: Ack,
    pub verdict: Verdict,
    pub asked: u32,
    pub flags: u32,
    pub generation: u32,
    pub unused: u32,
}

const _: () = assert!(size_of::<Slot>() == 104);
const _: () = assert!(size_of::<Telemetry>() == 856);
const _: () = assert!(size_of::<Head>() == 56);
const _: () = assert!(size_of::<Flow>() == 56 + 56 + 128 + 280);
const _: () = assert!(size_of::<End>() == 56 + 40 + 280);
const _: () = assert!(size_of::<Exit>() == 56 + 48 + 48);
const _: () = assert!(size_of::<Round>() == 56 + 56);
const _: () = assert!(size_of::<Of<UndoTold>>() == 56 + 16);
const _: () = assert!(size_of::<Of<LossTold>>() == 56 + 88 + 16);
const _: () = assert!(size_of::<Of<StateTold>>() == 56 + 32);
const _: () = assert!(size_of::<Of<RestartTold>>() == 56 + 16);
const _: () = assert!(size_of::<Of<AckTold>>() == 56 + 88 + 32 + 16);

/// Implemented by the structures above that come out of a ring.
///
/// # Safety
/// repr(C), integers only, no padding, any bit pattern valid.
pub(crate) unsafe trait Raw: Copy {}

macro_rules! raw {
    ($($type:ty),+) => {
        // SAFETY: as the trait asks; the sizes above are the sums of the fields.
        $(unsafe impl Raw for $type {})+
    };
}
raw!(Head, Flow, End, Exit, Round, Of<UndoTold>, Of<LossTold>, Of<StateTold>, Of<RestartTold>, Of<AckTold>);

/// A structure at the start of `bytes`, and what follows it; `None` if they are too short.
pub(crate) fn read<T: Raw>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: the length was checked, the read is unaligned, and any bytes are a valid T.
    Some((unsafe { head.as_ptr().cast::<T>().read_unaligned() }, rest))
}
