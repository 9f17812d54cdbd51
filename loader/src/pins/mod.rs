//! Where things are pinned. What is attached is what is pinned below `/sys/fs/bpf/onramp/`; there is no other record:
//!
//! * for each algorithm `link` (the registration; kernels before 6.4 have no link), `operations` (the struct_ops map), `flows`,
//!   `params`, `counters`, `attachment` (base, generation, version, profile names) and `defaults` (each namespace's previous
//!   default, by its cookie);
//! * `telemetry/`: consumers and their ring buffers, shared by all algorithms;
//! * `select/`: the link of `bpf/select.bpf.c` to the root of cgroup v2, and a map that holds one table of rules, a
//!   longest-prefix-match trie whose keys end with the peer's address; `onramp run` uses the same program at the run's cgroup;
//! * `profiles/`: rules' profiles by number, and by socket, for the shells; with `--start` learned paths;
//! * `guard` next to an attachment that has one, and `settings`, what `doctor --fix` has changed;
//! * `applied` next to an attachment or the rules: a mark of what `onramp apply` made and may therefore remove.

pub(crate) mod code;
pub(crate) mod parameters;
pub(crate) mod profiles;
pub(crate) mod tables;

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use aya::Pod;
use aya::maps::{Array, ArrayOfMaps, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use onramp_algorithm::Algorithm;

use crate::object::abi::{Attachment, Base, Counters, ParameterSlot};
use crate::object::algorithms;
use crate::system::error::Error;
use crate::system::kernel::{self, BPFFS};
use crate::system::trust;

pub use crate::object::algorithms::ROOT;

/// Maps that every object of every onramp has, pinned by their names.
pub(crate) const MAPS: [&str; 5] = [FLOWS, "params", "counters", "attachment", DEFAULTS];
/// What is kept of each flow.
pub(crate) const FLOWS: &str = "flows";
/// What is kept of each flow that has a consumer.
pub(crate) const FLOW_TELEMETRY: &str = "flow_telemetry";
/// What namespaces had as default before.
pub(crate) const DEFAULTS: &str = "defaults";
/// The struct_ops map.
pub(crate) const OPERATIONS: &str = "operations";
/// A second pin of `attachment`: `onramp apply` attached the algorithm.
const APPLIED: &str = "applied";
/// What the name of the second directory of an algorithm ends in. The kernel allows no dot in it.
pub(crate) const UPGRADE: &str = "-upgrade";
/// The struct_ops link; only on kernels that have one.
pub(crate) const LINK: &str = "link";

/// There where the attachment has a guard.
pub(crate) const GUARD: &str = "guard";

/// Directory of the pins of rules.
pub(crate) const SELECT: &str = "select";
/// Directory of the maps that all algorithms share, and those maps.
pub(crate) const TELEMETRY: &str = "telemetry";
pub(crate) const TELEMETRY_MAPS: [&str; 2] = ["rings", "telemetry"];

/// How long a command waits for those before it.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two tries to take the lock.
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// Whether to go on waiting for other commands, asked a hundred times a second with the time waited so far.
pub type WaitWhile<'a> = &'a dyn Fn(Duration) -> bool;

/// The pins of one algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    pub algorithm: Algorithm,
    pub directory: PathBuf,
}

/// A pinned map as aya's map.
pub(crate) fn open(path: &Path) -> Result<Map, Error> {
    MapData::from_pin(path).and_then(Map::from_map_data).map_err(map_failed("open", path))
}

/// Whether there is something at `path`. There may be where this process may not look, which is an error.
pub(crate) fn is_there(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(Error::io("look at", path))
}

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    if is_there(path)? { fs::remove_file(path).map_err(Error::io("remove", path)) } else { Ok(()) }
}

/// The error of a map at `path`.
pub(crate) fn map_failed(action: &'static str, path: &Path) -> impl Fn(MapError) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Map { action, path: path.clone(), source: Box::new(source) }
}

/// Puts a ring into a slot of the array of rings.
pub(crate) fn put_ring(path: &Path, slot: u32, ring: BorrowedFd<'_>) -> Result<(), Error> {
    let ring = ring.try_clone_to_owned().map_err(Error::io("use", path))?;
    let mut rings: ArrayOfMaps<MapData> =
        ArrayOfMaps::try_from(open(path)?).map_err(map_failed("use", path))?;
    let ring = MapData::from_fd(ring).map_err(map_failed("use a ring of", path))?;
    rings.set(slot, &ring, 0).map_err(map_failed("write", path))
}

