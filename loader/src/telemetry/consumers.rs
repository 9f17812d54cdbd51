//! The consumers of telemetry.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use super::shared::{Shared, require_untouched};
use crate::object::abi::shared::Telemetry;
use crate::object::abi::text;
use crate::object::level::Level;
use crate::system::error::Error;

/// A consumer, seen by others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// What it is.
    pub name: String,
    /// The process that reads.
    pub pid: u32,
    /// Level of its subscription.
    pub level: Level,
    /// Of one flow in this many.
    pub sampling: u32,
    /// Size of its ring.
    pub ring_bytes: u32,
    /// Events for which its ring had no room.
    pub lost: u64,
    /// Time in which nothing was written for it at all.
    pub unobserved: Duration,
}

/// The consumers there are. The caller holds the lock, after [`super::tidy`].
pub(crate) fn consumers() -> Result<Vec<Consumer>, Error> {
    let Some(shared) = Shared::open()? else {
        require_untouched()?;
        return Ok(Vec::new());
    };
    Ok(listed(&shared))
}

/// The consumers that these maps have.
pub(crate) fn listed(shared: &Telemetry) -> Vec<Consumer> {
    let there = shared.consumers.iter().filter(|slot| slot.id.load(Acquire) != 0);
    there
        .map(|slot| Consumer {
            name: text(&slot.name.each_ref().map(|byte| byte.load(Relaxed))),
            pid: slot.pid.load(Relaxed),
            level: Level::from_number(slot.level.load(Relaxed)),
            sampling: slot.sampling.load(Relaxed),
            ring_bytes: slot.ring_bytes.load(Relaxed),
            lost: slot.lost.load(Relaxed),
            unobserved: Duration::from_nanos(slot.expired_ns.load(Relaxed)),
        })
        .collect()
}

/// The same by name; empty: there are none.
pub(crate) fn listeners(shared: &Telemetry) -> String {
    listed(shared).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Consumer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (pid {})", self.name, self.pid)
    }
}
