//! ramp once more, written from its description alone: every ACK of a line is kept until it is asked for.

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
/// Parts of a round in each of which a line is asked once, at most.
const PARTS: u64 = 256;
/// Fastest, kB/s.
const FASTEST: u64 = 1 << 24;

/// Sent bytes that the receiver does not have.
fn missing(ack: &Ack) -> u64 {
    (u64::from(ack.in_flight) * u64::from(ack.mss)).min(ack.bytes_outstanding.into())
}

/// Bytes that it has, in order or not.
fn received(ack: &Ack) -> u64 {
    ack.bytes_acked + u64::from(ack.bytes_outstanding) - missing(ack)
}

/// An ACK on the line: bytes received, arrival, the receiver's clock, RTT.
#[derive(Clone, Copy)]
struct Point {
    acked: u64,
    arrival: u64,
    clock: u32,
    rtt: i64,
}

struct Round {
    from: u64,
    bytes: u64,
    last: (u64, u64, u32),
    points: Vec<Point>,
    /// Bytes acknowledged when the line was asked last.
    asked: u64,
    gap: u64,
    clock_gap: u64,
    ended: bool,
}

impl Round {
    /// Whether an ACK is a part further than when so much was acknowledged.
    fn further(&self, ack: &Ack, acked: u64) -> bool {
        received(ack) - acked >= self.bytes / PARTS
    }
}

#[derive(Default)]
struct Line {
    /// The first ACK of slow start that has the receiver's clock.
    first: Option<(u64, u32)>,
    round: Option<Round>,
    gap_before: u64,
}

impl Line {
    /// What the RTT is above the least.
    fn risen(ack: &Ack) -> u64 {
        u64::try_from(ack.rtt_us).unwrap_or(0).saturating_sub(ack.min_rtt_us.into())
    }

    /// Time since the first ACK, by arrival and by the receiver's clock.
    fn since(&self, ack: &Ack) -> Option<(u64, u64)> {
        let (first, clock) = self.first.filter(|_| ack.receiver_clock != 0)?;
        let ticked = u64::from(ack.receiver_clock.wrapping_sub(clock)) * TICK;
        Some((ack.now_us.wrapping_sub(first), ticked))
    }

    /// Whether that clock agrees with the arrivals, once it can.
    fn clock_agrees(&self, ack: &Ack) -> Option<bool> {
        let (arrived, ticked) = self.since(ack).filter(|(arrived, _)| *arrived > 8 * TICK)?;
        let stretched = arrived > ticked * 2 && arrived > ticked + Self::risen(ack) + TICK;
        Some(ticked <= arrived * 2 && !stretched)
    }

    /// What the way back has added to the RTT.
    fn returning(&self, ack: &Ack) -> u64 {
        if self.clock_agrees(ack) != Some(true) {
            return 0;
        }
        let (arrived, ticked) = self.since(ack).unwrap();
        arrived.saturating_sub(ticked + TICK).min(Self::risen(ack))
    }

    /// The rate that the points show, if they left in so many percent of the time at most.
    fn rate(&self, ack: &Ack, most_sent: i64) -> Option<u64> {
        let round = self.round.as_ref()?;
        let (begin, end) = (round.points.first()?, round.points.last()?);
        let agrees = self.clock_agrees(ack);
        let arrived = (end.arrival - begin.arrival).min(LONGEST);
        let ticked = (u64::from(end.clock.wrapping_sub(begin.clock)) * TICK).min(LONGEST);
        let clock_gap = round.clock_gap.max(TICK);
        let error = |gap: u64, span: u64| (gap * 32).checked_div(span).map_or(32, |part| (part + 1).min(32));
        let bent = arrived * (32 - error(round.gap, arrived)) > ticked * (32 + error(clock_gap, ticked));
        let (gap, span) = match agrees {
            Some(true) if ticked >= 8 * clock_gap || bent => (clock_gap, ticked),
            Some(false) => return None,
            _ => (round.gap, arrived),
        };
        let least_rtt = u64::from(ack.min_rtt_us);
        let left = arrived as i64 - (end.rtt - begin.rtt);
        let took = if agrees.is_some() { span.min(ticked + 2 * TICK) } else { span };
        let long = span > 0 && span >= 8 * gap && least_rtt > 0 && span * 16 >= least_rtt;
        if round.points.len() < 2 || end.acked <= begin.acked || !long || left * 100 > took as i64 * most_sent
        {
            return None;
        }
        let mean = span / (round.points.len() as u64 - 1);
        Some(((end.acked - begin.acked) * 1_000 / (span - gap + mean)).min(FASTEST))
    }

