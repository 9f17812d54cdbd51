//! A UNIX socket's file: one server's at a time, and that one's until it ends.
//!
//! A server keeps the lock of a file next to the socket for as long as it lives. The socket is made in a directory of its
//! own, which no other user can enter, and moved to its place with its permissions set.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
use nix::unistd::{Gid, chown, geteuid};

/// How long the rest of a server that was killed may still listen, and between two looks.
const TIMEOUT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// A server's socket file, removed when this is dropped, unless another's is there by then.
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
    lock: Lock,
}

impl SocketFile {
    /// Where it is removed.
    pub fn directory(&self) -> Option<&Path> {
        self.path.parent()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id(&self.path).is_some_and(|there| there == self.id) {
            let _ = fs::remove_file(&self.path);
        }
        self.lock.remove();
    }
}

/// Binds a socket, not listening yet, for its owner and this group (by default the owner's) alone.
pub(super) fn bound(path: &Path, group: Option<Gid>) -> anyhow::Result<(OwnedFd, SocketFile)> {
    // A client could not name a longer one.
    UnixAddr::new(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    let lock = Lock::take(path)?;
    match require_abandoned(path).and_then(|()| make(path, group)) {
        Ok((socket, id)) => Ok((socket, SocketFile { path: path.to_owned(), id, lock })),
        Err(error) => {
            lock.remove();
            Err(error)
        }
    }
}

fn make(path: &Path, group: Option<Gid>) -> anyhow::Result<(OwnedFd, (u64, u64))> {
    let failed = || format!("cannot bind to {}", path.display());
    let parent = path.parent().with_context(failed)?;
    let private = tempfile::Builder::new()
        .prefix(".onramp-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .with_context(failed)?;
    let hidden = private.path().join("s");
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .context("cannot make a socket")?;
    // By way of the descriptor the name is short wherever the directory is.
    let directory = File::open(private.path()).with_context(failed)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}/s", directory.as_raw_fd()));
    bind(socket.as_raw_fd(), &UnixAddr::new(&short).with_context(failed)?).with_context(failed)?;
    if let Some(group) = group {
        chown(&hidden, None, Some(group))
            .with_context(|| format!("cannot give {} to its group", path.display()))?;
    }
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o660))
        .with_context(|| format!("cannot set the permissions of {}", path.display()))?;
    let id = id(&hidden).with_context(failed)?;
    fs::rename(&hidden, path).with_context(failed)?;
    Ok((socket, id))
}

/// Fails unless nothing is at a path but, perhaps, what a server has left that was killed.
fn require_abandoned(path: &Path) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("cannot look at {}", path.display())),
            Ok(there) if !there.file_type().is_socket() => {
                bail!("{} is there already and is no socket: choose another path", path.display())
            }
            Ok(_) => {}
        }
        match UnixStream::connect(path) {
            Err(error) if [ErrorKind::ConnectionRefused, ErrorKind::NotFound].contains(&error.kind()) => {
                return Ok(());
            }
            Ok(_) if begin.elapsed() < TIMEOUT => thread::sleep(LOOK),
            _ => bail!("another program listens at {}: end it, or choose another path", path.display()),
        }
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

/// The lock of a socket's place.
struct Lock {
    path: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    fn take(socket: &Path) -> anyhow::Result<Self> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let file = open(&path)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((_, Errno::EWOULDBLOCK)) => bail!(
                    "another `onramp serve` listens at {}: end it, or choose another path",
                    socket.display()
                ),
                Err((_, errno)) => {
                    return Err(errno).with_context(|| format!("cannot lock {}", path.display()));
                }
            };
            let ours = file.metadata().with_context(|| format!("cannot look at {}", path.display()))?;
            // Its last holder may have removed it before it was locked here.
            if id(&path) == Some((ours.dev(), ours.ino())) {
                return Ok(Self { path, _file: file });
            }
        }
    }

    /// Removes the file while it is still locked.
    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the file of a lock, which no other user may have put there.
fn open(path: &Path) -> anyhow::Result<File> {
    let failed = || format!("cannot lock {}", path.display());
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .with_context(failed)?;
    let there = file.metadata().with_context(failed)?;
    if !there.is_file() || ![0, geteuid().as_raw()].contains(&there.uid()) {
        let error = io::Error::other(format!("it belongs to user {}, or is no file", there.uid()));
        return Err(error).with_context(failed);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    fn listening(path: &Path) -> anyhow::Result<(OwnedFd, SocketFile)> {
        let (socket, file) = bound(path, None)?;
        listen(&socket, Backlog::new(1).unwrap()).unwrap();
        Ok((socket, file))
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_unix_socket_is_private_and_goes_with_the_server() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let first = listening(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        UnixStream::connect(&path).unwrap();
        assert!(bound(&path, None).is_err());
        assert_eq!(names(directory.path()), ["s", "s.lock"]);
        drop(first);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn what_a_killed_server_has_left_is_taken_over_and_what_others_have_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let (socket, file) = listening(&path).unwrap();
        // As the kernel closes what a killed process had.
        let SocketFile { lock, .. } = &file;
        let lock = lock.path.clone();
        let held = File::open(&lock).unwrap();
        assert!(Flock::lock(held, FlockArg::LockExclusiveNonblock).is_err());
        drop(socket);
        std::mem::forget(file);
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "").unwrap();
        let second = listening(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        // Another program has taken the place meanwhile: its file stays.
        fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(second);
        assert!(path.exists() && bound(&path, None).is_err());
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(bound(&path, None).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert_eq!(names(directory.path()), ["s"], "neither locks nor directories are left");
    }

    #[test]
    fn a_lock_that_another_user_or_a_link_holds_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, victim) = (directory.path().join("s"), directory.path().join("victim"));
        fs::write(&victim, "whole").unwrap();
        std::os::unix::fs::symlink(&victim, directory.path().join("s.lock")).unwrap();
        assert!(bound(&path, None).is_err() && !path.exists());
        assert_eq!(fs::read(&victim).unwrap(), b"whole");
    }

    #[test]
    fn of_a_hundred_pairs_of_servers_at_one_place_one_has_it_and_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        for _ in 0..100 {
            let together = Barrier::new(2);
            let one = || {
                together.wait();
                listening(&path)
            };
            let pair =
                thread::scope(|scope| [scope.spawn(one), scope.spawn(one)].map(|one| one.join().unwrap()));
            let [mut winners, losers] =
                [true, false].map(|won| pair.iter().filter(|one| one.is_ok() == won).collect::<Vec<_>>());
            assert_eq!((winners.len(), losers.len()), (1, 1));
            let (_, file) = winners.pop().unwrap().as_ref().unwrap();
            assert_eq!(id(&path), Some(file.id));
            UnixStream::connect(&path).unwrap();
        }
        assert_eq!(names(directory.path()), [""; 0]);
    }
}
