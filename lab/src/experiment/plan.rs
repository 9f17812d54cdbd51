// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an experiment is to do.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Clock, ExperimentError, Watch};
use crate::emulator::Way;
use crate::link::{Change, LinkSpec};
use crate::profile::Profile;

/// Bytes of a download where nothing else is said: the 80 MB of Ataei Kachooei et al. 2022, in units of a million.
pub const DEFAULT_BYTES: u64 = 80_000_000;

/// As the delay of a direction.
const MOST_EXTRA_RTT_US: u64 = 10_000_000;

/// How much is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// So many bytes, 1 to 1 000 000 000 000.
    Bytes(u64),
    /// As much as passes in so many seconds, 1 to 86 400.
    Seconds(u32),
}

/// What makes the transfers. Both give the same results where the processor keeps up with both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// A source and a sink of the lab's own, which need least of the processor.
    #[default]
    Builtin,
    /// iperf3, see [`Plan::iperf3`].
    Iperf3,
}

/// A flow of others that the arm meets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Competitor {
    /// The kernel's name of its congestion control.
    pub congestion_control: String,
    /// How long before the arm it begins, seconds, 0 to 600.
    pub lead_seconds: u32,
}

/// A change of the link during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkChange {
    /// When, since the first transfer was started.
    pub at: Duration,
    /// Which direction.
    pub way: Way,
    /// What.
    pub change: Change,
}

/// Another path that packets take from a time on, both ways; those in progress end on the one they took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathChange {
    /// When, since the first transfer was started.
    pub at: Duration,
    /// Name of the profile that it is of.
    pub profile: String,
    /// The path: its queues, rates and delays. The hosts stay as they are.
    pub link: LinkSpec,
}

/// What to do. What is not written is how it is done, and changes no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Link and hosts.
    pub profile: Profile,
    /// How much each flow transfers. See [`DEFAULT_BYTES`].
    pub amount: Amount,
    /// Flows of each run, 1 to 64.
    pub flows: u16,
    /// Time from the start of one flow to that of the next, 0 to 600 s.
    pub stagger: Duration,
    /// A flow that is there besides, if any.
    pub competitor: Option<Competitor>,
    /// Sizes whose download time is read off the first flow's series: its first so many bytes.
    pub objects: Vec<u64>,
    /// Changes of the link in each run.
    pub changes: Vec<LinkChange>,
    /// What flows have of RTT besides that of the link, half of it each way, behind the queue: microseconds, 0 to 10 000 000,
    /// one for each flow and one more for a competitor; none of them where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_rtt_us: Vec<u64>,
    /// Other paths that packets take in each run, 0 to 16. Changes of the link are of the path in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChange>,
    /// Bytes of a transfer over the same path before each run, which is not counted, 1 to 1 000 000 000 000: what an arm learns of
    /// its path, it has learned then. The link begins anew after it. For [`Tool::Builtin`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_bytes: Option<u64>,
    /// Runs of each arm, 1 to 10 000.
    pub repetitions: u32,
    /// Runs at once, 1 to 16. Arms that set parameters of one algorithm still take turns.
    #[serde(skip, default = "one")]
    pub jobs: u16,
    /// Whose time the runs are made in.
    #[serde(skip)]
    pub clock: Clock,
    /// How often a run is repeated whose emulator fell behind, 0 to 100. All attempts are kept. In
    /// virtual time the second attempt would be the first again: there is none.
    #[serde(skip)]
    pub retries: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Where to put the files; `None` for `runs/<UTC time>-<profile>-<arms>`.
    #[serde(skip)]
    pub directory: Option<PathBuf>,
    /// After which a transfer is given up, 1 s to 24 h; `None` for two minutes and twenty times what the link's rate would
    /// need, and in the simulator what the application's pauses and requests take besides.
    pub timeout: Option<Duration>,
    /// For the manifest: how this came to be run.
    #[serde(skip)]
    pub command_line: Vec<String>,
    /// What makes the transfers.
    pub tool: Tool,
    /// The iperf3 to use with [`Tool::Iperf3`], by name or path.
    #[serde(skip, default = "iperf3")]
    pub iperf3: PathBuf,
    /// Shown every look at the first flow while it runs.
    #[serde(skip)]
    pub watch: Option<Watch>,
}

