//! Watching slow starts that other congestion controls drive, without changing them.
//!
//! A [`Shadow`] reads snapshots of sockets from the kernel's tracepoints; a [`Follower`] makes of one flow's snapshots
//! the acknowledgments with which algorithms are called, and notes how the flow really exited slow start. `docs/shadow.md` says
//! what of an acknowledgment is exact and what is not.

mod follower;
mod snapshot;
mod source;
#[cfg(test)]
mod tests;

pub use crate::object::abi::{SnapshotCounts, SocketSnapshot};
pub use crate::object::open::Watch;
pub use follower::{Follower, Step};
pub use source::{Shadow, available};
