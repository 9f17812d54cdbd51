// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The first process of a guest: makes it a Linux, runs the command, says what it printed and left in [`OUT`], and
//! powers off.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use onramp_net::interface;
use serde::{Deserialize, Serialize};

use super::image::{MODULES, ORDER};
use super::port;
use super::wire::{End, Frame, Stream};

/// What the first process is to do, as JSON.
pub(super) const TASK: &str = "/task.json";
/// What is in this directory at the end goes back to the host.
pub const OUT: &str = "/out";
/// Set for the command, so that a program can see that it runs in a guest.
pub const VARIABLE: &str = "ONRAMP_GUEST";

/// Whether this program runs in a guest.
pub fn is_here() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";
/// What a shell says of a command that cannot be started.
const NOT_STARTED: u8 = 127;
/// How long what the command has left behind may still print.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment, in addition to PATH and HOME.
    pub environment: BTreeMap<String, String>,
}

/// What the guest's first process does. It does not return: the guest ends.
pub fn run() {
    if let Err(error) = guest() {
        // The console, which the host shows when there is no result.
        eprintln!("the first process cannot go on: {error}");
    }
    // With QEMU's -no-reboot this ends the machine, also where there is no ACPI.
    let _ = reboot(RebootMode::RB_AUTOBOOT);
}

fn guest() -> io::Result<()> {
    set_up()?;
    let task: Task = serde_json::from_slice(&fs::read(TASK)?)?;
    let mut out = port::open()?;
    let status = follow(&task, &mut out)?;
    files(Path::new(OUT), "", &mut out)?;
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime_seconds = uptime.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    Frame::End(End { status, uptime_seconds }).write(&mut out)
}

fn set_up() -> io::Result<()> {
    for (kind, at) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run")]
    {
        put(kind, at)?;
    }
    for (kind, at) in [("bpf", "/sys/fs/bpf"), ("cgroup2", "/sys/fs/cgroup"), ("devpts", "/dev/pts")] {
        fs::create_dir_all(at)?;
        put(kind, at)?;
    }
    load_modules(ORDER)?;
    Ok(interface::set_up("lo")?)
}

fn load_modules(order: &str) -> io::Result<()> {
    for name in fs::read_to_string(order)?.lines() {
        let file = File::open(format!("{MODULES}/{name}.ko"))?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            // Another one has needed it as well.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(io::Error::other(format!("module {name}: {errno}"))),
        }
    }
    Ok(())
}

/// In a guest: loads a congestion control that its kernel has as a module ([`controls`](super::controls)).
///
/// # Errors
/// What the kernel says of a module, or that there is none.
pub fn load_control(name: &str) -> io::Result<()> {
    load_modules(&format!("{ORDER}.{name}"))
}

fn put(kind: &str, at: &str) -> io::Result<()> {
    mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>)
        .map_err(|errno| io::Error::other(format!("mounting {kind} on {at}: {errno}")))
}

/// Runs the command and says what it prints, until it has ended.
fn follow(task: &Task, out: &mut impl Write) -> io::Result<u8> {
    let (program, arguments) = task.command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let started = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs([("PATH", PATH), ("HOME", "/root"), (VARIABLE, "1")])
        .envs(&task.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let text = format!("cannot run {program} in the guest: {error}\n");
            Frame::Printed(Stream::Stderr, text.into_bytes()).write(out)?;
            return Ok(NOT_STARTED);
        }
    };
    let (say, said) = mpsc::channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        forward(stdout, Stream::Stdout, say.clone());
        forward(stderr, Stream::Stderr, say.clone());
    }
    let id = Pid::from_raw(child.id() as i32);
    std::thread::spawn(move || {
        // The sender keeps the other side listening while the command runs.
        let _ = say.send(Said::Ended(reap(id)));
    });
    let mut ended = None;
    loop {
        let next = match ended {
            None => said.recv().ok(),
            // What it left in its pipes; a process that holds them open longer is not waited for.
            Some(_) => said.recv_timeout(LAST_WORDS).ok(),
        };
        match next {
            Some(Said::Printed(stream, bytes)) => Frame::Printed(stream, bytes).write(out)?,
            Some(Said::Ended(status)) => ended = Some(status),
            None => break,
        }
    }
    Ok(ended.unwrap_or(NOT_STARTED))
}

enum Said {
    Printed(Stream, Vec<u8>),
    Ended(u8),
}

fn forward(mut from: impl Read + Send + 'static, stream: Stream, say: Sender<Said>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            if say.send(Said::Printed(stream, buffer[..bytes].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// Waits for the command as the first process must: for all children, also those that others have left to it.
fn reap(command: Pid) -> u8 {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => return code as u8,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => return 128 + signal as u8,
            Ok(_) => {}
            Err(_) => return NOT_STARTED,
        }
    }
}

/// All files below a directory, in the order of their names.
fn files(directory: &Path, prefix: &str, out: &mut impl Write) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            files(&entry.path(), &format!("{path}/"), out)?;
        } else {
            Frame::File { path, content: fs::read(entry.path())? }.write(out)?;
        }
    }
    Ok(())
}
