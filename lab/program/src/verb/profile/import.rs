//! `onramp-lab profile import`: a measured trace becomes a profile.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onramp_files::bounded;
use onramp_profiles::link::{Measured, OneWayDelays, RateSpec, RateStep, RoundTrips};
use serde::Serialize;

use crate::failure::{self, Usage};
use crate::output::Output;
use crate::profile;
use crate::units;

/// Make a profile of what others have measured: rates over time, or round-trip times
///
/// Rates: a trace of mahimahi, Pantheon or Sprout (on each line the millisecond at which a packet of 1,500 bytes may be sent)
/// or of Pensieve (seconds and Mbit/s). It says nothing of delay: --rtt, or of LeoReplayer --delay. Round-trip times: CSV,
/// also with semicolons or tabs, with a column of times, such as relative_seconds, and one of RTTs, rtt in ms or rtt_us; what
/// is above the least is delay of the way there. It says nothing of rate: --rate. The profile gets a trace next to it, and
/// begins anew at its end.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab profile import verizon-lte.down --rtt 60ms -o ./verizon-lte.toml
  onramp lab profile import bus.log --rtt 80ms --queue-bdp 4 -o ./bus.toml
  onramp lab profile import bw_7.txt --delay delay_7.txt -o ./starlink-7.toml
  onramp lab profile import pings.csv --rate 100mbit -o ./starlink.toml")]
pub(super) struct Import {
    /// The trace
    trace: PathBuf,
    /// The profile, named as a profile is: NAME.toml; its trace is NAME.csv. Neither may be there
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Of rates: RTT of the empty path, half of it each way, 1us to 10s
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    rtt: Option<Duration>,
    /// Of rates: the delay of each way over time, a trace of LeoReplayer: a line of milliseconds for each 10 ms. The path begins
    /// anew at the end of the shorter trace
    #[arg(long, value_name = "FILE", conflicts_with = "rtt")]
    delay: Option<PathBuf>,
    /// Of round-trip times: the rate of both ways
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    rate: Option<u64>,
    /// Queue, in products of mean rate and least RTT, 0.01 to 100
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = queue)]
    queue_bdp: f64,
    /// Length of the intervals over which packets are counted, and of which the least RTT is taken, 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Duration,
}

fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let time = units::duration(text)?;
    if (least..=most).contains(&time) {
        Ok(time)
    } else {
        Err(format!("{text:?} is out of range: give {least:?} to {most:?}"))
    }
}

fn round_trip(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_micros(1), Duration::from_secs(10))
}

fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), Duration::from_secs(10))
}

fn queue(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok();
    factor
        .filter(|factor| (0.01..=100.0).contains(factor))
        .ok_or_else(|| format!("{text:?} is out of range: give 0.01 to 100"))
}

fn read(file: &Path) -> anyhow::Result<String> {
    bounded::read_text(file).map_err(|error| failure::unread(bounded::name(file), &error))
}

fn refused(file: &Path, why: &str) -> anyhow::Error {
    Usage::error(format!("cannot import {}: {why}", bounded::name(file)))
}

/// What a trace says, and what was given for what it does not say.
struct Link {
    format: &'static str,
    rates: Vec<RateStep>,
    /// Propagation of the way there, by time; none: it does not change.
    delays: Vec<(u64, u64)>,
    repeat_us: u64,
    /// The least.
    rtt_us: u64,
}

impl Link {
    /// Rates and the delays of each way, until the first of both ends.
    fn with_delays(measured: Measured, delays: OneWayDelays) -> Self {
        let repeat_us = measured.repeat_us.min(delays.repeat_us);
        let steps = || delays.steps.iter().filter(|step| step.0 < repeat_us);
        let rtt_us = 2 * steps().map(|step| step.1).min().unwrap_or_default();
        Self {
            format: "LeoReplayer",
            rates: measured.steps.into_iter().filter(|step| step.at_us < repeat_us).collect(),
            delays: steps().map(|(at_us, delay_us)| (*at_us, 2 * delay_us - back_us(rtt_us))).collect(),
            repeat_us,
            rtt_us,
        }
    }

