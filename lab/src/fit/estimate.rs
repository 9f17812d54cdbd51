// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rate, round-trip time, queue and jitter from the ACKs of a flow.

use super::flow::{FitError, RecordedFlow, Seen};
use super::{Explained, Fitted, Known};
use crate::host::HEADER_BYTES;
use crate::link::spec::RateStep;

/// Shortest window over which a rate is taken, microseconds.
const LEAST_WINDOW_US: u64 = 100_000;
/// Acknowledgments of a window at least.
const LEAST_IN_A_WINDOW: usize = 10;
/// Where no queue stays: a window over which round-trip times rise by this share of it was limited by the bottleneck.
const RISING: f64 = 0.2;
/// A queue is there where round-trip times stay above the empty path's by this share of it, and by a millisecond.
const QUEUED: f64 = 0.03;
const LEAST_QUEUED_US: u64 = 1_000;
/// A rate whose middle four fifths differ by less of the median is constant.
const CONSTANT: f64 = 0.1;
/// A rate that rises as what is in flight does, by this power of it, correlated by this much and over this range of its
/// logarithm, is the flow's own, or one that the path gives as it is asked for.
const OWN_SLOPE: f64 = 0.7;
const OWN_CORRELATION: f64 = 0.7;
const OWN_SPREAD: f64 = 0.7;
/// A rate that stays while what is in flight grows by this, in its logarithm, is the bottleneck's.
const GREW: f64 = 0.4;
/// Of the most that is in flight, the part that leaves the path all but empty.
const IDLE: u64 = 32;
/// Neighbours whose round-trip times are compared.
const NEIGHBOURS: usize = 20;
/// Jitter below this is not distinguished from that of packets that leave a host in bursts of a millisecond, microseconds.
const LEAST_JITTER_US: f64 = 1_500.0;
/// A rate that differs by less from the one before is the same.
const SAME: f64 = 0.05;

/// What was delivered in a window.
struct Window {
    /// Begin, microseconds of the recording's clock.
    at_us: u64,
    took_us: u64,
    bps: f64,
    /// In flight at its end.
    outstanding_bytes: u64,
    /// A queue was there all the time.
    queued: bool,
    /// It grew.
    rising: bool,
}

