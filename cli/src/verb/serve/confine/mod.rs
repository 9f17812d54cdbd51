//! What the kernel refuses to each part, whatever runs in it: seccomp(2) for system calls, Landlock for files, ports and
//! signals. What a kernel does not have is said in the log and in the status.

mod calls;

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::libc;
use onramp_loader::select::cgroup_root;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde::Serialize;

use calls::Calls;

/// The newest Landlock that is asked for; older kernels have a part of it.
const LANDLOCK: ABI = ABI::V6;

/// What the kernel enforces in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Confinement {
    /// System calls.
    pub seccomp: bool,
    /// Files, ports and signals: `full`; `partial` on kernels before 6.12; `none`.
    pub landlock: &'static str,
}

/// Confines the web part: it has its sockets, memory, time and threads.
pub(super) fn web() -> Confinement {
    let landlock = restricted(Scope::from_all(LANDLOCK), Ok);
    // glibc makes threads by clone where there is no clone3, of which a filter cannot see the flags.
    let seccomp = filtered(calls::listed(&[libc::SYS_clone3]), Errno::ENOSYS, Listed::Refused)
        && filtered(calls::of_the_web_part(), Errno::EPERM, Listed::Allowed);
    report("web part", Confinement { seccomp, landlock })
}

/// Confines the broker: it reads what the kernel shows, removes its socket's file and its part of telemetry, and starts no
/// program.
pub(super) fn broker(socket_directory: Option<&Path>) -> Confinement {
    // It ends the web part by a signal where that does not end by itself.
    let landlock = restricted(Scope::AbstractUnixSocket.into(), |rules| {
        let (reading, removing) =
            (AccessFs::ReadFile | AccessFs::ReadDir, AccessFs::RemoveFile | AccessFs::RemoveDir);
        let mut rules = rules;
        // Cgroups are named by their directories, which may be anywhere.
        for directory in ["/proc", "/sys"].map(PathBuf::from).into_iter().chain(cgroup_root()) {
            rules = allowed(rules, &directory, reading)?;
        }
        for directory in [Some(Path::new("/sys/fs/bpf")), socket_directory].into_iter().flatten() {
            rules = allowed(rules, directory, removing)?;
        }
        Ok(rules)
    });
    let seccomp = filtered(calls::refused_to_the_broker(), Errno::EPERM, Listed::Refused);
    report("broker", Confinement { seccomp, landlock })
}

fn report(part: &str, confinement: Confinement) -> Confinement {
    let Confinement { seccomp, landlock } = confinement;
    if !seccomp {
        tracing::info!("this kernel has no seccomp filters: the {part} may make any system call");
    }
    if landlock == "none" {
        tracing::info!("this kernel has no Landlock, or it is off: the {part} is not kept from files by it");
    }
    confinement
}

/// Allows nothing of what Landlock knows but what `rules` adds.
fn restricted(
    scope: BitFlags<Scope>,
    rules: impl FnOnce(RulesetCreated) -> Result<RulesetCreated, RulesetError>,
) -> &'static str {
    let enforced = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|all| all.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|all| all.scope(scope))
        .and_then(Ruleset::create)
        .and_then(rules)
        .and_then(RulesetCreated::restrict_self);
    match enforced.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => "full",
        Ok(RulesetStatus::PartiallyEnforced) => "partial",
        Ok(RulesetStatus::NotEnforced) => "none",
        Err(error) => {
            tracing::warn!("Landlock refuses its rules: {error}");
            "none"
        }
    }
}

fn allowed(
    rules: RulesetCreated,
    directory: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(directory) {
        Ok(directory) => rules.add_rule(PathBeneath::new(directory, access)),
        // What is not there need not be allowed.
        Err(_) => Ok(rules),
    }
}

/// What becomes of the calls that are listed; the others meet the opposite.
#[derive(Clone, Copy)]
enum Listed {
    Allowed,
    Refused,
}

