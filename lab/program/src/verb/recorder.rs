//! `onramp record` next to a run in a guest.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_recording::Manifest;

/// Directory of a run's recording, next to its other files.
pub(super) const RECORDING: &str = "recording";
/// What records.
const PROGRAM: &str = "onramp";
/// How often to look whether it has begun; waiting is free in virtual time.
const LOOK: Duration = Duration::from_millis(10);
/// How long it has for the last events of a run.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Records the flows of onramp's algorithms until [`Recorder::finish`].
pub(super) struct Recorder {
    child: Child,
    directory: PathBuf,
}

impl Recorder {
    /// Returns once it has subscribed to events.
    pub fn start(directory: PathBuf) -> anyhow::Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(["--quiet", "record", "--output"]).arg(&directory);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot run {PROGRAM} record"))?;
        let mut recorder = Self { child, directory };
        // It writes the manifest when it has subscribed.
        while Manifest::read(&recorder.directory).is_err() {
            if let Some(status) = recorder.child.try_wait()? {
                bail!("{PROGRAM} record ended before the run: {status}");
            }
            thread::sleep(LOOK);
        }
        Ok(recorder)
    }

    /// Ends it.
    ///
    /// # Errors
    /// It failed, or it was too slow for some of the events.
    pub fn finish(mut self) -> anyhow::Result<()> {
        thread::sleep(LAST_EVENTS);
        let signal = Some(Signal::SIGINT);
        kill(Pid::from_raw(self.child.id() as i32), signal).context("cannot end the recorder")?;
        let status = self.child.wait().context("cannot wait for the recorder")?;
        let manifest = Manifest::read(&self.directory)?;
        if !(status.success() && manifest.complete) {
            bail!("{PROGRAM} record failed: {status}");
        }
        if manifest.dropped_events > 0 {
            bail!("the recording lacks {} events", manifest.dropped_events);
        }
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Fails only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
