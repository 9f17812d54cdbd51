// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Boots a guest, follows what it says, and ends it.
//!
//! All that QEMU reads and writes is in memory of this process and its own: whatever is killed, nothing is left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Component, Path};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};

use super::archive::Archive;
use super::image::{Image, SELF};
use super::inside::{TASK, Task};
use super::processor::Processor;
use super::wire::{End, Frame, Frames, Stream};
use super::{GuestError, pace, port, programs};
use crate::digest::hex;

/// QEMU's emulator of this machine.
const QEMU: &str = "qemu-system-x86_64";
/// The Debian package that has it.
const PACKAGE: &str = "qemu-system-x86";
/// How often a running guest is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// A task takes as much memory as others, so that the layout of memory does not depend on it.
const TASK_BYTES: usize = 128 * 1024;
/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 8;
/// One instruction takes one of QEMU's nanoseconds, which are less for the guest ([`pace`]), and idle time is skipped.
/// QEMU is made to record, to nowhere: while it records, its main loop cannot look at the clock in the moment in which the
/// processor has halted and not yet counted what it has done. Without this one run in five was some 200 ns off from there on.
const RECORD: &str = "shift=0,sleep=off,rr=record,rrfile=/dev/null";
/// The kernel's command line: a panic ends the machine; no randomness in addresses; and nothing that costs instructions
/// and protects, measures or looks for what is not there. Calibrating clocks by waiting is most of what a boot costs:
/// the clock's frequency is known, and the timer is the HPET, which needs no calibration. Nothing here draws on the jitter
/// of a processor, which would test itself first. A listing of sockets goes
/// through all of their table, which is otherwise made for as many as the memory would hold.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 oops=panic nokaslr norandmaps mitigations=off \
    tsc=reliable nolapic_timer no_timer_check cryptomgr.notests audit=0 lsm= init_on_alloc=0 \
    hardened_usercopy=off randomize_kstack_offset=off nowatchdog noreplace-smp transparent_hugepage=never \
    thash_entries=1024 \
    initcall_blacklist=hpet_late_init,init_acpi_pm_clocksource,load_system_certificate_list,init_kprobe_trace,\
trace_eval_init,bpf_dummy_struct_ops_init,jent_mod_init";

/// What a guest is to do.
#[derive(Debug)]
pub struct Guest<'a> {
    /// What it boots.
    pub image: &'a Image,
    /// Program and arguments; run as root.
    pub command: Vec<String>,
    /// Its environment, in addition to PATH, HOME and [`super::inside::VARIABLE`].
    pub environment: BTreeMap<String, String>,
    /// Files that it finds, by their absolute paths.
    pub inputs: BTreeMap<String, Vec<u8>>,
    /// Memory, MiB, 256 to 65 536.
    pub memory_mib: u32,
    /// After so many seconds of the host it is given up.
    pub seconds: u64,
}

/// What a guest has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Exit code of the command.
    pub status: u8,
    /// Files that it left in [`super::inside::OUT`], by their paths below it.
    pub files: BTreeMap<String, Vec<u8>>,
    /// From the guest's boot to the end of the command, by its own clock, seconds.
    pub guest_seconds: f64,
    /// Processor time of the host that it took, seconds.
    pub host_cpu_seconds: f64,
}

