//! `onramp shadow`, which follows every connection.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_lab::experiment;
use onramp_net::Namespace;
use onramp_terminal::companion;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::clients::{Load, Stop};

#[derive(Serialize)]
pub(super) struct Shadow {
    /// Made meanwhile.
    pub connections: u64,
    /// Ends of connections that were followed.
    pub followed: u64,
    /// Ends of connections that were not, because those that are kept were enough.
    pub passed_over: u64,
    /// Observations for which the kernel had no room.
    pub dropped: u64,
    /// Of the shadow, of one processor.
    pub processors: f64,
}

/// What is taken of the shadow's own report.
#[derive(Deserialize)]
struct ShadowLoad {
    dropped: u64,
    skipped_too_many: u64,
    flows: Vec<IgnoredAny>,
}

/// Killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn measure(
    algorithm: &str,
    load: Load<'_>,
    time: Duration,
    stop: &Stop,
) -> anyhow::Result<Shadow> {
    let program = companion::find("onramp")?;
    // A command of a namespace, here of this one, dies with its parent.
    let mut command = Namespace::current()?.command(program);
    command.args(["--json", "shadow", "--algorithm", algorithm]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shadow = Process(command.spawn().context("onramp shadow cannot be started")?);
    let mut said = BufReader::new(shadow.0.stderr.take().context("onramp shadow has no stderr")?);
    let mut line = String::new();
    said.read_line(&mut line)?;
    ensure!(line.starts_with("watching"), "onramp shadow: {}", line.trim());
    let before = experiment::process_seconds(shadow.0.id())?;
    let stretch = load.run(time, stop)?;
    let seconds = experiment::process_seconds(shadow.0.id())? - before;
    kill(Pid::from_raw(shadow.0.id() as i32), Signal::SIGINT).context("cannot end onramp shadow")?;
    let mut text = String::new();
    shadow.0.stdout.take().context("onramp shadow has no stdout")?.read_to_string(&mut text)?;
    ensure!(shadow.0.wait()?.success(), "onramp shadow failed");
    let report: ShadowLoad = serde_json::from_str(&text).context("the report of onramp shadow")?;
    Ok(Shadow {
        connections: stretch.latency.count() as u64,
        followed: report.flows.len() as u64,
        passed_over: report.skipped_too_many,
        dropped: report.dropped,
        processors: seconds / stretch.seconds,
    })
}
