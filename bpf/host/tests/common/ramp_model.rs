//! ramp once more, written from its description alone: every point of a line is kept, and fitted when it is asked for.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find, growth};

use super::differential;
use super::pair_traffic::paired_sequence;
use super::random::Random;

/// The parameter.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub exit: u64,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self { exit: 50 + random.below(351) }
    }

    fn parameters(&self) -> Parameters {
        Parameters::from_words(find("ramp").unwrap(), &[self.exit]).unwrap()
    }
}

/// Longest time on a line, microseconds.
const LONGEST: u64 = 1 << 25;
/// A tick of the receiver's clock, microseconds.
const TICK: u64 = 1_000;
/// Parts of a round of which each has a point, at most.
const POINTS: u64 = 256;
/// Fastest, kB/s.
const FASTEST: u64 = 1 << 24;

/// An ACK on the line: part of the round, arrival, the receiver's clock, RTT above the first.
#[derive(Clone, Copy)]
struct Point {
    part: i128,
    arrival: i128,
    clock: i128,
    rtt: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineResult {
    Sender(u64),
    Unsettled(u64),
    Path(u64),
}

struct Round {
    from: u64,
    bytes: u64,
    last: (u64, u64, u32),
    begin: (u64, u32, i32),
    points: Vec<Point>,
    /// Bytes acknowledged by the newest point, and when the line was asked before the round was over.
    newest: u64,
    asked: u64,
    gap: u64,
    clock_gap: u64,
    ended: bool,
}

impl Round {
    /// Whether an ACK is a part further than when so much was acknowledged.
    fn further(&self, ack: &Ack, acked: u64) -> bool {
        ack.bytes_acked - acked >= self.bytes / POINTS
    }
}

#[derive(Default)]
struct Line {
    /// The first ACK of slow start that has the receiver's clock.
    first: Option<(u64, u32)>,
    round: Option<Round>,
    gap_before: u64,
    before: Option<u64>,
    /// The newest news, and whether the line was exact.
    result: Option<(LineResult, bool)>,
}

enum News {
    None,
    Sooner,
    Over,
}

impl Line {
    fn clock_known(&self, ack: &Ack) -> bool {
        let Some((first, clock)) = self.first else { return false };
        let arrived = ack.now_us.wrapping_sub(first);
        let ticked = u64::from(ack.receiver_clock.wrapping_sub(clock)) * TICK;
        ack.receiver_clock != 0 && arrived > 8 * TICK && ticked <= arrived * 2 && arrived <= ticked * 2
    }

    /// Whether the receiver's clock has ticked at another pace than arrivals came.
    fn clock_contradicts(&self, ack: &Ack) -> bool {
        let arrived = self.first.map_or(0, |(first, _)| ack.now_us.wrapping_sub(first));
        ack.receiver_clock != 0 && arrived > 8 * TICK && !self.clock_known(ack)
    }

    /// What the points show, and whether exactly.
    fn fit(&self, ack: &Ack, gaps: u64) -> Option<(LineResult, bool)> {
        let round = self.round.as_ref()?;
        let points = &round.points;
        let last = points.last()?;
        let count = points.len() as i128;
        let sum = |of: &dyn Fn(&Point) -> i128| points.iter().map(of).sum::<i128>();
        let covariance = |of: &dyn Fn(&Point) -> i128| {
            count * sum(&|point| point.part * of(point)) - sum(&|point| point.part) * sum(of)
        };
        let variance = covariance(&|point| point.part) / 4_096;
        let clock_gap = round.clock_gap.max(TICK);
        let (arrival_span, clock_span) = (last.arrival as u64, last.clock as u64);
        let better = clock_gap * arrival_span < round.gap * clock_span;
        let (arrived, ticked) = (covariance(&|point| point.arrival), covariance(&|point| point.clock));
        let error = |gap: u64, span: u64| {
            i128::from((gap * 32).checked_div(span).map_or(32, |part| (part + 1).min(32)))
        };
        let bent = arrived > 0
            && ticked > 0
            && arrived * (32 - error(round.gap, arrival_span)) > ticked * (32 + error(clock_gap, clock_span));
        let by_clock = (clock_gap * 12 <= clock_span || better || bent) && self.clock_known(ack);
        let time = if by_clock { ticked } else { arrived };
        let (gap, span) = if by_clock { (clock_gap, clock_span) } else { (round.gap, arrival_span) };
        let least_rtt = u64::from(ack.min_rtt_us);
        let long = span > 0 && span >= gaps * gap && span * 24 >= least_rtt;
        if points.len() < 8 || time <= 0 || variance == 0 || least_rtt == 0 || !long {
            return None;
        }
        let left = covariance(&|point| point.arrival - point.rtt).max(0);
        let spent = (time / variance).max(1) as u64;
        let rate = (round.bytes * 1_000 / spent).min(FASTEST);
        let alone = points.len() >= 16 && span * 16 >= least_rtt && !self.clock_contradicts(ack);
        let agrees =
            self.before.is_some_and(|before| before * 100 <= rate * 115 && rate * 100 <= before * 115);
        let result = if (left / variance) as u64 * 100 > spent * 90 {
            LineResult::Sender(rate)
        } else if alone || agrees {
            LineResult::Path(rate)
        } else {
            LineResult::Unsettled(rate)
        };
        Some((result, gap * 12 <= span))
    }

