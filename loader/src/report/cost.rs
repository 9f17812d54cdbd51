//! What the attached callbacks cost, from the kernel's own run-time statistics of BPF programs.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{fs, io};

use aya::maps::MapInfo;
use aya::programs::{ProgramFd, ProgramInfo, loaded_programs};
use aya::sys::{Stats, enable_stats};
use onramp_algorithm::Algorithm;

use crate::pins::{self, Pins};
use crate::system::error::Error;
use crate::system::kernel;

/// The operations that a shell has; where shortened names are alike, all are counted as the first.
pub(super) const OPERATIONS: [&str; 11] = [
    "pkts_acked",
    "cong_avoid",
    "in_ack_event",
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
    pub fn enable(verb: &'static str) -> Result<Self, Error> {
        kernel::require_privilege(verb)?;
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
    let mut callbacks: BTreeMap<&str, Callback> = BTreeMap::new();
    for (name, program) in operations(algorithm)? {
        let callback = callbacks.entry(name).or_insert(Callback { name, calls: 0, nanoseconds: 0 });
        callback.calls += program.run_count();
        callback.nanoseconds += program.run_time().as_nanos() as u64;
    }
    Ok(callbacks.into_values().collect())
}

/// The loaded programs of an attached algorithm, with the operations that they are.
fn operations(algorithm: Algorithm) -> Result<Vec<(&'static str, ProgramInfo)>, Error> {
    let pins = Pins::new(algorithm);
    if !pins.exist()? {
        return Err(Error::NotAttached { algorithm: algorithm.name() });
    }
    let flows = MapInfo::from_pin(pins.path("flows")).map_err(pins.failed("open", "flows"))?.id();
    let programs: Vec<ProgramInfo> = loaded_programs().filter_map(Result::ok).collect();
    // Not every operation uses the map, but all come from one object and share its type information.
    let uses =
        |program: &&ProgramInfo| program.map_ids().ok().flatten().is_some_and(|ids| ids.contains(&flows));
    let object = programs.iter().find(uses).and_then(ProgramInfo::btf_id);
    let ours = |program: &ProgramInfo| object.is_some() && program.btf_id() == object;
    let named = |program: ProgramInfo| {
        let name = program.name_as_str().and_then(|name| operation(algorithm, name))?;
        Some((name, program))
    };
    Ok(programs.into_iter().filter(ours).filter_map(named).collect())
}

/// What the callbacks cost of all that is attached when this begins. To begin takes CAP_SYS_ADMIN, to read nothing.
pub struct Meter {
    programs: Vec<(Algorithm, &'static str, ProgramFd)>,
    _statistics: RunStatistics,
}

impl Meter {
    /// Has the kernel count.
    ///
    /// # Errors
    /// As [`RunStatistics::enable`], or programs that cannot be listed.
    pub fn open(verb: &'static str) -> Result<Self, Error> {
        let statistics = RunStatistics::enable(verb)?;
        let mut programs = Vec::new();
        for algorithm in pins::pinned()? {
            for (name, program) in operations(algorithm)? {
                let failed = Error::io("open", format!("the program of {}'s {name}", algorithm.name()));
                let descriptor = program.fd().map_err(|error| failed(io::Error::other(error)))?;
                programs.push((algorithm, name, descriptor));
            }
        }
        Ok(Self { programs, _statistics: statistics })
    }

    /// Each program's operation, and what its calls took.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel does not report it.
    pub fn read(&self) -> Result<Vec<(Algorithm, Callback)>, Error> {
        let read = |(algorithm, name, descriptor): &(Algorithm, &'static str, ProgramFd)| {
            let path = format!("/proc/self/fdinfo/{}", descriptor.as_fd().as_raw_fd());
            let text = fs::read_to_string(&path).map_err(Error::io("read", path))?;
            let number = |field: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(field));
                value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
            };
            let (calls, nanoseconds) = (number("run_cnt:"), number("run_time_ns:"));
            Ok((*algorithm, Callback { name, calls, nanoseconds }))
        };
        self.programs.iter().map(read).collect()
    }
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
