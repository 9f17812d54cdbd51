// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One path of a population.

use std::collections::BTreeMap;
use std::time::Duration;

use super::class::Class;
use super::{Distribution, Population, doubling_limit};
use crate::experiment::{Amount, Plan};
use crate::host::HostSpec;
use crate::link::{
    AqmSpec, CrossSpec, DirectionSpec, JitterSpec, Limit, LinkSpec, LossSpec, Random, ScheduleSpec,
};
use crate::profile::{self, Profile};
use crate::sim::{SourceSpec, receiver_limit};

/// The streams of random numbers that paths are drawn from begin here; links have those below.
const STREAMS: u64 = 1 << 48;
/// Streams of a path: one for each property.
const STREAMS_OF_A_PATH: u64 = 64;
/// No queue holds less, bytes: ten full packets, the first window.
const LEAST_QUEUE_BYTES: u64 = 15_000;
/// No way back is slower, bit/s.
const LEAST_RETURN_BPS: u64 = 50_000;
/// Rate of the line behind a policer over the policer's.
const LINE_OVER_POLICER: u64 = 10;
/// Size of others' packets, bytes.
const CROSS_BYTES: u32 = 1_500;
/// See [`Path::suits_a_guest`].
pub const MOST_BPS_OF_A_GUEST: u64 = 500_000_000;
/// See [`Path::suits_a_guest`].
pub const MOST_BYTES_OF_A_GUEST: u64 = 100_000_000;
/// Largest size of a transfer, bytes.
const MOST_BYTES: u64 = 4_000_000_000;

/// A path, and what is sent over it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Its number in the population.
    pub number: u64,
    /// Its class.
    pub class: String,
    /// Link and hosts; its name is the path's, class and number.
    pub profile: Profile,
    /// Bytes in all.
    pub bytes: u64,
    /// When there is something to send.
    pub source: SourceSpec,
    /// Seed of the link's randomness.
    pub seed: u64,
    /// Time after which its transfer is given up; none: what its line needs decides.
    pub timeout: Option<Duration>,
    /// Bytes of a transfer before it, which is not counted ([`Plan::warm_bytes`]).
    pub warm_bytes: Option<u64>,
}

impl Path {
    /// Path `number` of some profiles that take turns: a download ([`Profile::download_bytes`]) over the link with a seed of
    /// its own, from `seed` on. `None` without profiles.
    pub fn of_profiles(profiles: &[Profile], seed: u64, number: u64) -> Option<Self> {
        let count = profiles.len() as u64;
        let profile = profiles.get(number.checked_rem(count)? as usize)?.clone();
        Some(Self {
            number,
            class: profile.name.clone(),
            bytes: profile.download_bytes(),
            source: SourceSpec::Bulk,
            seed: seed.wrapping_add(number / count),
            timeout: None,
            warm_bytes: None,
            profile,
        })
    }

    /// One transfer over it.
    pub fn plan(&self) -> Plan {
        let link = &self.profile.link;
        let ideal = self.bytes as f64 * 8.0 / link.available_bps() as f64;
        // What random losses hold up is given up: ten times as long as the line needs, and two minutes.
        let own = || Duration::from_secs_f64(120.0 + 10.0 * ideal) + self.pauses();
        Plan {
            amount: Amount::Bytes(self.bytes),
            repetitions: 1,
            seed: self.seed,
            timeout: Some(self.timeout.unwrap_or_else(own)),
            warm_bytes: self.warm_bytes,
            command_line: Vec::new(),
            ..Plan::new(self.profile.clone())
        }
    }

    /// Whether the lab can make it with kernel TCP in a guest: one transfer, whose packets a guest's processor keeps up with,
    /// and which takes no longer than minutes.
    pub fn suits_a_guest(&self) -> bool {
        self.source == SourceSpec::Bulk
            && self.profile.link.available_bps() <= MOST_BPS_OF_A_GUEST
            && self.bytes <= MOST_BYTES_OF_A_GUEST
    }

    /// Time in which the application has nothing to send, at most.
    fn pauses(&self) -> Duration {
        Duration::from_micros(match self.source {
            SourceSpec::Bulk => 0,
            SourceSpec::Requests { object_bytes, think_us } => {
                let rtt_us = self.profile.link.base_rtt_us();
                self.bytes.div_ceil(object_bytes) * (think_us + 2 * rtt_us)
            }
            SourceSpec::Periodic { block_bytes, every_us } => self.bytes.div_ceil(block_bytes) * every_us,
        })
    }