/// What [`crate::telemetry`] maps into memory.
pub(crate) fn data(path: &Path) -> Result<MapData, Error> {
    MapData::from_pin(path).map_err(map_failed("open", path))
}

/// A ring buffer that libbpf made, as aya's.
pub(crate) fn ring(fd: OwnedFd, path: &Path) -> Result<RingBuf<MapData>, Error> {
    MapData::from_fd(fd)
        .and_then(Map::from_map_data)
        .and_then(RingBuf::try_from)
        .map_err(map_failed("use a ring of", path))
}

/// Has two directories change places, at once.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<(), Error> {
    let exchanged = renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE);
    exchanged.map_err(|errno| Error::io("exchange", one)(errno.into()))
}

impl Pins {
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, directory: kernel::on_host(Path::new(ROOT)).join(algorithm.name()) }
    }

    /// The second set of pins, which is there while an upgrade is in progress: until it has taken over that of the newer
    /// code, afterwards that of the old.
    pub fn other_of(algorithm: Algorithm) -> Self {
        let directory = kernel::on_host(Path::new(ROOT)).join(format!("{}{UPGRADE}", algorithm.name()));
        Self { algorithm, directory }
    }

    /// Changes places with another set of pins, at once.
    pub fn exchange(&self, other: &Self) -> Result<(), Error> {
        exchange(&self.directory, &other.directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn exist(&self) -> Result<bool, Error> {
        is_there(&self.directory)
    }

    /// Whether there is a pin of this name.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        is_there(&self.path(name))
    }

    /// Whether no pin is missing, the link's would have taken the registration with it, and no upgrade was cut off.
    pub fn are_whole(&self) -> Result<bool, Error> {
        Ok(self.are_complete()? && !self.upgrade_cut_off()?)
    }

    /// Whether no pin is missing.
    pub fn are_complete(&self) -> Result<bool, Error> {
        MAPS.iter().chain([&OPERATIONS]).try_fold(true, |all, name| Ok(all && self.has(name)?))
    }

    /// Whether an upgrade was cut off.
    pub fn upgrade_cut_off(&self) -> Result<bool, Error> {
        Self::other_of(self.algorithm).exist()
    }

    /// The error of pins that are not whole.
    pub fn interrupted(&self) -> Error {
        let algorithm = self.algorithm.name();
        match self.upgrade_cut_off() {
            Ok(true) => Error::UpgradeCutOff { algorithm },
            Ok(false) => Error::Interrupted { algorithm },
            Err(error) => error,
        }
    }

    /// Records that `onramp apply` attaches the algorithm.
    pub fn mark_applied(&self) -> Result<(), Error> {
        let mark = self.path(APPLIED);
        fs::hard_link(self.path("attachment"), &mark).map_err(Error::io("pin", &mark))
    }

    /// Whether `onramp apply` attached the algorithm.
    pub fn are_applied(&self) -> Result<bool, Error> {
        self.has(APPLIED)
    }

    /// Whether no pin is missing and the control is registered.
    pub fn are_attached(&self) -> Result<bool, Error> {
        Ok(self.are_whole()? && kernel::registered()?.contains(&self.algorithm.congestion_control()))
    }

    /// Fails if an attachment goes with a run.
    pub fn require_no_run(&self) -> Result<(), Error> {
        match self.attachment()?.owner_pid {
            0 => Ok(()),
            pid => Err(Error::AttachedForRun { algorithm: self.algorithm.name(), pid }),
        }
    }

    /// The error of a map of these pins.
    pub fn failed(&self, action: &'static str, name: &str) -> impl Fn(MapError) -> Error + use<> {
        map_failed(action, &self.path(name))
    }

    pub fn array<V: Pod>(&self, name: &str) -> Result<Array<MapData, V>, Error> {
        Array::try_from(open(&self.path(name))?).map_err(self.failed("read", name))
    }

    pub fn counters(&self) -> Result<Counters, Error> {
        let map: PerCpuArray<MapData, Counters> =
            PerCpuArray::try_from(open(&self.path("counters"))?).map_err(self.failed("read", "counters"))?;
        let per_cpu = map.get(&0, 0).map_err(self.failed("read", "counters"))?;
        Ok(per_cpu.iter().fold(Counters::default(), |sum, one| sum.plus(one)))
    }

    pub fn defaults(&self) -> Result<HashMap<MapData, u64, [u8; 16]>, Error> {
        HashMap::try_from(open(&self.path("defaults"))?).map_err(self.failed("read", "defaults"))
    }

    /// What was attached, if this build can read the maps next to it.
    pub fn attachment(&self) -> Result<Attachment, Error> {
        Attachment::read(&self.attachment_bytes()?, self.algorithm)
            .map_err(|difference| Error::OtherBuild { algorithm: self.algorithm.name(), difference })
    }

    /// What was attached, by whichever build.
    pub fn attachment_bytes(&self) -> Result<Vec<u8>, Error> {
        let path = self.path("attachment");
        let failed = |source| Error::Bpf {
            action: "read",
            object: path.display().to_string(),
            source,
            log: String::new(),
        };
        // Of whatever size: another ABI may have another one, so this is not an array of a type.
        let bytes = MapHandle::from_pinned_path(&path)
            .and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY))
            .map_err(failed)?;
        Ok(bytes.unwrap_or_default())
    }

    pub fn parameter_slots(&self) -> Result<Array<MapData, ParameterSlot>, Error> {
        self.array("params")
    }

    /// Removes every pin. Removing the link's pin unregisters the congestion control.
    pub fn remove(&self) -> Result<(), Error> {
        if !self.exist()? {
            return Ok(());
        }
        self.remove_all_but(None)?;
        fs::remove_dir(&self.directory).map_err(Error::io("remove", &self.directory))?;
        // The root goes with its last algorithm.
        let _ = fs::remove_dir(kernel::on_host(Path::new(ROOT)));
        Ok(())
    }

    /// The same, but the directory stays, and one pin if one is to be kept.
    pub fn remove_all_but(&self, kept: Option<&str>) -> Result<(), Error> {
        let entries = fs::read_dir(&self.directory).map_err(Error::io("list", &self.directory))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // The link first: what remains after an interruption is then unregistered, not a control without its maps.
        paths.sort_by_key(|path| !path.ends_with(LINK));
        let mut removed = Ok(());
        for path in paths.iter().filter(|path| kept.is_none_or(|kept| !path.ends_with(kept))) {
            // Others may have put directories next to the pins.
            let is_directory = fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir());
            let one = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed = removed.and(one.map_err(Error::io("remove", path)));
        }
        removed
    }

    /// Whether nothing is left but the records of defaults, one of which could not be restored.
    pub fn are_records_only(&self) -> Result<bool, Error> {
        Ok(self.has(DEFAULTS)? && !self.has(OPERATIONS)? && !self.has("attachment")?)
    }
}

