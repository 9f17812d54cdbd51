//! What keeps a flow from sending more: samples of its socket make an account of its time, and that a verdict. It knows no
//! kernel and no clock: the samples bring their times.

mod account;
mod exiting;
mod flight;
mod limit;
mod sample;
mod slices;
mod slow_start;
#[cfg(test)]
mod tests;
mod verdict;
mod whole;

pub(crate) use account::Account;
pub(crate) use exiting::{algorithm_of, exited_by};
pub(crate) use flight::FromMemory;
pub(crate) use limit::{Limit, Parts};
pub(crate) use sample::Sample;
pub(crate) use slow_start::{Exit, SlowStart};
pub(crate) use verdict::{Verdict, verdict};
pub(crate) use whole::{held_longest, of_life, of_round};
