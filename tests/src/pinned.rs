//! What is pinned, looked at, and written as another build of onramp would have left it.

use std::mem::offset_of;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use onramp_loader::abi::Attachment;

/// Where something is pinned, such as `search/attachment`.
pub fn pin(path: &str) -> PathBuf {
    Path::new(onramp_loader::ROOT).join(path)
}

/// A pinned map with its first element.
///
/// # Panics
/// If there is none.
pub fn element(path: &str) -> (MapHandle, Vec<u8>) {
    let map = MapHandle::from_pinned_path(pin(path)).expect("a pinned map");
    let value = map.lookup(&[0; 4], MapFlags::ANY).expect("lookup").expect("an element");
    (map, value)
}

/// Changes the first element of a pinned map.
///
/// # Panics
/// If there is none.
pub fn change(path: &str, change: impl Fn(&mut [u8])) {
    let (map, mut value) = element(path);
    change(&mut value);
    map.update(&[0; 4], &value, MapFlags::ANY).expect("update");
}

/// Writes a number into an element.
pub fn write_u32(value: &mut [u8], at: usize, number: u32) {
    value[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}

/// Has an attachment, and the maps that all algorithms share, be of another ABI.
///
/// # Panics
/// If it is not attached.
pub fn of_abi(algorithm: &str, abi_version: u32) {
    change(&format!("{algorithm}/attachment"), |value| {
        write_u32(value, offset_of!(Attachment, abi_version), abi_version);
    });
    // After two counters of 64 bits, in every ABI.
    change("telemetry/telemetry", |value| write_u32(value, 16, abi_version));
}

/// Has the pinned object of an algorithm from outside the tree be for another ABI.
///
/// # Panics
/// If none is pinned.
pub fn object_of_abi(algorithm: &str, abi_version: u32) {
    const MARK: &[u8] = b"onramp ABI\0\0";
    change(&format!("{algorithm}/object"), |value| {
        let marks: Vec<_> =
            value.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK).collect();
        let ends: Vec<_> = marks.into_iter().map(|(at, _)| at + MARK.len()).collect();
        assert!(!ends.is_empty(), "it says for which ABI it is");
        ends.into_iter().for_each(|at| write_u32(value, at, abi_version));
    });
}
