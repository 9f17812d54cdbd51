// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Network namespaces, held by file descriptor.
//!
//! A namespace lives as long as a process, a descriptor or a bind mount refers to it. [`Namespace`] is a
//! descriptor, so one made by [`Namespace::create`] ends when its last clone is dropped, and when the process
//! dies for whatever reason. Nothing is written below `/run/netns`.
//!
//! `setns(2)` moves a *thread*. To keep the caller's threads where they are, [`Namespace::run`] does its work on
//! a thread of its own and [`Namespace::command`] moves only the child.

mod list;
mod sysctl;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::statfs::{NSFS_MAGIC, fstatfs};
use nix::unistd::{Pid, getppid};
use thiserror::Error;

pub use list::Survey;

/// Where the calling thread's namespace can be opened. `/proc/self` would name the main thread's.
const THREAD_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// What can go wrong with a network namespace.
#[derive(Debug, Error)]
pub enum NamespaceError {
    /// `unshare(2)` failed.
    #[error("cannot create a network namespace: {0}; this needs root (CAP_SYS_ADMIN)")]
    Create(#[source] Errno),
    /// A namespace file could not be opened.
    #[error("cannot open network namespace {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The file exists, but is something else.
    #[error("{path} is not a network namespace; name a file such as /run/netns/NAME or /proc/PID/ns/net")]
    NotANamespace {
        /// The file.
        path: PathBuf,
    },
    /// `setns(2)` failed.
    #[error("cannot enter network namespace {namespace}: {source}; this needs root (CAP_SYS_ADMIN)")]
    Enter {
        /// Label of the namespace.
        namespace: String,
        /// Reason.
        source: Errno,
    },
    /// A thread could not be started.
    #[error("cannot start a thread for network namespace {namespace}: {source}")]
    Thread {
        /// Label of the namespace.
        namespace: String,
        /// Reason.
        source: io::Error,
    },
    /// The namespace's cookie could not be read.
    #[error(
        "cannot read the cookie of network namespace {namespace}: {source} (SO_NETNS_COOKIE, Linux 5.14)"
    )]
    Cookie {
        /// Label of the namespace.
        namespace: String,
        /// Reason.
        source: Errno,
    },
    /// The name is not that of a sysctl which belongs to a network namespace.
    #[error("sysctl {name:?} is refused: {reason}; expected a name such as net.ipv4.tcp_rmem")]
    SysctlName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A sysctl could not be read or written.
    #[error("cannot {action} sysctl {name} in network namespace {namespace}: {source}")]
    Sysctl {
        /// `read`, or `write` with the value.
        action: String,
        /// Name of the sysctl.
        name: String,
        /// Label of the namespace.
        namespace: String,
        /// Reason.
        source: io::Error,
    },
    /// `/proc/sys` is mounted read-only, as in most containers.
    #[error(
        "cannot write sysctl {name} in network namespace {namespace}: /proc/sys is mounted read-only, as in containers; \
         from the host `nsenter --target PID --net onramp …` enters the network namespace of a process"
    )]
    SysctlReadOnly {
        /// Name of the sysctl.
        name: String,
        /// Label of the namespace.
        namespace: String,
    },
    /// `/proc` could not be listed.
    #[error("cannot list network namespaces: {path}: {source}")]
    List {
        /// What was being read.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// A network namespace, held open. Clones are cheap and share the descriptor.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<OwnedFd>,
    inode: u64,
    label: Option<String>,
    path: Option<PathBuf>,
}

