// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rows of a flow that contradict each other: a time or counter that goes back, or a time that jumps. Of two runs of rows
//! that do not go together the longer is right, so that one impossible number costs its own row and no other.

use std::collections::VecDeque;

use onramp_algorithm::Ack;

use crate::sample::Sample;

/// Rows that may still turn out to be wrong.
const DOUBTED: usize = 16;
/// The longest time between two rows of a flow, microseconds: a year.
const PAUSE_US: u64 = 365 * 24 * 3_600 * 1_000_000;
/// The largest window of TCP, bytes (RFC 7323, section 2.3): no window has more segments.
pub(super) const WINDOW_MAX: u32 = 1 << 30;

/// A row with its line.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    pub line: u64,
    pub sample: Sample,
    /// Columns without a value.
    pub blank: Vec<&'static str>,
}

/// What becomes of a row.
pub(super) enum Fate {
    Used(Parsed),
    Refused(u64, String),
}

/// The rows of one flow.
#[derive(Default)]
pub(super) struct Sieve {
    /// The last that was used for good.
    settled: Option<Ack>,
    /// They go together, and with what was used.
    kept: VecDeque<Parsed>,
    /// They go together, and with what was used, but not with the last of those.
    rivals: Vec<Parsed>,
}

impl Sieve {
    /// The next row. Rows come out in their order.
    pub fn push(&mut self, row: Parsed, out: &mut impl FnMut(Fate)) {
        let last = self.kept.back().map(|kept| kept.sample.ack).or(self.settled);
        let Some(why) = last.and_then(|last| contradiction(&row.sample.ack, &last)) else {
            self.refuse_rivals(out);
            self.kept.push_back(row);
            if self.kept.len() > DOUBTED
                && let Some(first) = self.kept.pop_front()
            {
                self.settled = Some(first.sample.ack);
                out(Fate::Used(first));
            }
            return;
        };
        let before = self.rivals.last().map(|rival| rival.sample.ack).or(self.settled);
        if before.is_some_and(|before| contradiction(&row.sample.ack, &before).is_some()) {
            return out(Fate::Refused(row.line, why));
        }
        self.rivals.push(row);
        if self.rivals.len() > self.challenged() {
            self.prefer_rivals(out);
        }
    }

    /// There are no more rows.
    pub fn finish(mut self, out: &mut impl FnMut(Fate)) {
        if !self.rivals.is_empty() && self.rivals.len() >= self.challenged() {
            self.prefer_rivals(out);
        }
        self.refuse_rivals(out);
        self.kept.into_iter().for_each(|row| out(Fate::Used(row)));
    }

    /// How many rows at the end of those that are kept do not go with the rivals.
    fn challenged(&self) -> usize {
        let Some(first) = self.rivals.first() else { return 0 };
        let contradicts = |kept: &&Parsed| contradiction(&first.sample.ack, &kept.sample.ack).is_some();
        self.kept.iter().rev().take_while(contradicts).count()
    }

    fn prefer_rivals(&mut self, out: &mut impl FnMut(Fate)) {
        let Some(first) = self.rivals.first().map(|rival| rival.sample.ack) else { return };
        for row in self.kept.split_off(self.kept.len() - self.challenged()) {
            let why = contradiction(&first, &row.sample.ack).unwrap_or_default();
            out(Fate::Refused(row.line, format!("the rows after it contradict it: {why}")));
        }
        self.kept.extend(self.rivals.drain(..));
    }

    fn refuse_rivals(&mut self, out: &mut impl FnMut(Fate)) {
        let last = self.kept.back().map(|kept| kept.sample.ack).unwrap_or_default();
        for row in self.rivals.drain(..) {
            let why = contradiction(&row.sample.ack, &last).unwrap_or_default();
            out(Fate::Refused(row.line, why));
        }
    }
}

/// Whether a counter has 32 bits, by as much as a window before and after the end of its range.
fn wrapped(before: u64, now: u64) -> bool {
    const END: u64 = 1 << 32;
    (END - u64::from(WINDOW_MAX)..END).contains(&before) && now < u64::from(WINDOW_MAX)
}

/// Why a row does not follow another.
fn contradiction(ack: &Ack, last: &Ack) -> Option<String> {
    for (name, now, before) in [
        ("at_us", ack.now_us, last.now_us),
        ("acknowledged_bytes", ack.bytes_acked, last.bytes_acked),
        ("sent_bytes", ack.bytes_sent, last.bytes_sent),
    ] {
        if now < before {
            let wraps = if wrapped(before, now) {
                "; a counter of 32 bits begins anew at 2^32: write 64"
            } else {
                ""
            };
            return Some(format!("{name} goes back from {before} to {now} within its flow{wraps}"));
        }
    }
    (ack.now_us - last.now_us > PAUSE_US)
        .then(|| format!("at_us jumps by more than a year, from {} to {}", last.now_us, ack.now_us))
}
