//! The maps that all algorithms and consumers share: the first user makes them, the last one removes them.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::system::clock::monotonic_ns;
use libbpf_rs::MapCore;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::lease::{Unused, release};
use crate::object::abi::shared::Telemetry;
use crate::object::abi::{ABI_VERSION, CONSUMER_MAX};
use crate::object::open;
use crate::pins::{self, ROOT, TELEMETRY, TELEMETRY_MAPS};
use crate::system::error::Error;
use crate::system::kernel;

/// `struct telemetry`, shared with the kernel and with other processes: every field is an atomic.
pub(crate) struct Memory(NonNull<Telemetry>);

// SAFETY: a shared mapping of atomics, unmapped only on drop.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(path: &Path) -> Result<Self, Error> {
        let map = pins::data(path)?;
        let length = NonZeroUsize::MIN.saturating_add(size_of::<Telemetry>() - 1);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, map.fd().as_fd(), 0) }
            .map_err(|errno| Error::io("map into memory", path)(errno.into()))?;
        Ok(Self(address.cast()))
    }
}

impl Deref for Memory {
    type Target = Telemetry;

    fn deref(&self) -> &Telemetry {
        // SAFETY: mapped with the size of Telemetry for as long as self lives, aligned to a page, all of it atomics.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: what `map` mapped; nothing borrows from it any more.
        let _ = unsafe { munmap(self.0.cast(), size_of::<Telemetry>()) };
    }
}

/// The shared maps, opened.
#[derive(Clone)]
pub(crate) struct Shared {
    directory: PathBuf,
    memory: Arc<Memory>,
}

impl Deref for Shared {
    type Target = Telemetry;

    fn deref(&self) -> &Telemetry {
        &self.memory
    }
}

/// Where the maps are pinned.
pub(super) fn directory() -> PathBuf {
    kernel::on_host(Path::new(ROOT)).join(TELEMETRY)
}

impl Shared {
    /// The maps, if there are any. An interrupted command may have left a part of them, which is none.
    pub fn open() -> Result<Option<Self>, Error> {
        let directory = directory();
        if missing(&directory)?.is_some() {
            return Ok(None);
        }
        let shared = Self::any(directory)?;
        match shared.abi_version.load(Acquire) {
            ABI_VERSION => Ok(Some(shared)),
            found => Err(Error::OtherTelemetry { found, expected: ABI_VERSION }),
        }
    }

    /// The maps that are pinned in a directory, of whichever ABI.
    pub(super) fn any(directory: PathBuf) -> Result<Self, Error> {
        Ok(Self { memory: Arc::new(Memory::map(&directory.join("telemetry"))?), directory })
    }

    /// The maps, made if there are none. The caller holds the lock.
    pub fn open_or_create() -> Result<Self, Error> {
        tidy()?;
        if let Some(shared) = Self::open()? {
            return Ok(shared);
        }
        require_untouched()?;
        Self::create(directory())
    }

    /// New maps, pinned in a directory; pins that are there go.
    pub(super) fn create(directory: PathBuf) -> Result<Self, Error> {
        for name in TELEMETRY_MAPS {
            let _ = fs::remove_file(directory.join(name));
        }
        pins::make(&directory)?;
        let mut loaded = open::telemetry()?;
        for mut map in loaded.maps_mut() {
            let name = open::map_name(map.name());
            if TELEMETRY_MAPS.contains(&name.as_str()) {
                map.pin(directory.join(&name)).map_err(open::failed("pin", TELEMETRY))?;
            }
        }
        let shared = Self::any(directory)?;
        // Ids of flows go on where earlier maps of this boot cannot have got to: there are fewer than one a microsecond.
        // Below 2^53 they are exact in JSON for every reader (RFC 8259, section 6).
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        shared.flows.store(now.as_micros() as u64, Relaxed);
        shared.registrations.store(1, Relaxed);
        shared.abi_version.store(ABI_VERSION, Relaxed);
        Ok(shared)
    }

    /// Where they are pinned.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the array of rings is pinned.
    pub fn rings(&self) -> PathBuf {
        self.directory.join("rings")
    }

    /// The maps, where an algorithm is attached.
    ///
    /// # Errors
    /// [`Error::TelemetryBroken`].
    pub fn of_attached() -> Result<Self, Error> {
        let directory = directory();
        Self::open()?.ok_or(Error::TelemetryBroken { path: directory })
    }
}

impl Telemetry {
    /// Makes flows look anew at what has been written before this: consumers, parameters, a deadline.
    pub fn announce(&self) {
        // Never 0, which is what a flow starts with.
        if self.registrations.fetch_add(1, Release) == u32::MAX {
            self.registrations.store(1, Release);
        }
    }
}

/// Fails where maps are missing although an algorithm is pinned: its flows report through the old ones, which no process
/// finds any more, and would report nothing through new ones.
pub(crate) fn require_untouched() -> Result<(), Error> {
    let directory = directory();
    match missing(&directory)? {
        Some(path) if !pins::pinned()?.is_empty() => Err(Error::TelemetryBroken { path }),
        _ => Ok(()),
    }
}

/// The first of the maps that is not there.
fn missing(directory: &Path) -> Result<Option<PathBuf>, Error> {
    for path in TELEMETRY_MAPS.map(|name| directory.join(name)) {
        if !pins::is_there(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Frees the slots of consumers that have died together with their lease processes, and removes the maps once nothing is
/// attached and there is no consumer. The caller holds the lock.
pub(crate) fn tidy() -> Result<(), Error> {
    let shared = match Shared::open() {
        Ok(Some(shared)) => shared,
        // Nothing, or what a command left that was interrupted while it made them or took them away, or another build's.
        // That one's consumers are not known, but once nothing is attached they get no more events.
        Ok(None) | Err(Error::OtherTelemetry { .. }) => {
            return Unused::new().remove_unused().map_err(still_there);
        }
        // Of which attach and status speak.
        Err(_) => return Ok(()),
    };
    let rings = pins::data(&shared.rings())?;
    let now = monotonic_ns();
    for slot in 0..CONSUMER_MAX {
        let consumer = &shared.consumers[slot];
        let id = consumer.id.load(Acquire);
        if id != 0 && consumer.lease_ns.load(Relaxed) < now {
            tracing::debug!("consumer {} has died, its ring goes", consumer.pid.load(Relaxed));
            release(&shared, rings.fd().as_fd(), slot, id);
        }
    }
    Unused::new().remove(&shared).map_err(still_there)
}

/// The error of a pin that could not be removed.
fn still_there((path, errno): (&CStr, Errno)) -> Error {
    Error::io("remove", Path::new(OsStr::from_bytes(path.to_bytes())))(errno.into())
}
