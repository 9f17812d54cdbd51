//! The process behind a consumer: renews its lease, and frees its slot at once when it dies, however it does.
//!
//! It is a copy of the consumer (fork), so that any program can be one, not only `onramp`. A copy of a process with
//! threads may neither allocate nor take a lock, since the thread that held it was not copied: what it needs is
//! prepared before, and it makes system calls only. Being a process of its own, it goes on while the consumer is
//! stopped, so that what is lost meanwhile is counted.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, pipe2};

use crate::object::abi::CONSUMER_MAX;
use crate::object::abi::shared::Telemetry;
use crate::object::algorithms;
use crate::object::level::Level;
use crate::pins::{Pins, ROOT, TELEMETRY_MAPS};
use crate::system::clock::monotonic_ns;
use crate::system::error::Error;
use crate::system::kernel;

/// Between two renewals, milliseconds.
const RENEWAL_MS: i32 = 1000;
/// How long a lease lasts; then the kernel takes the consumer for dead. Several
/// renewals, because a busy machine may be late.
pub(crate) const LEASE_NS: u64 = 5_000_000_000;

/// The lease process, seen from the consumer. It ends when this is dropped, and with the process.
pub(crate) struct Lease {
    life: OwnedFd,
}

impl Lease {
    /// Starts the lease process of a slot.
    pub fn start(telemetry: &Telemetry, rings: BorrowedFd<'_>, slot: usize, id: u64) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::io("start", "the lease process of a consumer")(errno.into());
        let (watched, life) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        let task = LeaseTask { telemetry, rings, watched: watched.as_fd(), slot, id, unused: Unused::new() };
        // Signals to the consumer's group, and its handlers, are not the lease process's.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(failed)?;
        // SAFETY: the child makes system calls only, as described above, and never returns.
        let forked = match unsafe { fork() } {
            Ok(ForkResult::Child) => task.detach(),
            Ok(ForkResult::Parent { child }) => waitpid(child, None).map(|_| ()),
            Err(errno) => Err(errno),
        };
        before.thread_set_mask().map_err(failed)?;
        forked.map_err(failed)?;
        Ok(Self { life })
    }

    /// Whether it is there: only a KILL signal ends it before the consumer.
    pub fn alive(&self) -> bool {
        let mut ends = [PollFd::new(self.life.as_fd(), PollFlags::empty())];
        let _ = poll(&mut ends, PollTimeout::ZERO);
        !ends[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR))
    }
}

/// What the lease process has to do, and all it needs.
struct LeaseTask<'a> {
    telemetry: &'a Telemetry,
    rings: BorrowedFd<'a>,
    watched: BorrowedFd<'a>,
    slot: usize,
    id: u64,
    unused: Unused,
}

impl LeaseTask<'_> {
    /// In the first child: leaves the consumer's session and its children, so that the consumer never meets
    /// it in a `wait`.
    fn detach(&self) -> ! {
        // SAFETY: system calls without memory of ours; the grandchild is bound by what binds this child.
        unsafe {
            libc::setsid();
            if libc::fork() != 0 {
                libc::_exit(0);
            }
            libc::prctl(libc::PR_SET_NAME, c"onramp-lease".as_ptr());
            libc::chdir(c"/".as_ptr());
        }
        close_all_but(self.rings.as_raw_fd(), self.watched.as_raw_fd());
        self.keep();
        release(self.telemetry, self.rings, self.slot, self.id);
        self.unused.remove_locked(self.telemetry);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) }
    }

    /// Renews the lease until the consumer is gone, or the slot is another's.
    fn keep(&self) {
        let mine = &self.telemetry.consumers[self.slot];
        let mut watched = libc::pollfd { fd: self.watched.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        while mine.id.load(Acquire) == self.id {
            renew(self.telemetry, self.slot);
            // SAFETY: one valid pollfd.
            if unsafe { libc::poll(&raw mut watched, 1, RENEWAL_MS) } > 0 {
                return;
            }
        }
    }
}

/// Extends a lease; says how long there was none.
pub(crate) fn renew(telemetry: &Telemetry, slot: usize) {
    let mine = &telemetry.consumers[slot];
    let now = monotonic_ns();
    let lease = mine.lease_ns.swap(now + LEASE_NS, AcqRel);
    if lease != 0 && lease < now {
        mine.expired_ns.fetch_add(now - lease, Relaxed);
    }
    // The kernel may have taken it away while there was no lease.
    let level = Level::from_number(mine.level.load(Relaxed)).bits() << (8 * slot);
    if telemetry.wanted.fetch_or(level, Release) & level != level {
        telemetry.announce();
    }
}

/// Id of a slot that is being freed: it has no consumer any more, and is not free yet. Where that is interrupted,
/// [`super::shared::tidy`] frees it.
const LEAVING: u64 = u64::MAX;

