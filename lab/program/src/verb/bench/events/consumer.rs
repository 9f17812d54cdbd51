//! The kinds of consumers, each started alone.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_lab::host::RECEIVER;
use onramp_loader::telemetry::{Level, Options};
use onramp_net::Namespace;
use onramp_terminal::companion;
use tempfile::TempDir;

use super::super::telemetry::Listener;

/// How long a child may take to subscribe, and to end.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Terminal of `onramp top`.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// A consumer of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bare stream of this process that only counts.
    Stream,
    /// `onramp watch --json` into /dev/null.
    Watch,
    /// `onramp record` into a temporary directory.
    Record,
    /// `onramp top` on a pseudo-terminal.
    Top,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Stream, Self::Watch, Self::Record, Self::Top];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Watch => "watch",
            Self::Record => "record",
            Self::Top => "top",
        }
    }

    /// Its subscription; `top` gets rounds of all flows, and ACKs only of one that is opened.
    pub fn level(self) -> Level {
        if self == Self::Top { Level::Round } else { Level::Ack }
    }
}

/// A consumer in progress, of the flows to the receiver alone.
pub(super) enum Consumer {
    Here(Listener),
    Child(Process),
}

impl Consumer {
    /// Starts it and waits until it has subscribed.
    pub fn start(kind: Kind) -> anyhow::Result<Self> {
        if kind == Kind::Stream {
            let mut options = Options::new("bench", kind.level());
            options.subscription.filter.remote = Some((RECEIVER.into(), 32));
            return Ok(Self::Here(Listener::start(&options)?));
        }
        Process::start(kind).map(Self::Child).with_context(|| format!("onramp {}", kind.name()))
    }

    /// The process whose processor time is the consumer's: of a bare stream this one, which does little else.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Here(_) => std::process::id(),
            Self::Child(process) => process.child.id(),
        }
    }

    /// Ends it; fails if it has ended before.
    pub fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Here(listener) => listener.stop().map(|_| ()),
            Self::Child(process) => process.stop(),
        }
    }
}

/// A verb of onramp. Killed when dropped, and with this process, however that ends.
pub(super) struct Process {
    kind: Kind,
    child: Child,
    /// Removed after the child has ended.
    _directory: Option<TempDir>,
}

impl Process {
    fn start(kind: Kind) -> anyhow::Result<Self> {
        let directory = (kind == Kind::Record).then(tempfile::tempdir).transpose();
        let directory = directory.context("cannot make a temporary directory")?;
        let program = companion::find("onramp")?;
        // A command of a namespace, here of this one, dies with its parent.
        let here = Namespace::current()?;
        let mut command = match kind {
            // In a session of its own it does not find the terminal that this process may have.
            Kind::Top => here.command("setsid"),
            _ => here.command(&program),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        match &directory {
            Some(directory) => command.args(["record", "--quiet", "--output"]).arg(directory.path()),
            None if kind == Kind::Watch => command.args(["watch", "--json", "--level", "ack"]),
            None => on_terminal(command.arg(&program).arg("top"))?,
        };
        let child = command.args(["dst", &RECEIVER.to_string()]).spawn().context("cannot be started")?;
        let mut process = Self { kind, child, _directory: directory };
        process.await_listening()?;
        Ok(process)
    }

    fn await_listening(&mut self) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !onramp_loader::consumers()?.iter().any(|one| one.pid == self.child.id()) {
            if self.has_ended()? {
                bail!("it ended at once: {}", self.said());
            }
            if begin.elapsed() > TIMEOUT {
                bail!("it has not subscribed after {} s", TIMEOUT.as_secs());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait().context("cannot be waited for")?.is_some())
    }

    /// What it wrote to stderr; it has ended.
    fn said(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            // What was read before an error is still worth showing.
            let _ = stderr.read_to_string(&mut text);
        }
        text.trim().replace('\n', "; ")
    }

    fn stop(mut self) -> anyhow::Result<()> {
        if self.has_ended()? {
            bail!("onramp {} ended early: {}", self.kind.name(), self.said());
        }
        // It frees its slot before it ends, so that the next consumer is alone.
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).context("cannot end a consumer")?;
        let begin = Instant::now();
        while !self.has_ended()? {
            if begin.elapsed() > TIMEOUT {
                bail!("onramp {} does not end within {} s", self.kind.name(), TIMEOUT.as_secs());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives the command a terminal whose other side is read until the command has ended.
fn on_terminal(command: &mut Command) -> anyhow::Result<&mut Command> {
    let terminal = openpty(&SIZE, None).context("cannot make a pseudo-terminal")?;
    for side in [&terminal.master, &terminal.slave] {
        // No other child is to hold it open.
        fcntl(side.as_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("cannot keep a terminal")?;
    }
    let near = |side: &OwnedFd| side.try_clone().context("cannot use a terminal");
    command.env("TERM", "xterm-256color").stdin(near(&terminal.slave)?).stdout(terminal.slave);
    let mut screen = File::from(terminal.master);
    // Ends when no process has the other side any more.
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while matches!(screen.read(&mut buffer), Ok(1..)) {}
    });
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_has_its_size_and_is_read_to_its_end() {
        let mut command = Command::new("sh");
        // More than a terminal holds unread.
        command.args(["-c", "stty size >&2; head -c 1000000 /dev/zero"]).stderr(Stdio::piped());
        let child = on_terminal(&mut command).unwrap().spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "40 120\n");
    }
}
