//! The cgroup v2 hierarchy: where it is mounted, and whether what is seen there is all of it. In a cgroup namespace, and below
//! a bind mount, only a part is, with no sign of it in any path. So the root is known by its number.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::sys::statfs::{FsType, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};
use onramp_net::mounts::{self, Mount};

use crate::system::error::Error;
use crate::system::kernel;

/// `CGROUP2_SUPER_MAGIC`.
const MAGIC: i64 = 0x6367_7270;
/// The kernel numbers the directories of a hierarchy from 1, and makes the root first.
pub(crate) const ROOT_ID: u64 = 1;
/// Where systemd mounts cgroups, of either version.
const SYSTEM: &str = "/sys/fs/cgroup";

/// A place where cgroups are seen.
struct Seen {
    path: PathBuf,
    id: u64,
}

/// The root of the hierarchy, by a path of this process.
///
/// # Errors
/// [`Error::NoCgroup`]; [`Error::PartOfCgroups`] where only a part of it is seen.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let Seen { path, id } = uppermost()?;
    if id == ROOT_ID { Ok(path) } else { Err(Error::PartOfCgroups { path }) }
}

/// The uppermost cgroup that this process sees: the root, or that of its cgroup namespace.
///
/// # Errors
/// [`Error::NoCgroup`].
pub(crate) fn top() -> Result<PathBuf, Error> {
    uppermost().map(|seen| seen.path)
}

fn uppermost() -> Result<Seen, Error> {
    let mounts = mounts()?;
    // What another mount covers shows as another file system, or not at all.
    let mut seen: Vec<_> = mounts.iter().filter(|one| one.kind == "cgroup2").filter_map(seen).collect();
    let root = seen.iter().position(|seen| seen.id == ROOT_ID);
    match root {
        _ if seen.is_empty() => Err(Error::NoCgroup { remedy: remedy(&mounts) }),
        root => Ok(seen.swap_remove(root.unwrap_or(0))),
    }
}

fn mounts() -> Result<Vec<Mount>, Error> {
    mounts::of_process(kernel::host_process()).map_err(Error::io("read", "the table of mounts below /proc"))
}

fn seen(mount: &Mount) -> Option<Seen> {
    let path = kernel::on_host(&mount.point);
    let is_hierarchy = statfs(&path).is_ok_and(|status| status.filesystem_type() == FsType(MAGIC));
    let id = fs::File::open(&path).and_then(|directory| directory.metadata()).ok()?.ino();
    is_hierarchy.then_some(Seen { path, id })
}

/// A command that mounts the hierarchy where it covers nothing that is there.
fn remedy(mounts: &[Mount]) -> String {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.split_whitespace().next_back() == Some("cgroup2")) {
        return "boot a kernel built with CONFIG_CGROUPS=y".into();
    }
    let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let system = Path::new(SYSTEM);
    if is_empty(system) && !mounts.iter().any(|mount| mount.point.starts_with(system)) {
        return format!("mount -t cgroup2 none {SYSTEM}");
    }
    let unified = system.join("unified");
    let writable = statvfs(system).is_ok_and(|status| !status.flags().contains(FsFlags::ST_RDONLY));
    // cgroups of the first version make a cgroup of what is made in them.
    let holds = statfs(system).is_ok_and(|status| status.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC);
    let free = is_empty(&unified) || writable && holds && !unified.exists();
    let place = if free { unified.as_path() } else { Path::new("/run/cgroup2") };
    format!("mkdir -p {0} && mount -t cgroup2 none {0}", place.display())
}

/// The cgroup that this process is in; `None`: it is not to be seen.
pub(crate) fn home() -> Option<PathBuf> {
    let text = fs::read("/proc/self/cgroup").ok()?;
    let path = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::/"))?;
    let path = Path::new(OsStr::from_bytes(path));
    // What is outside of the cgroup namespace begins with `..`.
    let within = path.components().all(|part| matches!(part, Component::Normal(_)));
    Some(top().ok()?.join(path)).filter(|path| within && path.is_dir())
}
