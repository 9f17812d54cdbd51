//! `onramp-lab profile`.

mod import;

use anyhow::Context;
use clap::{Args, Subcommand};
use onramp_loader::Path;
use onramp_loader::algorithm::Parameters;
use onramp_profiles::Profile as Contents;
use onramp_profiles::link::DirectionSpec;
use serde::Serialize;

use crate::failure::{FAILURE, USAGE};
use crate::output::{Named, Output, escape_line};
use crate::profile::{self, Origin};
use crate::settings::Value;
use crate::table::Table;

/// List, show, check and import profiles: a link, the hosts' buffers, and the algorithm that suits them
///
/// A profile is looked up by name in /etc/onramp/profiles, then among those built in.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab profile list
  onramp lab profile show geo
  onramp lab profile check ./mine.toml --json")]
pub(crate) struct Profile {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all profiles, with where each comes from
    #[command(after_help = "Examples:\n  onramp lab profile list\n  onramp lab profile list --json")]
    List,
    /// Show a profile as it is resolved, with what follows from it
    #[command(
        after_help = "Examples:\n  onramp lab profile show geo\n  onramp lab profile show ./mine.toml --json"
    )]
    Show {
        /// A path, or a name in /etc/onramp/profiles or built in
        profile: String,
    },
    /// Check profiles: link, hosts, algorithm, and the names and ranges of parameters
    ///
    /// Exits 0 if all are right, 1 if one is wrong, 2 if one cannot be found.
    #[command(
        after_help = "Examples:\n  onramp lab profile check ./mine.toml\n  onramp lab profile check profiles/[a-z]*.toml"
    )]
    Check {
        /// Paths, or names
        #[arg(required = true)]
        profiles: Vec<String>,
    },
    Import(import::Import),
}

impl Profile {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::List => list(output),
            Verb::Show { profile } => show(&profile, output),
            Verb::Check { profiles } => check(&profiles, output),
            Verb::Import(import) => import.run(output),
        }
    }
}