    fn turn(&mut self, ack: &Ack) {
        if let Some(round) = &self.round {
            self.gap_before = round.gap;
        }
        if self.first.is_none() && ack.receiver_clock != 0 {
            self.first = Some((ack.now_us, ack.receiver_clock));
        }
        self.round = Some(Round {
            from: received(ack),
            bytes: missing(ack).max(1),
            last: (received(ack), ack.now_us, ack.receiver_clock),
            points: Vec::new(),
            asked: received(ack),
            gap: 0,
            clock_gap: 0,
            ended: false,
        });
    }

    /// One ACK: the rate, if the line was asked and shows one.
    fn on_ack(&mut self, ack: &Ack, most_sent: i64) -> Option<u64> {
        let begins = self.round.as_ref().is_none_or(|round| received(ack) > round.from + round.bytes);
        if let (false, Some((arrived, ticked)), Some(true)) =
            (begins, self.since(ack), self.clock_agrees(ack))
        {
            let (first, clock) = self.first.unwrap();
            self.first = Some((first.wrapping_sub(ticked.saturating_sub(arrived)), clock));
        }
        if begins {
            let rate = self.rate(ack, most_sent);
            self.turn(ack);
            return rate;
        }
        let round = self.round.as_mut().unwrap();
        if received(ack) == round.last.0 {
            return None;
        }
        let gap = (ack.now_us - round.last.1).min(LONGEST);
        let ticks = u64::from(ack.receiver_clock.wrapping_sub(round.last.2)) * TICK;
        round.last = (received(ack), ack.now_us, ack.receiver_clock);
        if round.ended {
            return None;
        }
        let done = received(ack) - round.from;
        let waited = gap > 2 * round.gap || ticks > 2 * round.clock_gap.max(TICK);
        if done > round.bytes - round.bytes / 16 && waited {
            round.ended = true;
            return None;
        }
        if ack.flags & ack_flag::APP_LIMITED != 0 && ack.flags & ack_flag::CWND_LIMITED == 0 {
            round.ended = true;
            round.points.clear();
            return None;
        }
        let mut rate = None;
        if gap * 2 >= round.gap && done > round.bytes / 4 && round.further(ack, round.asked) {
            round.asked = received(ack);
            rate = self.rate(ack, most_sent);
        }
        self.add(ack, gap, ticks.min(LONGEST));
        rate
    }

    fn add(&mut self, ack: &Ack, gap: u64, clock_gap: u64) {
        let round = self.round.as_mut().unwrap();
        if round.points.is_empty() && received(ack) - round.from < round.bytes / 16 || ack.rtt_us < 0 {
            return;
        }
        if !round.points.is_empty() {
            round.gap = round.gap.max(gap);
            round.clock_gap = round.clock_gap.max(clock_gap);
        }
        round.points.push(Point {
            acked: received(ack),
            arrival: ack.now_us,
            clock: ack.receiver_clock,
            rtt: ack.rtt_us.into(),
        });
    }

    /// The longest gap of the round before or of the one in progress.
    fn gap(&self) -> u64 {
        self.gap_before.max(self.round.as_ref().map_or(0, |round| round.gap))
    }
}

/// Above which RTT there is a queue.
fn risen(base: u64) -> u64 {
    base + base / 4 + 100
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
    idle: u64,
    /// RTT of the newest ACK that has one.
    rtt: Option<u64>,
    /// All RTTs since the path became longer, if it has since a round was evaluated.
    since_step: Option<Vec<u64>>,
}

impl Queue {
    fn base(&self, ack: &Ack) -> u64 {
        self.base.unwrap_or(ack.min_rtt_us.into())
    }

