//! A replay as a figure, drawn by `onramp-lab plot`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use onramp_recording::replay::{FlowReport, Point};
use onramp_terminal::companion;
use serde_json::{Value, json};

use crate::failure;

/// Has the flows drawn into a file; `-` is standard output. Returns the exit code: where it is not 0, `onramp-lab` has said why.
pub(super) fn write(path: &Path, flows: &[FlowReport]) -> anyhow::Result<u8> {
    let program = companion::find("onramp-lab")?;
    let mut child = Command::new(&program)
        .args(["plot", "--output"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot execute {}", program.display()))?;
    let drawing = json!({ "flows": flows.iter().map(drawn).collect::<Vec<_>>() });
    let to = child.stdin.take().context("onramp-lab has no stdin")?;
    let written = serde_json::to_writer(to, &drawing);
    let status = child.wait()?;
    if status.success() {
        written.context("onramp-lab plot has ended early")?;
    }
    Ok(failure::of_command(status))
}

fn drawn(flow: &FlowReport) -> Value {
    let point = |point: &Point| json!([point.at_us, point.window_bytes, point.in_flight_bytes]);
    json!({
        "flow": flow.flow,
        "duration_us": flow.duration_us,
        "points": flow.trace.points.iter().map(point).collect::<Vec<_>>(),
        "findings": flow.findings,
    })
}