#[derive(Serialize)]
struct Listed {
    name: String,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What follows from a profile.
#[derive(Serialize)]
struct Summary {
    about: String,
    algorithm: String,
    rate_bps: u64,
    base_rtt_us: u64,
    bdp_bytes: u64,
    queue_bytes: Option<u64>,
    queue_packets: Option<u64>,
    /// Queue over BDP; packets are counted as full ones.
    queue_to_bdp: f64,
    /// For `tcp_rmem` and `tcp_wmem`, so that half of it holds the BDP.
    recommended_buffer_bytes: u64,
    /// Whether the profile's hosts have that.
    buffers_hold_bdp: bool,
}

impl Summary {
    fn new(contents: &Contents) -> Self {
        let (link, host) = (&contents.link, &contents.host);
        let path = Path { rate_bps: link.forward.rate_bps, rtt_us: link.base_rtt_us().max(1) };
        let smallest = host.tcp_rmem[2].min(host.tcp_wmem[2]);
        Self {
            about: contents.about.clone(),
            algorithm: contents.algorithm.clone(),
            rate_bps: path.rate_bps,
            base_rtt_us: link.base_rtt_us(),
            bdp_bytes: link.bdp_bytes(),
            queue_bytes: link.forward.queue_bytes,
            queue_packets: link.forward.queue_packets,
            queue_to_bdp: queue_bytes(&link.forward, host.mtu_bytes) / link.bdp_bytes().max(1) as f64,
            recommended_buffer_bytes: path.recommended_bytes(),
            buffers_hold_bdp: smallest >= 2 * link.bdp_bytes(),
        }
    }
}

fn queue_bytes(direction: &DirectionSpec, packet_bytes: u32) -> f64 {
    let packets = direction.queue_packets.unwrap_or(0) as f64 * f64::from(packet_bytes);
    direction.queue_bytes.map_or(packets, |bytes| bytes as f64)
}

fn list(output: &Output) -> anyhow::Result<u8> {
    let listed: Vec<Listed> = profile::names()
        .into_iter()
        .map(|name| {
            let (summary, error) = match profile::load(&name) {
                Ok(contents) => (Some(Summary::new(&contents)), None),
                Err(error) => (None, Some(error.to_string())),
            };
            Listed { origin: profile::origin(&name), name, summary, error }
        })
        .collect();
    output.data(&Named(vec![("profiles", &listed)]), || {
        let mut table = Table::new(["PROFILE", "ALGORITHM", ">Mb/s", ">RTT ms", ">BDP MB", "FROM", "ABOUT"]);
        for one in &listed {
            let from = one.origin.to_string();
            table.push(match &one.summary {
                Some(summary) => [
                    one.name.clone(),
                    summary.algorithm.clone(),
                    format!("{:.1}", summary.rate_bps as f64 / 1e6),
                    format!("{:.0}", summary.base_rtt_us as f64 / 1e3),
                    format!("{:.2}", summary.bdp_bytes as f64 / 1e6),
                    from,
                    summary.about.clone(),
                ],
                None => {
                    let about = one.error.clone().unwrap_or_default().replace('\n', " ");
                    [one.name.clone(), "-".into(), "-".into(), "-".into(), "-".into(), from, about]
                }
            });
        }
        table.render(output)
    })?;
    Ok(0)
}

#[derive(Serialize)]
struct Shown {
    origin: Origin,
    profile: Contents,
    derived: Summary,
    /// All of the algorithm's parameters with the values that flows will use.
    parameters: Named<Value>,
    /// The same of the other algorithms that the profile has parameters for.
    #[serde(skip_serializing_if = "Named::is_empty")]
    other_algorithms: Named<Named<Value>>,
}

fn show(name: &str, output: &Output) -> anyhow::Result<u8> {
    let contents = profile::load(name)?;
    let values = |of: &Parameters| {
        Named(of.iter().map(|(parameter, value)| (parameter.name, Value::new(&parameter, value))).collect())
    };
    let all = profile::parameters(&contents)?;
    let (own, others) = all.split_first().context("a profile has an algorithm")?;
    let shown = Shown {
        origin: profile::origin(name),
        derived: Summary::new(&contents),
        parameters: values(own),
        other_algorithms: Named(others.iter().map(|one| (one.algorithm().name(), values(one))).collect()),
        profile: contents,
    };
    // The text is a profile again: what is derived stands in comments.
    let text = toml::to_string(&shown.profile)?;
    output.data(&shown, || derived(&shown) + &text)?;
    Ok(0)
}

fn derived(shown: &Shown) -> String {
    let one = &shown.derived;
    let line = |algorithm: &str, values: &Named<Value>| {
        let values: Vec<_> = values.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let values = if values.is_empty() { "no parameters".into() } else { values.join(" ") };
        format!("# {algorithm}: {values}\n")
    };
    let others = shown.other_algorithms.0.iter().map(|(name, values)| line(name, values));
    let parameters = line(&one.algorithm, &shown.parameters) + &others.collect::<String>();
    let enough = if one.buffers_hold_bdp { "hold" } else { "do not hold" };
    format!(
        "# from {}\n# BDP {} bytes at {:.1} Mb/s and {:.1} ms; queue {:.2} BDP\n\
         # buffers: {} bytes would do for tcp_rmem and tcp_wmem; those of [host] {enough} the BDP in their usable half\n\
         {parameters}",
        // A comment of one line, whatever the file is called.
        escape_line(&shown.origin.to_string()),
        one.bdp_bytes,
        one.rate_bps as f64 / 1e6,
        one.base_rtt_us as f64 / 1e3,
        one.queue_to_bdp,
        one.recommended_buffer_bytes,
    )
}

#[derive(Serialize)]
struct Checked {
    profile: String,
    valid: bool,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn check(names: &[String], output: &Output) -> anyhow::Result<u8> {
    let checked: Vec<Checked> = names
        .iter()
        .map(|name| {
            let found = profile::exists(name);
            let error = profile::load(name).err().map(|error| error.to_string());
            Checked { profile: name.clone(), valid: error.is_none(), found, error }
        })
        .collect();
    output.data(&Named(vec![("profiles", &checked)]), || {
        let line = |one: &Checked| match &one.error {
            None => format!("{}: ok\n", one.profile),
            Some(error) => format!("{}: {error}\n", one.profile),
        };
        checked.iter().map(line).collect()
    })?;
    Ok(if checked.iter().any(|one| !one.found) {
        USAGE
    } else if checked.iter().any(|one| !one.valid) {
        FAILURE
    } else {
        0
    })
}