    /// The trace as the lab reads it.
    fn rows(&self) -> String {
        let rates: Vec<_> = self.rates.iter().map(|step| (step.at_us, step.rate_bps)).collect();
        if self.delays.is_empty() {
            let row = |(at, rate): &(u64, u64)| format!("{at},{rate}\n");
            return "time_us,rate_bps\n".to_owned() + &rates.iter().map(row).collect::<String>();
        }
        let times: BTreeSet<u64> = rates.iter().chain(&self.delays).map(|step| step.0).collect();
        let value = |steps: &[(u64, u64)], at: u64| {
            let until = steps.partition_point(|step| step.0 <= at);
            steps[..until].last().map_or(0, |step| step.1)
        };
        let row = |at: u64| format!("{at},{},{}\n", value(&rates, at), value(&self.delays, at));
        "time_us,rate_bps,delay_us\n".to_owned() + &times.into_iter().map(row).collect::<String>()
    }
}

#[derive(Serialize)]
struct Imported {
    profile: PathBuf,
    trace: PathBuf,
    format: &'static str,
    seconds: f64,
    mean_bps: u64,
    least_bps: u64,
    most_bps: u64,
    /// Of its time.
    outage_share: f64,
    least_rtt_us: u64,
    most_rtt_us: u64,
    bdp_bytes: u64,
}

impl Import {
    pub fn run(&self, output: &Output) -> anyhow::Result<u8> {
        let link = self.link(&read(&self.trace)?)?;
        let name = self.name()?;
        let imported = self.imported(&link);
        // Of what is half made nothing stays.
        let mut made = Made::default();
        made.create(&imported.trace, &link.rows())?;
        made.create(&self.output, &self.profile(&name, &link, &imported))?;
        profile::load(&self.output.to_string_lossy())?;
        made.files.clear();
        output.data(&imported, || text_of(&imported))?;
        Ok(0)
    }

    fn link(&self, text: &str) -> anyhow::Result<Link> {
        let interval_us = self.interval.as_micros() as u64;
        let name = bounded::name(&self.trace);
        if RoundTrips::are_in(text) {
            let series = RoundTrips::read(text, interval_us).map_err(|why| refused(&self.trace, &why))?;
            let (None, None, Some(rate_bps)) = (self.rtt, &self.delay, self.rate) else {
                return Err(Usage::error(format!(
                    "{name} has round-trip times and no rate: give --rate, and neither --rtt nor --delay"
                )));
            };
            let rtt_us = series.least_us();
            let back_us = back_us(rtt_us);
            return Ok(Link {
                format: "round-trip times",
                rates: vec![RateStep { at_us: 0, rate_bps }],
                delays: series.steps.iter().map(|(at_us, rtt_us)| (*at_us, rtt_us - back_us)).collect(),
                repeat_us: series.repeat_us,
                rtt_us,
            });
        }
        let measured = Measured::read(text, interval_us).map_err(|why| refused(&self.trace, &why))?;
        if let (Some(file), None) = (&self.delay, self.rate) {
            let delays = OneWayDelays::read(&read(file)?).map_err(|why| refused(file, &why))?;
            return Ok(Link::with_delays(measured, delays));
        }
        let (Some(rtt), None) = (self.rtt, self.rate) else {
            return Err(Usage::error(format!(
                "{name} has rates and no delay: give --rtt or --delay, and no --rate"
            )));
        };
        Ok(Link {
            format: measured.format.name(),
            rates: measured.steps,
            delays: Vec::new(),
            repeat_us: measured.repeat_us,
            rtt_us: rtt.as_micros() as u64,
        })
    }

    /// The profile's name.
    fn name(&self) -> anyhow::Result<String> {
        let is_toml = self.output.extension().is_some_and(|extension| extension == "toml");
        let name = self.output.file_stem().and_then(|name| name.to_str()).filter(|_| is_toml);
        name.map(str::to_owned).ok_or_else(|| {
            let given = self.output.display();
            Usage::error(format!("{given} is not the file of a profile: give one such as ./lte.toml"))
        })
    }

    fn imported(&self, link: &Link) -> Imported {
        let Link { format, rates, delays, repeat_us, rtt_us } = link;
        let steps = RateSpec::Steps { steps: rates.clone(), repeat_us: Some(*repeat_us) };
        let mean_bps = steps.mean_bps().unwrap_or_default();
        let every = || rates.iter().map(|step| step.rate_bps);
        let ends = rates.iter().skip(1).map(|step| step.at_us).chain([*repeat_us]);
        let outages = rates.iter().zip(ends).filter(|(step, _)| step.rate_bps == 0);
        let outage_us: u64 = outages.map(|(step, end)| end - step.at_us).sum();
        let back_us = back_us(*rtt_us);
        Imported {
            profile: self.output.clone(),
            trace: self.output.with_extension("csv"),
            format,
            seconds: *repeat_us as f64 / 1e6,
            mean_bps,
            least_bps: every().min().unwrap_or_default(),
            most_bps: every().max().unwrap_or_default(),
            outage_share: outage_us as f64 / *repeat_us as f64,
            least_rtt_us: *rtt_us,
            most_rtt_us: delays.iter().map(|(_, delay_us)| delay_us + back_us).max().unwrap_or(*rtt_us),
            bdp_bytes: (u128::from(mean_bps) * u128::from(*rtt_us) / 8_000_000) as u64,
        }
    }

