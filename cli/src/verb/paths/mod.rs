//! `onramp paths`.

mod settings;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use onramp_files::bounded;
use onramp_loader::{LearnedPath, LearnedPaths, PathsSet};
use onramp_net::Prefix;
use serde::Serialize;

pub(super) use self::settings::SettingsRow;
use self::settings::{Set, lifetime};
use crate::failure::Usage;
use crate::output::Output;
use crate::units::{self, count};
use crate::verb::serve::shown;

/// Show, forget, export or import what connections have learned of paths (attach --start), and set for how long it is used
///
/// A path goes from a network namespace to an address, or to all addresses of a prefix. What is remembered stays on this host,
/// and is gone once nothing is attached any more; so are the settings.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp paths list
  onramp paths list --mask-addresses --json
  onramp paths flush --to 203.0.113.0/24
  onramp paths set lifetime=1h prefix=24,56
  onramp paths export > paths; onramp paths import paths

Undo: `flush` prints none: `onramp paths export` before it keeps what there is")]
pub(crate) struct Paths {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(List),
    Flush(Flush),
    Set(Set),
    Export(Export),
    Import(Import),
}

/// List the paths that are remembered, of all network namespaces
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp paths list\n  onramp paths list --json | jq '.paths[].rate_bits_per_s'"
)]
struct List {
    /// Show networks in place of addresses: /24 of IPv4, /48 of IPv6
    #[arg(long)]
    mask_addresses: bool,
}

/// Forget paths; connections that start from them go on
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp paths flush
  onramp paths flush --to 203.0.113.0/24

Undo: none; `onramp paths export > FILE` before keeps them for `onramp paths import FILE`")]
struct Flush {
    /// Only those to addresses in this prefix, or to networks that it lies in
    #[arg(long, value_name = "PREFIX")]
    to: Option<Prefix>,
}

/// Print the paths of this network namespace as `import` takes them: lifetime; address or network, rate and minimum RTT, age
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  onramp paths export > paths")]
struct Export {}

/// Remember paths of a file, in this network namespace; all of the file or nothing of it
///
/// A line has the lifetime of paths, which holds for all of them then; or an address or network, rate and minimum RTT, and the
/// age. What follows # is a comment. Networks are refused that are of another prefix than `onramp paths set` has. `-`: standard
/// input.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp paths import paths      # a line of it: 203.0.113.9 50mbit,600ms 0s

Undo: onramp paths flush; that of a lifetime is printed")]
struct Import {
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Listing {
    /// Of `onramp paths set`; none where nothing remembers paths.
    settings: Option<SettingsRow>,
    paths: Vec<PathRow>,
}

#[derive(Serialize)]
struct PathRow {
    netns_cookie: u64,
    /// Whether that is this network namespace.
    here: bool,
    address: IpAddr,
    /// Bits of the address that count.
    prefix_bits: u32,
    rate_bits_per_s: u64,
    min_rtt_us: u32,
    age_s: u64,
    /// Starts from it that went well.
    confirmed: u32,
    /// Starts that were given up, since the last that went well.
    retreated: u32,
    /// A connection starts from it now.
    claimed: bool,
}

#[derive(Serialize)]
struct Changed {
    forgotten: usize,
    remembered: usize,
    /// That holds now, where a file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    lifetime_s: Option<u64>,
    /// Restores the lifetime of before, where that was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
}

impl Paths {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::List(verb) => verb.run(output),
            Verb::Flush(verb) => verb.run(output),
            Verb::Set(verb) => verb.run(output),
            Verb::Export(verb) => verb.run(output),
            Verb::Import(verb) => verb.run(output),
        }
    }
}