impl Guest<'_> {
    /// SHA-256 of all that decides what happens in it: kernel, file system, task, QEMU's version and arguments, in
    /// hexadecimal.
    ///
    /// # Errors
    /// [`GuestError`] where QEMU is missing.
    pub fn identity(&self) -> Result<String, GuestError> {
        let mut digest = Sha256::new().chain_update(self.image.digest()).chain_update(version()?);
        for argument in self.arguments() {
            digest.update(argument.as_bytes());
            digest.update([0]);
        }
        Ok(hex(&digest.chain_update(self.task()).finalize()))
    }

    /// Boots it, calls `print` with what the command prints, and waits for the end.
    ///
    /// # Errors
    /// [`GuestError::Deadline`], [`GuestError::BrokeOff`] with the console's last lines; [`GuestError::Missing`]
    /// without QEMU.
    pub fn run(&self, mut print: impl FnMut(Stream, &[u8])) -> Result<Outcome, GuestError> {
        let program = programs::find(QEMU, PACKAGE)?;
        let memory =
            |name| memory_file(name).map_err(GuestError::file("create", format!("memory file {name}")));
        let (kernel, initrd) = (memory("kernel")?, memory("initrd")?);
        let (said, console) = (memory("said")?, memory("console")?);
        let (image, task) = (self.image, self.task());
        for (mut file, content) in [(&kernel, image.vmlinux()), (&initrd, image.archive()), (&initrd, &task)]
        {
            file.write_all(content).map_err(GuestError::file("write", "a file in memory"))?;
        }
        let mut command = Command::new(&program);
        command.args(self.arguments()).arg("-kernel").arg(path_of(&kernel));
        command.arg("-initrd").arg(path_of(&initrd));
        command.arg("-serial").arg(format!("file:{}", path_of(&console)));
        command.arg("-chardev").arg(format!("file,id=said,path={}", path_of(&said)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let processor = Processor::take();
        let descriptors = [&kernel, &initrd, &said, &console].map(|file| file.as_raw_fd());
        prepare(&mut command, descriptors, processor.as_ref().map(Processor::set));
        let cannot =
            |source: io::Error| GuestError::Run { program: QEMU.into(), message: source.to_string() };
        let mut machine = Machine { child: command.spawn().map_err(cannot)?, cpu_seconds: 0.0 };
        let begin = Instant::now();
        let mut reader = Reader { said, at: 0, frames: Frames::default(), files: BTreeMap::new(), end: None };
        let status = loop {
            let ended = machine.ended().map_err(cannot)?;
            reader
                .read(&mut print)
                .map_err(|how| GuestError::BrokeOff { how, console: last_lines(&console) })?;
            if let Some(status) = ended {
                break status;
            }
            if begin.elapsed().as_secs() >= self.seconds {
                return Err(GuestError::Deadline { seconds: self.seconds, console: last_lines(&console) });
            }
            std::thread::sleep(LOOK);
        };
        let Reader { files, end: Some(End { status, uptime_seconds }), .. } = reader else {
            let cut = if reader.frames.is_cut_short() { ", in the middle of what it said" } else { "" };
            let how = how_it_ended(status, &mut machine.child) + cut;
            return Err(GuestError::BrokeOff { how, console: last_lines(&console) });
        };
        Ok(Outcome { status, files, guest_seconds: uptime_seconds, host_cpu_seconds: machine.cpu_seconds })
    }

    /// What the first process reads, as an archive after the image's.
    fn task(&self) -> Vec<u8> {
        let task = Task { command: self.command.clone(), environment: self.environment.clone() };
        let mut archive = Archive::default();
        for (path, content) in &self.inputs {
            archive.file(path, false, content);
        }
        // Text and lists of text: they can always be written.
        archive.file(TASK, false, &serde_json::to_vec(&task).unwrap_or_default());
        let mut bytes = archive.finish();
        bytes.resize(bytes.len().next_multiple_of(TASK_BYTES), 0);
        bytes
    }

    fn arguments(&self) -> Vec<String> {
        let processor = &self.image.kernel().processor;
        let memory = self.memory_mib.to_string();
        let port = format!("isa-debugcon,iobase={:#x},chardev=said", port::NUMBER);
        let line = format!("{COMMAND_LINE} {} rdinit={SELF} -- inside", pace::argument());
        [
            // One thread: with several, one of them may still see the int3 of a jump label that is patched already.
            ["-accel", "tcg,thread=single"],
            // This machine is given no random seed.
            ["-machine", "pc-i440fx-7.1"],
            ["-cpu", processor],
            ["-smp", "1"],
            ["-m", &memory],
            ["-display", "none"],
            ["-seed", "1"],
            ["-rtc", "base=2026-01-01,clock=vm"],
            ["-icount", RECORD],
            ["-device", &port],
            ["-append", &line],
        ]
        .iter()
        .flatten()
        .chain(&["-nodefaults", "-no-user-config", "-no-reboot"])
        .map(|argument| (*argument).to_owned())
        .collect()
    }
}

/// QEMU's version, `7.2.22`.
///
/// # Errors
/// [`GuestError::Missing`] where it is not installed.
pub fn version() -> Result<String, GuestError> {
    let output = Command::new(programs::find(QEMU, PACKAGE)?).arg("--version").output();
    let output =
        output.map_err(|source| GuestError::Run { program: QEMU.into(), message: source.to_string() })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().skip_while(|word| *word != "version").nth(1).map(str::to_owned);
    version.ok_or_else(|| GuestError::Run {
        program: QEMU.into(),
        message: "it does not say its version".into(),
    })
}

/// A running QEMU; killed by its own pid when dropped.
struct Machine {
    child: Child,
    /// Processor time that it took, once it has ended, seconds.
    cpu_seconds: f64,
}

impl Machine {
    /// How it has ended, if it has.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let id = self.child.id();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // Its times can be read until it is waited for.
        if waitid(Id::Pid(Pid::from_raw(id as i32)), flags)? != WaitStatus::StillAlive {
            self.cpu_seconds = crate::experiment::process_seconds(id).unwrap_or(0.0);
        }
        self.child.try_wait()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Fails only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Follows what the guest says.
struct Reader {
    said: File,
    at: u64,
    frames: Frames,
    files: BTreeMap<String, Vec<u8>>,
    end: Option<End>,
}

impl Reader {
    fn read(&mut self, print: &mut impl FnMut(Stream, &[u8])) -> Result<(), String> {
        let mut buffer = vec![0; 256 * 1024];
        while let bytes @ 1.. = self.said.read_at(&mut buffer, self.at).map_err(|error| error.to_string())? {
            self.at += bytes as u64;
            self.frames.feed(&buffer[..bytes]);
            while let Some(frame) = self.frames.next()? {
                match frame {
                    Frame::Printed(stream, bytes) => print(stream, &bytes),
                    Frame::File { path, content } if is_below(&path) => {
                        drop(self.files.insert(path, content))
                    }
                    Frame::File { path, .. } => return Err(format!("a file is called {path:?}")),
                    Frame::End(end) => self.end = Some(end),
                }
            }
        }
        Ok(())
    }
}

/// Whether a path stays below the directory that it is relative to.
fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn how_it_ended(status: ExitStatus, child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // What was read before an error is still worth showing.
        let _ = io::Read::read_to_string(stderr, &mut said);
    }
    let how = match (status.signal(), said.trim()) {
        (Some(signal), _) => format!("QEMU was ended by signal {signal}"),
        (None, "") if status.success() => "it powered off without a result".to_owned(),
        (None, "") => format!("QEMU ended with {status}"),
        (None, said) => format!("QEMU: {said}"),
    };
    how.replace('\n', "; ")
}

/// The console's last lines, as one.
fn last_lines(console: &File) -> String {
    let mut bytes = vec![0; console.metadata().map_or(0, |data| data.len() as usize)];
    let read = console.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]);
    let printable = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<_> = text.lines().map(printable).filter(|line| !line.trim().is_empty()).collect();
    match &lines[lines.len().saturating_sub(CONSOLE_LINES)..] {
        [] => "(none)".to_owned(),
        last => last.join(" | "),
    }
}

