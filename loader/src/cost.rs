//! What the attached callbacks cost, from the kernel's own run-time statistics of BPF programs.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use aya::maps::MapInfo;
use aya::programs::{ProgramInfo, loaded_programs};
use aya::sys::{Stats, enable_stats};
use onramp_algorithm::Algorithm;

use crate::error::Error;
use crate::kernel;
use crate::pins::Pins;

/// The operations that a shell has; where shortened names are alike, all are counted as the first.
const OPERATIONS: [&str; 10] = [
    "pkts_acked",
    "cong_avoid",
    "cwnd_event",
    "cwnd_event_tx_start",
    "set_state",
    "ssthresh",
    "undo_cwnd",
    "min_tso_segs",
    "init",
    "release",
];

/// The kernel counts run times of BPF programs for as long as this lives; costs some nanoseconds per call itself.
pub struct RunStatistics {
    _enabled: OwnedFd,
}

impl RunStatistics {
    /// Starts counting.
    ///
    /// # Errors
    /// [`Error::Privilege`], or a kernel without the statistics.
    pub fn enable() -> Result<Self, Error> {
        kernel::require_privilege("bench")?;
        let failed = Error::io("enable", "the run statistics of BPF programs");
        let enabled = enable_stats(Stats::RunTime).map_err(|error| failed(error.io_error))?;
        Ok(Self { _enabled: enabled })
    }
}

/// One loaded operation of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Name of the operation, for instance `pkts_acked`.
    pub name: &'static str,
    /// Calls while statistics were on, since it was loaded.
    pub calls: u64,
    /// Time that those calls took, nanoseconds.
    pub nanoseconds: u64,
}

/// The loaded operations of an attached algorithm, by name.
///
/// # Errors
/// [`Error::NotAttached`], or programs that cannot be listed.
pub fn callbacks(algorithm: Algorithm) -> Result<Vec<Callback>, Error> {
    let pins = Pins::of(algorithm);
    if !pins.exist() {
        return Err(Error::NotAttached { algorithm: algorithm.name() });
    }
    let flows = MapInfo::from_pin(pins.path("flows")).map_err(pins.failed("open", "flows"))?.id();
    let programs: Vec<ProgramInfo> = loaded_programs().filter_map(Result::ok).collect();
    // Not every operation uses the map, but all come from one object and share its type information.
    let uses =
        |program: &&ProgramInfo| program.map_ids().ok().flatten().is_some_and(|ids| ids.contains(&flows));
    let object = programs.iter().find(uses).and_then(ProgramInfo::btf_id);
    let mut callbacks: BTreeMap<&str, Callback> = BTreeMap::new();
    for program in programs.iter().filter(|program| object.is_some() && program.btf_id() == object) {
        let Some(name) = program.name_as_str().and_then(|name| operation(algorithm, name)) else { continue };
        let callback = callbacks.entry(name).or_insert(Callback { name, calls: 0, nanoseconds: 0 });
        callback.calls += program.run_count();
        callback.nanoseconds += program.run_time().as_nanos() as u64;
    }
    Ok(callbacks.into_values().collect())
}

/// The operation whose program has this name, of which the kernel keeps 15 characters.
fn operation(algorithm: Algorithm, name: &str) -> Option<&'static str> {
    let start = name.strip_prefix(algorithm.name())?.strip_prefix('_')?;
    OPERATIONS.into_iter().find(|operation| operation.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_names_are_known_and_other_programs_are_not() {
        let search = onramp_algorithm::find("search").unwrap();
        assert_eq!(operation(search, "search_pkts_ack"), Some("pkts_acked"));
        assert_eq!(operation(search, "search_init"), Some("init"));
        assert_eq!(operation(search, "search_cwnd_eve"), Some("cwnd_event"));
        assert_eq!(operation(search, "plain_init"), None);
        assert_eq!(operation(search, "search_other"), None);
    }
}