/// Algorithms that have pins, attached or half attached.
///
/// # Errors
/// [`Error::Privilege`], [`Error::Io`] where this process may not look.
pub fn pinned() -> Result<Vec<Algorithm>, Error> {
    let has = |algorithm: Algorithm| Ok(Pins::new(algorithm).exist()?.then_some(algorithm));
    let pinned: Result<_, _> = algorithms::all().filter_map(|algorithm| has(algorithm).transpose()).collect();
    pinned.or_else(|error| kernel::require_privilege("a look at what is attached").and(Err(error)))
}

/// What a control does after slow start; `None`: it is neither a base nor attached over a known one.
pub(crate) fn base_of(control: &str) -> Option<Base> {
    let attached = || {
        let algorithm = algorithms::all().find(|one| one.congestion_control() == control)?;
        let bytes = Pins::new(algorithm).attachment_bytes().ok()?;
        Base::known(Attachment::of_size(&bytes)?.base)
    };
    Base::ALL.into_iter().find(|base| base.name() == control).or_else(attached)
}

impl Counters {
    /// Connections that have ended, or gone to another control.
    pub fn flows_ended(&self) -> u64 {
        self.flows.without_state + self.exits.iter().sum::<u64>()
    }

    /// Verdicts, by whatever name.
    pub fn verdicts(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    fn plus(mut self, other: &Self) -> Self {
        self.flows += &other.flows;
        for (sum, one) in self.exits.iter_mut().zip(other.exits) {
            *sum += one;
        }
        for (sum, one) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += one;
        }
        // A flow may end on another processor than it began on.
        for (sum, one) in self.profile_flows.iter_mut().zip(other.profile_flows) {
            *sum = sum.wrapping_add(one);
        }
        self
    }
}

