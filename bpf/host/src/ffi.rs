//! The table that `shim.c` makes of the headers.

use std::ffi::{CStr, c_char, c_void};

use crate::contract::{Ack, Verdict};

#[repr(C)]
pub(crate) struct ParameterRow {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub choices: *const c_char,
    pub help: *const c_char,
    pub default: u64,
    pub minimum: u64,
    pub maximum: u64,
}

#[repr(C)]
pub(crate) struct OutcomeRow {
    pub name: *const c_char,
    pub help: *const c_char,
}

#[repr(C)]
pub(crate) struct ExportRow {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub help: *const c_char,
    pub offset: u32,
    pub count: u32,
}

#[repr(C)]
pub(crate) struct AlgorithmRow {
    pub name: *const c_char,
    pub control: *const c_char,
    pub about: *const c_char,
    pub source: *const c_char,
    pub parameters: *const ParameterRow,
    pub outcomes: *const OutcomeRow,
    pub exports: *const ExportRow,
    pub parameter_count: u32,
    pub outcome_count: u32,
    pub export_count: u32,
    pub state_size: u32,
    pub traits: u32,
    pub restart: unsafe extern "C" fn(*mut c_void),
    pub on_ack: unsafe extern "C" fn(*mut c_void, *const c_void, *const Ack, *mut Verdict),
    pub on_loss: unsafe extern "C" fn(*mut c_void, *const c_void, *const Ack, u32) -> u32,
}

// SAFETY: the table is constant data in the binary.
unsafe impl Sync for AlgorithmRow {}

unsafe extern "C" {
    static onramp_algorithms: [AlgorithmRow; 0];
    static onramp_algorithm_count: u32;
    #[cfg(test)]
    static onramp_layout: [u32; 6];
}

/// Every row of the table.
pub(crate) fn rows() -> &'static [AlgorithmRow] {
    // SAFETY: shim.c defines an array of exactly this many rows, constant and living as long as the program.
    unsafe { std::slice::from_raw_parts(onramp_algorithms.as_ptr(), onramp_algorithm_count as usize) }
}

/// The slice of `count` rows at `first`.
pub(crate) fn slice<T>(first: *const T, count: u32) -> &'static [T] {
    // SAFETY: only called with a table pointer and its own count, both written by shim.c from the same array.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// A string of the table; null reads as empty.
pub(crate) fn text(pointer: *const c_char) -> &'static str {
    if pointer.is_null() {
        return "";
    }
    // SAFETY: a string literal of shim.c.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_agree_with_the_compiler_that_built_the_shim() {
        let ours = [
            size_of::<Ack>(),
            size_of::<Verdict>(),
            size_of::<AlgorithmRow>(),
            size_of::<ParameterRow>(),
            size_of::<OutcomeRow>(),
            size_of::<ExportRow>(),
        ];
        // SAFETY: constant data of exactly six elements.
        let theirs = unsafe { onramp_layout };
        assert_eq!(ours.map(|size| size as u32), theirs);
    }
}
