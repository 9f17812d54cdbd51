//! What crosses from the kernel: `bpf/abi.h` in Rust; events are in `telemetry/layout.rs`. The sizes are asserted on
//! both sides, and a test compares every field with the BTF of the built objects.

use std::mem::offset_of;

use aya::Pod;
use onramp_algorithm::Algorithm;

/// Raised when a structure below changes.
pub const ABI_VERSION: u32 = 6;
/// Parameter sets that one algorithm holds at once; set 0 is the default.
pub const PROFILE_MAX: usize = 16;
/// Parameters that an algorithm may declare.
pub const PARAMETER_MAX: usize = 16;
/// Outcome counters of a flow.
pub const OUTCOME_MAX: usize = onramp_algorithm::outcome::MAX;

/// Bits of [`FlowHeader::flags`].
pub mod flow_flag {
    /// The connection had sent data before this control took it.
    pub const ADOPTED: u32 = 1 << 0;
    /// The window was below the threshold at the last ACK.
    pub const SLOW_START: u32 = 1 << 1;
    /// The exit is decided, the window is still being drained.
    pub const EXITING: u32 = 1 << 2;
    /// The first ACK of data has been seen.
    pub const STARTED: u32 = 1 << 4;
    /// The socket paces because the algorithm asked for it.
    pub const PACED: u32 = 1 << 8;
}

/// `struct parameter_slot`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ParameterSlot {
    /// Which set flows read: 0 or 1.
    pub active: u32,
    /// Raised by every change of a parameter.
    pub generation: u32,
    /// No consumer is told more of flows with these parameters: [`crate::telemetry::Level`] as a number.
    pub telemetry_max: u32,
    /// Padding, 0.
    pub unused: u32,
    /// The two sets.
    pub sets: [[u64; PARAMETER_MAX]; 2],
}

/// `struct exit_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitRecord {
    /// Microseconds from the first data sent to detection.
    pub at_us: u64,
    /// Bytes acknowledged at detection.
    pub bytes_acked: u64,
    /// `enum exit_reason`.
    pub reason: u32,
    /// Segments, at detection.
    pub window: u32,
    /// Segments, when slow start was over; 0: a drain is under way.
    pub window_after: u32,
    /// Segments in flight at detection.
    pub in_flight: u32,
    /// Bytes.
    pub mss: u32,
    /// RTT sample at detection, microseconds.
    pub rtt_us: u32,
    /// Minimum RTT at detection, microseconds.
    pub min_rtt_us: u32,
    /// Earlier exits that proved spurious and were undone.
    pub undone: u32,
}

/// `struct round`: from one ACK to the first that acknowledges what was sent after it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// 0: no round has begun, because nobody asks for rounds.
    pub start_us: u64,
    /// Bytes acknowledged then.
    pub start_bytes: u64,
    /// It is over when more are acknowledged.
    pub end_bytes: u64,
    /// Segments delivered at its start.
    pub start_delivered: u32,
    /// Of the round's samples; all ones: none.
    pub min_rtt_us: u32,
    /// Acknowledgements so far.
    pub acks: u32,
    /// From 0.
    pub number: u32,
}

/// `struct flow_header`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHeader {
    /// Layout of what follows.
    pub abi_version: u32,
    /// Parameter set of this flow.
    pub profile: u32,
    /// Generation of the parameters seen last.
    pub generation: u32,
    /// Bits of [`flow_flag`].
    pub flags: u32,
    /// Monotonic time at which the first data was sent, microseconds.
    pub start_us: u64,
    /// How the first slow start ended.
    pub exit: ExitRecord,
    /// Attached to observe: where the algorithm would have left; `window_after` is the threshold that it wants.
    pub observed: ExitRecord,
    /// Rate that the algorithm caps the sender at, bytes per second; 0: none.
    pub pacing_rate: u64,
    /// Window that an undo restores at most, segments.
    pub undo_limit: u32,
    /// Segments by which an ACK may grow the window, where the algorithm limits it.
    pub growth_limit: u32,
    /// Times that slow start was entered.
    pub slow_starts: u32,
    /// Generation of the parameters that consumers have been told.
    pub told_generation: u32,
    /// Of this flow in events; 0: none yet.
    pub id: u64,
    /// What consumers are told of it, one byte of level bits for each.
    pub interest: u64,
    /// Registrations of consumers when that was decided.
    pub registrations: u32,
    /// Events so far.
    pub sequence: u32,
    /// Inode of the network namespace; set with the id.
    pub netns: u32,
    /// Monotonic time modulo 2^32, microseconds, at which the window is filled after a spaced slow start.
    pub filled_us: u32,
    /// The round under way.
    pub round: Round,
    /// Verdicts by outcome.
    pub outcomes: [u32; OUTCOME_MAX],
}

/// `struct counters`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Flows that began on this control.
    pub flows_started: u64,
    /// Of those, taken over in mid-connection.
    pub flows_adopted: u64,
    /// Flows that ended or went to another control.
    pub flows_ended: u64,
    /// Flows without memory for state: the base runs alone.
    pub flows_without_state: u64,
    /// Exits that proved spurious and were undone.
    pub undone: u64,
    /// Ended flows by `enum exit_reason`.
    pub exits: [u64; 8],
    /// Verdicts of ended flows by outcome.
    pub outcomes: [u64; OUTCOME_MAX],
}