/// Held while pins, parameters or defaults change, so that two commands at once take turns. Released on drop and
/// when the process ends.
pub(crate) struct Lock {
    _file: Flock<fs::File>,
}

impl Lock {
    /// Waits a minute for its turn. Nothing can be changed on a read-only file system, so nothing is begun there.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Untrusted`], [`Error::ReadOnly`].
    pub fn take() -> Result<Self, Error> {
        Self::take_while(&|waited| waited < LOCK_TIMEOUT)
    }

    /// [`Lock::take`], but waits as long as the caller is patient.
    ///
    /// # Errors
    /// As for [`Lock::take`].
    pub fn take_while(wait: WaitWhile<'_>) -> Result<Self, Error> {
        kernel::require_writable()?;
        Self::look_while(wait)
    }

    /// The lock for a reader: it may be had on a read-only file system.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Untrusted`].
    pub fn look_while(wait: WaitWhile<'_>) -> Result<Self, Error> {
        let begin = Instant::now();
        loop {
            if let Some(lock) = Self::try_take()? {
                return Ok(lock);
            }
            let waited = begin.elapsed();
            if !wait(waited) {
                return Err(Error::Locked { path: BPFFS, holders: holders(), waited });
            }
            thread::sleep(LOCK_LOOK);
        }
    }

    /// [`Lock::take`] for who only looks, before there may be a BPF file system. `None`: there is none, and so nothing to
    /// wait for.
    ///
    /// # Errors
    /// As for [`Lock::take`].
    pub fn take_if_mounted() -> Result<Option<Self>, Error> {
        kernel::has_bpffs().then(Self::take).transpose()
    }

    /// `None`: another command has it.
    ///
    /// # Errors
    /// [`Error::Untrusted`].
    pub fn try_take() -> Result<Option<Self>, Error> {
        let bpffs = kernel::bpffs();
        let directory = fs::File::open(&bpffs).or_else(|error| {
            if error.kind() == ErrorKind::PermissionDenied {
                // Without the privilege the path is not what is missing.
                kernel::require_privilege("this command")?;
            }
            Err(Error::io("open", &bpffs)(error))
        })?;
        let file = match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            other => other.map_err(|(_, errno)| Error::io("lock", BPFFS)(errno.into()))?,
        };
        trust::require_sticky(&bpffs)?;
        trust::require(&kernel::on_host(Path::new(ROOT)))?;
        Ok(Some(Self { _file: file }))
    }
}

/// Makes a directory for pins below the directory of all of them.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    // First: it may be another's since it was looked at.
    trust::make(&kernel::on_host(Path::new(ROOT)))?;
    trust::make(directory)
}

/// The processes that have the lock, as /proc/locks has them.
fn holders() -> String {
    let inode = fs::metadata(kernel::bpffs()).map(|metadata| metadata.ino()).unwrap_or(0);
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holders = holders_of(inode, &locks);
    if holders.is_empty() { "not to be seen from here".into() } else { holders.join(", ") }
}

/// Lines as `1: FLOCK  ADVISORY  WRITE 708 00:16:1 0 EOF`; those that wait have an arrow before FLOCK.
fn holders_of(inode: u64, locks: &str) -> Vec<String> {
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields
        .filter(|fields| fields.get(1) == Some(&"FLOCK"))
        .filter(|fields| fields.get(5).and_then(|id| id.rsplit(':').next()?.parse().ok()) == Some(inode))
        .filter_map(|fields| Some((*fields.get(4)?).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_base_is_distinguished_from_the_bases_by_its_name() {
        for base in Base::ALL {
            assert_eq!(base_of(base.name()), Some(base));
        }
        for control in ["dctcp", "vegas", "htcp", "onramp_nothing", ""] {
            assert_eq!(base_of(control), None, "{control}");
        }
    }

    #[test]
    fn who_has_the_lock_is_read_from_the_kernels_list() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 00:16:7 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 9 00:16:7 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 5 00:16:7 0 EOF\n3: FLOCK  ADVISORY  WRITE 6 00:16:71 0 EOF\n";
        assert_eq!(holders_of(7, locks), ["708"]);
        assert!(holders_of(8, locks).is_empty());
    }
}
