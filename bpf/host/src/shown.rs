//! What an algorithm shows of a flow: a value over time with its limit, and a picture.

use std::mem::MaybeUninit;

use crate::algorithm::Algorithm;
use crate::contract::{Ack, PictureRow, TRACK_NONE, TrackReading};
use crate::ffi::{filled, slice, text};
use crate::parameters::Parameters;

/// A value of a flow over time, and the limit at which slow start ends (`NAME_TRACK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// What the value is.
    pub title: &'static str,
    /// `percent`, `us` or `segments`; of the limit, too.
    pub unit: &'static str,
    /// What the limit is.
    pub limit_title: &'static str,
}

/// A track at a moment; `None`: there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// In the track's unit.
    pub value: Option<u32>,
    /// In the track's unit.
    pub limit: Option<u32>,
}

/// What is drawn of a flow's state (`NAME_PICTURE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The track's value against its limit.
    pub gauge: Option<Gauge>,
    /// Several values side by side.
    pub bars: Option<Bars>,
    /// One of several phases.
    pub phase: Option<Phase>,
}

/// A track in percent as a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// What is measured.
    pub title: &'static str,
    /// Highest value so far that was below the limit, percent.
    pub highest_below_pct: u32,
}

/// Values side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bars {
    /// What they are.
    pub title: &'static str,
    /// `bytes` or `bit/s`.
    pub unit: &'static str,
    /// From the oldest, or the first.
    pub values: Vec<u64>,
}

/// A phase by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What has phases.
    pub title: &'static str,
    /// From 0, which begins slow start.
    pub number: u32,
    /// Its name; empty for a number without one.
    pub name: &'static str,
}

impl Algorithm {
    /// The value that it shows over time; `None`: it has no single one.
    pub fn track(&self) -> Option<Track> {
        let row = slice(self.row.tracks, self.row.track_count).first()?;
        Some(Track { title: text(row.title), unit: text(row.unit), limit_title: text(row.limit_title) })
    }

    /// What is drawn of a flow's state; `None`: nothing, or `state` is too short.
    pub fn picture(&self, state: &[u8]) -> Option<Picture> {
        let kept = self.kept(state)?;
        let mut row = MaybeUninit::<PictureRow>::zeroed();
        // SAFETY: all zero is a value of the row: null pointers and numbers. The function fills it from a state that is
        // whole and aligned.
        let row = unsafe {
            match self.outside {
                Some(outside) => outside.picture(&kept, row.assume_init_mut()),
                None => filled(self.row.picture)(kept.as_ptr().cast(), row.as_mut_ptr()),
            }
            row.assume_init()
        };
        let bars = row.bars.iter().take(row.bar_count as usize).copied().collect();
        let name = || text(row.phase_names).split('|').nth(row.phase_at as usize).unwrap_or_default();
        let picture = Picture {
            gauge: (!row.gauge.is_null())
                .then(|| Gauge { title: text(row.gauge), highest_below_pct: row.highest }),
            bars: (!row.bars_title.is_null()).then(|| Bars {
                title: text(row.bars_title),
                unit: text(row.bars_unit),
                values: bars,
            }),
            phase: (!row.phase.is_null()).then(|| Phase {
                title: text(row.phase),
                number: row.phase_at,
                name: name(),
            }),
        };
        let empty = picture.gauge.is_none() && picture.bars.is_none() && picture.phase.is_none();
        (!empty).then_some(picture)
    }

    /// The part of a state that every flow keeps, aligned as C requires it.
    fn kept(&self, state: &[u8]) -> Option<Vec<u64>> {
        let words = state.get(..self.kept_size())?.chunks_exact(8);
        Some(words.filter_map(|word| Some(u64::from_ne_bytes(*word.first_chunk()?))).collect())
    }
}

impl Parameters {
    /// The track of a flow with these parameters, from its state and what is known of its newest ACK.
    pub fn read_track(&self, state: &[u8], ack: &Ack) -> Reading {
        let algorithm = self.algorithm();
        let Some(kept) = algorithm.kept(state) else { return Reading::default() };
        let mut reading = TrackReading { value: TRACK_NONE, limit: TRACK_NONE };
        let words = self.to_words();
        if let Some(outside) = algorithm.outside {
            outside.track(&kept, &words, ack, &mut reading);
            return known_reading(reading);
        }
        // SAFETY: the state is whole and aligned, and there is a word for each parameter, at least one; both structures
        // are made of the headers that the C code was compiled with.
        unsafe {
            filled(algorithm.row.track)(kept.as_ptr().cast(), words.as_ptr().cast(), ack, &raw mut reading);
        }
        known_reading(reading)
    }
}