/// A file in memory.
fn memory_file(name: &str) -> io::Result<File> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is a NUL-terminated string that outlives the call.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here alone.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

/// What QEMU opens to have it.
fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The child keeps these descriptors, runs on this processor, and ends when the thread that starts it does.
fn prepare(command: &mut Command, descriptors: [i32; 4], processor: Option<CpuSet>) {
    let prepare = move || {
        for descriptor in descriptors {
            // SAFETY: F_SETFD changes a flag of a descriptor that is open: this process holds it.
            if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(set) = &processor {
            // Where it is refused, the guest is slower and does the same.
            let _ = sched_setaffinity(Pid::from_raw(0), set);
        }
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec only system calls are made, no memory is allocated and no lock is taken.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_cannot_name_files_outside() {
        assert!(is_below("run/flow.csv"));
        for path in ["", "/etc/passwd", "../x", "a/../../x"] {
            assert!(!is_below(path), "{path}");
        }
    }

    #[test]
    fn the_consoles_last_lines_are_one() {
        let console = memory_file("console").unwrap();
        assert_eq!(last_lines(&console), "(none)");
        (&console).write_all(b"one\r\n\n\x1b[2Jtwo\nKernel panic - not syncing: no init\n").unwrap();
        assert_eq!(last_lines(&console), "one | [2Jtwo | Kernel panic - not syncing: no init");
    }
}
