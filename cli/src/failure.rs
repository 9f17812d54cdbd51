//! Exit codes, and errors as one sentence.

use std::fmt;

use onramp_loader::Kind;

/// It failed.
pub(crate) const FAILURE: u8 = 1;
/// It was asked for wrongly; clap's own code too.
pub(crate) const USAGE: u8 = 2;
/// This kernel cannot.
const UNSUPPORTED: u8 = 3;
/// A privilege is missing.
const PRIVILEGE: u8 = 4;
/// Done in part.
pub(crate) const PARTIAL: u8 = 5;

/// Something was asked for wrongly.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub fn error(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code of an error.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return USAGE;
    }
    match error.downcast_ref::<onramp_loader::Error>().map(onramp_loader::Error::kind) {
        Some(Kind::Usage) => USAGE,
        Some(Kind::Unsupported) => UNSUPPORTED,
        Some(Kind::Privilege) => PRIVILEGE,
        Some(Kind::Partial) => PARTIAL,
        Some(Kind::Failure) | None => FAILURE,
    }
}

/// An error and its causes, without those that it already quotes.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
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
    use anyhow::Context;

    use super::*;

    #[test]
    fn kinds_have_their_codes_also_under_context() {
        assert_eq!(code(&Usage::error("no")), USAGE);
        assert_eq!(code(&anyhow::anyhow!("no")), FAILURE);
        let privilege = onramp_loader::Error::Privilege { verb: "attach", capabilities: "CAP_BPF" };
        let error = Err::<(), _>(privilege).context("while trying").unwrap_err();
        assert_eq!(code(&error), PRIVILEGE);
        assert_eq!(code(&onramp_loader::find("nonsense").unwrap_err().into()), USAGE);
        assert_eq!(code(&onramp_loader::Error::NoCgroup { remedy: String::new() }.into()), UNSUPPORTED);
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        let io = std::io::Error::other("it broke");
        let error = anyhow::Error::from(io).context("cannot read x: it broke").context("while trying");
        assert_eq!(sentence(&error), "while trying: cannot read x: it broke");
    }
}