    fn profile(&self, name: &str, link: &Link, imported: &Imported) -> String {
        let Imported { mean_bps, bdp_bytes, format, .. } = imported;
        let Link { repeat_us, rtt_us, .. } = link;
        let back_us = back_us(*rtt_us);
        let there_us = rtt_us - back_us;
        let queue_bytes = ((*bdp_bytes as f64 * self.queue_bdp) as u64).max(LEAST_QUEUE_BYTES);
        let about = format!("{format} in {}", bounded::name(&self.trace));
        let about: String = about.chars().filter(|one| !one.is_control()).collect();
        let given = match (&self.delay, self.rtt) {
            (Some(_), _) => "The queue was",
            (None, Some(_)) => "RTT and queue were",
            (None, None) => "Rate and queue were",
        };
        format!(
            "# Made by `onramp lab profile import`. {given} given; the trace says nothing of it.\n\
             version = 1\n\
             name = {name:?}\n\
             about = {about:?}\n\
             algorithm = \"ramp\"\n\n\
             [link.forward]\n\
             rate_bps = {mean_bps}\n\
             delay_us = {there_us}\n\
             queue_bytes = {queue_bytes}\n\n\
             [link.forward.rate]\n\
             kind = \"trace\"\n\
             file = \"{name}.csv\"\n\
             repeat_us = {repeat_us}\n\n\
             [link.return]\n\
             rate_bps = {mean_bps}\n\
             delay_us = {back_us}\n\
             queue_bytes = {queue_bytes}\n\n\
             # Linux's defaults.\n\
             [host]\n\
             tcp_rmem = [4_096, 131_072, 6_291_456]\n\
             tcp_wmem = [4_096, 16_384, 4_194_304]\n"
        )
    }
}

/// Of a round trip the way back, microseconds: half, rounded up.
fn back_us(rtt_us: u64) -> u64 {
    rtt_us - rtt_us / 2
}

/// Ten packets: less than a burst of the sender is no queue.
const LEAST_QUEUE_BYTES: u64 = 15_000;

/// Files that are removed unless all of them come about.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
}

