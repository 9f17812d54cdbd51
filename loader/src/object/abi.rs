//! What crosses from the kernel: `bpf/abi.h`, `events.h`, `guard.h`, `holders.h`, `select.h` and `shadow.h` in Rust, made of them by `build.rs`.

#![allow(missing_docs, reason = "what its name says has no comment in the header")]

use std::mem::offset_of;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use aya::Pod;
pub use onramp_algorithm::{ABI_VERSION, ExitRecord, FlowCounts};
use onramp_algorithm::{
    AckPayload, AfterExitOptions, Algorithm, EndPayload, LossPayload, RestartPayload, RoundPayload,
    StartPolicies, StatePayload, UndoPayload,
};

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// What lies in memory that the kernel and other processes write, too.
pub(crate) mod shared {
    use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

    include!(concat!(env!("OUT_DIR"), "/shared.rs"));
}

/// The kernel's control that does congestion avoidance, loss reaction and undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Base {
    /// Always there.
    Reno = base::RENO,
    /// The kernel's CUBIC, its own HyStart silenced.
    Cubic = base::CUBIC,
    /// The kernel's BBR (version 1), which goes on as if its pipe were full where slow start ends.
    Bbr = base::BBR,
}

impl Base {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Reno, Self::Bbr];

    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    pub(crate) fn from_number(number: u32) -> Self {
        Self::known(number).unwrap_or(Self::Reno)
    }

    /// `None`: a base of another onramp.
    pub(crate) fn known(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|base| *base as u32 == number)
    }
}

macro_rules! pod {
    ($($type:ty),+) => {
        // SAFETY: repr(C), integers only, any bit pattern is valid; build.rs refuses padding.
        $(unsafe impl Pod for $type {})+
    };
}
pod!(
    ParameterSlot,
    Path,
    PathKey,
    PathSettings,
    FlowHeader,
    FlowTelemetry,
    Counters,
    Attachment,
    ProfileName,
    Guard,
    Holder,
    Migrated,
    Start,
    SelectRule,
    SocketSnapshot,
    SnapshotCounts
);
pod!(
    Event,
    FlowEvent,
    EndEvent,
    ExitEvent,
    UndoEvent,
    RoundEvent,
    LossEvent,
    StateEvent,
    RestartEvent,
    AckEvent
);

/// A structure at the start of `bytes`, and what follows it; `None` if they are too short.
pub(crate) fn read<T: Pod>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: the length was checked, the read is unaligned, and any bytes are a valid T.
    Some((unsafe { head.as_ptr().cast::<T>().read_unaligned() }, rest))
}

/// The bytes of a structure, as [`read`] reads them.
pub(crate) fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: Pod: any bytes, no padding, lives as long as the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// An address of four words in network order; IPv4 where it is mapped into IPv6.
pub(crate) fn address(words: [u32; 4], port: u16) -> SocketAddr {
    let bits = words.into_iter().fold(0, |bits, word| bits << 32 | u128::from(u32::from_be(word)));
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical(), port)
}

impl Attachment {
    /// What the bytes of the pinned map say of an algorithm; else the version of the onramp that wrote them, and in what
    /// it differs from this one.
    pub(crate) fn read(bytes: &[u8], algorithm: Algorithm) -> Result<Self, String> {
        let at = offset_of!(Self, version);
        let version = bytes.get(at..at + 16).map_or_else(|| "unknown".to_owned(), text);
        let abi_version = bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let attachment = Self::of_size(bytes)
            .filter(|_| abi_version == ABI_VERSION)
            .ok_or_else(|| format!("{version}, ABI {abi_version}, and this one has ABI {ABI_VERSION}"))?;
        if attachment.tables_crc32 != tables_crc32(algorithm) {
            return Err(format!("{version}, whose parameters, outcomes or exports are not this one's"));
        }
        Ok(attachment)
    }

    /// What the bytes say, of whichever ABI, if they are as many as in this one. An attachment of this size, and a parameter
    /// slot of its size, mean the same in every ABI, so that an upgrade can take them over.
    pub(crate) fn of_size(bytes: &[u8]) -> Option<Self> {
        read::<Self>(bytes).filter(|(_, rest)| rest.is_empty()).map(|(attachment, _)| attachment)
    }
}

