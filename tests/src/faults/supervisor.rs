//! System calls of a program before they are made. seccomp(2) asks about those that a filter picks out
//! (seccomp_unotify(2)), so that a program goes at its own pace between them.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The longest path that is read.
const PATH_BYTES: usize = 4096;

/// Calls that are asked about: of this number, with such a first argument.
pub struct Asked(pub libc::c_long, pub First);

/// A first argument, of which the lower half counts.
pub enum First {
    /// Whatever it is.
    Any,
    /// One of these.
    OneOf(Vec<u32>),
    /// More than this.
    Above(u32),
}

/// A call that a thread is about to make.
pub struct Call<'a> {
    asked: &'a libc::seccomp_notif,
}

/// What becomes of it.
#[derive(Clone, Copy)]
pub enum Answer {
    /// It is made.
    Made,
    /// It is not made, and returns this.
    Refused(Errno),
    /// It is not made, and its process is killed.
    Killed,
}

impl Call<'_> {
    /// Its number.
    pub fn number(&self) -> libc::c_long {
        self.asked.data.nr.into()
    }

    /// An argument, from 0.
    pub fn argument(&self, index: usize) -> u64 {
        self.asked.data.args[index]
    }

    /// The file that its process runs.
    pub fn program(&self) -> Option<PathBuf> {
        fs::read_link(self.proc("exe")).ok()
    }

    /// What a descriptor of its process is of.
    pub fn descriptor(&self, number: u64) -> Option<PathBuf> {
        fs::read_link(self.proc(&format!("fd/{number}"))).ok()
    }

    /// The text at an address in its process.
    pub fn text(&self, address: u64) -> Option<String> {
        let mut bytes = vec![0; PATH_BYTES];
        let read = self.memory(address, &mut bytes)?;
        Some(CStr::from_bytes_until_nul(&bytes[..read]).ok()?.to_string_lossy().into_owned())
    }

    /// The number of eight bytes at an address in its process.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.memory(address, &mut bytes)? == 8).then(|| u64::from_ne_bytes(bytes))
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Option<usize> {
        File::open(self.proc("mem")).and_then(|file| file.read_at(bytes, address)).ok()
    }

    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.asked.pid.to_string()).join(name)
    }
}

/// Runs a command and all that it starts, and has `answer` decide about each call that is asked about.
///
/// # Panics
/// Without privileges, or if the command cannot be run.
pub fn output(mut command: Command, asked: &[Asked], mut answer: impl FnMut(&Call<'_>) -> Answer) -> Output {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // A filter is of a thread, and of what it starts; it is gone when the last of them has ended.
        let runs = scope.spawn(move || {
            sender.send(listen(asked).expect("a filter of system calls")).expect("a supervisor");
            command.output().expect("the command runs")
        });
        let listener = receiver.recv().expect("a listener");
        while let Some(met) = next(&listener) {
            respond(&listener, &met, answer(&Call { asked: &met }));
        }
        runs.join().expect("the command has run")
    })
}

/// The next call; `None` where no process is left to make one.
fn next(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
    loop {
        let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::NONE).expect("poll");
        let events = polled[0].revents().unwrap_or(PollFlags::empty());
        if !events.contains(PollFlags::POLLIN) {
            return None;
        }
        // SAFETY: a struct of numbers, for which all zeros is valid; the kernel asks for it so.
        let mut met: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request takes this struct.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut met) } == 0 {
            return Some(met);
        }
        // The process that asked has ended meanwhile.
        assert_eq!(Errno::last(), Errno::ENOENT, "a call is received");
    }
}

fn respond(listener: &OwnedFd, met: &libc::seccomp_notif, answer: Answer) {
    let mut response = libc::seccomp_notif_resp { id: met.id, val: 0, error: 0, flags: 0 };
    match answer {
        Answer::Made => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Answer::Refused(errno) => response.error = -(errno as i32),
        Answer::Killed => {
            // It waits for an answer, and can be killed there.
            kill(Pid::from_raw(met.pid as i32), Signal::SIGKILL).expect("killed");
            return;
        }
    }
    // SAFETY: the request takes this struct.
    let sent = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response) };
    // The process that asked may have ended meanwhile.
    assert!(sent == 0 || Errno::last() == Errno::ENOENT, "answered: {}", Errno::last());
}

/// Puts a filter on this thread; what it asks is read from the descriptor.
fn listen(asked: &[Asked]) -> io::Result<OwnedFd> {
    let mut filter = filter(asked);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and what it points to live until the call returns.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &program,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Number of the call, and the lower half of its first argument, in what a filter looks at.
const NUMBER: u32 = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
const FIRST: u32 = std::mem::offset_of!(libc::seccomp_data, args) as u32;

/// For each: the number, else on to the next; the argument, else past the question.
fn filter(asked: &[Asked]) -> Vec<libc::sock_filter> {
    let load = |offset| op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let jump = |condition, value, yes, no| op(libc::BPF_JMP | condition | libc::BPF_K, value, yes, no);
    let answer = |value| op(libc::BPF_RET | libc::BPF_K, value, 0, 0);
    let mut filter = vec![load(NUMBER)];
    for Asked(call, first) in asked {
        let mut argument = Vec::new();
        match first {
            First::Any => {}
            First::OneOf(values) => {
                argument.push(load(FIRST));
                for (value, left) in values.iter().zip((0..values.len()).rev()) {
                    argument.push(jump(libc::BPF_JEQ, *value, left as u8, u8::from(left == 0)));
                }
            }
            First::Above(value) => {
                argument.extend([load(FIRST), jump(libc::BPF_JGT, *value, 0, 1)]);
            }
        }
        filter.push(jump(libc::BPF_JEQ, *call as u32, 0, argument.len() as u8 + 2));
        filter.extend(argument);
        filter.push(answer(libc::SECCOMP_RET_USER_NOTIF));
        filter.push(answer(libc::SECCOMP_RET_ALLOW));
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    filter
}

fn op(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}
