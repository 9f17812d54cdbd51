// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an experiment is to do.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Clock, ExperimentError, Watch};
use crate::emulator::Way;
use crate::link::Change;
use crate::profile::Profile;

/// Bytes of a download where nothing else is said: the 80 MB of Ataei Kachooei et al. 2022, in units of a million.
pub const DEFAULT_BYTES: u64 = 80_000_000;

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
    /// After which a transfer is given up; `None` for two minutes and twenty times what the
    /// link's rate would need.
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
        let rtt = self.profile.link.base_rtt_us() as f64 / 1e6;
        let lead = self.competitor.as_ref().map_or(0, |competitor| competitor.lead_seconds);
        let transfer = match self.amount {
            Amount::Bytes(_) => 1.5 * self.ideal_seconds() + 8.0 * rtt,
            Amount::Seconds(seconds) => f64::from(seconds),
        };
        // Hosts, transfers and their end; connections take some round trips.
        1.0 + 5.0 * rtt
            + transfer
            + f64::from(lead)
            + self.stagger.as_secs_f64() * f64::from(self.flows.saturating_sub(1))
    }

    /// Time that the link's rate needs for all of it, seconds.
    fn ideal_seconds(&self) -> f64 {
        match self.amount {
            Amount::Bytes(bytes) => {
                let shares = f64::from(self.flows) + f64::from(u8::from(self.competitor.is_some()));
                bytes as f64 * 8.0 * shares / self.profile.link.forward.rate_bps as f64
            }
            Amount::Seconds(seconds) => f64::from(seconds),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or_else(|| Duration::from_secs_f64(120.0 + 20.0 * self.ideal_seconds()))
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
        for (name, value, least, most, range) in [
            amount,
            ("flows", self.flows.into(), 1, 64, "1 to 64"),
            ("stagger", self.stagger.as_secs(), 0, 600, "0 to 600 s"),
            ("lead", lead, 0, 600, "0 to 600 s"),
            ("repetitions", self.repetitions.into(), 1, 10_000, "1 to 10000"),
            ("jobs", self.jobs.into(), 1, 16, "1 to 16"),
            ("retries", self.retries.into(), 0, 100, "0 to 100"),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ExperimentError::Plan { name, value, range });
            }
        }
        // Results bring profiles that nobody has checked.
        self.profile
            .validate()
            .map_err(|source| ExperimentError::Profile { name: self.profile.name.clone(), source })
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
}
