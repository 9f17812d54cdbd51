//! Scoped runs: the sockets of one command use an algorithm, and nothing remains afterwards.
//!
//! The command runs in a cgroup of its own, to which the selection program is attached; both go with the run. The
//! algorithm is attached for the run unless it is attached already.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use libbpf_rs::Link;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::Pid;
use onramp_algorithm::Algorithm;

use crate::attachment::attach;
use crate::attachment::detach;
use crate::attachment::options::AttachOptions;
use crate::pins::profiles::{self, Names};
use crate::pins::{Lock, Pins};
use crate::select::program::Program;
use crate::select::table::Table;
use crate::select::{self, Choice, Rule, Side, Target};
use crate::system::error::Error;
use crate::system::hierarchy;
use crate::system::kernel::{self, Capability};
use crate::telemetry;

/// Cgroups of runs are called this, then the process, then the algorithm.
const PREFIX: &str = "onramp-run-";

/// A cgroup of a run whose process has died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The cgroup's directory.
    pub path: PathBuf,
    /// The process that made it.
    pub pid: u32,
    /// Processes that are still in it.
    pub processes: usize,
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    /// How the command ended.
    pub status: ExitStatus,
    /// Processes that the command left behind; they go on with what they have.
    pub left_behind: usize,
    /// What detaching said, if the algorithm was attached for this run.
    pub detached: Result<Option<detach::Detached>, Error>,
}

/// Runs a command whose TCP connections use an algorithm from their first data on. An application's own choice of a
/// congestion control still wins.
///
/// # Errors
/// What [`crate::attach`] fails with, [`Error::NoCgroup`], or a command that cannot be started; nothing remains then.
pub fn run(options: &AttachOptions, command: &mut Command) -> Result<Ran, Error> {
    kernel::require_privilege("run")?;
    // What attaching a program to a cgroup takes.
    if !Capability::NetAdmin.held() && !Capability::SysAdmin.held() {
        return Err(Error::Privilege { verb: "run", capabilities: "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" });
    }
    kernel::ensure_bpffs()?;
    let algorithm = options.parameters.algorithm();
    let _forwarding = Forwarding::install();
    let cgroup = Cgroup::create(algorithm)?;
    let path = cgroup.path.clone();
    let scope = Scope::enter(options, cgroup)?;
    let _selector = select(&path, algorithm.congestion_control())?;
    let status = spawn_in(&path, command)?;
    // From here on how the command ended is what its caller has to learn.
    let left_behind = go_home(&path).unwrap_or_else(|error| {
        tracing::error!("{error}");
        0
    });
    Ok(Ran { status, left_behind, detached: scope.leave() })
}

/// The attachment of a run, made by it or found by it, and the cgroup that shows other processes which run needs it.
struct Scope {
    algorithm: Algorithm,
    /// None: it has been left.
    cgroup: Option<Cgroup>,
}

impl Scope {
    fn enter(options: &AttachOptions, cgroup: Cgroup) -> Result<Self, Error> {
        let algorithm = options.parameters.algorithm();
        let _lock = Lock::take()?;
        match attach::attach_locked(&AttachOptions { scoped: true, ..options.clone() }) {
            Ok(_) | Err(Error::AlreadyAttached { .. }) => Ok(Self { algorithm, cgroup: Some(cgroup) }),
            Err(error) => Err(error),
        }
    }

    /// Detaches what runs have attached once no other run needs it.
    fn leave(mut self) -> Result<Option<detach::Detached>, Error> {
        let cgroup = self.cgroup.take();
        leave(self.algorithm, cgroup)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(cgroup) = self.cgroup.take()
            && let Err(error) = leave(self.algorithm, Some(cgroup))
        {
            tracing::error!("{error}");
        }
    }
}

fn leave(algorithm: Algorithm, cgroup: Option<Cgroup>) -> Result<Option<detach::Detached>, Error> {
    let _lock = Lock::take()?;
    // Under the lock, so that no process sees the one without the other.
    drop(cgroup);
    let pins = Pins::new(algorithm);
    // What another build attached meanwhile is no run of ours.
    let scoped = pins.exist()? && pins.attachment().is_ok_and(|attachment| attachment.owner_pid != 0);
    if !scoped || is_needed(algorithm)? {
        Ok(None)
    } else {
        detach::detach_locked(algorithm, false).map(Some)
    }
}