impl Namespace {
    /// Makes a new, empty network namespace that has no name.
    ///
    /// It ends with the last clone of the returned value, unless a process or a bind mount still holds it. Its
    /// loopback device is down, as the kernel makes it.
    ///
    /// # Errors
    /// [`NamespaceError::Create`] without CAP_SYS_ADMIN, or when the limit of namespaces is reached.
    pub fn create() -> Result<Self, NamespaceError> {
        let made = std::thread::Builder::new().name("netns-create".into()).spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(NamespaceError::Create)?;
            Self::open(THREAD_NAMESPACE)
        });
        let thread =
            made.map_err(|source| NamespaceError::Thread { namespace: "to be created".into(), source })?;
        let mut namespace = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        (namespace.label, namespace.path) = (None, None);
        Ok(namespace)
    }

    /// The calling thread's network namespace.
    ///
    /// # Errors
    /// [`NamespaceError::Open`] when `/proc` is not mounted.
    pub fn current() -> Result<Self, NamespaceError> {
        let mut namespace = Self::open(THREAD_NAMESPACE)?;
        (namespace.label, namespace.path) = (Some("current".into()), None);
        Ok(namespace)
    }

    /// Opens a namespace by file: `/run/netns/NAME`, `/proc/PID/ns/net`. The label is the path.
    ///
    /// # Errors
    /// [`NamespaceError::Open`] when the file cannot be opened, [`NamespaceError::NotANamespace`] when it is a
    /// different kind of file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NamespaceError> {
        let path = path.as_ref();
        let failed = |source| NamespaceError::Open { path: path.into(), source };
        let file = File::open(path).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        if !is_network_namespace(&file) {
            return Err(NamespaceError::NotANamespace { path: path.into() });
        }
        Ok(Self {
            file: Arc::new(file.into()),
            inode,
            label: Some(path.display().to_string()),
            path: Some(path.into()),
        })
    }

    /// Where every network namespace is that this process can find: mounted ones (`ip netns`, container engines), those
    /// of all processes, and those held only by a descriptor. What it could not look into it says.
    ///
    /// Not found: namespaces held by nothing but a single thread or a socket.
    ///
    /// # Errors
    /// [`NamespaceError::List`] when `/proc` cannot be read.
    pub fn survey() -> Result<Survey, NamespaceError> {
        Survey::take()
    }

    /// The namespaces of a [`Namespace::survey`], all held open; what could not be looked into is left out.
    ///
    /// # Errors
    /// [`NamespaceError::List`], and [`NamespaceError::Open`] for want of descriptors.
    pub fn all() -> Result<Vec<Self>, NamespaceError> {
        Survey::take()?.namespaces().collect()
    }

    /// The inode number that `/proc/PID/ns/net` shows. It can be reused after the namespace has ended; see
    /// [`Namespace::cookie`].
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Where the namespace was found: a path, `pid 123`, `current`; `None` if it was created here.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The file by which it was opened, through which other processes can open it, too; `None` if it was created here or is
    /// the calling thread's.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The kernel's identifier of the namespace, never reused until reboot. BPF programs see the same number.
    ///
    /// # Errors
    /// [`NamespaceError::Cookie`] before Linux 5.14; [`NamespaceError::Enter`] without CAP_SYS_ADMIN.
    pub fn cookie(&self) -> Result<u64, NamespaceError> {
        self.run(current_cookie)?
            .map_err(|source| NamespaceError::Cookie { namespace: self.to_string(), source })
    }

    /// Runs `work` inside the namespace, on a thread of its own, and returns what it returns. What the thread
    /// opens there (sockets, netlink, `/proc/sys/net`) belongs to the namespace for good and may be used from
    /// any thread afterwards.
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] without CAP_SYS_ADMIN.
    ///
    /// # Panics
    /// When `work` does, with its message.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name(format!("netns-{}", self.inode))
                .spawn_scoped(scope, || {
                    self.enter()?;
                    Ok(work())
                })
                .map_err(|source| NamespaceError::Thread { namespace: self.to_string(), source })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the *calling thread* into the namespace, for good. Meant for a thread which its caller has just
    /// started for the purpose; otherwise use [`Namespace::run`].
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] without CAP_SYS_ADMIN.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        match setns(&*self.file, CloneFlags::CLONE_NEWNET) {
            // Where the thread is already, it needs no privilege to be.
            Err(Errno::EPERM) if Self::current().is_ok_and(|here| here == *self) => Ok(()),
            result => result.map_err(|source| NamespaceError::Enter { namespace: self.to_string(), source }),
        }
    }

    /// A command that will run inside the namespace and be killed (SIGKILL) when its parent dies.
    ///
    /// "Parent" is the *thread* that spawns the command (`PR_SET_PDEATHSIG`, prctl(2)): spawn it from a thread
    /// that outlives it. Without CAP_SYS_ADMIN, spawning fails with EPERM.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let file = Arc::clone(&self.file);
        let parent = Pid::this();
        let mut command = Command::new(program);
        // SAFETY: between fork and exec the closure only makes the system calls setns, prctl and getppid, all
        // async-signal-safe, allocates nothing, and uses a descriptor that the closure itself keeps open.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have died before the line above; then no process would send the signal.
                if getppid() != parent {
                    return Err(Errno::ESRCH.into());
                }
                setns(&*file, CloneFlags::CLONE_NEWNET)?;
                Ok(())
            });
        }
        command
    }

    /// Reads a sysctl of this namespace, for instance `net.ipv4.tcp_rmem`, without the trailing newline.
    ///
    /// # Errors
    /// [`NamespaceError::SysctlName`] for a name outside `net.`, [`NamespaceError::Sysctl`] when it cannot be
    /// read.
    pub fn sysctl_get(&self, name: &str) -> Result<String, NamespaceError> {
        sysctl::get(self, name)
    }

    /// Writes a sysctl of this namespace. `net.*` sysctls that the kernel keeps once for the host do not appear
    /// in other namespaces, so that writing one there fails.
    ///
    /// # Errors
    /// [`NamespaceError::SysctlName`] for a name outside `net.`, [`NamespaceError::Sysctl`] when the kernel
    /// refuses the value or the name.
    pub fn sysctl_set(&self, name: &str, value: &str) -> Result<(), NamespaceError> {
        sysctl::set(self, name, value)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The label, else `net:[INODE]` as in `/proc/PID/ns/net`.
impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => f.write_str(label),
            None => write!(f, "net:[{}]", self.inode),
        }
    }
}

/// Two values are equal when they hold the same namespace, whatever their labels.
impl PartialEq for Namespace {
    fn eq(&self, other: &Self) -> bool {
        // Both hold the namespace open, so the inode cannot have been reused.
        self.inode == other.inode
    }
}

impl Eq for Namespace {}

fn is_network_namespace(file: &File) -> bool {
    // NS_GET_NSTYPE fails with ENOTTY on most other files, but an ioctl number means something else to some
    // drivers: look at the file system first.
    if !fstatfs(file).is_ok_and(|fs| fs.filesystem_type() == NSFS_MAGIC) {
        return false;
    }
    // SAFETY: NS_GET_NSTYPE takes no argument and changes nothing; the descriptor is open.
    let kind = unsafe { libc::ioctl(file.as_raw_fd(), libc::NS_GET_NSTYPE) };
    kind == CloneFlags::CLONE_NEWNET.bits()
}

fn current_cookie() -> Result<u64, Errno> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the value pointer is a live u64 and `length` is its size, so the kernel writes inside it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    Errno::result(result).map(|_| cookie)
}