    fn turn(&mut self, ack: &Ack) {
        if let Some(round) = &self.round {
            self.gap_before = round.gap;
            self.before = match self.result {
                Some((LineResult::Path(rate) | LineResult::Unsettled(rate), _)) if rate > 0 => Some(rate),
                _ => None,
            };
        }
        if self.first.is_none() && ack.receiver_clock != 0 {
            self.first = Some((ack.now_us, ack.receiver_clock));
        }
        self.round = Some(Round {
            from: ack.bytes_acked,
            bytes: u64::from(ack.bytes_outstanding).max(1),
            last: (ack.bytes_acked, ack.now_us, ack.receiver_clock),
            begin: (0, 0, 0),
            points: Vec::new(),
            newest: 0,
            asked: ack.bytes_acked,
            gap: 0,
            clock_gap: 0,
            ended: false,
        });
    }

    fn on_ack(&mut self, ack: &Ack) -> News {
        let Some(round) = &self.round else {
            self.turn(ack);
            return News::None;
        };
        if ack.bytes_acked > round.from + round.bytes {
            self.result = self.fit(ack, 3);
            self.turn(ack);
            return News::Over;
        }
        if ack.bytes_acked == round.last.0 {
            return News::None;
        }
        let gap = (ack.now_us - round.last.1).min(LONGEST);
        let ticks = u64::from(ack.receiver_clock.wrapping_sub(round.last.2)) * TICK;
        let clock_gap = ticks.min(LONGEST);
        let pause = if self.clock_known(ack) { gap.min(clock_gap + TICK) } else { gap };
        let paused = pause > u64::from(ack.min_rtt_us / 4).max(2 * self.gap_before);
        let round = self.round.as_mut().unwrap();
        round.last = (ack.bytes_acked, ack.now_us, ack.receiver_clock);
        if round.ended {
            return News::None;
        }
        let waited = gap > 2 * round.gap || ticks > 2 * round.clock_gap.max(TICK);
        if ack.bytes_acked - round.from > round.bytes - round.bytes / 16 && waited {
            round.ended = true;
            return News::None;
        }
        if ack.flags & ack_flag::APP_LIMITED != 0 && ack.flags & ack_flag::CWND_LIMITED == 0 {
            round.ended = true;
            round.points.clear();
            return News::None;
        }
        if !round.points.is_empty() && paused {
            round.ended = true;
            round.gap = round.gap.max(gap);
            return News::None;
        }
        let done = ack.bytes_acked - round.from;
        let asks = round.points.len() >= 16
            && gap * 2 >= round.gap
            && done > round.bytes / 4
            && round.further(ack, round.asked);
        if asks {
            round.asked = ack.bytes_acked;
        }
        let result = if asks {
            self.fit(ack, 4).filter(|(result, _)| matches!(result, LineResult::Path(_)))
        } else {
            None
        };
        self.add(ack, gap, clock_gap);
        if result.is_some() {
            self.result = result;
            return News::Sooner;
        }
        News::None
    }

