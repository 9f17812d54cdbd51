//! Parameters of search as plain values, for the model to read and the header to be given.

use std::sync::OnceLock;

use onramp_algorithm::{Parameters, find};

use super::differential;
use super::random::Random;

/// The parameters, by name and number.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub sent_form: bool,
    pub threshold: u64,
    pub confirm: u64,
    pub factor: u64,
    pub interpolate: Interpolate,
    pub look_back: LookBack,
    pub missed: Missed,
    pub alpha: u64,
    pub app: App,
    pub action: Action,
    pub pacing: Option<Pacing>,
}

/// With pacing on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    pub gain: u64,
    pub min_rate: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interpolate {
    Off,
    On,
    Older,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LookBack {
    Latest,
    Smoothed,
    Min,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Missed {
    Off,
    Alpha,
    Window,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum App {
    Off,
    Reset,
    Freeze,
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    Hold,
    Rollback,
    Drain,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        let confirms = if random.once_in(2) { 1 } else { 10 };
        let alphas = if random.once_in(4) { 1_000 } else { 8 };
        Self {
            sent_form: random.once_in(2),
            threshold: if random.once_in(3) { 0 } else { random.below(101) },
            confirm: 1 + random.below(confirms),
            factor: if random.once_in(2) { 350 } else { 200 + random.below(801) },
            interpolate: [Interpolate::Off, Interpolate::On, Interpolate::Older][random.below(3) as usize],
            look_back: [LookBack::Latest, LookBack::Smoothed, LookBack::Min][random.below(3) as usize],
            missed: [Missed::Off, Missed::Alpha, Missed::Window][random.below(3) as usize],
            alpha: 1 + random.below(alphas),
            app: [App::Off, App::Reset, App::Freeze, App::Rate][random.below(4) as usize],
            action: [Action::Hold, Action::Rollback, Action::Drain][random.below(3) as usize],
            pacing: random.once_in(2).then(|| Pacing {
                gain: 100 + random.below(101),
                min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            }),
        }
    }

    fn parameters(&self) -> Parameters {
        static PLACES: OnceLock<[usize; 13]> = OnceLock::new();
        let places = PLACES.get_or_init(|| {
            NAMES.map(|name| find("search").unwrap().declarations().position(|row| row.name == name).unwrap())
        });
        let Pacing { gain, min_rate } = self.pacing.unwrap_or(Pacing { gain: 100, min_rate: 1_000_000 });
        let values = [
            u64::from(self.sent_form),
            self.threshold,
            self.confirm,
            self.factor,
            self.interpolate as u64,
            self.look_back as u64,
            self.missed as u64,
            self.alpha,
            self.app as u64,
            self.action as u64,
            u64::from(self.pacing.is_some()),
            gain,
            min_rate,
        ];
        let mut words = find("search").unwrap().parameters().to_words();
        for (place, value) in places.iter().zip(values) {
            words[*place] = value;
        }
        Parameters::from_words(find("search").unwrap(), &words).unwrap()
    }
}

/// Names of the parameters in the order of [`Settings`].
const NAMES: [&str; 13] = [
    "form",
    "threshold_pct",
    "confirm_bins",
    "window_factor_pct",
    "interpolate",
    "look_back",
    "missed_bins",
    "missed_bins_rtts",
    "app_limited",
    "exit_action",
    "pacing",
    "pacing_gain_pct",
    "pacing_min_rate_bytes_per_s",
];