    /// See [`doubling_limit`]; none where the application is the limit.
    pub fn limit(&self) -> Option<Duration> {
        let (segments, rtt, per_segment) = self.transfer()?;
        Some(doubling_limit(segments, self.profile.host.initial_window().into(), rtt, per_segment))
    }

    /// See [`receiver_limit`]; none where the application is the limit.
    pub fn receiver_limit(&self) -> Option<Duration> {
        let (segments, rtt, per_segment) = self.transfer()?;
        Some(receiver_limit(&self.profile.host, segments, rtt, per_segment))
    }

    /// Segments of the transfer, RTT, and time of the line for a segment; none where the application is the limit.
    fn transfer(&self) -> Option<(u64, Duration, Duration)> {
        if self.source != SourceSpec::Bulk {
            return None;
        }
        let (host, link) = (&self.profile.host, &self.profile.link);
        let per_segment = f64::from(host.mtu_bytes) * 8.0 / link.available_bps() as f64;
        let rtt = Duration::from_micros(link.base_rtt_us());
        Some((self.bytes.div_ceil(host.mss().into()), rtt, Duration::from_secs_f64(per_segment)))
    }
}

/// The properties of one path as they are drawn, each from its own stream.
struct Drawer {
    seed: u64,
    first: u64,
}

impl Drawer {
    fn random(&self, property: u64) -> Random {
        Random::new(self.seed, self.first + property)
    }

    fn value(&self, property: u64, of: &Distribution) -> f64 {
        of.draw(&mut self.random(property))
    }

    fn whole(&self, property: u64, of: &Distribution) -> u64 {
        self.value(property, of).round() as u64
    }

    /// Which of several has been drawn.
    fn choice<T>(&self, property: u64, weights: impl IntoIterator<Item = (T, f64)>) -> Option<T> {
        let weights: Vec<_> = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut at = self.random(property).unit() * all;
        let last = weights.len().saturating_sub(1);
        weights.into_iter().enumerate().find_map(|(number, (one, weight))| {
            at -= weight;
            (at < 0.0 || number == last).then_some(one)
        })
    }
}

/// Numbers of the streams. They stay: another order would be another population.
mod property {
    pub const CLASS: u64 = 0;
    pub const RATE: u64 = 1;
    pub const RTT: u64 = 2;
    pub const QUEUE: u64 = 3;
    pub const AQM: u64 = 4;
    pub const JITTER: u64 = 5;
    pub const AGGREGATION: u64 = 6;
    pub const RETURN: u64 = 7;
    pub const CROSS: u64 = 8;
    pub const LOSS: u64 = 9;
    pub const OBJECT: u64 = 10;
    pub const OBJECT_BDP: u64 = 11;
    pub const SOURCE: u64 = 12;
    pub const OBJECTS: u64 = 13;
    pub const THINK: u64 = 14;
    pub const LOAD: u64 = 15;
    pub const FQ: u64 = 16;
}

/// See [`Population::path`].
pub(super) fn draw(population: &Population, seed: u64, number: u64) -> Path {
    let drawer = Drawer { seed, first: STREAMS.wrapping_add(number.wrapping_mul(STREAMS_OF_A_PATH)) };
    let classes = population.class.iter().map(|(name, class)| ((name, class), class.weight));
    let Some((name, class)) = drawer.choice(property::CLASS, classes) else {
        unreachable!("a population without classes is refused")
    };
    let link = link(&drawer, class);
    let (source, bytes) = source(&drawer, class, &link);
    let profile = Profile {
        version: profile::VERSION,
        name: format!("{name}-{number}"),
        about: format!("path {number} of population {}, seed {seed}", population.name),
        algorithm: onramp_algorithm::baseline().name().into(),
        telemetry: None,
        params: BTreeMap::new(),
        host: HostSpec { fq: drawer.random(property::FQ).unit() < class.fq_share, ..HostSpec::roomy(&link) },
        link,
    };
    Path {
        number,
        class: name.clone(),
        profile,
        bytes,
        source,
        seed: seed.wrapping_add(number),
        timeout: None,
        warm_bytes: None,
    }
}

