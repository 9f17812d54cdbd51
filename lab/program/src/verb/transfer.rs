//! What is transferred in an experiment, measured or simulated.

use std::time::Duration;

use clap::Args;
use onramp_lab::emulator::Way;
use onramp_lab::experiment::{Amount, ArmResult, Competitor, DEFAULT_BYTES, LinkChange, PathChange, Plan};
use onramp_lab::link::Change;
use onramp_loader::algorithm;
use onramp_profiles::Profile;

use crate::failure::{FAILURE, PARTIAL};
use crate::{profile, units};

/// How much is transferred.
#[derive(Args, Clone, Debug)]
pub(crate) struct Transfer {
    /// Size of each flow's download, such as 80M [default: 80M; lab matrix: 4 s at the link's rate and at least 7 BDP]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub bytes: Option<u64>,
    /// Time that each flow downloads, instead of a size: seconds, or such as 1m30s
    #[arg(long, value_name = "TIME", value_parser = units::seconds, conflicts_with = "bytes")]
    pub seconds: Option<u32>,
    /// Time after which a transfer is given up, 1 s to 24 h; it then counts as at least that long [default: 2 min and 20 times
    /// what the link's rate needs; simulated, also the application's pauses]
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Before each run, transfer so much over the same path, alone and not counted, such as 2M: arms with start=… have learned
    /// the path then. The link begins anew after it
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub warm: Option<u64>,
    /// Seed of the link's randomness in the first repetition
    #[arg(long, default_value_t = 1, value_parser = units::number(0..=u64::MAX))]
    pub seed: u64,
    /// Set a parameter of an algorithm in all its arms, on top of the profile
    #[arg(long = "set", value_name = "ALG.NAME=VALUE")]
    pub settings: Vec<String>,
}

/// Transfers at the same time, and changes of the link meanwhile.
#[derive(Args, Clone, Debug)]
pub(crate) struct Traffic {
    /// Flows of each run, 1 to 64
    #[arg(long, default_value_t = 1)]
    flows: u16,
    /// Time from the start of one flow to that of the next
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::duration)]
    stagger: Duration,
    /// Meet a flow of this control of the kernel, which begins first; says what share it keeps
    #[arg(long, value_name = "CONTROL")]
    competitor: Option<String>,
    /// How long before the others the competitor begins: seconds, or such as 1m
    #[arg(long, value_name = "TIME", value_parser = units::seconds, default_value = "10", requires = "competitor")]
    lead: u32,
    /// Also time the first bytes of these sizes, such as 100k,1M
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = units::bytes)]
    objects: Vec<u64>,
    /// Add to the base RTT of each flow in turn, as 0ms,120ms, and last of the competitor: behind the queue, half each way
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = units::duration)]
    extra_rtt: Vec<Duration>,
    /// Change the link during each run: rate or delay of one direction, or the link of another profile in its place, from a
    /// time on. Packets in progress end on the link that they took
    #[arg(long = "at", value_name = "TIME:forward|return.rate|delay=VALUE|path=PROFILE", value_parser = at)]
    changes: Vec<At>,
}

/// What happens to the link at a time.
#[derive(Clone, Debug)]
enum At {
    Change(LinkChange),
    /// Another path, by the name of its profile.
    Path(Duration, String),
}

impl Transfer {
    /// The plan of an experiment with `repetitions` of each arm.
    pub fn plan(&self, profile: Profile, repetitions: u32) -> Plan {
        let amount = match (self.bytes, self.seconds) {
            (_, Some(seconds)) => Amount::Seconds(seconds),
            (bytes, None) => Amount::Bytes(bytes.unwrap_or(DEFAULT_BYTES)),
        };
        Plan {
            amount,
            repetitions,
            seed: self.seed,
            timeout: self.timeout,
            warm_bytes: self.warm,
            ..Plan::new(profile)
        }
    }
}

/// A limit, of whole seconds.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    let seconds = units::seconds(text)?;
    if !(1..=86_400).contains(&seconds) {
        return Err(format!("{text} is out of range: give 1 s to 24 h"));
    }
    Ok(Duration::from_secs(seconds.into()))
}

