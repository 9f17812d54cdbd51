//! `onramp record` in progress.

use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cli::{self, Ran};
use crate::traffic::eventually;

/// A recorder; killed when dropped.
pub struct Recorder(Option<Child>);

impl Recorder {
    /// Starts it with these arguments, split at spaces, and waits until it records into the directory.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(directory: &Path, arguments: &str) -> Self {
        let mut command = cli::command(["record", "-o"]);
        command.arg(directory).args(arguments.split_whitespace());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("onramp runs");
        let recorder = Self(Some(child));
        // The manifest comes after the stream is open.
        assert!(eventually(|| directory.join("manifest.json").exists()), "no recording begins");
        recorder
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If that fails.
    pub fn signal(&self, signal: Signal) {
        let child = self.0.as_ref().expect("there until it is waited for");
        kill(Pid::from_raw(child.id() as i32), signal).expect("kill");
    }

    /// Whether it has ended by itself.
    ///
    /// # Panics
    /// If it cannot be asked.
    pub fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("there until it is waited for");
        child.try_wait().expect("wait").is_some()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If its output cannot be read.
    pub fn wait(mut self) -> Ran {
        let child = self.0.take().expect("there until it is waited for");
        child.wait_with_output().expect("output").into()
    }

    /// Ends it as Ctrl-C does.
    ///
    /// # Panics
    /// If that fails.
    pub fn end(self) -> Ran {
        self.signal(Signal::SIGINT);
        self.wait()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