fn link(drawer: &Drawer, class: &Class) -> LinkSpec {
    let rate_bps = drawer.whole(property::RATE, &class.rate_bps);
    let rtt_us = drawer.whole(property::RTT, &class.rtt_us);
    let bdp_bytes = rate_bps as f64 * rtt_us as f64 / 8e6;
    let queue_bytes = (bdp_bytes * drawer.value(property::QUEUE, &class.queue_bdp)) as u64;
    let queue_bytes = queue_bytes.clamp(LEAST_QUEUE_BYTES, 1_000_000_000);
    let mut forward = DirectionSpec::new(rate_bps, rtt_us / 2, Limit::Bytes(queue_bytes));
    forward.aqm = match drawer.choice(property::AQM, class.aqm.all()) {
        Some("codel") => Some(AqmSpec::CoDel { target_us: 5_000, interval_us: 100_000, ecn: false }),
        Some("fq-codel") => Some(AqmSpec::FqCodel { target_us: 5_000, interval_us: 100_000, ecn: false }),
        Some("random-drop") => Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.25 }),
        Some("policer") => {
            forward.rate_bps = rate_bps * LINE_OVER_POLICER;
            Some(AqmSpec::Policer { rate_bps, burst_bytes: queue_bytes })
        }
        _ => None,
    };
    let cross_bps = (rate_bps as f64 * drawer.value(property::CROSS, &class.cross_share)) as u64;
    forward.cross =
        (cross_bps >= 1_000).then_some(CrossSpec::Poisson { rate_bps: cross_bps, packet_bytes: CROSS_BYTES });
    let probability = drawer.value(property::LOSS, &class.loss);
    forward.loss = (probability > 0.0).then_some(LossSpec::Random { probability });

    let return_bps = (rate_bps as f64 / drawer.value(property::RETURN, &class.return_ratio)) as u64;
    let return_bps = return_bps.max(LEAST_RETURN_BPS);
    let return_bytes = (return_bps as f64 * rtt_us as f64 / 8e6) as u64;
    let room = Limit::Bytes(return_bytes.clamp(LEAST_QUEUE_BYTES, 1_000_000_000));
    let mut back = DirectionSpec::new(return_bps, rtt_us - rtt_us / 2, room);
    let gap_us = drawer.whole(property::AGGREGATION, &class.aggregation_us);
    back.schedule = (gap_us > 0).then_some(ScheduleSpec::Aggregate {
        min_gap_us: gap_us / 2,
        max_gap_us: gap_us,
        max_packets: 65_536,
        max_bytes: 1_000_000_000,
    });
    let jitter_us = drawer.whole(property::JITTER, &class.jitter_us) / 2;
    if jitter_us > 0 {
        forward.jitter = vec![JitterSpec::Uniform { max_us: jitter_us }];
        back.jitter = vec![JitterSpec::Uniform { max_us: jitter_us }];
    }
    LinkSpec { forward, back }
}