impl Made {
    fn create(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", path.display());
        let mut file = File::create_new(path).with_context(failed)?;
        self.files.push(path.to_owned());
        file.write_all(text.as_bytes()).with_context(failed)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

fn text_of(imported: &Imported) -> String {
    let Imported { profile, trace, format, .. } = imported;
    format!(
        "{}, its trace {}: {format}, {:.1} s, mean {}, {} to {}, {:.0} % outage, RTT {} to {}, BDP {} bytes\n",
        profile.display(),
        trace.display(),
        imported.seconds,
        units::show_rate(imported.mean_bps),
        units::show_rate(imported.least_bps),
        units::show_rate(imported.most_bps),
        imported.outage_share * 100.0,
        units::show_us(imported.least_rtt_us),
        units::show_us(imported.most_rtt_us),
        imported.bdp_bytes
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use onramp_profiles::link::RateSpec;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        import: Import,
    }

    fn import(words: &[&str]) -> anyhow::Result<u8> {
        let words = Words::try_parse_from(["import"].iter().chain(words))?;
        words.import.run(&Output::plain())
    }

    #[test]
    fn a_trace_becomes_a_profile_that_is_right_and_is_never_written_over() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let (trace, profile) = (path("down"), path("cell.toml"));
        fs::write(&trace, (0..2_000).map(|n| format!("{}\n", n / 2)).collect::<String>()).unwrap();
        let words = [&trace[..], "--rtt", "61ms", "--queue-bdp", "2", "-o", &profile];
        assert_eq!(import(&words).unwrap(), 0);
        let made = profile::load(&profile).unwrap();
        let forward = &made.link.forward;
        // Two packets of 1,500 bytes a millisecond, and the last of them at the end.
        assert!(forward.rate_bps.abs_diff(24_000_000) < 240_000, "{}", forward.rate_bps);
        assert_eq!((made.link.base_rtt_us(), made.name.as_str()), (61_000, "cell"));
        assert!(matches!(&forward.rate, Some(RateSpec::Trace { file, .. }) if file == "cell.csv"));
        let twice = 2 * made.link.bdp_bytes();
        assert!(forward.queue_bytes.unwrap().abs_diff(twice) <= 2);
        let before = fs::read_to_string(path("cell.csv")).unwrap();
        assert!(import(&words).is_err());
        assert_eq!(fs::read_to_string(path("cell.csv")).unwrap(), before);
    }

    #[test]
    fn rates_and_the_delays_of_each_way_become_a_path_until_the_first_of_both_ends() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let (rates, delays, profile) = (path("bw_1.txt"), path("delay_1.txt"), path("starlink.toml"));
        // A packet each millisecond, then two; 20 ms each way, then 25 ms, over 300 of 400 ms.
        let second = (200..400).flat_map(|ms| [ms, ms]);
        fs::write(&rates, (0..200).chain(second).map(|ms| format!("{ms}\n")).collect::<String>()).unwrap();
        fs::write(&delays, "20\n".repeat(10) + &"25\n".repeat(20)).unwrap();
        let words = [&rates[..], "--delay", &delays, "-o", &profile];
        assert!(import(&[&words[..], &["--rtt", "40ms"]].concat()).is_err());
        assert!(import(&[&words[..], &["--rate", "1mbit"]].concat()).is_err());
        assert_eq!(import(&words).unwrap(), 0);
        let made = profile::load(&profile).unwrap();
        let Some(RateSpec::Trace { rows, repeat_us, .. }) = &made.link.forward.rate else {
            panic!("{made:?}")
        };
        let rows: Vec<_> = rows.iter().map(|row| (row.at_us, row.rate_bps, row.delay_us)).collect();
        let (slow, fast) = (12_000_000, 24_000_000);
        let expected =
            [(0, slow, Some(20_000)), (100_000, slow, Some(30_000)), (200_000, fast, Some(30_000))];
        assert_eq!(rows, expected);
        assert_eq!((*repeat_us, made.link.base_rtt_us()), (Some(300_000), 40_000));
        fs::write(&delays, "20\nx\n").unwrap();
        let error =
            format!("{:#}", import(&[&rates, "--delay", &delays, "-o", &path("b.toml")]).unwrap_err());
        assert!(error.contains("delay_1.txt") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn round_trip_times_become_the_delay_of_a_given_rate() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let (trace, profile) = (path("pings.csv"), path("leo.toml"));
        fs::write(&trace, "relative_seconds,rtt\n0,40\n0.1,31\n0.2,55.5\n").unwrap();
        assert!(import(&[&trace, "--rtt", "31ms", "-o", &profile]).is_err());
        assert_eq!(import(&[&trace, "--rate", "100mbit", "-o", &profile]).unwrap(), 0);
        let made = profile::load(&profile).unwrap();
        let Some(RateSpec::Trace { rows, repeat_us, .. }) = &made.link.forward.rate else {
            panic!("{made:?}")
        };
        let delays: Vec<_> = rows.iter().map(|row| (row.at_us, row.rate_bps, row.delay_us)).collect();
        let rate = 100_000_000;
        let expected = [(0, 24_500), (100_000, 15_500), (200_000, 40_000)];
        assert_eq!(delays, expected.map(|(at, delay)| (at, rate, Some(delay))));
        assert_eq!((made.link.base_rtt_us(), *repeat_us), (31_000, Some(300_000)));
    }

    #[test]
    fn what_makes_no_profile_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let trace = path("down");
        fs::write(&trace, "0 1\n1 2\n").unwrap();
        for (file, options) in [
            ("cell.txt", ["--rtt", "60ms"]),
            ("Not A Name.toml", ["--rtt", "60ms"]),
            ("cell.toml", ["--rtt", "11s"]),
            ("cell.toml", ["--rtt", "0ms"]),
            ("nowhere/cell.toml", ["--rtt", "60ms"]),
        ] {
            let file = path(file);
            assert!(import(&[&[&trace[..], "-o", &file][..], &options[..]].concat()).is_err(), "{file}");
        }
        fs::write(&trace, "5\n4\n").unwrap();
        assert!(import(&[&trace, "--rtt", "60ms", "-o", &path("cell.toml")]).is_err());
        let there: Vec<_> = fs::read_dir(place.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(there, ["down"]);
    }
}