    fn add(&mut self, ack: &Ack, gap: u64, clock_gap: u64) {
        let round = self.round.as_mut().unwrap();
        let done = ack.bytes_acked - round.from;
        if done < round.bytes / 16 || ack.rtt_us < 0 {
            return;
        }
        if round.points.is_empty() {
            round.begin = (ack.now_us, ack.receiver_clock, ack.rtt_us);
        } else {
            round.gap = round.gap.max(gap);
            round.clock_gap = round.clock_gap.max(clock_gap);
            if !round.further(ack, round.newest) {
                return;
            }
        }
        round.newest = ack.bytes_acked;
        let (begin, clock, rtt) = round.begin;
        let ticks = u64::from(ack.receiver_clock.wrapping_sub(clock)) * TICK;
        let bounded = |rtt: i32| i128::from(rtt.min(LONGEST as i32));
        round.points.push(Point {
            part: i128::from((done * 4_096 / round.bytes).min(4_096)),
            arrival: i128::from((ack.now_us - begin).min(LONGEST)),
            clock: i128::from(ticks.min(LONGEST)),
            rtt: bounded(ack.rtt_us) - bounded(rtt),
        });
    }

    /// The longest gap of the round before or of the one in progress.
    fn gap(&self) -> u64 {
        self.gap_before.max(self.round.as_ref().map_or(0, |round| round.gap))
    }
}

/// What the first RTTs of a round say.
#[derive(Default)]
struct Queue {
    /// Begin and length of the round, bytes.
    round: Option<(u64, u64)>,
    least: Option<u64>,
    samples: u32,
    evaluated: bool,
    risen: u32,
    /// RTT of the path, as the last round after a pause showed it.
    base: Option<u64>,
    last: Option<u64>,
    pause: u64,
}

impl Queue {
    fn base(&self, ack: &Ack) -> u64 {
        self.base.unwrap_or(ack.min_rtt_us.into())
    }

    /// Whether the round has been judged with this ACK.
    fn on_ack(&mut self, ack: &Ack, gap: u64) -> bool {
        let passed = self.last.map_or(0, |last| ack.now_us.wrapping_sub(last) & u64::from(u32::MAX));
        self.pause = self.pause.max(passed);
        self.last = Some(ack.now_us);
        if self.round.is_none_or(|(from, bytes)| ack.bytes_acked > from + bytes) {
            self.round = Some((ack.bytes_acked, ack.bytes_outstanding.into()));
            (self.least, self.samples, self.evaluated) = (None, 0, false);
        }
        let Ok(rtt) = u64::try_from(ack.rtt_us) else { return false };
        if self.evaluated {
            return false;
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        self.samples += 1;
        let (from, bytes) = self.round.unwrap();
        let gone = ack.bytes_acked - from;
        let many = self.samples >= 16 && gone >= bytes / 16;
        let few = self.samples >= 4 && bytes / 64 >= u64::from(ack.mss.max(1)) && 2 * gone >= bytes;
        if !many && !few {
            return false;
        }
        self.evaluated = true;
        let idle = std::mem::take(&mut self.pause) * 2 >= least;
        let base = self.base(ack);
        self.risen = if !idle && least > base + (base / 4).max(gap) + 100 { self.risen + 1 } else { 0 };
        if idle {
            self.base = Some(least.min(2 * u64::from(ack.min_rtt_us))).filter(|base| *base > 0);
        }
        true
    }
}

/// One flow.
#[derive(Default)]
pub struct Model {
    line: Line,
    queue: Queue,
    estimate: Option<u64>,
    target: u64,
    rate_cwnd: u64,
    remainder: u64,
    guided: bool,
    /// Of the estimate at which data leave, and the bytes acknowledged when it was decided, with target and guidance.
    percent: u64,
    aimed: u64,
}

impl differential::Model for Model {
    type Settings = Settings;

    fn acks(random: &mut Random) -> Vec<Ack> {
        let mut acks = paired_sequence(random);
        clocks(random, &mut acks);
        acks
    }

    fn new(_: &Settings) -> Self {
        Self::default()
    }