/// All but how well it explains the flow: with the queue that round-trip times show, if any, and without one.
pub(super) fn paths(flow: &RecordedFlow) -> Result<(Option<Fitted>, Fitted), FitError> {
    let nonsense = |reason| FitError::Nonsense { flow: flow.flow, reason };
    let samples = || flow.acks.iter().filter_map(|ack| ack.rtt_us);
    let base_rtt_us = samples().min().ok_or(nonsense("it has no round-trip time"))?;
    let most_rtt_us = samples().max().unwrap_or(base_rtt_us);
    let jitter = jitter_us(&flow.acks);
    let jitter_us = if jitter < LEAST_JITTER_US { 0 } else { jitter.round() as u64 };
    let other_us = jitter_us.max(idle_us(&flow.acks, base_rtt_us));
    let queued_us = base_rtt_us + LEAST_QUEUED_US.max((QUEUED * base_rtt_us as f64) as u64).max(other_us);
    let windows = windows(&flow.acks, LEAST_WINDOW_US.max(base_rtt_us), queued_us);
    let most = windows.iter().map(|window| window.bps).fold(0.0, f64::max);
    if most < 1_000.0 {
        return Err(nonsense("next to nothing was delivered"));
    }
    let began_us = flow.began_us();
    let ended_us = flow.acks.last().map_or(began_us, |ack| ack.at_us);
    let open = Fitted {
        flow: flow.flow,
        acks: flow.acks.len(),
        duration_us: ended_us - began_us,
        rate_bps: most.round() as u64,
        rate_known: Known::AtLeast,
        rate_seen_us: 0,
        rate_steps: Vec::new(),
        base_rtt_us,
        queue_bytes: 0,
        queue_known: Known::AtLeast,
        jitter_us,
        variation: Vec::new(),
        mss: flow.acks.iter().map(|ack| ack.mss).max().unwrap_or(1),
        explained: Explained::default(),
    };
    let queued = || windows.iter().filter(|window| window.queued);
    let mut busy: Vec<f64> = queued().map(|window| window.bps).collect();
    busy.sort_by(f64::total_cmp);
    let mut rate_seen_us = queued().map(|window| window.took_us).sum();
    let mut rate = quantile(&busy, 0.5);
    if busy.is_empty() {
        // No queue stayed, but bursts have met one: between them the path was empty, so the fastest of them show the rate.
        let length = LEAST_WINDOW_US.max(base_rtt_us / 4);
        let bursts = self::windows(&flow.acks, length, queued_us);
        let bursts = || bursts.iter().filter(|window| window.rising);
        rate_seen_us = bursts().map(|window| window.took_us).sum();
        busy = bursts().map(|window| window.bps).collect();
        busy.sort_by(f64::total_cmp);
        rate = quantile(&busy, 0.9);
        busy = vec![rate];
    }
    if rate < 1_000.0 {
        return Ok((None, open));
    }
    let mut varies = spread_of(&busy) > CONSTANT * rate;
    let (early, _) = windows.split_at(windows.len() / 2);
    if varies && (follows_the_window(&windows) || follows_the_window(early)) {
        let Some((limited, took_us)) = limited(&windows) else { return Ok((None, open)) };
        (rate, rate_seen_us, varies) = (limited, took_us, false);
    }
    let steps = if varies { steps(&windows, began_us + base_rtt_us / 2) } else { Vec::new() };
    let rates = || steps.iter().map(|step| step.rate_bps);
    let rate_bps = (rate.round() as u64).clamp(rates().min().unwrap_or(0), rates().max().unwrap_or(u64::MAX));
    let wait_us = most_rtt_us.saturating_sub(base_rtt_us + jitter_us);
    let queued = Fitted {
        rate_bps,
        rate_known: Known::Measured,
        rate_seen_us,
        rate_steps: steps,
        queue_bytes: (rate * wait_us as f64 / 8e6) as u64,
        queue_known: if flow.lost_us.is_some() { Known::Measured } else { Known::AtLeast },
        ..open.clone()
    };
    Ok((Some(queued), open))
}

fn windows(acks: &[Seen], length_us: u64, queued_us: u64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut rest = acks;
    while let Some(first) = rest.first() {
        let count = rest.partition_point(|ack| ack.at_us < first.at_us + length_us);
        let (window, after) = rest.split_at(count);
        rest = after;
        let Some(last) = window.last() else { break };
        // The first packet of the next window ends the last packet's time.
        let last = after.first().filter(|next| next.at_us < last.at_us + length_us).unwrap_or(last);
        let took_us = last.at_us - first.at_us;
        if window.len() < LEAST_IN_A_WINDOW || took_us == 0 {
            continue;
        }
        let bits = (last.delivered - first.delivered) as f64 * f64::from(first.mss + HEADER_BYTES) * 8.0;
        let least = window.iter().filter_map(|ack| ack.rtt_us).min();
        windows.push(Window {
            at_us: first.at_us,
            took_us,
            outstanding_bytes: outstanding(last),
            bps: bits * 1e6 / took_us as f64,
            queued: least.is_some_and(|least| least > queued_us),
            rising: rise_us(window)
                .is_some_and(|rise| rise > RISING * took_us as f64 && rise > LEAST_JITTER_US),
        });
    }
    windows
}

fn outstanding(ack: &Seen) -> u64 {
    ack.bytes_sent - ack.bytes_acked
}

/// Whether the rate is the flow's own: it goes with what is in flight, where that of a bottleneck does not. What looks like a
/// queue is a longer way then. Both vary within a window, so neither explains the other: the power is the ratio of their
/// logarithms' standard deviations.
fn follows_the_window(windows: &[Window]) -> bool {
    let points = windows.iter().filter(|window| window.queued && window.outstanding_bytes > 0);
    let points: Vec<_> =
        points.map(|window| ((window.outstanding_bytes as f64).ln(), window.bps.ln())).collect();
    let spread = points.iter().map(|point| point.0).fold(f64::MIN, f64::max)
        - points.iter().map(|point| point.0).fold(f64::MAX, f64::min);
    let inverse: Vec<_> = points.iter().map(|(x, y)| (*y, *x)).collect();
    let (slope, inverse) = (slope(&points), slope(&inverse));
    let (power, correlation) = ((slope / inverse).sqrt(), (slope * inverse).sqrt());
    spread > OWN_SPREAD && slope > 0.0 && correlation > OWN_CORRELATION && power > OWN_SLOPE
}