    /// A quarter more than with the ACK before, which saw no queue, for no more than an eighth of what is outstanding: a step.
    fn sees_step(&mut self, ack: &Ack, passed: u64, rtt: u64) {
        let few = u64::from(ack.acked) * u64::from(ack.mss.max(1)) * 8 <= u64::from(ack.bytes_outstanding);
        let paused = passed >= u64::from(ack.min_rtt_us / 4);
        let step = self.rtt.is_some_and(|before| before <= risen(self.base(ack)) && rtt > risen(before));
        if few && paused && step {
            self.since_step = Some(Vec::new());
        }
        if let Some(rtts) = &mut self.since_step {
            rtts.push(rtt);
        }
        self.rtt = Some(rtt);
    }

    /// Whether the round has been judged with this ACK, which the way back has delayed by so much.
    fn on_ack(&mut self, ack: &Ack, returning: u64) -> bool {
        let passed = self.last.map_or(0, |last| ack.now_us.wrapping_sub(last) & u64::from(u32::MAX));
        if let Ok(rtt) = u64::try_from(ack.rtt_us) {
            self.idle = self.idle.max(passed.saturating_sub(rtt.saturating_sub(self.base(ack))));
        }
        self.last = Some(ack.now_us);
        if let Ok(rtt) = u64::try_from(ack.rtt_us) {
            self.sees_step(ack, passed, rtt);
        }
        if self.round.is_none_or(|(from, bytes)| ack.bytes_acked > from + bytes) {
            self.round = Some((ack.bytes_acked, ack.bytes_outstanding.into()));
            (self.least, self.samples, self.evaluated) = (None, 0, false);
        }
        let Ok(rtt) = u64::try_from(ack.rtt_us) else { return false };
        if self.evaluated {
            return false;
        }
        let rtt = rtt - returning;
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
        let base = self.base(ack);
        let idle = std::mem::take(&mut self.idle) * 8 >= least.min(base);
        let longer = self.since_step.take().is_some_and(|rtts| rtts.iter().all(|rtt| *rtt > risen(base)));
        self.risen = if !idle && !longer && least > risen(base) { self.risen + 1 } else { 0 };
        if idle || longer {
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
    remainder: u64,
    guided: bool,
    /// Bytes acknowledged when target and guidance were decided.
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

impl Model {
    fn slow(&mut self, ack: &Ack, verdict: &mut Verdict) {
        let counted = u64::from(ack.acked) + self.remainder;
        verdict.growth = growth::LIMITED;
        verdict.growth_limit = (counted / 4) as u32;
        self.remainder = counted % 4;
    }

    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let rate = self.line.on_ack(ack, if self.guided { 90 } else { 80 }).filter(|rate| *rate > 0);
        let returning = self.line.returning(ack);
        let evaluated = self.queue.on_ack(ack, returning);
        self.estimate = rate.or(self.estimate);
        let window = u64::from(ack.cwnd);
        let further = self.line.round.as_ref().is_some_and(|round| round.further(ack, self.aimed));
        if let Some(estimate) = self.estimate.filter(|_| rate.is_some() || evaluated || further) {
            let rtt = (self.queue.base(ack) + self.line.gap() + returning).min(1 << 29);
            let segments = estimate * rtt / 1_000 / u64::from(ack.mss) * set.exit / 100;
            self.target = segments.clamp(10, 0x7fff_fffe);
            self.guided |= window * 8 >= self.target;
            self.aimed = received(ack);
        }
        let mut verdict = Verdict::default();
        if !self.guided {
            let bytes = (window * u64::from(ack.mss)).min(1 << 40);
            if ack.flags & ack_flag::PACED != 0 && ack.min_rtt_us > 0 {
                verdict.pacing_rate = 16 * (bytes * 1_000_000 / u64::from(ack.min_rtt_us)).min(1 << 34);
            }
        } else {
            verdict.pacing_rate = self.estimate.unwrap_or(0) * 1_200;
            if window >= self.target {
                verdict.ssthresh = self.target as u32;
                return ("exit", verdict);
            }
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