impl Attachment {
    /// Whether it only observes.
    pub(crate) fn observes(&self) -> bool {
        self.flags & attachment_flag::OBSERVES != 0
    }

    /// The options of its base.
    pub(crate) fn after_exit(&self) -> AfterExitOptions {
        AfterExitOptions::from_bits(self.flags >> ATTACHMENT_AFTER_EXIT_SHIFT)
    }

    /// Gives its base these options.
    pub(crate) fn set_after_exit(&mut self, options: AfterExitOptions) {
        self.set_bits(ATTACHMENT_AFTER_EXIT_SHIFT, options.bits());
    }

    /// What its connections do at their start.
    pub(crate) fn start(&self) -> StartPolicies {
        StartPolicies::from_bits(self.flags >> ATTACHMENT_START_SHIFT)
    }

    /// Has its connections do this at their start.
    pub(crate) fn set_start(&mut self, start: StartPolicies) {
        self.set_bits(ATTACHMENT_START_SHIFT, start.bits());
    }

    /// Writes the eight bits of the flags from this one on.
    fn set_bits(&mut self, shift: u32, bits: u32) {
        self.flags = self.flags & !(0xff << shift) | (bits & 0xff) << shift;
    }

    /// Whether it has a guard.
    pub(crate) fn is_guarded(&self) -> bool {
        self.flags & attachment_flag::GUARDED != 0
    }
}

impl FlowHeader {
    /// The header at the start of a flow's storage, which an attachment of this ABI keeps; `None` if that is too short.
    pub fn read(storage: &[u8]) -> Option<Self> {
        read::<Self>(storage).map(|(header, _)| header)
    }

    /// Whether it has a flag of [`flow_flag`].
    pub fn has(&self, flag: u32) -> bool {
        u32::from(self.flags) & flag != 0
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

    #[test]
    fn the_options_of_the_base_and_of_the_start_change_nothing_else_of_an_attachment() {
        let mut before = attachment(onramp_algorithm::find("ramp").unwrap());
        before.flags = attachment_flag::GUARDED | attachment_flag::TRIPPED;
        let mut after = before;
        let options: AfterExitOptions = "floor".parse().unwrap();
        for options in [AfterExitOptions::from_bits(u32::MAX), options] {
            after.set_after_exit(options);
            assert!(after.is_guarded() && !after.observes());
            assert_eq!(after.after_exit(), options);
        }
        let start = StartPolicies::from_bits(u32::MAX);
        after.set_start(start);
        assert!(after.is_guarded() && !after.observes());
        assert_eq!((after.start(), after.after_exit()), (start, options));
        after.set_after_exit(AfterExitOptions::default());
        assert_eq!(after.start(), start);
        after.set_start(StartPolicies::default());
        assert_eq!(after, before);
    }

    fn attachment(algorithm: Algorithm) -> Attachment {
        Attachment {
            abi_version: ABI_VERSION,
            base: 1,
            generation: 7,
            attached_ns: 7,
            deadline_ns: 0,
            owner_pid: 0,
            profiles: 1,
            flags: 0,
            tables_crc32: tables_crc32(algorithm),
            version: padded("9.8.7"),
            profile_names: [[0; 32]; PROFILE_MAX],
        }
    }

    #[test]
    fn what_another_build_attached_is_distinguished_from_ones_own_and_named() {
        let search = onramp_algorithm::find("search").unwrap();
        let best = onramp_algorithm::find("best").unwrap();
        let ours = attachment(search);
        assert_eq!(Attachment::read(bytes_of(&ours), search).unwrap().generation, 7);
        // Another ABI, of the same size or another one.
        let other = Attachment { abi_version: ABI_VERSION + 1, ..ours };
        let other = bytes_of(&other);
        for length in [64, other.len()] {
            let difference = Attachment::read(&other[..length], search).unwrap_err();
            assert!(difference.starts_with("9.8.7, ABI "), "{difference}");
        }
        // The same ABI with other tables, whose rows would get the wrong names.
        let difference = Attachment::read(bytes_of(&ours), best).unwrap_err();
        assert!(difference.contains("parameters, outcomes or exports"), "{difference}");
        assert!(Attachment::read(&[], search).is_err());
    }
}