fn source(drawer: &Drawer, class: &Class, link: &LinkSpec) -> (SourceSpec, u64) {
    let object_bytes = drawer.whole(property::OBJECT, &class.object_bytes);
    let objects = drawer.whole(property::OBJECTS, &class.objects);
    let available_bps = link.available_bps() as f64;
    match drawer.choice(property::SOURCE, class.source.all()) {
        Some("requests") => {
            let think_rtt = drawer.value(property::THINK, &class.think_rtt);
            let think_us = (think_rtt * link.base_rtt_us() as f64) as u64;
            (SourceSpec::Requests { object_bytes, think_us }, object_bytes * objects)
        }
        Some("blocks") => {
            let load = drawer.value(property::LOAD, &class.block_load);
            let every_us = (object_bytes as f64 * 8e6 / (available_bps * load)) as u64;
            let spec = SourceSpec::Periodic { block_bytes: object_bytes, every_us: every_us.max(1_000) };
            (spec, object_bytes * objects)
        }
        _ => {
            let bdp_bytes = available_bps * link.base_rtt_us() as f64 / 8e6;
            let large = (bdp_bytes * drawer.value(property::OBJECT_BDP, &class.object_bdp)) as u64;
            (SourceSpec::Bulk, object_bytes.max(large).min(MOST_BYTES))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population() -> Population {
        Population::parse(include_str!("../../populations/default.toml"), "default.toml").unwrap()
    }

    #[test]
    fn a_path_depends_on_population_seed_and_number_alone() {
        let population = population();
        let backwards: Vec<_> = (0..50).rev().map(|number| population.path(3, number)).collect();
        for (number, path) in (0..50).rev().zip(&backwards) {
            assert_eq!(&population.path(3, number), path);
            assert_eq!(path.profile.name, format!("{}-{number}", path.class));
        }
        assert_ne!(population.path(4, 7).profile.link, population.path(3, 7).profile.link);
    }

    #[test]
    fn profiles_take_turns_each_with_seeds_of_its_own() {
        let geo = include_str!("../../../profiles/geo.toml");
        let geo = Profile::parse(geo, "geo.toml").unwrap();
        let other = Profile { name: "other".into(), ..geo.clone() };
        let path = |number| Path::of_profiles(&[geo.clone(), other.clone()], 5, number).unwrap();
        let all: Vec<_> = (0..4).map(path).map(|path| (path.class, path.seed, path.number)).collect();
        let class = |name: &str| name.to_owned();
        assert_eq!(
            all,
            [(class("geo"), 5, 0), (class("other"), 5, 1), (class("geo"), 6, 2), (class("other"), 6, 3)]
        );
        assert_eq!(path(0).bytes, 79_000_000);
        assert!(Path::of_profiles(&[], 5, 0).is_none());
    }

    #[test]
    fn every_path_is_a_valid_profile_that_can_be_written_and_read() {
        let population = population();
        for number in 0..2_000 {
            let path = population.path(1, number);
            path.profile.validate().unwrap_or_else(|error| panic!("{number}: {error}"));
            path.plan().validate().unwrap_or_else(|error| panic!("{number}: {error}"));
            let text = toml::to_string(&path.profile).unwrap();
            assert_eq!(Profile::parse(&text, "path.toml").unwrap(), path.profile);
        }
    }

    #[test]
    fn what_one_property_draws_does_not_depend_on_the_others() {
        let population = population();
        let mut other = population.clone();
        for class in other.class.values_mut() {
            class.jitter_us = Distribution::constant(9_000.0);
            class.rate_bps = Distribution::constant(8e6);
        }
        for number in 0..200 {
            let (one, two) = (population.path(1, number), other.path(1, number));
            assert_eq!(one.class, two.class);
            assert_eq!(one.profile.link.base_rtt_us(), two.profile.link.base_rtt_us());
            assert_eq!(one.profile.link.forward.loss, two.profile.link.forward.loss);
            assert_eq!(two.profile.link.back.jitter, [JitterSpec::Uniform { max_us: 4_500 }]);
        }
    }

    #[test]
    fn classes_come_as_often_as_their_weights_say() {
        let population = population();
        let all: f64 = population.class.values().map(|class| class.weight).sum();
        let paths: Vec<_> = (0..4_000).map(|number| population.path(1, number).class).collect();
        for (name, class) in &population.class {
            let (wanted, found) =
                (class.weight / all, paths.iter().filter(|path| *path == name).count() as f64 / 4_000.0);
            // Five standard deviations of a share of 4000.
            let allowed = 5.0 * (wanted * (1.0 - wanted) / 4_000.0).sqrt();
            assert!((wanted - found).abs() < allowed, "{name}: {found} instead of {wanted}");
        }
    }

    #[test]
    fn a_policer_has_the_rate_and_the_line_ten_times_that() {
        let text = "version = 1\nname = 'x'\nabout = 'y'\n[class.a]\nrate_bps = 8_000_000\nrtt_us = 100_000\nqueue_bdp = 0.5\naqm = { policer = 1 }\nobject_bytes = 1_000_000\ncross_share = 0.25\n";
        let path = Population::parse(text, "x").unwrap().path(1, 0);
        let link = &path.profile.link;
        assert_eq!(link.forward.rate_bps, 80_000_000);
        let policer = AqmSpec::Policer { rate_bps: 8_000_000, burst_bytes: 50_000 };
        assert_eq!(link.forward.aqm, Some(policer));
        assert_eq!(link.available_bps(), 6_000_000);
        // 691 segments of 2 ms; windows of 10 and 20 before 40 × 2 ms, 80 ms, and then 80 × 2 ms are above 100 ms.
        assert_eq!(path.limit(), Some(Duration::from_millis(300 + (691 - 70) * 2)));
    }
}
