//! A command of the binary that is killed, or gets an error, at one of its system calls. The calls are counted, so a
//! command is cut off at exactly the step that is named, on every run.

mod supervisor;

use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use onramp_net::Namespace;

use crate::cli::{self, Ran};
use supervisor::{Answer, Asked, First};

/// Commands of bpf(2) that change what others can see, by their numbers in `enum bpf_cmd`; the others make, load or ask.
const BPF_COMMANDS: [(u32, &str); 8] = [
    (2, "BPF_MAP_UPDATE_ELEM"),
    (3, "BPF_MAP_DELETE_ELEM"),
    (BPF_OBJ_PIN, "BPF_OBJ_PIN"),
    (8, "BPF_PROG_ATTACH"),
    (9, "BPF_PROG_DETACH"),
    (28, "BPF_LINK_CREATE"),
    (29, "BPF_LINK_UPDATE"),
    (34, "BPF_LINK_DETACH"),
];
const BPF_OBJ_PIN: u32 = 6;

/// The wait for programs of BPF that run now, membarrier(2).
pub const WAIT: &str = "membarrier";

/// Calls that change files and directories, and which of their arguments is a path.
const PATHS: &[(libc::c_long, &str, usize)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir", 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink", 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", 1),
    (libc::SYS_mkdirat, "mkdirat", 1),
    (libc::SYS_unlinkat, "unlinkat", 1),
    (libc::SYS_renameat2, "renameat2", 3),
    (libc::SYS_linkat, "linkat", 3),
    (libc::SYS_mount, "mount", 1),
];

/// Errors that a step may be answered by: not allowed, no room, no memory, too many open files.
const ERRORS: [Errno; 4] = [Errno::EPERM, Errno::ENOSPC, Errno::ENOMEM, Errno::EMFILE];

/// What a command meets at each of its steps.
#[derive(Debug, Clone, Copy)]
pub enum Disturbed {
    /// It is killed at one and gets an error at the next.
    ByTurns,
    /// Both, one after the other.
    BothWays,
}

impl Disturbed {
    /// Whether it is killed or gets an error, at the step of this number.
    pub fn kills(self, step: usize) -> impl Iterator<Item = bool> {
        [true, false]
            .into_iter()
            .filter(move |kills| matches!(self, Self::BothWays) || *kills == step.is_multiple_of(2))
    }
}

/// A system call by which a command changes something outside of itself: the bpf(2) commands above, files and directories,
/// and what is written to a file that it has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    kind: String,
    /// Which of that kind it is, from 1.
    number: usize,
}

impl Call {
    /// What it has in common with others of a row: all but the name of the file in its directory.
    fn row(&self) -> &str {
        self.kind.rsplit_once('/').map_or(self.kind.as_str(), |(directory, _)| directory)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
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
    /// Runs it undisturbed, and returns the calls by which it changed something, in their order. Of a row of
    /// such as change the same file, or files in the same directory, the first and the last.
    ///
    /// # Panics
    /// If it fails, or changes nothing.
    pub fn changes(&self) -> Vec<Call> {
        let (output, calls) = self.supervised(|_| Answer::Made);
        Ran::from(output).ok();
        assert!(!calls.is_empty(), "{} changes nothing", self.arguments);
        let same = |one: &Call, other: Option<&Call>| other.is_some_and(|other| one.row() == other.row());
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
    pub fn steps(&self) -> impl Iterator<Item = (Call, Errno)> + use<> {
        self.changes().into_iter().zip(ERRORS.iter().copied().cycle())
    }

    /// Runs it until that call, which it does not live to see done.
    ///
    /// # Panics
    /// If it ends otherwise, or without that call.
    pub fn killed_before(&self, call: &Call) {
        let output = self.disturbed(call, Answer::Killed);
        assert_eq!(output.status.signal(), Some(Signal::SIGKILL as i32), "{call:?}: {output:?}");
    }

    /// Runs it with that call answered by an error, such as `EPERM`.
    ///
    /// # Panics
    /// If it does not make that call.
    pub fn fail(&self, call: &Call, error: Errno) -> Ran {
        self.disturbed(call, Answer::Refused(error)).into()
    }

    /// Kills it before each of its steps, and has each answered by an error; says what was found each time. `prepare` makes
    /// what it finds; `found` looks at what is there then.
    pub fn disturb(&self, prepare: impl Fn(), found: impl Fn(&Call, Option<Ran>)) {
        prepare();
        for (call, error) in self.steps() {
            prepare();
            self.killed_before(&call);
            found(&call, None);
            prepare();
            let ran = self.fail(&call, error);
            println!("{error:?} at {call}: {:?} {}", ran.code, ran.stderr.trim());
            found(&call, Some(ran));
        }
    }

    fn disturbed(&self, at: &Call, how: Answer) -> Output {
        let (output, met) = self.supervised(|call| if call == at { how } else { Answer::Made });
        assert!(met.contains(at), "no {at:?} as on the run before, but {met:#?}: {output:?}");
        output
    }

    /// Runs the command, has each call answered by which it would change something, and returns these.
    fn supervised(&self, answer: impl Fn(&Call) -> Answer) -> (Output, Vec<Call>) {
        let mut command = self.namespace.command(cli::binary());
        command.args(self.arguments.split_whitespace());
        let program = fs::canonicalize(cli::binary()).expect("the binary");
        let mut calls: Vec<Call> = Vec::new();
        let output = supervisor::output(command, &asked(), |call| {
            // Not what comes before the command in its process.
            let ours = call.program().as_ref() == Some(&program);
            let Some(kind) = ours.then(|| kind(call)).flatten() else { return Answer::Made };
            let number = calls.iter().filter(|one| one.kind == kind).count() + 1;
            calls.push(Call { kind, number });
            answer(&calls[calls.len() - 1])
        });
        (output, calls)
    }
}

/// The calls that may change something, and that wait for what reads it.
fn asked() -> Vec<Asked> {
    let bpf = BPF_COMMANDS.iter().map(|(number, _)| *number).collect();
    let mut asked = vec![Asked(libc::SYS_bpf, First::OneOf(bpf)), Asked(libc::SYS_write, First::Above(2))];
    asked.push(Asked(libc::SYS_membarrier, First::Any));
    asked.extend(PATHS.iter().map(|&(call, ..)| Asked(call, First::Any)));
    asked
}

/// What a call would change, and where; `None` for what is written to a pipe or to memory, and for a directory that is there.
fn kind(call: &supervisor::Call<'_>) -> Option<String> {
    let text = |address| call.text(address).unwrap_or_default();
    if call.number() == libc::SYS_bpf {
        let (number, name) =
            BPF_COMMANDS.iter().find(|(number, _)| u64::from(*number) == call.argument(0))?;
        // The attributes begin with the path.
        let pinned = (*number == BPF_OBJ_PIN).then(|| call.word(call.argument(1))).flatten();
        return Some(pinned.map_or_else(|| (*name).into(), |path| format!("{name} {}", text(path))));
    }
    if call.number() == libc::SYS_membarrier {
        return Some(WAIT.into());
    }
    if call.number() == libc::SYS_write {
        let file = call.descriptor(call.argument(0))?;
        let file = file.display().to_string();
        let outside = file.starts_with('/') && !file.starts_with("/memfd:");
        return outside.then(|| format!("write {file}"));
    }
    let (_, name, path) = PATHS.iter().find(|(number, ..)| *number == call.number())?;
    let path = text(call.argument(*path));
    let made = !name.starts_with("mkdir") || !Path::new(&path).exists();
    made.then(|| format!("{name} {path}"))
}
