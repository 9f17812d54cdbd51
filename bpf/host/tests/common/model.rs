//! SEARCH once more, written from the description of the method alone, to compare the header with: every bin is kept
//! for ever in a plain list of 64-bit totals, a state is an enum, nothing wraps.

use std::sync::OnceLock;

use onramp_algorithm::{Ack, Verdict, ack_flag, growth, outcome};

use super::differential;
use super::pair_model::{PairModel, Step};
use super::pair_traffic::{paired_acks, trains};
use super::random::Random;
use super::rounds::outcome_number;
use super::settings::{Action, App, Interpolate, LookBack, Missed, Settings};
use super::spacing_model::Policy;
use super::traffic::plausible_acks;

/// ACKs of a sequence.
pub const LENGTH: usize = 60;
/// Bins of a window.
const WINDOW: usize = 10;
/// Longest look-back that the header promises to judge, bins.
const LONGEST_LOOK_BACK: usize = 20;

/// What a flow keeps from its first bin on.
#[derive(Clone, Copy)]
struct Geometry {
    sent_form: bool,
    factor: u64,
    bin_us: u64,
}

/// Totals at the end of every closed bin, and when the open one ends.
struct History {
    acked: Vec<u64>,
    expected: Vec<u64>,
    end_us: u64,
}

struct Drain {
    target: u32,
    delivered: u32,
    credit: u32,
}

/// One flow.
pub struct Model {
    pub settings: Settings,
    /// Norm of the newest check, percent.
    pub norm: u64,
    /// Checks in a row that were at the threshold.
    at_threshold: u64,
    geometry: Option<Geometry>,
    history: Option<History>,
    drain: Option<Drain>,
    /// These two hear of ACKs while pacing is on.
    pairs: PairModel,
    pub policy: Policy,
    outcomes: Outcomes,
}

/// Numbers of search's own outcomes.
#[derive(Clone, Copy)]
struct Outcomes {
    bin_open: u32,
    bins_missed: u32,
    look_back_too_long: u32,
    nothing_sent: u32,
    draining: u32,
    unconfirmed: u32,
}

impl differential::Model for Model {
    type Settings = Settings;
    const THRESHOLDS: bool = false;

    fn acks(random: &mut Random) -> Vec<Ack> {
        let kind = random.below(4);
        if kind > 1 {
            return plausible_acks(random, LENGTH);
        }
        let mut acks = paired_acks(random, LENGTH);
        // The silence after an ACK at the beginning of time has more bins than a list can hold.
        acks.retain(|ack| ack.now_us > 1);
        if kind == 0 { acks } else { trains(random, acks) }
    }

    fn new(settings: &Settings) -> Self {
        static OUTCOMES: OnceLock<Outcomes> = OnceLock::new();
        let number = |name| outcome_number("search", name);
        let outcomes = *OUTCOMES.get_or_init(|| Outcomes {
            bin_open: number("bin_open"),
            bins_missed: number("bins_missed"),
            look_back_too_long: number("look_back_too_long"),
            nothing_sent: number("nothing_sent"),
            draining: number("draining"),
            unconfirmed: number("unconfirmed"),
        });
        Self {
            settings: settings.clone(),
            norm: 0,
            at_threshold: 0,
            geometry: None,
            history: None,
            drain: None,
            pairs: PairModel::default(),
            policy: Policy::default(),
            outcomes,
        }
    }

    fn tune(&mut self, settings: &Settings) {
        self.settings = settings.clone();
    }

    fn restart(&mut self) {
        self.forget();
        self.pairs = PairModel::default();
        self.policy = Policy::default();
    }

    fn on_loss(&mut self) {
        self.drain = None;
    }
}