impl List {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let learned = onramp_loader::learned_paths()?;
        let here = onramp_loader::netns_cookie()?;
        let row = |path: LearnedPath| PathRow {
            netns_cookie: path.netns_cookie,
            here: path.netns_cookie == here,
            address: shown(path.network.address(), self.mask_addresses),
            prefix_bits: path.network.length(),
            rate_bits_per_s: path.rate * 8,
            min_rtt_us: path.rtt_us,
            age_s: path.age.as_secs(),
            confirmed: path.confirmed,
            retreated: path.retreated,
            claimed: path.claimed,
        };
        let none = if learned.is_none() {
            "# nothing remembers paths: onramp attach ALG --start resume+window\n"
        } else {
            "# no paths are remembered yet\n"
        };
        let settings = learned.as_ref().map(|learned| SettingsRow::new(&learned.settings));
        let paths = learned.into_iter().flat_map(|learned| learned.paths).map(row).collect();
        let listing = Listing { settings, paths };
        output.data(&listing, || match (listing.paths.as_slice(), &listing.settings) {
            (_, None) => none.to_owned(),
            ([], Some(settings)) => none.to_owned() + &settings.line(),
            (rows, Some(settings)) => rows.iter().map(text).collect::<String>() + &settings.line(),
        })?;
        Ok(0)
    }
}

fn text(row: &PathRow) -> String {
    let place = if row.here { String::new() } else { format!(", in namespace {}", row.netns_cookie) };
    let claimed = if row.claimed { ", in use" } else { "" };
    format!(
        "{}: {}, {}, {} ago; starts: {} confirmed, {} given up since{claimed}{place}\n",
        Prefix::new(row.address, row.prefix_bits).map_or_else(|| row.address.to_string(), written),
        units::show_rate(row.rate_bits_per_s),
        units::show_us(row.min_rtt_us.into()),
        units::show_us(row.age_s * 1_000_000),
        row.confirmed,
        row.retreated,
    )
}

/// The address, or the network of a shorter prefix.
fn written(network: Prefix) -> String {
    let address = network.address();
    if network == address.into() { address.to_string() } else { network.to_string() }
}

impl Flush {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let forgotten = onramp_loader::forget_paths(|path| {
            let overlaps = |prefix: Prefix| {
                prefix.contains(path.network.address()) || path.network.contains(prefix.address())
            };
            self.to.is_none_or(overlaps)
        })?;
        let changed = Changed { forgotten: forgotten.len(), remembered: 0, lifetime_s: None, undo: None };
        output.report(&changed, || format!("forgot {}\n", count(changed.forgotten, "path")));
        Ok(0)
    }
}

impl Export {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let here = onramp_loader::netns_cookie()?;
        let mut lines = Vec::new();
        if let Some(LearnedPaths { paths, settings }) = onramp_loader::learned_paths()? {
            lines.extend(paths.iter().filter(|path| path.netns_cookie == here).map(line));
            if !lines.is_empty() {
                lines.insert(0, format!("lifetime={}s", settings.lifetime.as_secs()));
            }
        }
        output.data(&Lines { lines: &lines }, || {
            if lines.is_empty() { "# no paths\n".to_owned() } else { lines.join("\n") + "\n" }
        })?;
        Ok(0)
    }
}

#[derive(Serialize)]
struct Lines<'a> {
    /// As `import` takes them.
    lines: &'a [String],
}

/// A path as `import` takes it.
fn line(path: &LearnedPath) -> String {
    let (bits, rtt_us, age_s) = (path.rate * 8, path.rtt_us, path.age.as_secs());
    format!("{} {bits}bit,{rtt_us}us {age_s}s", written(path.network))
}

impl Import {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let name = bounded::name(&self.file).to_string();
        let text = bounded::read_text(&self.file).with_context(|| format!("cannot read {name}"))?;
        let (paths, lifetime) = parse(&text, &name, onramp_loader::netns_cookie()?)?;
        let PathsSet { before, after, .. } = onramp_loader::remember_paths(&paths, lifetime)?;
        let lifetime_s = lifetime.map(|lifetime| lifetime.as_secs());
        let undo = settings::undo(&SettingsRow::new(&before), &SettingsRow::new(&after));
        let changed = Changed { forgotten: 0, remembered: paths.len(), lifetime_s, undo };
        output.report(&changed, || {
            let used = lifetime_s.map_or_else(String::new, |s| format!(", all used for {s} s"));
            let undo = changed.undo.iter().map(|undo| format!("  undo of the lifetime: {undo}\n"));
            format!("remembered {}{used}\n", count(changed.remembered, "path")) + &undo.collect::<String>()
        });
        Ok(0)
    }
}

