//! Watching slow starts that other congestion controls drive, without changing them.
//!
//! A [`Shadow`] reads glimpses of sockets from the kernel's tracepoints; a [`Follower`] makes of one flow's glimpses
//! the acknowledgements that algorithms judge, and notes how the flow really left slow start. `docs/shadow.md` says
//! what of an acknowledgement is exact and what is not.

mod follower;
mod glimpse;
mod source;
#[cfg(test)]
mod tests;

pub use crate::object::abi::{Glimpse, GlimpseCounts};
pub use crate::object::open::Watch;
pub use follower::{Follower, RealExit, Step};
pub use source::{Shadow, available};
