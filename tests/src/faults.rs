//! A command of the binary that is killed, or told of an error, at one of its system calls. strace counts them, so a
//! command is cut off at exactly the step that is named, on every run.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Output};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use onramp_net::Namespace;

use crate::cli::{self, Ran};

/// System calls by which a command changes something outside of itself.
const CALLS: &str = "bpf,mkdir,rmdir,unlink,rename,renameat2,linkat,mount,write";

/// Commands of bpf(2) that change what others can see; the others make, load or ask.
const BPF_COMMANDS: [&str; 8] = [
    "BPF_OBJ_PIN",
    "BPF_MAP_UPDATE_ELEM",
    "BPF_MAP_DELETE_ELEM",
    "BPF_LINK_CREATE",
    "BPF_LINK_UPDATE",
    "BPF_LINK_DETACH",
    "BPF_PROG_ATTACH",
    "BPF_PROG_DETACH",
];

/// Errors that a step may be answered by: not allowed, no room, no memory, too many open files.
const ERRORS: [&str; 4] = ["EPERM", "ENOSPC", "ENOMEM", "EMFILE"];

/// The kernel frees in its own time.
const SETTLING: Duration = Duration::from_millis(300);

/// What a command meets at each of its steps.
#[derive(Debug, Clone, Copy)]
pub enum Disturbed {
    /// It is killed at one and told of an error at the next.
    ByTurns,
    /// Both, one after the other.
    BothWays,
}

impl Disturbed {
    /// Whether it is killed or told, at the step of this number.
    pub fn kills(self, step: usize) -> impl Iterator<Item = bool> {
        [true, false]
            .into_iter()
            .filter(move |kills| matches!(self, Self::BothWays) || *kills == step.is_multiple_of(2))
    }
}

/// A system call of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    name: String,
    /// The thread that makes it.
    thread: String,
    /// Which of that name it is in the thread's life, from 1.
    number: usize,
    /// As strace shows it.
    shown: String,
}

impl Call {
    /// Whether it changes something: the bpf(2) commands above, files and directories, and what is written to a file
    /// that the command has opened.
    fn changes(&self) -> bool {
        let arguments = &self.shown[self.name.len() + 1..];
        let done = !self.shown.contains(") = -1 ");
        done && match self.name.as_str() {
            "bpf" => BPF_COMMANDS.iter().any(|command| arguments.starts_with(command)),
            "write" => !arguments.starts_with("1,") && !arguments.starts_with("2,"),
            _ => true,
        }
    }

    /// What it does, without the descriptors by which it is done.
    fn kind(&self) -> &str {
        let end = match self.name.as_str() {
            "bpf" if self.shown.contains("BPF_OBJ_PIN") => self.shown.find(", bpf_fd"),
            "bpf" | "write" => self.shown.find(','),
            _ => self.shown.find(')'),
        };
        &self.shown[..end.unwrap_or(self.shown.len())]
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// A command of the binary in a network namespace.
pub struct Traced<'a> {
    /// Where it runs.
    pub namespace: &'a Namespace,
    /// Its arguments, split at spaces.
    pub arguments: String,
}

impl Traced<'_> {
    /// Runs it undisturbed, and returns the calls by which it changed something, in their order. Of a row of equal ones
    /// the first and the last.
    ///
    /// # Panics
    /// If it fails, or changes nothing.
    pub fn changes(&self) -> Vec<Call> {
        let (output, mut calls) = self.strace(&[]);
        Ran::from(output).ok();
        // strace counts for each thread: a call is left out where the same count of another thread comes before.
        let all = calls.clone();
        let first = |call: &Call| all.iter().find(|one| (&one.name, one.number) == (&call.name, call.number));
        calls.retain(|call| call.changes() && first(call) == Some(call));
        assert!(!calls.is_empty(), "{} changes nothing", self.arguments);
        let same = |one: &Call, other: Option<&Call>| other.is_some_and(|other| one.kind() == other.kind());
        let kept = (0..calls.len()).filter(|&at| {
            let (before, after) = (at.checked_sub(1).and_then(|index| calls.get(index)), calls.get(at + 1));
            !(same(&calls[at], before) && same(&calls[at], after))
        });
        kept.map(|at| calls[at].clone()).collect()
    }

    /// [`Traced::changes`], each with one of the errors, in turn.
    ///
    /// # Panics
    /// As that.
    pub fn steps(&self) -> impl Iterator<Item = (Call, &'static str)> + use<> {
        self.changes().into_iter().zip(ERRORS.iter().copied().cycle())
    }

    /// Runs it until that call, which it does not live to see done.
    ///
    /// # Panics
    /// If it ends otherwise, or at another call.
    pub fn killed_before(&self, call: &Call) {
        let output = self.disturbed(call, "signal=KILL");
        assert_eq!(output.status.signal(), Some(Signal::SIGKILL as i32), "{call:?}: {output:?}");
    }

    /// Runs it with that call answered by an error, such as `EPERM`. `None`, and not run, for what a thread writes: strace
    /// counts for each thread, and would hit what another one prints.
    ///
    /// # Panics
    /// If it was another call.
    pub fn told(&self, call: &Call, error: &str) -> Option<Ran> {
        (call.name != "write").then(|| self.disturbed(call, &format!("error={error}")).into())
    }

    fn disturbed(&self, call: &Call, how: &str) -> Output {
        let (output, calls) =
            self.strace(&["-e", &format!("inject={}:{how}:when={}", call.name, call.number)]);
        let met = calls.iter().find(|one| (&one.name, one.number) == (&call.name, call.number));
        assert_eq!(met.map(Call::kind), Some(call.kind()), "another call than on the run before");
        output
    }

    /// Runs the command below strace, and returns its calls.
    fn strace(&self, options: &[&str]) -> (Output, Vec<Call>) {
        // What was freed before is gone by then, too: libbpf asks for each type information there is, a call for each.
        thread::sleep(SETTLING);
        let path = std::env::temp_dir().join(format!("onramp-test-calls-{}", process::id()));
        let mut command = self.namespace.command("strace");
        command.args(["-f", "-qq", "-s", "100", "-e", "signal=none", "-e", &format!("trace={CALLS}"), "-o"]);
        command.arg(&path).args(options).arg(cli::binary()).args(self.arguments.split_whitespace());
        let output = command.output().expect("strace runs");
        let trace = std::fs::read_to_string(&path).expect("trace");
        std::fs::remove_file(&path).expect("remove");
        let mut calls: Vec<Call> = Vec::new();
        for line in trace.lines() {
            let (thread, shown) = line.split_once(' ').expect("number of a thread");
            let shown = shown.trim_start();
            let Some((name, _)) = shown.split_once('(') else { continue };
            let alike = |call: &&Call| call.name == name && call.thread == thread;
            let number = calls.iter().filter(alike).count() + 1;
            calls.push(Call { name: name.into(), thread: thread.into(), number, shown: shown.into() });
        }
        (output, calls)
    }
}