/// Whether a filter could be put in place.
fn filtered(calls: Calls, refusal: Errno, listed: Listed) -> bool {
    let refused = SeccompAction::Errno(refusal as u32);
    let (matching, other) = match listed {
        Listed::Allowed => (SeccompAction::Allow, refused),
        Listed::Refused => (refused, SeccompAction::Allow),
    };
    let Ok(architecture) = ARCH.try_into() else { return false };
    let filter = SeccompFilter::new(calls, other, matching, architecture);
    let program = filter.and_then(BpfProgram::try_from);
    program.is_ok_and(|program| apply_filter(&program).is_ok())
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::{self, File};
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{self, Command};
    use std::thread;

    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    use super::*;

    fn refused<T>(what: &str, result: io::Result<T>) {
        assert_eq!(result.err().map(|error| error.kind()), Some(ErrorKind::PermissionDenied), "{what}");
    }

    /// Runs a test of the module `child` in a process of its own, which confines itself, and can remove no file afterwards.
    fn in_a_process_of_its_own(name: &str) {
        let name = format!("{}::child::{name}", module_path!().split_once("::").unwrap().1);
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.env("TMPDIR", place.path());
        let output = command.args(["--exact", &name, "--ignored", "--nocapture"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
    }

    #[test]
    fn the_web_part_connects_nowhere_opens_nothing_and_starts_nothing() {
        in_a_process_of_its_own("as_the_web_part");
    }

    #[test]
    fn the_broker_starts_nothing_connects_nowhere_and_writes_no_file() {
        in_a_process_of_its_own("as_the_broker");
    }

    mod child {
        use super::*;

        #[test]
        #[ignore = "started by another test"]
        fn as_the_web_part() {
            let directory = tempfile::tempdir().unwrap();
            let (path, file) = (directory.path().join("s"), directory.path().join("f"));
            let (listener, local) =
                (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
            let place = listener.local_addr().unwrap();
            fs::write(&file, "").unwrap();
            let (mut one, mut other) = UnixStream::pair().unwrap();
            // All of this goes before.
            drop((TcpStream::connect(place).unwrap(), UnixStream::connect(&path).unwrap()));
            assert!(web().seccomp, "this kernel has no seccomp filters");
            refused("TCP", TcpStream::connect(place));
            refused("UNIX", UnixStream::connect(&path));
            refused("UDP", UdpSocket::bind("127.0.0.1:0"));
            refused("listening", TcpListener::bind("127.0.0.1:0"));
            refused("reading", File::open(&file));
            refused("writing", File::create(&file));
            refused("removing", fs::remove_file(&file));
            refused("a program", Command::new("/proc/self/exe").status());
            assert_eq!(kill(Pid::this(), None), Err(Errno::EPERM));
            // What it lives by.
            one.write_all(b"x").unwrap();
            other.read_exact(&mut [0]).unwrap();
            listener.accept().unwrap();
            local.accept().unwrap();
            thread::spawn(|| vec![0_u8; 1 << 20].len()).join().unwrap();
        }

        #[test]
        #[ignore = "started by another test"]
        fn as_the_broker() {
            let (sockets, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (socket, file) = (sockets.path().join("s"), other.path().join("f"));
            fs::write(&socket, "").unwrap();
            fs::write(&file, "").unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = listener.local_addr().unwrap();
            let Confinement { seccomp, landlock } = broker(Some(sockets.path()));
            assert!(seccomp, "this kernel has no seccomp filters");
            refused("a program", Command::new("/proc/self/exe").status());
            refused("TCP", TcpStream::connect(place));
            refused("UDP", UdpSocket::bind("127.0.0.1:0"));
            refused("connections", listener.accept());
            refused("writing", File::create(&file));
            refused("appending", File::options().append(true).open(&file));
            refused("making", File::create(sockets.path().join("new")));
            refused("a directory", fs::create_dir(sockets.path().join("new")));
            refused("moving", fs::rename(&file, &socket));
            assert!(fs::read_to_string(format!("/proc/{}/stat", process::id())).is_ok());
            if landlock != "none" {
                refused("reading", File::open(&file));
                refused("removing", fs::remove_file(&file));
            }
            fs::remove_file(&socket).unwrap();
        }
    }
}
