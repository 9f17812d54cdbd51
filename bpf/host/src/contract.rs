//! What crosses the seam between an algorithm and its driver, the payloads of events, and the table of all algorithms:
//! what `crossing.h` includes in Rust, made of it by `build.rs`.

#![allow(missing_docs, reason = "what its name says has no comment in the header")]
#![allow(dead_code, reason = "the headers declare more than Rust reads")]
#![allow(unpredictable_function_pointer_comparisons, reason = "rows are not compared")]

include!(concat!(env!("OUT_DIR"), "/contract.rs"));
