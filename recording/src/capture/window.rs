// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion window and slow start threshold, which no packet carries, by what was in flight.
//!
//! While nothing else limits a sender its congestion window is in flight whenever an ACK comes. So the window is the most that
//! was in flight since it was last reduced; with a quarter of it or more unused the application, or the send buffer, is the
//! limit. So it is of a flow that has never filled an initial window. Slow start is over with the first reduction, or once two
//! rounds in a row, of which nothing else was the limit, grow by less than a third: doubling may lose a half of itself to delayed
//! acknowledgments, congestion avoidance seldom gains a third.

use onramp_algorithm::{CongestionState, ExitReason, NO_THRESHOLD};

use super::sender::Point;

/// Of the window, in quarters: less in flight is no full window.
const FULL_QUARTERS: u64 = 3;
/// Growth of a round in slow start at least, percent.
const GROWTH_PERCENT: u64 = 133;
/// Rounds in a row without it.
const ROUNDS: usize = 2;
/// A window below has been limited by nothing yet, segments.
const LEAST: u64 = 8;
/// The initial window, segments (RFC 6928).
const INITIAL: u64 = 10;
/// The window of a round is reached at so many hundredths of it.
const REACHED_PERCENT: u64 = 96;

/// What a point's windows were, before its ACK; segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Windows {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub app_limited: bool,
    pub cwnd_limited: bool,
}

/// The end of the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// Number of the point that shows it.
    pub at: usize,
    pub reason: ExitReason,
    pub window: u32,
}

/// What limited the sender after a point, until the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Window,
    Receiver,
    Application,
    Recovery,
}

/// A round: what was in flight at most, and whether the congestion window was the limit of most of it.
#[derive(Clone, Copy, Debug)]
struct Round {
    last: usize,
    most: u64,
    by_window: bool,
}

/// Of each point, and how slow start ended.
pub(super) fn windows(points: &[Point], mss: u32) -> (Vec<Windows>, Option<Exit>) {
    let is_small = is_small(points, mss);
    let limits = limits(points, mss, is_small);
    let exit = exit(points, &limits, mss);
    let segments =
        |bytes: u64| u32::try_from(bytes.div_ceil(u64::from(mss))).unwrap_or(NO_THRESHOLD - 1).max(1);
    let (mut all, mut most, mut ssthresh) = (Vec::with_capacity(points.len()), 0, NO_THRESHOLD);
    for (at, point) in points.iter().enumerate() {
        let recovers = point.state != CongestionState::Open;
        if exit.is_some_and(|exit| exit.at == at) && !recovers {
            ssthresh = exit.map_or(NO_THRESHOLD, |exit| exit.window);
        }
        if recovers {
            if at == 0 || points[at - 1].state == CongestionState::Open {
                // What it is reduced to is in flight once the recovery is over.
                let over = points[at..].iter().find(|later| later.state == CongestionState::Open);
                ssthresh = segments(over.unwrap_or(point).before).max(2);
            }
            most = point.before;
        } else {
            most = most.max(point.before);
        }
        let at_first = is_small.then_some(Limit::Application);
        let limit = at.checked_sub(1).map_or(at_first, |before| Some(limits[before]));
        all.push(Windows {
            cwnd: segments(most),
            ssthresh,
            app_limited: limit == Some(Limit::Application),
            cwnd_limited: limit == Some(Limit::Window),
        });
    }
    (all, exit)
}

/// Whether an initial window was never full before the first reduction.
fn is_small(points: &[Point], mss: u32) -> bool {
    let open = points.iter().take_while(|point| point.state == CongestionState::Open);
    open.map(|point| point.before).max().is_some_and(|most| most < INITIAL * u64::from(mss))
}

/// After each point.
fn limits(points: &[Point], mss: u32, is_small: bool) -> Vec<Limit> {
    let (mut most, mut was_reduced) = (0, false);
    let mut all = Vec::with_capacity(points.len());
    for (at, point) in points.iter().enumerate() {
        let next = points.get(at + 1);
        let flight = next.map_or(point.in_flight, |next| next.before);
        let outstanding = next.map_or(point.sent, |next| next.sent).saturating_sub(point.acknowledged);
        most = if point.state == CongestionState::Open { most.max(point.before) } else { point.before };
        was_reduced |= point.state != CongestionState::Open;
        all.push(if point.state != CongestionState::Open {
            Limit::Recovery
        } else if point.receive_window > 0 && outstanding + u64::from(mss) > point.receive_window.into() {
            Limit::Receiver
        } else if 4 * flight < FULL_QUARTERS * most || is_small && !was_reduced {
            Limit::Application
        } else {
            Limit::Window
        });
    }
    all
}

/// From one point to the first that acknowledges what was sent after it.
fn rounds(points: &[Point], limits: &[Limit]) -> Vec<Round> {
    let mut rounds = Vec::new();
    let (mut end, mut most, mut window, mut begin) = (0, 0, 0, 0);
    for (at, point) in points.iter().enumerate() {
        most = most.max(point.before);
        window += usize::from(limits[at] == Limit::Window);
        if point.acknowledged >= end {
            rounds.push(Round { last: at, most, by_window: 2 * window > at - begin });
            // What the answer to this ACK sends belongs to the next round.
            end = points.get(at + 1).map_or(point.sent, |next| next.sent);
            (most, window, begin) = (0, 0, at + 1);
        }
    }
    rounds
}

fn exit(points: &[Point], limits: &[Limit], mss: u32) -> Option<Exit> {
    let segments = |bytes: u64| u32::try_from(bytes.div_ceil(u64::from(mss))).unwrap_or(NO_THRESHOLD - 1);
    let reduced = points.iter().position(|point| point.state != CongestionState::Open).map(|at| Exit {
        at,
        reason: match points[at].state {
            CongestionState::Loss => ExitReason::Timeout,
            CongestionState::Cwr => ExitReason::Ecn,
            _ => ExitReason::Loss,
        },
        window: segments(points[..=at].iter().map(|point| point.before).max().unwrap_or(0)),
    });
    let rounds = rounds(points, limits);
    let before = rounds.partition_point(|round| reduced.is_none_or(|exit| round.last < exit.at));
    let own = rounds[..before].windows(ROUNDS + 1).find_map(|some| {
        let first = some[0].most;
        let is_flat = |pair: &[Round]| {
            pair[1].by_window
                && 100 * pair[1].most < GROWTH_PERCENT * pair[0].most
                && pair[1].most >= pair[0].most / 2
        };
        if first < LEAST * u64::from(mss) || !some[0].by_window || !some.windows(2).all(is_flat) {
            return None;
        }
        // Doubling may have gone on into the first of them.
        let reached = REACHED_PERCENT * some[1].most / 100;
        let at = points[..=some[1].last].iter().position(|point| point.before >= reached)?;
        Some(Exit { at, reason: ExitReason::Algorithm, window: segments(points[at].before) })
    });
    own.or(reduced)
}
