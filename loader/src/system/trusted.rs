//! Files and directories that root acts on: only root may have written them, or put them where they are, as sshd and sudo
//! require.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Component, Path, PathBuf};

use nix::errno::Errno;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;

use crate::system::error::Error;
use crate::system::trust::{OTHERS_MAY_WRITE, STICKY};

/// Links that are followed, as by the kernel.
const LINKS_MAX: usize = 40;

/// Fails unless a file or directory, each directory on the way to it, and whatever links lead to, belong to root or this
/// user, and neither their group nor others may write to them. On the way a directory may be as /tmp is, where only the
/// owner of a file may replace it. A directory on a file system that is mounted read-only may have any mode, as those of
/// a ConfigMap have. What is neither a file nor a directory passes: its reader refuses it.
///
/// # Errors
/// [`Error::UntrustedFile`] with the first that is not as it should be; [`Error::Io`] if one cannot be looked at.
pub fn require_trusted(path: &Path) -> Result<(), Error> {
    let absolute = path::absolute(path).map_err(Error::io("look at", path))?;
    let mut ahead = steps(&absolute);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        if step == ".." {
            at.pop();
            continue;
        }
        let shared = passable(&at)?;
        let next = at.join(step);
        let there = look(&next)?;
        if !there.is_symlink() {
            if ahead.is_empty() && !there.is_file() && !there.is_dir() {
                return Ok(());
            }
            require_own(&next, &there)?;
            at = next;
            continue;
        }
        if shared {
            require_own(&next, &there)?;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Error::io("follow", next)(Errno::ELOOP.into()));
        }
        let target = fs::read_link(&next).map_err(Error::io("follow", &next))?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for step in steps(&target).into_iter().rev() {
            ahead.push_front(step);
        }
    }
    let there = look(&at)?;
    require_own(&at, &there)?;
    if others_may_write(&at, &there) { Err(open_to_others(&at, &there)) } else { Ok(()) }
}

/// The names on a way, and `..`.
fn steps(path: &Path) -> VecDeque<OsString> {
    let named = |component: &Component<'_>| matches!(component, Component::Normal(_) | Component::ParentDir);
    path.components().filter(named).map(|component| component.as_os_str().to_owned()).collect()
}

fn look(path: &Path) -> Result<Metadata, Error> {
    fs::symlink_metadata(path).map_err(Error::io("look at", path))
}

/// Fails if others may replace what is in a directory; returns whether they may add to it.
fn passable(directory: &Path) -> Result<bool, Error> {
    let there = look(directory)?;
    if !there.is_dir() {
        return Err(Error::io("look into", directory)(Errno::ENOTDIR.into()));
    }
    let shared = others_may_write(directory, &there);
    if shared && there.mode() & STICKY == 0 {
        return Err(open_to_others(directory, &there));
    }
    Ok(shared)
}

fn others_may_write(path: &Path, there: &Metadata) -> bool {
    let read_only = || statvfs(path).is_ok_and(|status| status.flags().contains(FsFlags::ST_RDONLY));
    there.mode() & OTHERS_MAY_WRITE != 0 && !(there.is_dir() && read_only())
}

fn require_own(path: &Path, there: &Metadata) -> Result<(), Error> {
    if [0, geteuid().as_raw()].contains(&there.uid()) {
        return Ok(());
    }
    let why = format!("it belongs to user {}", there.uid());
    Err(Error::UntrustedFile { path: path.to_owned(), why, remedy: "chown root" })
}

fn open_to_others(path: &Path, there: &Metadata) -> Error {
    let why = format!("its group or others may write to it (mode {:o})", there.mode() & 0o7777);
    Error::UntrustedFile { path: path.to_owned(), why, remedy: "chmod go-w" }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refused(path: &Path, named: &Path, mode: &str) {
        match require_trusted(path) {
            Err(Error::UntrustedFile { path, why, .. }) => {
                assert_eq!(path, named.canonicalize().unwrap());
                assert!(why.contains(mode), "{why}");
            }
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    #[test]
    fn a_file_is_trusted_that_no_other_user_can_write_or_replace() {
        let directory = tempfile::tempdir().unwrap();
        let (at, file) = (directory.path(), directory.path().join("a.toml"));
        fs::write(&file, "").unwrap();
        for mode in [0o600, 0o640, 0o644, 0o755] {
            set(&file, mode);
            require_trusted(&file).unwrap();
            require_trusted(at).unwrap();
        }
        for mode in [0o620, 0o602, 0o666] {
            set(&file, mode);
            refused(&file, &file, &format!("{mode:o}"));
        }
        set(&file, 0o644);
        for mode in [0o770, 0o707, 0o777] {
            set(at, mode);
            refused(&file, at, &format!("{mode:o}"));
            refused(at, at, &format!("{mode:o}"));
        }
        // Others may add to it, but not replace what is there.
        set(at, 0o1777);
        require_trusted(&file).unwrap();
        refused(at, at, "1777");
        set(at, 0o700);
        assert!(matches!(require_trusted(&at.join("missing")), Err(Error::Io { .. })));
    }

    #[test]
    fn what_is_no_file_is_left_to_its_reader_and_gets_no_advice() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        set(&at("fifo"), 0o666);
        set(&at("socket"), 0o777);
        symlink(at("fifo"), at("link")).unwrap();
        for path in [at("fifo"), at("socket"), at("link"), "/dev/null".into(), "/dev/full".into()] {
            require_trusted(&path).unwrap();
        }
        // Nothing lies in what is no directory.
        for path in ["/dev/null/a.toml".into(), at("fifo/a.toml")] {
            assert!(matches!(require_trusted(&path), Err(Error::Io { .. })), "{}", path.display());
        }
    }

    #[test]
    fn links_are_followed_through_directories_that_are_looked_at_too() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        // As a ConfigMap is mounted.
        fs::create_dir_all(at("map/..2026")).unwrap();
        fs::write(at("map/..2026/a.toml"), "").unwrap();
        symlink("..2026", at("map/..data")).unwrap();
        symlink("..data/a.toml", at("map/a.toml")).unwrap();
        symlink(at("map/a.toml"), at("far")).unwrap();
        for name in ["map/a.toml", "far", "map/../map/./a.toml"] {
            require_trusted(&at(name)).unwrap();
        }
        set(&at("map/..2026/a.toml"), 0o666);
        refused(&at("map/a.toml"), &at("map/..2026/a.toml"), "666");
        set(&at("map/..2026/a.toml"), 0o644);
        set(&at("map/..2026"), 0o777);
        refused(&at("far"), &at("map/..2026"), "777");
        symlink("circle", at("circle")).unwrap();
        assert!(matches!(require_trusted(&at("circle")), Err(Error::Io { .. })));
    }
}
