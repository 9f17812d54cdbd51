// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A start from memory, as draft-ietf-tsvwg-careful-resume-qlog-02 has it. What it counts in packets is in those of the log.

use onramp_algorithm::{Ack, NO_THRESHOLD, StartEnd, StartPhase};
use onramp_recording::Sample;
use serde_json::{Value, json};

/// Name of the event.
pub(super) const PHASE_UPDATED: &str = "carefulresume:phase_updated";

/// How far the start of a flow has come.
#[derive(Debug, Default)]
pub(super) struct StartLog {
    phase: Option<&'static str>,
    /// In flight when the jump began, bytes, and what was acknowledged then.
    pipe: (u64, u64),
    /// What the jump sent, packets.
    unvalidated: (u64, u64),
}

impl StartLog {
    /// The event, if the phase is another than with the sample before. `sent`: packets, until that; `by_mark`: it was not a loss.
    pub fn changed(
        &mut self,
        sample: &Sample,
        last: Option<&Ack>,
        sent: u64,
        by_mark: bool,
    ) -> Option<Value> {
        let new = named(sample.start?, sample.start_end);
        // Of what follows a retreat the kernel has no phase.
        if self.phase == Some(new) || (new == "safe_retreat" && self.phase == Some("normal")) {
            return None;
        }
        match new {
            "unvalidated" => {
                let before = last.unwrap_or(&sample.ack);
                self.pipe = (before.bytes_outstanding.into(), before.bytes_acked);
                self.unvalidated = (sent, sent);
            }
            "validating" => self.unvalidated.1 = sent.saturating_sub(1),
            "safe_retreat" if self.phase == Some("unvalidated") => {
                self.unvalidated.1 = sent.saturating_sub(1)
            }
            _ => {}
        }
        let trigger = trigger(self.phase, new, sample.start_end, by_mark);
        Some(self.update(new, trigger, &sample.ack))
    }

    /// The event, if a retreat is over: all that the jump sent is acknowledged. `oldest`: packet that is not.
    pub fn recovered(&mut self, ack: &Ack, oldest: u64) -> Option<Value> {
        let over = self.phase == Some("safe_retreat") && oldest > self.unvalidated.1;
        over.then(|| self.update("normal", Some("exit_recovery"), ack))
    }

    /// The event, if the flow's end says more than its last acknowledgment.
    pub fn ended(&mut self, end: StartEnd, last: &Ack, by_mark: bool) -> Option<Value> {
        let new = named(StartPhase::Over, Some(end));
        let open = matches!(self.phase, Some("reconnaissance" | "unvalidated" | "validating"));
        open.then(|| self.update(new, trigger(self.phase, new, Some(end), by_mark), last))
    }

    fn update(&mut self, new: &'static str, trigger: Option<&str>, ack: &Ack) -> Value {
        let (bytes, acknowledged) = self.pipe;
        let mut state = json!({
            "pipesize": if bytes == 0 { 0 } else { bytes + ack.bytes_acked.saturating_sub(acknowledged) },
            "first_unvalidated_packet": self.unvalidated.0,
            "last_unvalidated_packet": self.unvalidated.1,
            "congestion_window": u64::from(ack.cwnd) * u64::from(ack.mss),
        });
        if ack.ssthresh < NO_THRESHOLD {
            state["ssthresh"] = json!(u64::from(ack.ssthresh) * u64::from(ack.mss));
        }
        let mut data = json!({ "new": new, "state_data": state });
        if let Some(old) = self.phase.replace(new) {
            data["old"] = old.into();
        }
        if let Some(trigger) = trigger {
            data["trigger"] = trigger.into();
        }
        data
    }
}

/// What the draft calls a phase.
fn named(phase: StartPhase, end: Option<StartEnd>) -> &'static str {
    match phase {
        StartPhase::Over if end == Some(StartEnd::Retreat) => "safe_retreat",
        StartPhase::Over => "normal",
        other => other.name(),
    }
}

/// What the draft calls its cause; `None`: it has no name for that.
fn trigger(old: Option<&str>, new: &str, end: Option<StartEnd>, by_mark: bool) -> Option<&'static str> {
    Some(match (old?, new, end) {
        (_, "unvalidated", _) => "congestion_window_limited",
        (_, "validating", _) => "last_unvalidated_packet_sent",
        (_, _, Some(StartEnd::Retreat | StartEnd::Congestion)) if by_mark => "ECN_CE",
        (_, _, Some(StartEnd::Retreat | StartEnd::Congestion)) => "packet_loss",
        (_, _, Some(StartEnd::Rtt)) => "rtt_not_validated",
        ("validating", _, Some(StartEnd::Validated)) => "last_unvalidated_packet_acknowledged",
        ("unvalidated", _, Some(StartEnd::Validated | StartEnd::Late)) => "rate_limited",
        _ => return None,
    })
}
