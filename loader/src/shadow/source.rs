//! The tracepoints, and the ring that what they see comes out of.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use aya::maps::{MapData, RingBuf};
use libbpf_rs::{Link, Map, MapCore, MapFlags, Object};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::object::abi::{SnapshotCounts, SocketSnapshot, read};
use crate::object::open::{self, Watch};
use crate::pins;
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};

/// The tracepoints, and their names in the kernel's BTF.
const TRACEPOINTS: [(&str, &str); 3] = [
    ("tcp_probe", "btf_trace_tcp_probe"),
    ("tcp_cong_state_set", "btf_trace_tcp_cong_state_set"),
    ("inet_sock_set_state", "btf_trace_inet_sock_set_state"),
];
/// Maps of the object.
const RING: &str = "shadow_ring";
const COUNTS: &str = "shadow_counts";
/// Longest time that a snapshot waits for a reader who is idle: the kernel wakes him only when much is waiting.
const LOOK: Duration = Duration::from_millis(100);

/// Snapshots of all TCP flows of this host. Nothing is pinned: it ends with the process, however that ends.
pub struct Shadow {
    ring: RingBuf<MapData>,
    links: Vec<Link>,
    object: Object,
}

/// Whether this kernel's flows can be watched.
///
/// # Errors
/// [`Error::Unsupported`] without BTF, [`Error::NoTracepoint`] naming what is missing.
pub fn available(kernel: &Kernel) -> Result<(), Error> {
    match TRACEPOINTS.into_iter().find(|(_, type_name)| !kernel.has_type(type_name)) {
        Some((name, _)) => Err(Error::NoTracepoint { name }),
        None => Ok(()),
    }
}

impl Shadow {
    /// Begins to watch.
    ///
    /// # Errors
    /// [`Error::Privilege`], [`Error::NoTracepoint`], or what the kernel refuses.
    pub fn open(watch: Watch) -> Result<Self, Error> {
        kernel::require_privilege("shadow")?;
        let kernel = Kernel::read()?;
        available(&kernel)?;
        let object = open::shadow(watch, &kernel)?;
        let failed = |action| open::failed(action, "shadow");
        let fd = map(&object, RING)?.as_fd().try_clone_to_owned().map_err(Error::io("use", RING))?;
        let ring = pins::ring(fd, Path::new(RING))?;
        // Lives first: what begins after this line is seen from its beginning.
        let mut programs: Vec<_> = object.progs_mut().collect();
        programs.sort_by_key(|program| program.name() != "shadow_life");
        let links = programs.iter().map(|program| program.attach().map_err(failed("attach")));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        drop(programs);
        Ok(Self { ring, links, object })
    }

    /// The next snapshot if there is one now.
    pub fn try_next(&mut self) -> Option<SocketSnapshot> {
        loop {
            let bytes = self.ring.next()?;
            if let Some((snapshot, _)) = read(&bytes) {
                return Some(snapshot);
            }
        }
    }

    /// Waits for the next snapshot at most so long, blocking this thread; `None`: there was none.
    pub fn next_within(&mut self, time: Duration) -> Option<SocketSnapshot> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(snapshot) = self.try_next() {
                return Some(snapshot);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let wait = left.min(LOOK).as_micros().div_ceil(1000) as u16;
            let mut fds = [PollFd::new(self.ring.as_fd(), PollFlags::POLLIN)];
            // Interrupted or failed: one look too many.
            let _ = poll(&mut fds, PollTimeout::from(wait));
        }
    }

    /// Watches no more: [`Shadow::try_next`] has what has happened by now, to its end.
    pub fn stop(&mut self) {
        self.links.clear();
    }

    /// What came of all flows so far.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn counts(&self) -> Result<SnapshotCounts, Error> {
        let value = map(&self.object, COUNTS)?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(open::failed("read", COUNTS))?;
        Ok(value.as_deref().and_then(read).map_or_else(SnapshotCounts::default, |(counts, _)| counts))
    }
}

fn map<'a>(object: &'a Object, name: &str) -> Result<Map<'a>, Error> {
    let missing = || Error::io("find", name)(std::io::ErrorKind::NotFound.into());
    object.maps().find(|map| map.name() == name).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::kind::Kind;

    #[test]
    fn a_kernel_without_the_tracepoints_is_refused_in_one_sentence() {
        let error = available(&Kernel::without_types()).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains("tcp_probe"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