fn known_reading(reading: TrackReading) -> Reading {
    let known = |number: u32| Some(number).filter(|number| *number != TRACK_NONE);
    Reading { value: known(reading.value), limit: known(reading.limit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{all, find};
    use crate::flow::Flow;

    fn reading(settings: &[&str], name: &str, ack: &Ack) -> Reading {
        let mut parameters = find(name).unwrap().parameters();
        parameters.assign(settings).unwrap();
        let state = Flow::new(parameters.clone()).state();
        parameters.read_track(&state, ack)
    }

    #[test]
    fn every_algorithm_but_baselines_and_what_acts_after_loss_has_a_track_in_a_known_unit() {
        let without: Vec<_> = all().filter(|one| one.track().is_none()).map(|one| one.name()).collect();
        assert_eq!(without, ["plain", "fixed", "threshold"]);
        for track in all().filter_map(|one| one.track()) {
            assert!(["percent", "us", "segments"].contains(&track.unit), "{track:?}");
            assert!(!track.title.is_empty() && !track.limit_title.is_empty(), "{track:?}");
        }
    }

    #[test]
    fn at_the_start_only_the_norm_and_its_threshold_are_known_of_each_form_or_as_set() {
        let ack = Ack { cwnd: 10, mss: 1_448, ..Ack::default() };
        for one in all().filter(|one| one.name() != "search") {
            assert_eq!(reading(&[], one.name(), &ack), Reading::default(), "{one:?}");
        }
        for (settings, threshold) in
            [(&[][..], 26), (&["form=delivered"], 35), (&["form=delivered", "threshold_pct=9"], 9)]
        {
            let expected = Reading { value: Some(0), limit: Some(threshold) };
            assert_eq!(reading(settings, "search", &ack), expected);
        }
    }

    #[test]
    fn a_window_is_shown_with_the_one_at_which_slow_start_ends() {
        for (name, export) in
            [("ramp", "target"), ("best", "target"), ("spacing", "target"), ("inflight", "bound")]
        {
            let algorithm = find(name).unwrap();
            let probe: Vec<u8> = (0..algorithm.state_size() as u32 / 4).flat_map(u32::to_ne_bytes).collect();
            let at = algorithm.exports().find(|one| one.name == export).unwrap().read(&probe)[0] as usize;
            let mut state = vec![0; algorithm.state_size()];
            state[4 * at..][..4].copy_from_slice(&812u32.to_ne_bytes());
            let ack = Ack { cwnd: 640, ..Ack::default() };
            let expected = Reading { value: Some(640), limit: Some(812) };
            assert_eq!(algorithm.parameters().read_track(&state, &ack), expected, "{name}");
        }
    }

    #[test]
    fn no_state_is_read_beyond_its_end_and_any_bytes_are_a_picture() {
        for algorithm in all() {
            let size = algorithm.kept_size();
            assert_eq!(algorithm.picture(&vec![0; size - 1]), None, "{algorithm:?}");
            let reading = algorithm.parameters().read_track(&vec![0; size - 1], &Ack::default());
            assert_eq!(reading, Reading::default(), "{algorithm:?}");
            for byte in [0, 1, 0x7f, 0xff] {
                let picture = algorithm.picture(&vec![byte; size]);
                assert!(picture.and_then(|one| one.bars).is_none_or(|bars| bars.values.len() <= 16));
            }
        }
    }

    #[test]
    fn an_ack_pair_is_a_rate_and_a_missing_one_no_bar() {
        let best = find("best").unwrap();
        let probe: Vec<u8> = (0..best.state_size() as u32 / 4).flat_map(u32::to_ne_bytes).collect();
        let pairs = best.exports().find(|one| one.name == "pairs").unwrap().read(&probe);
        let mut state = vec![0xff; best.state_size()];
        for (at, value) in pairs.into_iter().zip([80_000, u32::MAX, 0]) {
            state[4 * at as usize..][..4].copy_from_slice(&value.to_ne_bytes());
        }
        let bars = best.picture(&state).unwrap().bars.unwrap();
        assert_eq!((bars.unit, bars.values), ("bit/s", vec![100_000_000, 8_000_000_000_000]));
    }
}
