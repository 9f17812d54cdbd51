//! What is attached, read without waiting for other commands; where it cannot be read, since when and why.

use std::time::{Duration, Instant};

use anyhow::Context;
use onramp_loader::cost::Meter;
use onramp_loader::{Error, pinned_status};
use serde::Serialize;

use super::others::Others;
use super::privileges::{Confinement, confinement};
use crate::output::Output;
use crate::units::now_us;
use crate::verb::select::RulesSummary;
use crate::verb::status::{Brief, Cost};

/// Other commands hold the lock for moments: only after this time is that worth telling.
const HELD: Duration = Duration::from_secs(3);

/// The last status that could be read.
#[derive(Default)]
pub(super) struct Status {
    brief: Brief,
    /// When: by the wall clock in microseconds, and by the monotonic one.
    read: Option<(u64, Instant)>,
    /// Another command has the lock.
    held: bool,
    unreadable: Option<Unreadable>,
}

/// Why the status is an old one.
#[derive(Clone, Serialize)]
struct Unreadable {
    reason: &'static str,
    error: String,
    /// Wall clock; `None`: it could never be read.
    last_read_us: Option<u64>,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    brief: &'a Brief,
    selection: Option<&'a RulesSummary>,
    /// Where it is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<Vec<Cost>>,
    /// Where nothing is attached: flows of other controls in the server's network namespace.
    others: Option<&'a Others>,
    /// None: it is as it was a second ago.
    unreadable: Option<&'a Unreadable>,
    /// Of the broker.
    confinement: Confinement,
}

impl Status {
    /// Reads it, if that can be done now; returns when that was, by the wall clock in microseconds.
    pub fn read(&mut self) -> Option<u64> {
        match pinned_status(&|_| false) {
            Ok(pinned) => {
                let now = now_us();
                self.brief = pinned.into();
                self.read = Some((now, Instant::now()));
                (self.held, self.unreadable) = (false, None);
                Some(now)
            }
            Err(error) => {
                self.held = matches!(error, Error::Locked { .. });
                let recent = self.read.is_some_and(|(_, at)| at.elapsed() < HELD);
                if !(self.held && recent) {
                    self.failed(&error);
                }
                None
            }
        }
    }

    /// Whether the lock was held, which may be over in a moment.
    pub fn is_due(&self) -> bool {
        self.held
    }

    fn failed(&mut self, error: &Error) {
        let reason = reason(error);
        // The text of a lock has the holders: that of the first is enough.
        if self.unreadable.as_ref().is_none_or(|before| before.reason != reason) {
            let last_read_us = self.read.map(|(at_us, _)| at_us);
            tracing::warn!("the status cannot be read: {error}");
            self.unreadable = Some(Unreadable { reason, error: error.to_string(), last_read_us });
        }
    }

    /// As JSON.
    pub fn document(
        &self,
        selection: Option<&RulesSummary>,
        meter: Option<&Meter>,
        others: Option<&Others>,
    ) -> anyhow::Result<String> {
        let costs = meter.and_then(|meter| meter.read().ok());
        Output::document_text(&Document {
            brief: &self.brief,
            selection,
            costs: costs.map(|costs| costs.into_iter().map(Cost::from).collect()),
            others,
            unreadable: self.unreadable.as_ref(),
            confinement: confinement(),
        })
        .context("cannot encode")
    }
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::Locked { .. } => "locked",
        Error::ReadOnly { .. } => "read_only",
        Error::NotMounted { .. } => "not_mounted",
        Error::Untrusted { .. } => "untrusted",
        _ => "failed",
    }
}
