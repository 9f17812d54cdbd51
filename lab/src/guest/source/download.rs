// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is at a URL, by curl: it knows the machine's certificates and proxies.

use std::io::Read;
use std::process::{Command, Stdio};

use super::error::SourceError;
use crate::guest::{GuestError, programs};

/// It goes to standard output. A server that sends nothing for a minute is given up.
const ARGUMENTS: [&str; 15] = [
    "--silent",
    "--show-error",
    "--fail",
    "--globoff",
    "--location",
    "--max-redirs",
    "10",
    "--proto",
    "=http,https",
    "--connect-timeout",
    "30",
    "--speed-limit",
    "1",
    "--speed-time",
    "60",
];

/// All of it.
///
/// # Errors
/// [`GuestError::Missing`] without curl; [`SourceError::Download`] with what it said; [`SourceError::Large`].
pub(super) fn download(url: &str, most_bytes: u64) -> Result<Vec<u8>, GuestError> {
    let failed = |message: String| SourceError::Download { at: url.to_owned(), message };
    let mut child = Command::new(programs::find("curl", "curl")?)
        .args(ARGUMENTS)
        .args(["--url", url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = match child.stdout.take() {
        Some(stdout) => stdout.take(most_bytes + 1).read_to_end(&mut bytes),
        None => Ok(0),
    };
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    read.map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > most_bytes {
        return Err(SourceError::Large { at: url.to_owned(), most_bytes }.into());
    }
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("curl said nothing");
        return Err(failed(said.to_owned()).into());
    }
    Ok(bytes)
}