    fn restart(&mut self) {
        let line = Line { first: self.line.first, ..Line::default() };
        *self = Self { line, ..Self::default() };
    }
}

/// Gives the ACKs a receiver's clock: of milliseconds, or not, or none; and on some the sender is held by the application.
fn clocks(random: &mut Random, acks: &mut [Ack]) {
    let kind = random.below(4);
    let begin = random.bits() as u32;
    let mut late = 0;
    for ack in acks {
        if random.once_in(8) {
            late = random.below(20_000);
        }
        let ticks = ack.now_us.saturating_sub(late) / if kind == 1 { 10_000 } else { 1_000 };
        ack.receiver_clock = if kind == 0 { 0 } else { begin.wrapping_add(ticks as u32) };
        if random.once_in(3) {
            ack.flags |= ack_flag::CWND_LIMITED;
        }
    }
}

fn raised(estimate: u64) -> u64 {
    (estimate * 125 / 100).min(FASTEST)
}

impl Model {
    fn take(&mut self, ack: &Ack, news: &News) -> bool {
        if let (Some((LineResult::Path(rate), true)), News::Over | News::Sooner) = (self.line.result, news) {
            self.estimate = Some(rate).filter(|rate| *rate > 0);
            self.rate_cwnd = ack.cwnd.into();
            return true;
        }
        if let (true, News::Over) = (self.guided, news) {
            let now = self.estimate.unwrap_or(0);
            let mut next = now;
            if let Some((LineResult::Sender(rate) | LineResult::Path(rate), _)) = self.line.result {
                next = next.max(rate.min(raised(now)));
            }
            if u64::from(ack.cwnd) >= self.target && self.queue.risen == 0 {
                next = raised(next);
            }
            self.estimate = Some(next).filter(|rate| *rate > 0);
        }
        false
    }

    fn slow(&mut self, ack: &Ack, verdict: &mut Verdict) {
        let counted = u64::from(ack.acked) + self.remainder;
        verdict.growth = growth::LIMITED;
        verdict.growth_limit = (counted / 4) as u32;
        self.remainder = counted % 4;
    }

    fn percent(&self, window: u64) -> u64 {
        if window * 2 >= self.target {
            102
        } else if window * 24 > 2 * self.target {
            window * 2_400 / (window * 24 - self.target)
        } else {
            200
        }
    }

    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let news = self.line.on_ack(ack);
        let evaluated = self.queue.on_ack(ack, self.line.gap());
        let quiet = matches!(news, News::None);
        let result = !quiet && self.take(ack, &news);
        let window = u64::from(ack.cwnd);
        let further = self.line.round.as_ref().is_some_and(|round| round.further(ack, self.aimed));
        if let Some(estimate) = self.estimate.filter(|_| !quiet || evaluated || further) {
            let rtt = (self.queue.base(ack) + self.line.gap()).min(1 << 29);
            let segments = estimate * rtt / 1_000 / u64::from(ack.mss) * set.exit / 100;
            self.target = segments.clamp(10, 0x7fff_fffe);
            self.guided |= window * 8 >= self.target;
            self.percent = self.percent(window);
            self.aimed = ack.bytes_acked;
        }
        let mut verdict = Verdict::default();
        if !self.guided {
            let bytes = (window * u64::from(ack.mss)).min(1 << 40);
            if ack.flags & ack_flag::PACED != 0 && ack.min_rtt_us > 0 {
                verdict.pacing_rate = 16 * (bytes * 1_000_000 / u64::from(ack.min_rtt_us)).min(1 << 34);
            }
        } else {
            verdict.pacing_rate = (self.estimate.unwrap_or(0) * 10 * self.percent).max(1);
        }
        if self.guided && window >= self.target {
            if result || self.queue.risen > 0 || self.rate_cwnd * 4 >= self.target {
                verdict.ssthresh = self.target as u32;
                return ("exit", verdict);
            }
            self.slow(ack, &mut verdict);
            return ("verifying", verdict);
        }
        match self.queue.risen {
            0 => (if self.guided { "guided" } else { "blind" }, verdict),
            1 => {
                self.slow(ack, &mut verdict);
                ("queued", verdict)
            }
            _ => {
                verdict.ssthresh = ack.cwnd;
                ("exit", verdict)
            }
        }
    }
}