fn parse(text: &str, name: &str, netns_cookie: u64) -> anyhow::Result<(Vec<LearnedPath>, Option<Duration>)> {
    let mut paths = Vec::new();
    let mut used_for = None;
    let mut lines: BTreeMap<Option<Prefix>, usize> = BTreeMap::new();
    let mut once = |network: Option<Prefix>, what: &str, number| match lines.insert(network, number) {
        Some(first) => Err(Usage::error(format!(
            "{name}, line {number}: {what} stands in line {first} already: leave one of them out"
        ))),
        None => Ok(()),
    };
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<_> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        if let [word] = words.as_slice()
            && let Some(written) = word.strip_prefix("lifetime=")
        {
            once(None, "lifetime", number)?;
            let read = lifetime(written);
            used_for = Some(read.map_err(|error| Usage::error(format!("{name}, line {number}: {error}")))?);
            continue;
        }
        let path = path(&words, netns_cookie).ok_or_else(|| {
            Usage::error(format!(
                "{name}, line {number}: {:?} is not a path: write its address or network, its rate (1kbit to 1tbit) and minimum RTT (1us to 60s), and its age (0s to 365d), such as `203.0.113.9 50mbit,600ms 0s`",
                words.join(" ")
            ))
        })?;
        once(Some(path.network), words[0], number)?;
        paths.push(path);
        if paths.len() > onramp_loader::PATHS_MAX {
            return Err(Usage::error(format!(
                "{name}, line {number}: more than {} paths are not remembered",
                onramp_loader::PATHS_MAX
            )));
        }
    }
    Ok((paths, used_for))
}

fn path(words: &[&str], netns_cookie: u64) -> Option<LearnedPath> {
    let [address, path, age] = words else { return None };
    let (rate, rtt) = path.split_once(',')?;
    let bits = units::rate(rate).ok().filter(|bits| (1_000..=1_000_000_000_000).contains(bits))?;
    let rtt = units::duration(rtt).ok().map(|rtt| rtt.as_micros());
    let age = units::duration(age).ok();
    Some(LearnedPath {
        netns_cookie,
        network: address.parse().ok().filter(|prefix: &Prefix| *prefix == prefix.network())?,
        rate: bits / 8,
        rtt_us: rtt.filter(|us| (1..=60_000_000).contains(us))? as u32,
        age: age.filter(|age| age.as_secs() <= 365 * 86_400)?,
        confirmed: 0,
        retreated: 0,
        claimed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_imported_as_it_is_exported() {
        let text =
            "# two\nlifetime=1h30m\n203.0.113.9 50mbit,600ms 0s\n\n2001:db8::/56 64kbit,100us 90s # beam 3\n";
        let (paths, used_for) = parse(text, "paths", 7).unwrap();
        assert_eq!(used_for, Some(Duration::from_secs(5_400)));
        assert_eq!((paths[0].rate, paths[0].rtt_us, paths[0].netns_cookie), (6_250_000, 600_000, 7));
        assert_eq!((paths[1].rtt_us, paths[1].age), (100, Duration::from_secs(90)));
        let exported: Vec<_> = paths.iter().map(line).collect();
        assert_eq!(parse(&exported.join("\n"), "paths", 7).unwrap(), (paths, None));
    }

    #[test]
    fn what_stands_twice_is_refused_with_both_lines() {
        for (twice, what) in [
            ("203.0.113.9 50mbit,600ms 0s\n::ffff:203.0.113.9 9mbit,60ms 1s", "::ffff:203.0.113.9 stands"),
            ("lifetime=1h\nlifetime=1h", "lifetime stands"),
        ] {
            let error = parse(twice, "paths", 7).unwrap_err().to_string();
            assert!(
                error.contains("paths, line 2") && error.contains(what) && error.contains("line 1"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_line_and_what_to_write() {
        for wrong in [
            "203.0.113.9",
            "203.0.113.9/24 50mbit,600ms 0s",
            "203.0.113.9 50mbit 0s",
            "203.0.113.9 1bit,600ms 0s",
            "203.0.113.9 50mbit,61s 0s",
            "203.0.113.9 50mbit,600ms -1s",
            "203.0.113.9 50mbit,600ms 0s more",
        ] {
            let error = parse(&format!("\n{wrong}\n"), "paths", 7).unwrap_err().to_string();
            assert!(error.contains("paths, line 2") && error.contains("50mbit,600ms"), "{wrong}: {error}");
        }
    }
}
