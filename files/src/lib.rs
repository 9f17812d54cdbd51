// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files from outside.
//!
//! * [`bounded`]: read whole, up to a size. The path `-` is standard input.
//! * [`kind`]: what a file is that is not what it was given for.

pub mod bounded;
pub mod kind;
