// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Profiles: a path's link and hosts, and the algorithm that suits it with its parameters. No model of a link: that is the
//! lab's.
//!
//! * [`Profile`]: what a file says, read and checked.
//! * [`link`], [`host`]: its parts, with their ranges.
//! * [`lookup`]: profiles by name or path, and their parameters as the algorithms declare them.
//! * [`parameters`]: algorithms and parameters on command lines; [`completions`]: what can be typed there.

pub mod completions;
mod contents;
pub mod host;
pub mod link;
pub mod lookup;
pub mod parameters;
mod toml_words;

pub use contents::{Params, Profile, ProfileError, TELEMETRY_LEVELS, VERSION, Value};
pub use toml_words::{not_toml, toml_error, toml_reason};
