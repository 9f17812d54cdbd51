//! The BPF objects inside this library: what crosses to and from them, and fitting them to a kernel.

pub mod abi;
pub(crate) mod algorithms;
mod clang;
mod constant;
mod embedded;
#[cfg(test)]
mod layout_tests;
pub(crate) mod level;
mod log;
pub(crate) mod open;
mod operations;
pub mod outside;
pub mod programs;