fn one() -> u16 {
    1
}

fn iperf3() -> PathBuf {
    "iperf3".into()
}

impl Plan {
    /// Ten downloads of [`DEFAULT_BYTES`], as in Ataei Kachooei et al. 2022, with seed 1.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            amount: Amount::Bytes(DEFAULT_BYTES),
            flows: 1,
            stagger: Duration::ZERO,
            competitor: None,
            objects: Vec::new(),
            changes: Vec::new(),
            extra_rtt_us: Vec::new(),
            paths: Vec::new(),
            warm_bytes: None,
            repetitions: 10,
            jobs: one(),
            clock: Clock::Machine,
            retries: 2,
            seed: 1,
            directory: None,
            timeout: None,
            command_line: std::env::args().collect(),
            tool: Tool::default(),
            iperf3: iperf3(),
            watch: None,
        }
    }

    /// What each run adds to the whole if the link is used well and all jobs are busy: a guess for progress, seconds.
    pub fn expected_seconds(&self) -> f64 {
        self.run_seconds() / f64::from(self.jobs)
    }

    fn run_seconds(&self) -> f64 {
        let rtt = self.base_rtts_us().max().unwrap_or(0) as f64 / 1e6;
        let lead = self.competitor.as_ref().map_or(0, |competitor| competitor.lead_seconds);
        let transfer = match self.amount {
            Amount::Bytes(_) => 1.5 * self.ideal_seconds() + 8.0 * rtt,
            Amount::Seconds(seconds) => f64::from(seconds),
        };
        let warm = self.warm_bytes.map_or(0.0, |bytes| 2.0 + 1.5 * self.seconds_of(bytes) + 16.0 * rtt);
        // Hosts, transfers and their end; connections take some round trips.
        1.0 + 5.0 * rtt
            + warm
            + transfer
            + f64::from(lead)
            + self.stagger.as_secs_f64() * f64::from(self.flows.saturating_sub(1))
    }

    /// Time that the link's rate needs for all of it, seconds.
    fn ideal_seconds(&self) -> f64 {
        match self.amount {
            Amount::Bytes(bytes) => {
                let shares = f64::from(self.flows) + f64::from(u8::from(self.competitor.is_some()));
                shares * self.seconds_of(bytes)
            }
            Amount::Seconds(seconds) => f64::from(seconds),
        }
    }

    /// Time that the slowest link needs for so many bytes, seconds.
    fn seconds_of(&self, bytes: u64) -> f64 {
        let rate_bps = self.links().map(|link| link.forward.rate_bps).min().unwrap_or(1);
        bytes as f64 * 8.0 / rate_bps as f64
    }

    /// The link, and those of the paths that follow.
    fn links(&self) -> impl Iterator<Item = &LinkSpec> {
        std::iter::once(&self.profile.link).chain(self.paths.iter().map(|path| &path.link))
    }

    /// What a flow has of RTT besides that of the link, microseconds; the competitor's number is that of flows.
    pub(crate) fn extra_rtt_us(&self, flow: usize) -> u64 {
        self.extra_rtt_us.get(flow).copied().unwrap_or(0)
    }

    /// Base round-trip times of all flows and paths, microseconds.
    fn base_rtts_us(&self) -> impl Iterator<Item = u64> {
        let flows = usize::from(self.flows) + usize::from(self.competitor.is_some());
        self.links()
            .flat_map(move |link| (0..flows).map(move |flow| link.base_rtt_us() + self.extra_rtt_us(flow)))
    }

    /// The least of them: what decides whether the emulator kept up.
    pub(crate) fn least_base_rtt_us(&self) -> u64 {
        self.base_rtts_us().min().unwrap_or(0)
    }

    /// That of a flow over the first path, where flows have one each.
    pub(crate) fn own_base_rtt_us(&self, flow: usize) -> Option<u64> {
        let of_each = !self.extra_rtt_us.is_empty();
        of_each.then(|| self.profile.link.base_rtt_us() + self.extra_rtt_us(flow))
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or_else(|| Duration::from_secs_f64(120.0 + 20.0 * self.ideal_seconds()))
    }

    /// After which a transfer of `bytes` before the run is given up.
    pub(super) fn warm_timeout(&self, bytes: u64) -> Duration {
        self.timeout.unwrap_or_else(|| Duration::from_secs_f64(120.0 + 20.0 * self.seconds_of(bytes)))
    }

    /// Checks every value against its range, those of the profile too.
    ///
    /// # Errors
    /// [`ExperimentError::Plan`], [`ExperimentError::Profile`].
    pub fn validate(&self) -> Result<(), ExperimentError> {
        let amount = match self.amount {
            Amount::Bytes(bytes) => ("bytes", bytes, 1, 1_000_000_000_000, "1 to 1000000000000"),
            Amount::Seconds(seconds) => ("seconds", seconds.into(), 1, 86_400, "1 to 86400"),
        };
        let lead = self.competitor.as_ref().map_or(0, |competitor| competitor.lead_seconds.into());
        let warm = self.warm_bytes.unwrap_or(1);
        for (name, value, least, most, range) in [
            amount,
            ("warm_bytes", warm, 1, 1_000_000_000_000, "1 to 1000000000000"),
            ("flows", self.flows.into(), 1, 64, "1 to 64"),
            ("stagger", self.stagger.as_secs(), 0, 600, "0 to 600 s"),
            ("timeout", self.timeout.map_or(1, |limit| limit.as_secs()), 1, 86_400, "1 to 86400 s"),
            ("lead", lead, 0, 600, "0 to 600 s"),
            ("repetitions", self.repetitions.into(), 1, 10_000, "1 to 10000"),
            ("jobs", self.jobs.into(), 1, 16, "1 to 16"),
            ("retries", self.retries.into(), 0, 100, "0 to 100"),
            ("number of paths", self.paths.len() as u64, 0, 16, "0 to 16"),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ExperimentError::Plan { name, value, range });
            }
        }
        self.validate_extra_rtts()?;
        if let (Some(value), Tool::Iperf3) = (self.warm_bytes, self.tool) {
            // Its control connection would claim the path.
            return Err(ExperimentError::Plan { name: "warm_bytes", value, range: "none with iperf3" });
        }
        // Results have profiles that were not checked.
        let wrong = |name: &String, source| ExperimentError::Profile { name: name.clone(), source };
        self.profile.validate().map_err(|source| wrong(&self.profile.name, source))?;
        let check =
            |path: &PathChange| path.link.validate("link").map_err(|source| wrong(&path.profile, source));
        self.paths.iter().try_for_each(check)
    }

    fn validate_extra_rtts(&self) -> Result<(), ExperimentError> {
        let (flows, listed) = (usize::from(self.flows), self.extra_rtt_us.len());
        let (of_all, range) = match self.competitor {
            None => (flows, "one for each flow"),
            Some(_) => (flows + 1, "one for each flow and one for the competitor"),
        };
        if listed != 0 && listed != of_all {
            return Err(ExperimentError::Plan {
                name: "number of extra_rtt_us",
                value: listed as u64,
                range,
            });
        }
        let wrong = self.extra_rtt_us.iter().find(|extra| **extra > MOST_EXTRA_RTT_US);
        wrong.map_or(Ok(()), |value| {
            Err(ExperimentError::Plan { name: "extra_rtt_us", value: *value, range: "0 to 10000000" })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_out_of_range_are_refused_by_name() {
        let text = include_str!("../../../profiles/geo.toml");
        let plan = Plan::new(Profile::parse(text, "geo.toml").unwrap());
        plan.validate().unwrap();
        let says = |plan: Plan| plan.validate().unwrap_err().to_string();
        let of = |amount| Plan { amount, ..plan.clone() };
        assert_eq!(says(of(Amount::Bytes(0))), "bytes = 0 is out of range: expected 1 to 1000000000000");
        assert_eq!(says(of(Amount::Seconds(0))), "seconds = 0 is out of range: expected 1 to 86400");
        let warm = |bytes| Plan { warm_bytes: Some(bytes), ..plan.clone() };
        warm(1).validate().unwrap();
        assert!(says(warm(0)).starts_with("warm_bytes = 0 "));
        assert!(says(warm(1_000_000_000_001)).starts_with("warm_bytes = 1000000000001 "));
        assert!(says(Plan { tool: Tool::Iperf3, ..warm(1) }).contains("iperf3"));
        assert!(warm(10_000_000).expected_seconds() > plan.expected_seconds());
        assert_eq!(says(Plan { flows: 65, ..plan.clone() }), "flows = 65 is out of range: expected 1 to 64");
        let competitor = Some(Competitor { congestion_control: "cubic".into(), lead_seconds: 601 });
        assert!(says(Plan { competitor, ..plan.clone() }).starts_with("lead = 601"));
        let mut profile = plan.profile.clone();
        profile.link.forward.rate_bps = 0;
        let said = says(Plan { profile, ..plan.clone() });
        assert!(said.starts_with("profile geo: link.forward.rate_bps = 0 is out of range"), "{said}");
        assert!(says(Plan { repetitions: 0, ..plan.clone() }).starts_with("repetitions = 0"));
        assert_eq!(says(Plan { jobs: 17, ..plan.clone() }), "jobs = 17 is out of range: expected 1 to 16");
        assert!(says(Plan { jobs: 0, ..plan }).starts_with("jobs = 0"));
    }

    #[test]
    fn flows_have_the_rtt_that_they_are_given_and_a_path_its_own() {
        let text = include_str!("../../../profiles/geo.toml");
        let geo = Plan::new(Profile::parse(text, "geo.toml").unwrap());
        let plan = Plan { flows: 2, extra_rtt_us: vec![0, 120_000], ..geo.clone() };
        plan.validate().unwrap();
        assert_eq!((plan.own_base_rtt_us(0), plan.own_base_rtt_us(1)), (Some(600_000), Some(720_000)));
        assert_eq!((plan.least_base_rtt_us(), geo.own_base_rtt_us(0)), (600_000, None));
        let says = |plan: Plan| plan.validate().unwrap_err().to_string();
        let of = |extra: &[u64]| Plan { extra_rtt_us: extra.into(), ..plan.clone() };
        assert_eq!(says(of(&[0])), "number of extra_rtt_us = 1 is out of range: expected one for each flow");
        assert_eq!(
            says(of(&[10_000_001, 0])),
            "extra_rtt_us = 10000001 is out of range: expected 0 to 10000000"
        );
        let competitor = Some(Competitor { congestion_control: "cubic".into(), lead_seconds: 1 });
        let with = |extra: &[u64]| Plan { competitor: competitor.clone(), ..of(extra) };
        with(&[0, 0, 1]).validate().unwrap();
        assert!(says(with(&[0, 0])).ends_with("one for each flow and one for the competitor"));
        assert_eq!(with(&[50_000, 30_000, 10_000]).least_base_rtt_us(), 610_000);

        let mut link = plan.profile.link.clone();
        (link.forward.delay_us, link.back.delay_us) = (10_000, 10_000);
        let path = PathChange { at: Duration::from_secs(1), profile: "other".into(), link };
        let changed = Plan { paths: vec![path.clone()], ..plan.clone() };
        changed.validate().unwrap();
        assert_eq!((changed.least_base_rtt_us(), changed.own_base_rtt_us(0)), (20_000, Some(600_000)));
        assert!(
            says(Plan { paths: vec![path.clone(); 17], ..plan.clone() }).starts_with("number of paths = 17")
        );
        let mut wrong = path;
        wrong.link.back.rate_bps = 0;
        let said = says(Plan { paths: vec![wrong], ..plan.clone() });
        assert!(said.starts_with("profile other: link.return.rate_bps = 0 is out of range"), "{said}");
        // What is not asked for is not written: older programs read it.
        let written = serde_json::to_string(&geo).unwrap();
        for seldom in ["extra_rtt_us", "paths", "warm_bytes"] {
            assert!(!written.contains(seldom), "{written}");
        }
        let read: Plan = serde_json::from_str(&serde_json::to_string(&changed).unwrap()).unwrap();
        assert_eq!((read.paths, read.extra_rtt_us), (changed.paths, plan.extra_rtt_us));
    }
}
