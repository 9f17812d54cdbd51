//! HyStart++ once more, written from the text of RFC 9406 alone, to compare the header with. Infinity is `None`.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find, growth, outcome};

use super::differential;
use super::random::Random;
use super::rounds::{outcome_number, slow_start_acks};

/// The RFC's constants, segments and microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub min_rtt_thresh: u64,
    pub max_rtt_thresh: u64,
    pub min_rtt_divisor: u64,
    pub rtt_samples: u64,
    pub css_growth_divisor: u64,
    pub css_rounds: u64,
    pub l: u64,
}

impl differential::Settings for Settings {
    /// A random set; the RFC's half of the time.
    fn random(random: &mut Random) -> Self {
        let usual = random.once_in(2);
        let mut or =
            |usual_value: u64, bits: u64| if usual { usual_value } else { random.bits() >> (64 - bits) };
        Self {
            min_rtt_thresh: or(4_000, 14),
            max_rtt_thresh: or(16_000, 16),
            min_rtt_divisor: 1 + or(7, 5),
            rtt_samples: 1 + or(7, 3),
            css_growth_divisor: 1 + or(3, 4),
            css_rounds: 1 + or(4, 3),
            l: 1 + or(7, 5),
        }
    }

    /// In the order of the header.
    /// The divisor stays: how much of a segment is left over means nothing under another.
    fn changed(&self, random: &mut Random) -> Self {
        Self { css_growth_divisor: self.css_growth_divisor, ..Self::random(random) }
    }

    fn parameters(&self) -> Parameters {
        let words = [
            self.min_rtt_thresh,
            self.max_rtt_thresh,
            self.min_rtt_divisor,
            self.rtt_samples,
            self.css_growth_divisor,
            self.css_rounds,
            self.l,
        ];
        Parameters::from_words(find("hystartpp").unwrap(), &words).unwrap()
    }
}

/// Conservative Slow Start.
struct Conservative {
    baseline: u64,
    rounds: u64,
    /// Segments acknowledged in it, and those by which the window was to grow.
    counted: u64,
    granted: u64,
}

struct Names {
    entered: u32,
    css: u32,
    left: u32,
    known: u32,
}

/// One flow.
pub struct Model {
    pub settings: Settings,
    pub entries: u32,
    pub rounds_in_css: u32,
    window_end: Option<u128>,
    last_round: Option<u64>,
    this_round: Vec<u64>,
    css: Option<Conservative>,
    names: Names,
}

impl differential::Model for Model {
    type Settings = Settings;
    const RARE: u64 = 200;
    const THRESHOLDS: bool = false;

    fn acks(random: &mut Random) -> Vec<Ack> {
        slow_start_acks(random, 80)
    }

    fn new(settings: &Settings) -> Self {
        let number = |name| outcome_number("hystartpp", name);
        let names = Names {
            entered: number("css_entered"),
            css: number("css"),
            left: number("css_left"),
            known: number("threshold_known"),
        };
        Self {
            settings: *settings,
            entries: 0,
            rounds_in_css: 0,
            window_end: None,
            last_round: None,
            this_round: Vec::new(),
            css: None,
            names,
        }
    }

    fn tune(&mut self, settings: &Settings) {
        self.settings = *settings;
    }

    fn restart(&mut self) {
        self.window_end = None;
        self.last_round = None;
        self.this_round.clear();
        self.css = None;
    }
}

impl Model {
    pub fn conservative(&self) -> bool {
        self.css.is_some()
    }

    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        let set = self.settings;
        if ack.ssthresh < 0x7fff_ffff {
            return Verdict { outcome: self.names.known, ..Verdict::default() };
        }
        let acked = u128::from(ack.bytes_acked);
        if self.window_end.is_none_or(|end| acked > end) {
            if let (Some(_), Some(css)) = (self.window_end, &mut self.css) {
                css.rounds += 1;
                self.rounds_in_css += 1;
                if css.rounds >= set.css_rounds {
                    self.css = None;
                    return Verdict { outcome: outcome::EXIT, ssthresh: ack.cwnd, ..Verdict::default() };
                }
            }
            self.window_end = Some(acked + u128::from(ack.bytes_outstanding));
            self.last_round = self.this_round.iter().min().copied();
            self.this_round.clear();
        }

        let paced = ack.flags & ack_flag::PACED != 0;
        let counted = if paced { u64::from(ack.acked) } else { u64::from(ack.acked).min(set.l) };
        let limit = match &mut self.css {
            None if paced => None,
            None => Some(set.l),
            Some(css) => {
                css.counted += counted;
                let grow = (css.counted - css.granted) / set.css_growth_divisor;
                css.granted += grow * set.css_growth_divisor;
                Some(grow)
            }
        };
        let growth = if limit.is_some() { growth::LIMITED } else { growth::BASE };
        let growth_limit = limit.unwrap_or(0) as u32;
        let outcome = match u64::try_from(ack.rtt_us) {
            Err(_) => outcome::NO_RTT_SAMPLE,
            Ok(sample) => self.evaluate(sample.max(1)),
        };
        Verdict { outcome, growth, growth_limit, ..Verdict::default() }
    }

    fn evaluate(&mut self, sample: u64) -> u32 {
        let set = self.settings;
        self.this_round.push(sample);
        let enough = self.this_round.len() as u64 >= set.rtt_samples;
        let current = self.this_round.iter().min().copied().unwrap();
        if let Some(css) = &self.css {
            if enough && current < css.baseline {
                self.css = None;
                return self.names.left;
            }
            return self.names.css;
        }
        let (true, Some(last)) = (enough, self.last_round) else { return outcome::WARMING_UP };
        let part = (last / set.min_rtt_divisor).min(set.max_rtt_thresh);
        if current < last + part.max(set.min_rtt_thresh) {
            return outcome::BELOW_THRESHOLD;
        }
        self.css = Some(Conservative { baseline: current, rounds: 0, counted: 0, granted: 0 });
        self.entries += 1;
        self.names.entered
    }
}
