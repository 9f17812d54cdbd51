//! ramp once more, written from its description alone: every ACK of a line is kept until it is asked for.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find, growth};

use super::differential;
use super::pair_traffic::{paired_acks, paired_sequence, trains_of};
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
const PARTS: u64 = 64;
/// Fastest, kB/s.
const FASTEST: u64 = 1 << 24;

/// The ACK before, whether it was looked at or passed over; the RTT of the newest that had one.
#[derive(Clone, Copy, Default)]
struct Before {
    arrival: u64,
    clock: u32,
    rtt: Option<u64>,
}

impl Before {
    /// Time since, as far as 32 bits say.
    fn pause(&self, ack: &Ack) -> u64 {
        ack.now_us.wrapping_sub(self.arrival) & u64::from(u32::MAX)
    }

    /// Ticks of the receiver's clock since, as far as 16 bits say.
    fn ticks(&self, ack: &Ack) -> u32 {
        ack.receiver_clock.wrapping_sub(self.clock) & 0xffff
    }
}

/// Which ACKs are passed over, and how many have been since one was looked at.
struct Doze {
    /// Bytes acknowledged, time, ticks with which it is over.
    acked: u64,
    pause: u64,
    ticks: u32,
    passed: usize,
}

impl Doze {
    fn passes(&self, before: &Before, ack: &Ack) -> bool {
        received(ack) == ack.bytes_acked
            && ack.bytes_acked < self.acked
            && ack.rtt_us >= 0
            && before.pause(ack) < self.pause
            && before.ticks(ack) < self.ticks
            && self.passed < 65_535
    }
}

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
    /// Bytes received with the newest ACK.
    last: u64,
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
            last: received(ack),
            points: Vec::new(),
            asked: received(ack),
            gap: 0,
            clock_gap: 0,
            ended: false,
        });
    }

    /// ACKs were passed over before this one, which says what they acknowledged.
    fn catch_up(&mut self, passed: usize, before: &Before, ack: &Ack) {
        let Some(round) = self.round.as_mut().filter(|_| passed > 0) else { return };
        round.last = received(ack).wrapping_sub(u64::from(ack.acked) * u64::from(ack.mss));
        if !round.ended && !round.points.is_empty() {
            let clock = ack.receiver_clock.wrapping_sub(before.ticks(ack));
            let arrival = ack.now_us.wrapping_sub(before.pause(ack));
            let rtt = before.rtt.unwrap() as i64;
            let point = Point { acked: round.last, arrival, clock, rtt };
            round.points.extend(std::iter::repeat_n(point, passed));
        }
    }

    /// One ACK that is looked at: the rate, if the line was asked and shows one.
    fn on_ack(&mut self, ack: &Ack, before: &Before, most_sent: i64) -> Option<u64> {
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
        if received(ack) == round.last {
            return None;
        }
        let gap = before.pause(ack).min(LONGEST);
        let ticks = if gap < LONGEST { u64::from(before.ticks(ack)) * TICK } else { gap };
        round.last = received(ack);
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
        self.add(ack, gap, ticks);
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

    /// For how long the ACKs after this one need only be counted; none where not even that is enough.
    fn doze(&self, ack: &Ack) -> Option<Doze> {
        let round = self.round.as_ref().filter(|round| round.bytes / PARTS >= 2 * u64::from(ack.mss))?;
        let done = received(ack) - round.from;
        let asks = done > round.bytes / 4 && round.further(ack, round.asked);
        let ticks = (round.clock_gap / TICK) as u32 + 1;
        let (part, pause, ticks) = match (round.ended, round.points.is_empty(), asks) {
            (true, ..) => (round.bytes, u64::MAX, u32::MAX),
            (_, true, _) => (round.bytes / 16, u64::MAX, u32::MAX),
            (.., true) => (round.bytes, round.gap.div_ceil(2), ticks),
            (.., false) => (round.bytes, round.gap + 1, ticks),
        };
        let acked = ack.bytes_acked + (round.bytes / PARTS).min(part.saturating_sub(done));
        Some(Doze { acked, pause: pause.min((1 << 24) - 1), ticks: ticks.min(255), passed: 0 })
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
    idle: u64,
    /// All RTTs since the path became longer, if it has since a round was evaluated.
    since_step: Option<Vec<u64>>,
}

impl Queue {
    fn base(&self, ack: &Ack) -> u64 {
        self.base.unwrap_or(ack.min_rtt_us.into())
    }

    /// A quarter more than with the ACK before, which saw no queue, for no more than an eighth of what is outstanding: a step.
    fn sees_step(&mut self, ack: &Ack, passed: u64, rtt: u64, before: Option<u64>) {
        let few = u64::from(ack.acked) * u64::from(ack.mss.max(1)) * 8 <= u64::from(ack.bytes_outstanding);
        let paused = passed >= u64::from(ack.min_rtt_us / 4);
        let step = before.is_some_and(|before| before <= risen(self.base(ack)) && rtt > risen(before));
        if few && paused && step {
            self.since_step = Some(Vec::new());
        }
        if let Some(rtts) = &mut self.since_step {
            rtts.push(rtt);
        }
    }

    /// Whether the round has been judged with this ACK, which the way back has delayed by so much.
    fn on_ack(&mut self, ack: &Ack, before: &Before, returning: u64) -> bool {
        if let Ok(rtt) = u64::try_from(ack.rtt_us) {
            let passed = before.pause(ack);
            if self.round.is_some() {
                self.idle = self.idle.max(passed.saturating_sub(rtt.saturating_sub(self.base(ack))));
            }
            self.sees_step(ack, passed, rtt, before.rtt);
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

    /// Whether the ACKs of this doze, cut short, can change nothing here.
    fn dozes(&self, ack: &Ack, doze: Doze) -> Option<Doze> {
        let (from, bytes) = self.round.filter(|_| self.risen == 0 && self.since_step.is_none())?;
        let sample = if self.evaluated { u64::MAX } else { ack.bytes_acked + bytes / 16 / 32 };
        let pause = doze.pause.min(u64::from(ack.min_rtt_us / 16));
        let acked = doze.acked.min(from + bytes).min(sample);
        Some(Doze { acked, pause, ..doze })
    }
}

/// One flow.
#[derive(Default)]
pub struct Model {
    before: Before,
    doze: Option<Doze>,
    line: Line,
    queue: Queue,
    estimate: Option<u64>,
    target: u64,
    remainder: u64,
    guided: bool,
    /// Of data in flight, kB/s.
    rate: u64,
    /// Bytes acknowledged when target and guidance were decided.
    aimed: u64,
}

impl differential::Model for Model {
    type Settings = Settings;

    fn acks(random: &mut Random) -> Vec<Ack> {
        let large = random.once_in(200);
        let mut acks = if large { large_rounds(random) } else { paired_sequence(random) };
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

/// Rounds of hundreds of ACKs, of which most are passed over: nothing is out of order, and little else happens.
fn large_rounds(random: &mut Random) -> Vec<Ack> {
    let acks = paired_acks(random, 4_000);
    let longest = 200 + random.below(1_500);
    let mut acks = trains_of(random, acks, longest);
    for ack in &mut acks {
        if !random.once_in(50) {
            ack.flags &= !ack_flag::APP_LIMITED;
            ack.rtt_us = ack.rtt_us.max(1);
            ack.in_flight = ack.bytes_outstanding / ack.mss.max(1) + 1;
        }
    }
    acks
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

    fn look(&mut self, set: &Settings, ack: &Ack) {
        let passed = self.doze.take().map_or(0, |doze| doze.passed);
        self.line.catch_up(passed, &self.before, ack);
        let most_sent = if self.guided { 90 } else { 80 };
        let rate = self.line.on_ack(ack, &self.before, most_sent).filter(|rate| *rate > 0);
        let returning = self.line.returning(ack);
        let evaluated = self.queue.on_ack(ack, &self.before, returning);
        self.estimate = rate.or(self.estimate);
        let further = self.line.round.as_ref().is_some_and(|round| round.further(ack, self.aimed));
        if let Some(estimate) = self.estimate.filter(|_| rate.is_some() || evaluated || further) {
            let rtt = (self.queue.base(ack) + self.line.gap() + returning).min(1 << 29);
            let segments = estimate * rtt / 1_000 / u64::from(ack.mss) * set.exit / 100;
            self.target = segments.clamp(10, 0x7fff_fffe);
            self.guided |= u64::from(ack.cwnd) * 8 >= self.target;
            self.aimed = received(ack);
        }
        let bytes = (u64::from(ack.cwnd) * u64::from(ack.mss)).min(1 << 40);
        let young = (bytes * 1_000_000).checked_div(ack.min_rtt_us.into()).unwrap_or(0).min(1 << 34);
        self.rate = match (self.guided, ack.flags & ack_flag::PACED) {
            (true, _) => self.estimate.unwrap_or(0) * 12 / 10,
            (_, 0) => 0,
            _ => (16 * young).div_ceil(1_000),
        };
    }

    /// Until when the verdict stays as it is.
    fn dozes(&self, ack: &Ack) -> Option<Doze> {
        let mut doze = self.line.doze(ack).and_then(|doze| self.queue.dozes(ack, doze))?;
        if self.estimate.is_some() {
            let step = self.line.round.as_ref().map_or(0, |round| round.bytes / PARTS);
            doze.acked = doze.acked.min(ack.bytes_acked + step - (received(ack) - self.aimed));
        }
        if !self.guided {
            return Some(doze);
        }
        let left = (self.target - u64::from(ack.cwnd)) * u64::from(ack.mss);
        Some(Doze { acked: doze.acked.min(ack.bytes_acked + left), ..doze })
    }

    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let passes = self.doze.as_ref().is_some_and(|doze| doze.passes(&self.before, ack));
        if passes {
            self.doze.as_mut().unwrap().passed += 1;
        } else {
            self.look(set, ack);
        }
        let rtt = u64::try_from(ack.rtt_us).ok().or(self.before.rtt);
        self.before = Before { arrival: ack.now_us, clock: ack.receiver_clock, rtt };
        let (name, verdict) = self.verdict(ack, passes);
        if !passes && matches!(name, "guided" | "blind") {
            self.doze = self.dozes(ack);
        }
        (name, verdict)
    }

    fn verdict(&mut self, ack: &Ack, passes: bool) -> (&'static str, Verdict) {
        let window = u64::from(ack.cwnd);
        let mut verdict = Verdict { pacing_rate: self.rate * 1_000, ..Verdict::default() };
        if self.guided && !passes && window >= self.target {
            verdict.ssthresh = self.target as u32;
            return ("exit", verdict);
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