/// `struct attachment`. Everything up to `version` stays where it is in every ABI, so that each onramp can say what
/// another one has attached.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// Layout of the maps.
    pub abi_version: u32,
    /// `enum base`.
    pub base: u32,
    /// Id of this attachment.
    pub generation: u64,
    /// Wall clock, microseconds since 1970.
    pub attached_at_us: u64,
    /// Since boot, suspended time included: past it the base runs alone; 0: never.
    pub deadline_ns: u64,
    /// Process of a scoped run; 0: stays until detached.
    pub owner_pid: u32,
    /// Parameter sets in use.
    pub profiles: u32,
    /// 1: nothing that the algorithm wants is done, only recorded.
    pub observe: u32,
    /// [`tables_crc32`] of the algorithm as the onramp had it that attached it.
    pub tables_crc32: u32,
    /// Version of onramp, NUL padded.
    pub version: [u8; 16],
    /// Names of the parameter sets, NUL padded.
    pub profile_names: [[u8; 32]; PROFILE_MAX],
}

const _: () = assert!(size_of::<ParameterSlot>() == 272);
const _: () = assert!(size_of::<ExitRecord>() == 48);
const _: () = assert!(size_of::<FlowHeader>() == 280);
const _: () = assert!(size_of::<Round>() == 40);
const _: () = assert!(size_of::<Counters>() == 232);
const _: () = assert!(size_of::<Attachment>() == 576);

// SAFETY: repr(C), integers only, no padding (the sizes above are the sums of the fields), any bit pattern is valid.
unsafe impl Pod for ParameterSlot {}
// SAFETY: as above.
unsafe impl Pod for FlowHeader {}
// SAFETY: as above.
unsafe impl Pod for Counters {}
// SAFETY: as above.
unsafe impl Pod for Attachment {}

impl Attachment {
    /// What the bytes of the pinned map say of an algorithm; else the version of the onramp that wrote them, and in what
    /// it differs from this one.
    pub(crate) fn read(bytes: &[u8], algorithm: Algorithm) -> Result<Self, String> {
        let at = offset_of!(Self, version);
        let version = bytes.get(at..at + 16).map_or_else(|| "unknown".to_owned(), text);
        let abi_version = bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        if abi_version != ABI_VERSION || bytes.len() != size_of::<Self>() {
            return Err(format!("{version}, ABI {abi_version}, and this one has ABI {ABI_VERSION}"));
        }
        // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a valid attachment.
        let attachment = unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() };
        if attachment.tables_crc32 != tables_crc32(algorithm) {
            return Err(format!("{version}, whose parameters, outcomes or exports are not this one's"));
        }
        Ok(attachment)
    }
}

impl FlowHeader {
    /// The header at the start of a flow's storage; `None` if that is too short or of another version.
    pub fn read(storage: &[u8]) -> Option<Self> {
        let bytes = storage.get(..size_of::<Self>())?;
        // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a valid header.
        let header = unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() };
        (header.abi_version == ABI_VERSION).then_some(header)
    }
}

/// CRC-32 (as in zip) of what the pinned maps and events of an algorithm say by position only: its parameters, outcomes
/// and exports. Two builds with the same value read each other's.
pub fn tables_crc32(algorithm: Algorithm) -> u32 {
    crc32fast::hash(algorithm.tables().as_bytes())
}

/// Text up to the first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Text padded with NUL, cut to leave at least one.
pub(crate) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(algorithm: Algorithm) -> Attachment {
        Attachment {
            abi_version: ABI_VERSION,
            base: 1,
            generation: 7,
            attached_at_us: 7,
            deadline_ns: 0,
            owner_pid: 0,
            profiles: 1,
            observe: 0,
            tables_crc32: tables_crc32(algorithm),
            version: padded("9.8.7"),
            profile_names: [[0; 32]; PROFILE_MAX],
        }
    }

    fn bytes(attachment: &Attachment) -> Vec<u8> {
        // SAFETY: Pod: any bytes, no padding, lives as long as the borrow.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(attachment).cast(), size_of::<Attachment>()) }
            .to_vec()
    }

    #[test]
    fn what_another_build_attached_is_told_from_ones_own_and_named() {
        let search = onramp_algorithm::find("search").unwrap();
        let best = onramp_algorithm::find("best").unwrap();
        let ours = attachment(search);
        assert_eq!(Attachment::read(&bytes(&ours), search).unwrap().generation, 7);
        // Another ABI, of the same size or another one.
        let older = bytes(&Attachment { abi_version: ABI_VERSION - 1, ..ours });
        for length in [64, older.len()] {
            let difference = Attachment::read(&older[..length], search).unwrap_err();
            assert!(difference.starts_with("9.8.7, ABI "), "{difference}");
        }
        // The same ABI with other tables, which would be told by the wrong names.
        let difference = Attachment::read(&bytes(&ours), best).unwrap_err();
        assert!(difference.contains("parameters, outcomes or exports"), "{difference}");
        assert!(Attachment::read(&[], search).is_err());
    }
}