/// The cgroup of a run; removed on drop.
struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    fn create(algorithm: Algorithm) -> Result<Self, Error> {
        let owner = Owner::this();
        let name = format!("{PREFIX}{}-{}-{}", owner.pid, owner.started, algorithm.name());
        let path = hierarchy::top()?.join(name);
        fs::create_dir(&path).map_err(Error::io("create", &path))?;
        tracing::debug!("created cgroup {}", path.display());
        Ok(Self { path })
    }
}

/// Moves the processes that are still in a cgroup to that of this process, else to the root; returns how many.
fn go_home(cgroup: &Path) -> Result<usize, Error> {
    match hierarchy::home().map(|home| evacuate(cgroup, &home)) {
        Some(Ok(moved)) => Ok(moved),
        _ => evacuate(cgroup, &hierarchy::top()?),
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let removed = go_home(&self.path)
            .and_then(|_| fs::remove_dir(&self.path).map_err(Error::io("remove", &self.path)));
        if let Err(error) = removed {
            tracing::error!("{error}");
        }
    }
}

fn processes(cgroup: &Path) -> Vec<String> {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn evacuate(cgroup: &Path, to: &Path) -> Result<usize, Error> {
    let pids = processes(cgroup);
    let to = to.join("cgroup.procs");
    for pid in &pids {
        match fs::write(&to, pid) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                return Err(Error::io("write", &to)(error));
            }
            _ => {}
        }
    }
    Ok(pids.len())
}

/// The process of a run. Its number alone may be another's by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    pid: u32,
    /// When it started, in ticks since boot (proc_pid_stat(5), field 22).
    started: u64,
}

impl Owner {
    fn this() -> Self {
        Self { pid: process::id(), started: started(process::id()).unwrap_or(0) }
    }