impl Model {
    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        let pacing_rate = self.pacing_rate(ack);
        Verdict { pacing_rate, ..self.evaluated(ack) }
    }

    fn forget(&mut self) {
        self.geometry = None;
        self.history = None;
        self.drain = None;
        self.at_threshold = 0;
    }

    fn pacing_rate(&mut self, ack: &Ack) -> u64 {
        let Some(pacing) = self.settings.pacing else { return 0 };
        match self.pairs.on_ack(ack) {
            Step::Over(result) => self.policy.round(result, true, pacing.min_rate),
            Step::Sooner(result) => self.policy.round(result, false, pacing.min_rate),
            Step::Begun | Step::Open => {}
        }
        self.policy.rate(pacing.gain, ack)
    }

    fn evaluated(&mut self, ack: &Ack) -> Verdict {
        if let Some(drain) = self.drain.take() {
            return self.drained(drain, ack);
        }
        if ack.rtt_us < 0 {
            return because(outcome::NO_RTT_SAMPLE);
        }
        let rtt_us = u64::from(ack.rtt_us.unsigned_abs()).max(1);
        let (Some(geometry), Some(history)) = (self.geometry, &mut self.history) else {
            self.begin(ack, rtt_us);
            return because(outcome::WARMING_UP);
        };
        if ack.now_us <= history.end_us {
            return because(self.outcomes.bin_open);
        }
        let limited = match self.settings.app {
            App::Off => false,
            App::Rate => ack.flags & ack_flag::RATE_APP_LIMITED != 0,
            App::Reset | App::Freeze => ack.flags & ack_flag::APP_LIMITED != 0,
        };
        if limited {
            if self.settings.app != App::Freeze || !geometry.sent_form {
                self.begin(ack, rtt_us);
            }
            return because(outcome::APP_LIMITED);
        }
        let passed = (ack.now_us - history.end_us) / geometry.bin_us + 1;
        let borne = match self.settings.missed {
            Missed::Off => u64::MAX,
            Missed::Window => WINDOW as u64,
            Missed::Alpha => self.settings.alpha * geometry.bins_of_rtts(1),
        };
        if passed > borne {
            if passed > WINDOW as u64 {
                self.forget();
            }
            if self.settings.missed == Missed::Alpha {
                self.begin(ack, rtt_us);
            }
            return because(self.outcomes.bins_missed);
        }
        history.close(geometry, ack, passed);
        self.evaluate(ack, rtt_us)
    }

    fn begin(&mut self, ack: &Ack, rtt_us: u64) {
        let (sent_form, factor) = (self.settings.sent_form, self.settings.factor);
        let bin_us = (rtt_us * factor / 1_000).max(1);
        let geometry = *self.geometry.get_or_insert(Geometry { sent_form, factor, bin_us });
        self.at_threshold = 0;
        self.history = Some(History {
            acked: vec![ack.bytes_acked],
            expected: vec![geometry.compared(ack)],
            end_us: ack.now_us + geometry.bin_us,
        });
    }

    fn evaluate(&mut self, ack: &Ack, rtt_us: u64) -> Verdict {
        let (Some(geometry), Some(history)) = (self.geometry, &self.history) else { unreachable!() };
        let look_back_us = match self.settings.look_back {
            LookBack::Min if ack.min_rtt_us > 0 => u64::from(ack.min_rtt_us),
            LookBack::Smoothed if ack.smoothed_rtt_us > 0 => u64::from(ack.smoothed_rtt_us),
            LookBack::Latest => rtt_us.max(u64::from(ack.smoothed_rtt_us)),
            _ => rtt_us,
        };
        let look_back = (look_back_us / geometry.bin_us) as usize;
        if look_back > LONGEST_LOOK_BACK {
            return because(self.outcomes.look_back_too_long);
        }
        let newest = history.acked.len() - 1;
        if newest < look_back + WINDOW + 1 {
            return because(outcome::WARMING_UP);
        }
        // A position between two bins, `part` hundredths before the later of them.
        let part = match self.settings.interpolate {
            Interpolate::On => look_back_us % geometry.bin_us * 100 / geometry.bin_us,
            Interpolate::Off => 0,
            Interpolate::Older => 100,
        };
        let earlier_end = newest - look_back;
        let window_to = |end: usize| history.expected[end] - history.expected[end - WINDOW];
        let mut expected = (window_to(earlier_end - 1) * part + window_to(earlier_end) * (100 - part)) / 100;
        if !geometry.sent_form {
            expected *= 2;
        }
        if expected == 0 {
            return because(self.outcomes.nothing_sent);
        }
        let delivered = history.acked[newest] - history.acked[newest - WINDOW];
        self.norm = expected.saturating_sub(delivered) * 100 / expected;
        let threshold = match self.settings.threshold {
            0 if geometry.sent_form => 26,
            0 => 35,
            threshold => threshold,
        };
        if self.norm < threshold {
            self.at_threshold = 0;
            return because(outcome::BELOW_THRESHOLD);
        }
        self.at_threshold += 1;
        if self.at_threshold < self.settings.confirm {
            because(self.outcomes.unconfirmed)
        } else {
            self.leave(ack)
        }
    }

    fn leave(&mut self, ack: &Ack) -> Verdict {
        let (Some(geometry), Some(history)) = (self.geometry, &self.history) else { unreachable!() };
        let segments_in = |bins: u64| {
            let newest = history.acked.len() - 1;
            (history.acked[newest] - history.acked[newest - bins as usize]) / u64::from(ack.mss)
        };
        let cwnd = u64::from(ack.cwnd);
        let kept = match self.settings.action {
            Action::Hold => cwnd,
            Action::Rollback => cwnd.saturating_sub(segments_in(geometry.bins_of_rtts(2))),
            Action::Drain => segments_in(geometry.bins_covering_an_rtt()),
        };
        let target = kept.max(10).min(cwnd) as u32;
        match self.settings.action {
            Action::Hold => Verdict { ssthresh: ack.cwnd, ..because(outcome::EXIT) },
            Action::Rollback => Verdict { cwnd: target, ssthresh: target, ..because(outcome::EXIT) },
            Action::Drain => {
                self.drain = (target > 0).then_some(Drain { target, delivered: ack.delivered, credit: 0 });
                Verdict { growth: growth::LIMITED, undo_limit: target, ..because(outcome::EXIT) }
            }
        }
    }

    fn drained(&mut self, mut drain: Drain, ack: &Ack) -> Verdict {
        drain.credit += ack.delivered.wrapping_sub(drain.delivered);
        drain.delivered = ack.delivered;
        let window = ack.in_flight.saturating_add(drain.credit / 3).min(ack.cwnd);
        drain.credit %= 3;
        let verdict = because(self.outcomes.draining);
        if window <= drain.target {
            let left = drain.target.min(ack.cwnd);
            return Verdict { cwnd: left, ssthresh: left, ..verdict };
        }
        let undo_limit = drain.target;
        self.drain = Some(drain);
        Verdict { cwnd: window, growth: growth::LIMITED, undo_limit, ..verdict }
    }
}

impl Geometry {
    fn compared(&self, ack: &Ack) -> u64 {
        if self.sent_form { ack.bytes_sent } else { ack.bytes_acked }
    }

    /// Whole bins in so many initial RTTs, at most a window.
    fn bins_of_rtts(&self, rtts: u64) -> u64 {
        (rtts * 1_000 / self.factor).min(WINDOW as u64)
    }

    fn bins_covering_an_rtt(&self) -> u64 {
        1_000_u64.div_ceil(self.factor).min(WINDOW as u64)
    }
}

impl History {
    fn close(&mut self, geometry: Geometry, ack: &Ack, passed: u64) {
        for (totals, total) in
            [(&mut self.acked, ack.bytes_acked), (&mut self.expected, geometry.compared(ack))]
        {
            let last = totals[totals.len() - 1];
            totals.extend((1..passed).map(|_| last));
            totals.push(total);
        }
        self.end_us += passed * geometry.bin_us;
    }
}

fn because(outcome: u32) -> Verdict {
    Verdict { outcome, ..Verdict::default() }
}