/// The rate that a flow comes to and keeps while it has ever more in flight, and for how long, microseconds: that of the
/// bottleneck, although round-trip times do not tell a queue from a longer way.
fn limited(windows: &[Window]) -> Option<(f64, u64)> {
    let queued = || windows.iter().filter(|window| window.queued);
    let most = queued().map(|window| window.bps).fold(0.0, f64::max);
    let kept: Vec<&Window> = queued().skip_while(|window| window.bps < (1.0 - CONSTANT) * most).collect();
    let mut rates: Vec<f64> = kept.iter().map(|window| window.bps).collect();
    rates.sort_by(f64::total_cmp);
    // Where less came, less had been sent.
    let rate = quantile(&rates, 0.9);
    let outstanding = || kept.iter().map(|window| window.outstanding_bytes);
    let grew = outstanding().max()? as f64 / outstanding().min()?.max(1) as f64;
    (spread_of(&rates) <= CONSTANT * rate && grew.ln() > GREW)
        .then(|| (rate, kept.iter().map(|window| window.took_us).sum()))
}

/// Of ascending values the middle four fifths.
fn spread_of(sorted: &[f64]) -> f64 {
    quantile(sorted, 0.9) - quantile(sorted, 0.1)
}

/// What round-trip times have above the empty path's as long as the flow has had next to nothing in flight, so that none of it
/// is a queue of its own: all but the highest twentieth.
fn idle_us(acks: &[Seen], base_rtt_us: u64) -> u64 {
    let most = acks.iter().map(outstanding).max().unwrap_or(0);
    let idle = acks.iter().take_while(|ack| outstanding(ack) <= most / IDLE);
    let mut excess: Vec<f64> = idle.filter_map(|ack| Some((ack.rtt_us? - base_rtt_us) as f64)).collect();
    excess.sort_by(f64::total_cmp);
    quantile(&excess, 0.95) as u64
}

/// By how much the round-trip time rises from the first sample to the last.
fn rise_us(window: &[Seen]) -> Option<f64> {
    let first = window.iter().find_map(|ack| ack.rtt_us)?;
    let last = window.iter().rev().find_map(|ack| ack.rtt_us)?;
    Some(last as f64 - first as f64)
}

/// The rates of windows with a queue, from the link's begin on; each holds until one that differs.
fn steps(windows: &[Window], began_us: u64) -> Vec<RateStep> {
    let mut steps = Vec::<RateStep>::new();
    for window in windows.iter().filter(|window| window.queued) {
        let at_us = if steps.is_empty() { 0 } else { window.at_us.saturating_sub(began_us) };
        let differs =
            |last: &RateStep| at_us > last.at_us && (window.bps / last.rate_bps as f64 - 1.0).abs() > SAME;
        if steps.last().is_none_or(differs) {
            steps.push(RateStep { at_us, rate_bps: (window.bps.round() as u64).max(1_000) });
        }
    }
    steps
}

/// Of neighbours that follow each other, what round-trip times differ by from their line: the median over all groups of
/// the middle nine tenths, as the width of a uniform distribution.
fn jitter_us(acks: &[Seen]) -> f64 {
    let points: Vec<(f64, f64)> =
        acks.iter().filter_map(|ack| Some((ack.at_us as f64, ack.rtt_us? as f64))).collect();
    let mut spreads: Vec<f64> = points.chunks_exact(NEIGHBOURS).map(spread).collect();
    spreads.sort_by(f64::total_cmp);
    quantile(&spreads, 0.5) / 0.9
}

/// Of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x).powi(2)).max(1e-9)
}

fn spread(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let slope = slope(points);
    let mut residuals: Vec<f64> = points.iter().map(|point| point.1 - y - slope * (point.0 - x)).collect();
    residuals.sort_by(f64::total_cmp);
    quantile(&residuals, 0.95) - quantile(&residuals, 0.05)
}

/// By nearest rank, of ascending values; 0 of none.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((at * last as f64).round() as usize).copied().unwrap_or(0.0)
}