/// The exit code for what was measured: 1 if an arm has no run that counts, 5 if a run was not measured in full.
pub(crate) fn code(arms: &[ArmResult]) -> u8 {
    if arms.iter().any(|arm| !arm.runs.iter().any(|run| run.counts())) {
        return FAILURE;
    }
    // Another attempt with the same seed may have succeeded.
    let measured = |arm: &ArmResult, seed: u64| arm.runs.iter().any(|run| run.seed == seed && run.valid);
    let whole = |arm: &ArmResult| arm.runs.iter().all(|run| measured(arm, run.seed));
    if arms.iter().all(whole) { 0 } else { PARTIAL }
}

impl Traffic {
    /// Puts it into the plan.
    ///
    /// # Errors
    /// A profile that a path is of is not there, or wrong.
    pub fn join(&self, plan: &mut Plan) -> anyhow::Result<()> {
        plan.flows = self.flows;
        plan.stagger = self.stagger;
        plan.competitor = self
            .competitor
            .as_ref()
            .map(|name| Competitor { congestion_control: control(name), lead_seconds: self.lead });
        plan.objects.clone_from(&self.objects);
        let micros = |extra: &Duration| u64::try_from(extra.as_micros()).unwrap_or(u64::MAX);
        plan.extra_rtt_us = self.extra_rtt.iter().map(micros).collect();
        for at in &self.changes {
            match at {
                At::Change(change) => plan.changes.push(*change),
                At::Path(at, name) => {
                    let other = profile::load(name)?;
                    plan.paths.push(PathChange { at: *at, profile: other.name, link: other.link });
                }
            }
        }
        Ok(())
    }
}

/// The kernel's name of a control, also where it is that of an algorithm.
fn control(name: &str) -> String {
    algorithm::find(name).map_or_else(|| name.to_owned(), |algorithm| algorithm.congestion_control())
}

/// `2s:path=geo`, or a [`change`].
fn at(text: &str) -> Result<At, String> {
    match text.split_once(":path=") {
        Some((at, name)) => Ok(At::Path(units::duration(at)?, name.to_owned())),
        None => change(text).map(At::Change),
    }
}

/// `5s:forward.rate=50mbit`, `1500ms:return.delay=80ms`.
fn change(text: &str) -> Result<LinkChange, String> {
    let refuse = || {
        format!(
            "{text:?} is not a change: write for instance 5s:forward.rate=50mbit, 2s:return.delay=80ms or 2s:path=geo"
        )
    };
    let (at, rest) = text.split_once(':').ok_or_else(refuse)?;
    let (what, value) = rest.split_once('=').ok_or_else(refuse)?;
    let (way, what) = what.split_once('.').ok_or_else(refuse)?;
    let way = match way {
        "forward" => Way::Forward,
        "return" => Way::Return,
        _ => return Err(refuse()),
    };
    let change = match what {
        "rate" => Change { rate_bps: Some(units::rate(value)?), ..Change::default() },
        "delay" => {
            let delay = u64::try_from(units::duration(value)?.as_micros()).map_err(|_| refuse())?;
            Change { delay_us: Some(delay), ..Change::default() }
        }
        _ => return Err(refuse()),
    };
    change.validate(&format!("--at {text}")).map_err(|error| error.to_string())?;
    Ok(LinkChange { at: units::duration(at)?, way, change })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_second_to_a_day() {
        assert_eq!(limit("90").unwrap(), Duration::from_secs(90));
        assert_eq!(limit("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(limit("24h").unwrap(), Duration::from_secs(86_400));
        for bad in ["0", "0s", "25h", "86401", "never", "-1"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn changes_are_read_with_their_ranges() {
        let read = change("1500ms:return.delay=80ms").unwrap();
        assert_eq!((read.at, read.way), (Duration::from_millis(1_500), Way::Return));
        assert_eq!(read.change, Change { delay_us: Some(80_000), rate_bps: None });
        assert_eq!(change("5s:forward.rate=50mbit").unwrap().change.rate_bps, Some(50_000_000));
        for bad in ["5s", "5s:forward=1", "5s:up.rate=1mbit", "5s:forward.loss=1", "x:forward.rate=1mbit"] {
            assert!(change(bad).is_err(), "{bad}");
        }
        let At::Path(after, name) = at("2s:path=geo").unwrap() else { panic!("a path") };
        assert_eq!((after, name.as_str()), (Duration::from_secs(2), "geo"));
        assert!(matches!(at("5s:forward.rate=50mbit").unwrap(), At::Change(_)));
        assert!(at("soon:path=geo").is_err());
        assert!(change("5s:forward.rate=10bit").unwrap_err().contains("rate_bps = 10"));
    }
}