    fn lives(self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// From the name of a run's cgroup, which [`Cgroup::create`] gives it.
    fn new(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        Some(Self { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
    }
}

fn started(pid: u32) -> Option<u64> {
    started_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a program may have spaces and parentheses in it; what follows the last one is numbers.
fn started_in(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Whether another process's run with this algorithm is in progress.
pub(crate) fn is_needed(algorithm: Algorithm) -> Result<bool, Error> {
    let suffix = format!("-{}", algorithm.name());
    let of_it = |path: &Path| path.to_string_lossy().ends_with(&suffix);
    let another = |owner: &Owner| *owner != Owner::this() && owner.lives();
    Ok(cgroups()?.iter().any(|(path, owner)| of_it(path) && another(owner)))
}

/// Cgroups of runs with the processes that made them.
fn cgroups() -> Result<Vec<(PathBuf, Owner)>, Error> {
    let root = match hierarchy::top() {
        Err(Error::NoCgroup { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let entries = fs::read_dir(&root).map_err(Error::io("list", &root))?;
    Ok(entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let owner = Owner::new(path.file_name()?.to_str()?)?;
            Some((path, owner))
        })
        .collect())
}

/// The run of a cgroup's path, such as `/onramp-run-42-987654-search`, or of one below it: its process and algorithm.
pub(crate) fn of_path(path: &str) -> Option<(u32, Algorithm)> {
    let name = path.strip_prefix('/')?.split('/').next()?;
    let algorithm = name.strip_prefix(PREFIX)?.splitn(3, '-').nth(2)?;
    Some((Owner::new(name)?.pid, onramp_algorithm::find(algorithm)?))
}

/// Cgroups of runs that have died without removing them.
pub(crate) fn leftovers() -> Result<Vec<Leftover>, Error> {
    let dead = cgroups()?.into_iter().filter(|(_, owner)| !owner.lives());
    Ok(dead
        .map(|(path, owner)| Leftover { processes: processes(&path).len(), path, pid: owner.pid })
        .collect())
}

/// Removes the cgroups of runs that have died, which it returns, and telemetry maps that are not needed.
///
/// # Errors
/// [`Error::Privilege`], or a cgroup that cannot be removed.
pub fn clear_leftovers() -> Result<Vec<Leftover>, Error> {
    kernel::require_privilege("detach")?;
    let _lock = Lock::take()?;
    telemetry::tidy()?;
    profiles::tidy()?;
    let leftovers = leftovers()?;
    for leftover in &leftovers {
        evacuate(&leftover.path, &hierarchy::top()?)?;
        fs::remove_dir(&leftover.path).map_err(Error::io("remove", &leftover.path))?;
    }
    Ok(leftovers)
}

/// Has all connections of a cgroup use a control, for as long as the returned link lives.
fn select(cgroup: &Path, control: String) -> Result<Link, Error> {
    let id = fs::metadata(cgroup).map_err(Error::io("look at", cgroup))?.ino();
    let own = Some(select::Cgroup { id, path: None });
    let target = Target { to: None, port: None, cgroup: own, side: Side::Both };
    let rule = Rule { target, choice: Choice { control, profile: None, initial_window: None, resume: None } };
    let program = Program::load()?;
    program.place()?.put(&Table::new(&[rule], &Names::default())?)?;
    program.attach(cgroup)
}

/// The command, for the signal handler; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before there was a command; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let from_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // What is typed reaches the command without help.
        _ if from_terminal => {}
        pid => send(pid, signal),
    }
}

fn send(pid: i32, signal: libc::c_int) {
    if let Ok(signal) = Signal::try_from(signal) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Starts the command inside the cgroup and waits for it, handing on the signals that would end this process.
fn spawn_in(cgroup: &Path, command: &mut Command) -> Result<ExitStatus, Error> {
    let path = cgroup.join("cgroup.procs");
    let mut members = OpenOptions::new().write(true).open(&path).map_err(Error::io("open", &path))?;
    // SAFETY: after fork the closure makes one write system call on a descriptor that it owns, and allocates nothing.
    unsafe {
        command.pre_exec(move || members.write_all(b"0"));
    }
    let program = command.get_program().to_owned();
    let mut child = command.spawn().map_err(Error::io("start", program))?;
    let pid = child.id() as i32;
    CHILD.store(pid, Ordering::SeqCst);
    send(pid, EARLY.swap(0, Ordering::SeqCst));
    let status = child.wait().map_err(Error::io("wait for", "the command"));
    CHILD.store(0, Ordering::SeqCst);
    status
}

/// Signal handlers during a run, so that what would end this process ends the command and the run is tidied up; the
/// previous ones come back on drop.
struct Forwarding(Vec<(Signal, SigAction)>);

impl Forwarding {
    fn install() -> Self {
        let action = SigAction::new(
            SigHandler::SigAction(forward),
            SaFlags::SA_RESTART | SaFlags::SA_SIGINFO,
            SigSet::empty(),
        );
        EARLY.store(0, Ordering::SeqCst);
        // SAFETY: the handler only uses atomics and calls kill, which is async-signal-safe.
        let before = |signal| unsafe { sigaction(signal, &action) }.ok().map(|before| (signal, before));
        Self(
            [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT]
                .into_iter()
                .filter_map(before)
                .collect(),
        )
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: what was installed before.
            let _ = unsafe { sigaction(*signal, before) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let this = Owner::this();
        assert!(this.started > 0 && this.lives());
        // The number has become another's.
        assert!(!Owner { started: this.started + 1, ..this }.lives());
        let stat = "42 (a) (b 1) S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        assert_eq!(started_in(stat), Some(987_654));
        assert_eq!(started_in("42 (a) S 1"), None);
    }

    #[test]
    fn the_name_of_a_cgroup_shows_its_run() {
        assert_eq!(Owner::new("onramp-run-42-987654-search"), Some(Owner { pid: 42, started: 987_654 }));
        for other in ["onramp-run-42-search", "onramp-run-", "user.slice"] {
            assert_eq!(Owner::new(other), None, "{other}");
        }
        for (path, run) in [
            ("/onramp-run-42-987654-search", Some((42, "search"))),
            ("/onramp-run-42-987654-search/below", Some((42, "search"))),
            ("/onramp-run-42-987654-nonsense", None),
            ("/user.slice/onramp-run-42-987654-search", None),
            ("/", None),
        ] {
            assert_eq!(of_path(path).map(|(pid, algorithm)| (pid, algorithm.name())), run, "{path}");
        }
    }
}
