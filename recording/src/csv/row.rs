// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One row: numbers checked, what is missing derived.

use std::collections::HashMap;

use onramp_algorithm::{Ack, NO_THRESHOLD};

use super::header::Header;
use crate::rows::ACK_FLAGS;
use crate::sample::{Event, Sample};

/// Bursts of a device without limits of its own, bytes.
const GSO_MAX_SIZE: u32 = 65_536;

/// What a flow's rows so far amount to.
#[derive(Clone, Copy, Default)]
pub(super) struct FlowState {
    last: Ack,
    slow_starts: u32,
    in_slow_start: bool,
}

impl Header {
    /// The sample of a row and its flow; or what is wrong with it.
    pub fn sample(
        &self,
        record: &::csv::StringRecord,
        flows: &mut HashMap<u64, FlowState>,
    ) -> Result<(u64, Sample), String> {
        let columns = self.columns();
        if record.len() != columns.len() {
            return Err(format!("it has {} values, the first line {}", record.len(), columns.len()));
        }
        let mut sample = Sample {
            ack: Ack { ssthresh: NO_THRESHOLD, gso_max_size: GSO_MAX_SIZE, ..Ack::default() },
            ..Sample::default()
        };
        let (mut flow, mut base_ssthresh, mut loss) = (0, 0, false);
        for (name, text) in columns.iter().zip(record) {
            match *name {
                None => {}
                Some("flow") => flow = number(name, text)?,
                Some("asked") if text == "0" => sample.event = Event::NotAsked,
                Some("asked") if text == "1" => {}
                Some("asked") => return Err(format!("asked is {text:?}, neither 0 nor 1")),
                Some("event") if text == "loss" => loss = true,
                Some("event") if text == "ack" => {}
                Some("event") => return Err(format!("event is {text:?}, neither ack nor loss")),
                Some("base_ssthresh_segments") => base_ssthresh = number(name, text)?,
                Some("slow_starts") => sample.slow_starts = number(name, text)?,
                Some("receive_window_bytes") => sample.receive_window = number(name, text)?,
                Some("parameters_generation") => sample.generation = number(name, text)?,
                Some(field) => set(&mut sample.ack, field, text)?,
            }
        }
        if loss {
            sample.event = Event::Loss(base_ssthresh);
        }
        let state = flows.entry(flow).or_default();
        check(&sample.ack, &state.last)?;
        self.derive(&mut sample, state);
        Ok((flow, sample))
    }

    fn derive(&self, sample: &mut Sample, state: &mut FlowState) {
        let (ack, last) = (&mut sample.ack, &state.last);
        if !self.has("outstanding_bytes") {
            ack.bytes_outstanding =
                ack.bytes_sent.saturating_sub(ack.bytes_acked).try_into().unwrap_or(u32::MAX);
        }
        if !self.has("delivered_segments") {
            // It wraps in the kernel too.
            ack.delivered = (ack.bytes_acked / u64::from(ack.mss)) as u32;
        }
        if !self.has("newly_acknowledged_segments") {
            ack.acked = ack.delivered.wrapping_sub(last.delivered);
        }
        let sampled = u32::try_from(ack.rtt_us).ok();
        if !self.has("min_rtt_us") {
            ack.min_rtt_us = match (sampled, last.min_rtt_us) {
                (Some(sample), 0) => sample,
                (Some(sample), least) => least.min(sample),
                (None, least) => least,
            };
        }
        if !self.has("smoothed_rtt_us") {
            // RFC 6298 section 2.
            ack.smoothed_rtt_us = match (sampled, last.smoothed_rtt_us) {
                (Some(sample), 0) => sample,
                (Some(sample), smoothed) => ((7 * u64::from(smoothed) + u64::from(sample)) / 8) as u32,
                (None, smoothed) => smoothed,
            };
        }
        if !self.has("slow_starts") {
            let in_slow_start = ack.cwnd < ack.ssthresh;
            state.slow_starts += u32::from(in_slow_start && !state.in_slow_start);
            state.in_slow_start = in_slow_start;
            sample.slow_starts = state.slow_starts;
        }
        state.last = *ack;
    }
}

fn check(ack: &Ack, last: &Ack) -> Result<(), String> {
    if ack.mss == 0 {
        return Err("mss_bytes is 0".to_owned());
    }
    if ack.cwnd == 0 {
        return Err("cwnd_segments is 0".to_owned());
    }
    for (name, now, before) in [
        ("at_us", ack.now_us, last.now_us),
        ("acknowledged_bytes", ack.bytes_acked, last.bytes_acked),
        ("sent_bytes", ack.bytes_sent, last.bytes_sent),
    ] {
        if now < before {
            return Err(format!("{name} goes back from {before} to {now} within its flow"));
        }
    }
    Ok(())
}

fn set(ack: &mut Ack, field: &str, text: &str) -> Result<(), String> {
    if let Some(bit) = ACK_FLAGS.iter().position(|flag| *flag == field) {
        match text {
            "1" | "true" => ack.flags |= 1 << bit,
            "0" | "false" => {}
            _ => return Err(format!("{field} is {text:?}: write 0, 1, false or true")),
        }
        return Ok(());
    }
    macro_rules! fields {
        ($($name:literal => $field:ident),+) => {
            match field {
                $($name => ack.$field = number(&Some(field), text)?,)+
                _ => {}
            }
        };
    }
    fields!(
        "at_us" => now_us,
        "acknowledged_bytes" => bytes_acked,
        "sent_bytes" => bytes_sent,
        "pacing_rate_bytes_per_s" => pacing_rate,
        "outstanding_bytes" => bytes_outstanding,
        "delivered_segments" => delivered,
        "newly_acknowledged_segments" => acked,
        "rtt_us" => rtt_us,
        "smoothed_rtt_us" => smoothed_rtt_us,
        "min_rtt_us" => min_rtt_us,
        "cwnd_segments" => cwnd,
        "ssthresh_segments" => ssthresh,
        "in_flight_segments" => in_flight,
        "mss_bytes" => mss,
        "gso_max_bytes" => gso_max_size,
        "flags" => flags,
        "receiver_clock" => receiver_clock
    );
    Ok(())
}

fn number<T: std::str::FromStr + Range>(name: &Option<&str>, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{} is {text:?}, not a whole number of {}", name.unwrap_or_default(), T::RANGE))
}

/// What a field can hold, in words.
trait Range {
    const RANGE: &'static str;
}
impl Range for u64 {
    const RANGE: &'static str = "0 to 2^64-1";
}
impl Range for u32 {
    const RANGE: &'static str = "0 to 2^32-1";
}
impl Range for i32 {
    const RANGE: &'static str = "-2^31 to 2^31-1";
}
