// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One row: numbers checked, what is missing derived.

use onramp_algorithm::{Ack, NO_THRESHOLD};

use super::header::{Header, REQUIRED};
use super::sieve::{Parsed, WINDOW_MAX};
use crate::rows::{ACK_FLAGS, AckRow};
use crate::sample::{Event, Sample};

/// Bursts of a device without limits of its own, bytes.
const GSO_MAX_SIZE: u32 = 65_536;
/// The largest segment: a packet of IP has 16 bits for its length.
const MSS_MAX: u32 = 65_535;
/// The longest RTT, microseconds: ten minutes.
const RTT_MAX_US: i32 = 600_000_000;
/// SYN and FIN are acknowledged as bytes are, and are none.
const SYN_AND_FIN: u64 = 2;

/// What a flow's rows so far amount to.
#[derive(Clone, Copy, Default)]
pub(super) struct FlowState {
    last: Ack,
    slow_starts: u32,
    in_slow_start: bool,
}

impl Header {
    /// A row as it is written and its flow; or what is wrong with it.
    pub fn parse(&self, record: &::csv::StringRecord, line: u64) -> Result<(u64, Parsed), String> {
        let columns = self.columns();
        if record.len() != columns.len() {
            return Err(format!("it has {} values, the first line {}", record.len(), columns.len()));
        }
        let mut sample = Sample {
            ack: Ack { ssthresh: NO_THRESHOLD, gso_max_size: GSO_MAX_SIZE, ..Ack::default() },
            ..Sample::default()
        };
        let mut blank = Vec::new();
        let (mut flow, mut base_ssthresh, mut loss) = (0, 0, false);
        for (name, text) in columns.iter().zip(record) {
            let Some(name) = *name else { continue };
            if is_blank(text) {
                match name {
                    "rtt_us" => sample.ack.rtt_us = -1,
                    _ if REQUIRED.contains(&name) || name == "flags" => {
                        return Err(format!("{name} is blank"));
                    }
                    _ => blank.push(name),
                }
                continue;
            }
            match name {
                "flow" => flow = number(name, text)?,
                "called" if !truth(name, text)? => sample.event = Event::NotCalled,
                "called" => {}
                "event" if text.eq_ignore_ascii_case("loss") => loss = true,
                "event" if text.eq_ignore_ascii_case("ack") => {}
                "event" => return Err(format!("event is {text:?}, neither ack nor loss")),
                "base_ssthresh_segments" => base_ssthresh = number(name, text)?,
                "slow_starts" => sample.slow_starts = number(name, text)?,
                "parameters_generation" => sample.generation = number(name, text)?,
                field => set(&mut sample.ack, field, text)?,
            }
        }
        if loss {
            sample.event = Event::Loss(base_ssthresh);
        }
        check(&sample.ack)?;
        Ok((flow, Parsed { line, sample, blank }))
    }

    /// The sample of a row, which follows the flow's others, with what it does not say.
    pub fn derive(&self, Parsed { mut sample, blank, .. }: Parsed, state: &mut FlowState) -> Sample {
        let lacks = |name: &str| !self.has(name) || blank.contains(&name);
        let (ack, last) = (&mut sample.ack, &state.last);
        if lacks("outstanding_bytes") {
            ack.bytes_outstanding =
                ack.bytes_sent.saturating_sub(ack.bytes_acked).try_into().unwrap_or(u32::MAX);
        }
        if lacks("delivered_segments") {
            // It wraps in the kernel too.
            ack.delivered = (ack.bytes_acked / u64::from(ack.mss)) as u32;
        }
        if lacks("newly_acknowledged_segments") {
            ack.acked = ack.delivered.wrapping_sub(last.delivered);
        }
        let sampled = u32::try_from(ack.rtt_us).ok();
        if lacks("min_rtt_us") {
            ack.min_rtt_us = match (sampled, last.min_rtt_us) {
                (Some(sample), 0) => sample,
                (Some(sample), least) => least.min(sample),
                (None, least) => least,
            };
        }
        if lacks("smoothed_rtt_us") {
            // RFC 6298 section 2.
            ack.smoothed_rtt_us = match (sampled, last.smoothed_rtt_us) {
                (Some(sample), 0) => sample,
                (Some(sample), smoothed) => ((7 * u64::from(smoothed) + u64::from(sample)) / 8) as u32,
                (None, smoothed) => smoothed,
            };
        }
        if lacks("slow_starts") {
            let in_slow_start = ack.cwnd < ack.ssthresh;
            state.slow_starts += u32::from(in_slow_start && !state.in_slow_start);
            state.in_slow_start = in_slow_start;
            sample.slow_starts = state.slow_starts;
        }
        state.last = *ack;
        sample
    }
}

/// What contradicts itself, or what TCP cannot have.
fn check(ack: &Ack) -> Result<(), String> {
    for (name, value, most) in [
        ("mss_bytes", ack.mss, MSS_MAX),
        ("cwnd_segments", ack.cwnd, WINDOW_MAX),
        ("in_flight_segments", ack.in_flight.max(1), WINDOW_MAX),
    ] {
        if !(1..=most).contains(&value) {
            return Err(format!("{name} is {value}, which is not one of 1 to {most}"));
        }
    }
    if ack.rtt_us > RTT_MAX_US {
        return Err(format!("rtt_us is {}, more than ten minutes ({RTT_MAX_US})", ack.rtt_us));
    }
    let (acknowledged, sent) = (ack.bytes_acked, ack.bytes_sent);
    if acknowledged > sent.saturating_add(SYN_AND_FIN) {
        return Err(format!("acknowledged_bytes is {acknowledged}, more than the {sent} of sent_bytes"));
    }
    if sent.saturating_sub(acknowledged) > u64::from(WINDOW_MAX) {
        return Err(format!(
            "sent_bytes is {sent}, more than the largest window ({WINDOW_MAX}) above the {acknowledged} of acknowledged_bytes"
        ));
    }
    Ok(())
}

fn set(ack: &mut Ack, field: &str, text: &str) -> Result<(), String> {
    if let Some(bit) = ACK_FLAGS.iter().position(|flag| *flag == field) {
        ack.flags |= u32::from(truth(field, text)?) << bit;
        return Ok(());
    }
    AckRow::parse_ack(ack, field, text).map(drop)
}

/// As pandas, R and spreadsheets write that there is no value.
fn is_blank(text: &str) -> bool {
    ["", "na", "nan", "null", "none"].iter().any(|blank| text.eq_ignore_ascii_case(blank))
}

fn truth(name: &str, text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "1.0" | "true" => Ok(true),
        "0" | "0.0" | "false" => Ok(false),
        _ => Err(format!("{name} is {text:?}: write 0, 1, false or true")),
    }
}

/// A whole number, also as a floating-point column writes it: `1000.0`, `1e+06`.
pub(crate) fn number<T: std::str::FromStr + TryFrom<i64> + Range>(
    name: &str,
    text: &str,
) -> Result<T, String> {
    text.parse()
        .ok()
        .or_else(|| T::try_from(whole(text)?).ok())
        .ok_or_else(|| format!("{name} is {text:?}, not a whole number of {}", T::RANGE))
}

fn whole(text: &str) -> Option<i64> {
    /// Above this not every whole number is one of floating point.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let looks_like = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let value: f64 = looks_like.then(|| text.parse().ok()).flatten()?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

/// What a field can hold, in words.
pub(crate) trait Range {
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
