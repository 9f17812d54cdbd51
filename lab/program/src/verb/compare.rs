//! `onramp-lab run` and `onramp-lab compare`.

use std::path::Path;

use clap::Args;
use onramp_lab::experiment::{self, Comparison, Plan};
use onramp_lab::table;

use super::common::{Common, Jobs};
use super::plot::document;
use super::progress::{self, Clock};
use crate::arm::Arms;
use crate::output::Output;
use crate::profile;
use crate::units;
use crate::verb::transfer::{self, Traffic};

/// What an arm may be, for the help of all that take one.
const ARMS: &str = "An arm is an algorithm of onramp's (attached for the run unless it is attached already, then used as it is) \
or a congestion control of the kernel (cubic, reno, bbr and its other modules, such as hybla, westwood, dctcp), with settings of its own after colons: parameters of the algorithm, \
base=cubic|reno|bbr, after_exit=plateau+floor+probe (or some of these), start=double|resume|window|fast|suss (or some of these; \
resume and window need what the path has taught: --warm), \
resume=50mbit/600ms (the path is known: `onramp select add --resume`) or resume_pct=100 (the link's own RTT, and this \
percentage of its rate), and host.KEY=VALUE for tcp_rmem, tcp_wmem, tcp_sack, fast_retransmit, tcp_moderate_rcvbuf, mtu_bytes, \
initial_window_segments, quickack, tcp_ecn and fq.";

/// Download once
#[derive(Args, Debug)]
#[command(long_about = format!("Download once\n\n{ARMS}"), after_help = "Examples:
  onramp lab run search
  onramp lab run ramp --record -o run; onramp sim path run/000-ramp/recording
  onramp lab run cubic:host.tcp_sack=off --profile geo --bytes 200M
  onramp lab run plain --at 5s:forward.rate=50mbit --follow")]
pub(crate) struct RunOne {
    /// Algorithm or congestion control, with settings after colons
    arm: String,
    /// Link and hosts: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    common: Common,
}

impl RunOne {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let mut plan = self.common.plan(profile::load(&self.profile)?, 1, None, self.common.clock(None)?);
        self.traffic.join(&mut plan)?;
        measure(&[self.arm], &plan, &self.common, output)
    }
}

/// Compare arms: several downloads each, taking turns, on the same seeds
#[derive(Args, Debug)]
#[command(long_about = format!("Compare arms: several downloads each, taking turns, on the same seeds\n\n{ARMS}\n\n\
Times are the receiver's, to the last byte. Means are over the runs that count, with the 95 % confidence interval; a run \
in which the emulator fell behind is invalid. A transfer that is given up at the limit (--timeout) counts as at least that \
long: means become bounds (≥, in JSON `bound`), `paired` has the arms over the seeds that all of them finished, and the \
command exits 5. The exit of the kernel's own controls is found by sampling every 10 ms; \
onramp's flows record theirs."),
    after_help = "Examples:
  onramp lab compare --arms cubic,plain,search --repetitions 5
  onramp lab compare --arms search:exit_action=hold,search:exit_action=drain --json
  onramp lab compare --arms cubic,plain,best,search --jobs 4
  onramp lab compare --arms cubic,search --flows 8 --stagger 1s
  onramp lab compare --arms cubic,ramp,ramp:start=resume+window --warm 2M --bytes 500k
  onramp lab compare --arms cubic,ramp --flows 2 --extra-rtt 0ms,120ms --seconds 60
  onramp lab compare --arms cubic,ramp --profile lte --at 2s:path=wifi
  onramp lab compare --arms plain,search --competitor cubic")]
pub(crate) struct Compare {
    /// Algorithms and congestion controls, with settings after colons [default: cubic,plain,search]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ARM,…",
        default_value = "cubic,plain,search",
        hide_default_value = true
    )]
    arms: Vec<String>,
    /// Link and hosts: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    /// Downloads of each arm
    #[arg(short = 'n', long, default_value_t = 3, value_parser = units::number(1..=10_000_u32))]
    repetitions: u32,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    common: Common,
}

impl Compare {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let profile = profile::load(&self.profile)?;
        let clock = self.common.clock(self.jobs.shard)?;
        let mut plan = self.common.plan(profile, self.repetitions, self.jobs.jobs, clock);
        self.traffic.join(&mut plan)?;
        measure(&self.arms, &plan, &self.common, output)
    }
}

fn measure(names: &[String], plan: &Plan, common: &Common, output: &Output) -> anyhow::Result<u8> {
    let arms = Arms::prepare(names, &plan.profile, &common.transfer.settings, &plan.clock)?;
    common.check_recorded(&arms.arms)?;
    common.clock.require_root("lab")?;
    let each = plan.expected_seconds();
    let expected = each * f64::from(plan.repetitions) * arms.arms.len() as f64;
    let mut clock = Clock::start(expected, progress::resumes(&plan.clock), output);
    let comparison = experiment::compare(plan, &arms.arms, |progress| {
        progress::show(&progress, each, &mut clock);
    })?;
    drop(clock);
    let page = comparison.directory.as_deref().map(document::write).transpose()?.flatten();
    output.versioned(&comparison, || text(&comparison, page.as_deref()))?;
    Ok(transfer::code(&comparison.arms))
}

fn text(comparison: &Comparison, page: Option<&Path>) -> String {
    let mut text = table::comparison(comparison);
    if let Some(directory) = &comparison.directory {
        text += &format!("plot: {}\n", directory.join("plot.svg").display());
    }
    text + &page.map(|page| format!("page: {}\n", page.display())).unwrap_or_default()
}
