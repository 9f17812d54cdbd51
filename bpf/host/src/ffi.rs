//! The table that `shim.c` makes of the headers.

use std::ffi::{CStr, c_char};

use crate::contract::{
    AlgorithmRow, onramp_algorithm_count, onramp_algorithms, onramp_cubic_algorithm, onramp_default_algorithm,
};

// SAFETY: the table is constant data in the binary.
unsafe impl Sync for AlgorithmRow {}

/// Every row of the table.
pub(crate) fn rows() -> &'static [AlgorithmRow] {
    // SAFETY: shim.c defines an array of exactly this many rows, constant and living as long as the program.
    unsafe { std::slice::from_raw_parts(onramp_algorithms.as_ptr(), onramp_algorithm_count as usize) }
}

/// The row of `DEFAULT_ALGORITHM`.
pub(crate) fn default_row() -> &'static AlgorithmRow {
    // SAFETY: shim.c defines it, constant: the number of a row.
    &rows()[unsafe { onramp_default_algorithm } as usize]
}

/// The row of `CUBIC_ALGORITHM`.
pub(crate) fn cubic_row() -> &'static AlgorithmRow {
    // SAFETY: as in `default_row`.
    &rows()[unsafe { onramp_cubic_algorithm } as usize]
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

/// A function of a row, which C could leave out and shim.c does not.
pub(crate) fn filled<F>(function: Option<F>) -> F {
    function.expect("shim.c fills every row")
}