/// Frees a slot and its ring, unless it is another's by now. Of several that do so at once, one does.
pub(crate) fn release(telemetry: &Telemetry, rings: BorrowedFd<'_>, slot: usize, id: u64) {
    let mine = &telemetry.consumers[slot];
    if mine.id.compare_exchange(id, LEAVING, AcqRel, Acquire).is_err() {
        return;
    }
    telemetry.wanted.fetch_and(!(0xff << (8 * slot)), Release);
    let key = slot as u32;
    // SAFETY: one system call; the key is that of an array of maps. Returns when no program uses the ring any more.
    unsafe { libbpf_sys::bpf_map_delete_elem(rings.as_raw_fd(), (&raw const key).cast()) };
    mine.id.store(0, Release);
}

/// Closes what the copy does not use, standard streams included: a reader of the consumer's output waits for its end.
fn close_all_but(one: RawFd, other: RawFd) {
    let (low, high) = (i64::from(one.min(other)), i64::from(one.max(other)));
    for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, i64::from(u32::MAX))] {
        if first <= last {
            // SAFETY: a system call; nothing uses these descriptors in this process.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

/// The maps when no process needs them any more.
pub(crate) struct Unused {
    lock: CString,
    files: Vec<CString>,
    directory: CString,
    root: CString,
    algorithms: Vec<CString>,
}

impl Unused {
    pub fn new() -> Self {
        let root = kernel::on_host(Path::new(ROOT));
        let directory = root.join(crate::pins::TELEMETRY);
        Self {
            lock: text(kernel::bpffs()),
            files: TELEMETRY_MAPS.iter().map(|name| text(directory.join(name))).collect(),
            directory: text(directory),
            root: text(root),
            algorithms: algorithms::all().map(|algorithm| text(Pins::new(algorithm).directory)).collect(),
        }
    }

    /// Removes them if none does. The caller holds the lock. What cannot be removed, and why, is the error.
    pub fn remove(&self, telemetry: &Telemetry) -> Result<(), (&CStr, Errno)> {
        if (0..CONSUMER_MAX).all(|slot| telemetry.consumers[slot].id.load(Acquire) == 0) {
            self.remove_unused()?;
        }
        Ok(())
    }

    /// The same where there can be no consumer: the maps were not finished.
    pub fn remove_unused(&self) -> Result<(), (&CStr, Errno)> {
        // SAFETY: system calls on strings that outlive them.
        unsafe {
            if !self.algorithms.iter().all(|path| is_missing(path)) {
                return Ok(());
            }
            for file in &self.files {
                gone(file, libc::unlink(file.as_ptr()))?;
            }
            gone(&self.directory, libc::rmdir(self.directory.as_ptr()))?;
            // Others may have something in it, and a directory with the sticky bit above it lets only its owner take it away.
            libc::rmdir(self.root.as_ptr());
        }
        Ok(())
    }

    /// The same for the lease process, which takes the lock (as [`crate::pins::Lock`]) and keeps it to its end.
    fn remove_locked(&self, telemetry: &Telemetry) {
        // SAFETY: system calls on strings that outlive them.
        unsafe {
            let lock = libc::open(self.lock.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
            if lock >= 0 && libc::flock(lock, libc::LOCK_EX) == 0 {
                let _ = self.remove(telemetry);
            }
        }
    }
}

/// Whether there is no such file for certain, as this process opens files: access(2) would ask for its real user, who may
/// not enter the directory.
fn is_missing(path: &CStr) -> bool {
    // SAFETY: a system call on a string that outlives it.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::F_OK, libc::AT_EACCESS) };
    answer != 0 && Errno::last() == Errno::ENOENT
}

/// What the call that was to remove it answered. It may have been gone before.
fn gone(path: &CStr, answer: libc::c_int) -> Result<(), (&CStr, Errno)> {
    match Errno::last() {
        _ if answer == 0 => Ok(()),
        Errno::ENOENT => Ok(()),
        errno => Err((path, errno)),
    }
}

/// A path for a system call; none of ours has a NUL in it.
fn text(path: PathBuf) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// All zero, as a map begins.
    fn telemetry() -> Box<Telemetry> {
        // SAFETY: atomics of integers only, for which zero is valid.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    #[test]
    fn a_slot_is_freed_once_and_a_late_lease_process_leaves_its_successor_alone() {
        let telemetry = telemetry();
        // Deleting an element of what is no map fails, and changes nothing.
        let rings = std::fs::File::open("/dev/null").unwrap();
        let mine = &telemetry.consumers[3];
        mine.id.store(7, Release);
        telemetry.wanted.store(u64::MAX, Release);
        release(&telemetry, rings.as_fd(), 3, 7);
        assert_eq!(mine.id.load(Acquire), 0);
        assert_eq!(telemetry.wanted.load(Acquire), !(0xff << 24));
        // Another has the slot, while two lease processes of the old are late; or one is freeing it.
        for id in [8, LEAVING] {
            mine.id.store(id, Release);
            telemetry.wanted.store(u64::MAX, Release);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| release(&telemetry, rings.as_fd(), 3, 7));
                }
            });
            assert_eq!((mine.id.load(Acquire), telemetry.wanted.load(Acquire)), (id, u64::MAX));
        }
        // What was interrupted is cleared by the process that finds it.
        release(&telemetry, rings.as_fd(), 3, LEAVING);
        assert_eq!(mine.id.load(Acquire), 0);
    }
}
