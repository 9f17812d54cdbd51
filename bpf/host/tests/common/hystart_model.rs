//! HyStart once more, written from the descriptions of the method alone, to compare the header with: a round is a list
//! of everything seen in it, times and sequence numbers do not wrap, statistics are made of all samples each time.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find, outcome};

use super::differential;
use super::random::Random;
use super::rounds::{outcome_number, slow_start_acks};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub train: bool,
    pub delay: bool,
    pub low_window_segments: u64,
    pub ack_delta: u64,
    pub min_samples: u64,
    pub rule: Rule,
    pub floor: u64,
    pub ceiling: u64,
    pub divisor: u64,
    pub average_divisor: u64,
    pub deviations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Clamp,
    Average,
    Deviation,
}

impl differential::Settings for Settings {
    /// A random set; the defaults half of the time.
    fn random(random: &mut Random) -> Self {
        let usual = random.once_in(2);
        let mut or =
            |usual_value: u64, bits: u64| if usual { usual_value } else { random.bits() >> (64 - bits) };
        let (low_window_segments, ack_delta, min_samples) = (or(16, 6), or(2_000, 15), or(8, 4));
        let (floor, ceiling, divisor) = (or(4_000, 15), or(16_000, 17), 1 + or(7, 5));
        let (average_divisor, deviations) = (1 + or(7, 5), 1 + or(1, 4));
        let rule = [Rule::Clamp, Rule::Average, Rule::Deviation][random.below(3) as usize];
        let detect = if usual { 3 } else { random.below(4) };
        let (train, delay) = (detect & 1 != 0, detect & 2 != 0);
        Self {
            train,
            delay,
            low_window_segments,
            ack_delta,
            min_samples,
            rule,
            floor,
            ceiling,
            divisor,
            average_divisor,
            deviations,
        }
    }

    /// In the order of the header.
    fn parameters(&self) -> Parameters {
        let words = [
            u64::from(self.train) + 2 * u64::from(self.delay),
            self.low_window_segments,
            self.ack_delta,
            self.min_samples,
            self.rule as u64,
            self.floor,
            self.ceiling,
            self.divisor,
            self.average_divisor,
            self.deviations,
        ];
        Parameters::from_words(find("hystart").unwrap(), &words).unwrap()
    }
}

/// What was seen of one round.
struct Round {
    begun_us: i128,
    last_byte: u128,
    /// Times of the ACKs of its train.
    train_us: Vec<i128>,
    /// Samples that the delay detector saw.
    evaluated: Vec<u64>,
    /// Threshold that the rounds before speak for.
    learned: Option<u64>,
}

/// One flow.
pub struct Model {
    pub settings: Settings,
    /// 1 train, 2 delay, 3 both: of the newest exit.
    pub detected: u32,
    minimum: Option<u64>,
    round: Option<Round>,
    /// Every sample so far that came while the deviation was the rule.
    samples: Vec<u64>,
    average: Option<u64>,
    small_window: u32,
}

impl differential::Model for Model {
    type Settings = Settings;
    const THRESHOLDS: bool = false;

    fn acks(random: &mut Random) -> Vec<Ack> {
        slow_start_acks(random, 80)
    }

    fn new(settings: &Settings) -> Self {
        let small_window = outcome_number("hystart", "small_window");
        Self {
            settings: *settings,
            detected: 0,
            minimum: None,
            round: None,
            samples: Vec::new(),
            average: None,
            small_window,
        }
    }

    fn tune(&mut self, settings: &Settings) {
        self.settings = *settings;
    }

    fn restart(&mut self) {
        self.round = None;
        self.samples.clear();
        self.average = None;
    }
}

impl Model {
    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        let because = |outcome| Verdict { outcome, ..Verdict::default() };
        let Ok(sample) = u64::try_from(ack.rtt_us) else { return because(outcome::NO_RTT_SAMPLE) };
        let sample = sample.max(1);
        let minimum = self.minimum.map_or(sample, |minimum| minimum.min(sample));
        self.minimum = Some(minimum);

        let (now_us, acked) = (i128::from(ack.now_us), u128::from(ack.bytes_acked));
        if self.round.as_ref().is_none_or(|round| acked > round.last_byte) {
            let over = self.round.take();
            let learned = self.learn(over);
            self.round = Some(Round {
                begun_us: now_us,
                last_byte: acked + u128::from(ack.bytes_outstanding),
                train_us: vec![now_us],
                evaluated: Vec::new(),
                learned,
            });
        }
        if self.settings.rule == Rule::Deviation {
            self.samples.push(sample.min(0xff_ffff));
        }
        let Some(round) = &mut self.round else { unreachable!("begun above") };

        let set = self.settings;
        if u64::from(ack.cwnd) < set.low_window_segments {
            return because(self.small_window);
        }
        let mut found = 0;
        let mut why = outcome::GROW;
        if set.train {
            why = outcome::BELOW_THRESHOLD;
            let newest = *round.train_us.last().unwrap();
            if now_us - newest <= i128::from(set.ack_delta) {
                round.train_us.push(now_us);
                let bursts = u128::from(ack.gso_max_size) * 4_000_000;
                let ack_delay = bursts.checked_div(u128::from(ack.pacing_rate)).unwrap_or(0).min(1_000);
                let path = i128::from(minimum) + ack_delay as i128;
                let needed = if ack.flags & ack_flag::PACED != 0 { path } else { path / 2 };
                found |= u32::from(now_us - round.begun_us > needed);
            }
        }
        if set.delay {
            round.evaluated.push(sample);
            why = outcome::WARMING_UP;
            if round.evaluated.len() as u64 > set.min_samples {
                why = outcome::BELOW_THRESHOLD;
                let threshold = match round.learned.filter(|_| set.rule != Rule::Clamp) {
                    Some(learned) => learned.max(set.floor),
                    None => (minimum / set.divisor).max(set.floor).min(set.ceiling),
                };
                if *round.evaluated.iter().min().unwrap() > minimum + threshold {
                    found |= 2;
                }
            }
        }
        if found == 0 {
            return because(why);
        }
        self.detected = found;
        Verdict { outcome: outcome::EXIT, ssthresh: ack.cwnd, ..Verdict::default() }
    }

    /// What the rounds up to this one teach.
    fn learn(&mut self, over: Option<Round>) -> Option<u64> {
        let set = self.settings;
        if let Some(newest) = over.and_then(|round| round.evaluated.into_iter().min()) {
            let of = set.average_divisor;
            self.average = Some(self.average.map_or(newest, |average| (average * (of - 1) + newest) / of));
        }
        match set.rule {
            Rule::Clamp => None,
            Rule::Average => self.average.map(|average| (average / set.divisor).max(1)),
            Rule::Deviation if self.samples.is_empty() => None,
            Rule::Deviation => Some((set.deviations * deviation(&self.samples)).max(1)),
        }
    }
}

/// Standard deviation, rounded down.
fn deviation(samples: &[u64]) -> u64 {
    let count = samples.len() as u128;
    let sum: u128 = samples.iter().map(|sample| u128::from(*sample)).sum();
    let squares: u128 = samples.iter().map(|sample| u128::from(*sample).pow(2)).sum();
    (((count * squares - sum * sum) / (count * count)) as u64).isqrt()
}
