// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Exit codes, and errors as one sentence.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::anyhow;

/// It failed.
pub const FAILURE: u8 = 1;
/// It was asked for wrongly; clap's own code too.
pub const USAGE: u8 = 2;
/// This kernel cannot.
pub const UNSUPPORTED: u8 = 3;
/// A privilege is missing.
pub const PRIVILEGE: u8 = 4;
/// Done in part.
pub const PARTIAL: u8 = 5;

/// Something was asked for wrongly.
#[derive(Debug)]
pub struct Usage(String);

impl Usage {
    /// An error with this text, which names the argument and what may be given instead.
    pub fn error(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

/// That a file which was named cannot be read; where there is none it was named wrongly.
pub fn unread(name: impl fmt::Display, error: &io::Error) -> anyhow::Error {
    let text = format!("cannot read {name}: {error}");
    if error.kind() == io::ErrorKind::NotFound { Usage::error(text) } else { anyhow!(text) }
}

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Usage {}

/// The exit code of an error: that of wrong usage, or what `library` says of an error of its own.
pub fn code<E: Error + Send + Sync + 'static>(error: &anyhow::Error, library: impl FnOnce(&E) -> u8) -> u8 {
    if error.is::<Usage>() { USAGE } else { error.downcast_ref().map_or(FAILURE, library) }
}

/// The exit code of a command that has ended: its own, or 128 plus the signal that ended it.
pub fn of_command(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILURE)
}

/// Of a command that cannot be started, as env(1): 127 not found, 126 not executable.
pub fn not_started(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// An error and its causes, without those that it already quotes.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context;

    use super::*;

    #[test]
    fn errors_have_their_codes_also_under_context() {
        let of_io = |_: &io::Error| PRIVILEGE;
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(code(&unread("x", &missing), of_io), USAGE);
        assert_eq!(code(&unread("x", &io::Error::other("no")), of_io), FAILURE);
        assert_eq!(code(&Usage::error("no"), of_io), USAGE);
        assert_eq!(code(&anyhow::anyhow!("no"), of_io), FAILURE);
        let error = Err::<(), _>(io::Error::other("no")).context("while trying").unwrap_err();
        assert_eq!(code(&error, of_io), PRIVILEGE);
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        let io = io::Error::other("it broke");
        let error = anyhow::Error::from(io).context("cannot read x: it broke").context("while trying");
        assert_eq!(sentence(&error), "while trying: cannot read x: it broke");
    }
}
