//! `onramp paths set`.

use std::time::Duration;

use clap::Args;
use onramp_loader::{PathPrefix, PathSettings, PathsSet};
use serde::Serialize;

use crate::failure::Usage;
use crate::output::Output;
use crate::units::{self, count, show_us};

/// Set for how long paths are used, and by how many bits of an address they are distinguished; all of it or nothing, at once
///
/// lifetime: 10s to 7d [at first: 10m]. At half of it half as much of a path is used. It holds for what has been learned, too.
///
/// prefix: of IPv4, 8 to 32 bits, and of IPv6, 32 to 128 [at first: 32,128]. All addresses of a prefix share one path, and of
/// connections in parallel to them one starts from it. Another prefix forgets all paths.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp paths set lifetime=1h
  onramp paths set lifetime=10m prefix=24,56
  onramp paths set prefix=24,56 --dry-run

Undo: printed; paths that another prefix forgets are learned anew")]
pub(super) struct Set {
    /// New values
    #[arg(value_name = "SETTING=VALUE", required = true)]
    settings: Vec<String>,
    /// Say what would change; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What holds for all paths.
#[derive(Clone, Copy, PartialEq, Serialize)]
pub(in crate::verb) struct SettingsRow {
    lifetime_s: u64,
    prefix_ipv4_bits: u32,
    prefix_ipv6_bits: u32,
}

#[derive(Serialize)]
struct SetReport {
    dry_run: bool,
    before: SettingsRow,
    after: SettingsRow,
    /// Paths.
    forgotten: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
}

impl SettingsRow {
    pub fn new(settings: &PathSettings) -> Self {
        Self {
            lifetime_s: settings.lifetime.as_secs(),
            prefix_ipv4_bits: settings.prefix.ipv4,
            prefix_ipv6_bits: settings.prefix.ipv6,
        }
    }

    /// The settings as `onramp paths set` takes them.
    fn words(&self) -> [String; 2] {
        let prefix = format!("prefix={},{}", self.prefix_ipv4_bits, self.prefix_ipv6_bits);
        [format!("lifetime={}s", self.lifetime_s), prefix]
    }

    /// For people.
    pub fn line(&self) -> String {
        format!(
            "lifetime {}; prefix /{}, of IPv6 /{}\n",
            show_us(self.lifetime_s * 1_000_000),
            self.prefix_ipv4_bits,
            self.prefix_ipv6_bits
        )
    }
}

impl Set {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let (lifetime, prefix) = parse(&self.settings).map_err(Usage::error)?;
        let PathsSet { before, after, forgotten } =
            onramp_loader::set_path_settings(lifetime, prefix, self.dry_run)?;
        let (before, after) = (SettingsRow::new(&before), SettingsRow::new(&after));
        let undo = undo(&before, &after);
        let report = SetReport { dry_run: self.dry_run, before, after, forgotten, undo };
        output.report(&report, || text(&report));
        Ok(0)
    }
}

/// The command that restores what has another value now; `None`: nothing has.
pub(super) fn undo(before: &SettingsRow, after: &SettingsRow) -> Option<String> {
    (before != after).then(|| format!("onramp paths set {}", undoing(before, after).join(" ")))
}

/// What has another value now, as it was.
fn undoing(before: &SettingsRow, after: &SettingsRow) -> Vec<String> {
    let both = before.words().into_iter().zip(after.words());
    both.filter(|(before, after)| before != after).map(|(before, _)| before).collect()
}

fn text(report: &SetReport) -> String {
    let mut text = String::new();
    for (before, after) in report.before.words().into_iter().zip(report.after.words()) {
        if before != after {
            text += &format!("{before} -> {after}\n");
        }
    }
    if report.undo.is_none() {
        text += "nothing changes: these are the values already\n";
    }
    if report.before.words()[1] != report.after.words()[1] {
        text += &format!("forgot {}\n", count(report.forgotten, "path"));
    }
    match &report.undo {
        Some(_) if report.dry_run => text += "not changed: a dry run\n",
        Some(undo) => text += &format!("  undo: {undo}\n"),
        None => {}
    }
    text
}

/// Settings as they are written, each at most once.
fn parse(settings: &[String]) -> Result<(Option<Duration>, Option<PathPrefix>), String> {
    let (mut used_for, mut by) = (None, None);
    for setting in settings {
        match setting.split_once('=') {
            Some((name @ "lifetime", _)) if used_for.is_some() => return Err(twice(name)),
            Some((name @ "prefix", _)) if by.is_some() => return Err(twice(name)),
            Some(("lifetime", value)) => used_for = Some(lifetime(value)?),
            Some(("prefix", value)) => by = Some(prefix(value)?),
            _ => {
                return Err(format!(
                    "{setting:?} is no setting of paths: write lifetime=10m or prefix=24,56"
                ));
            }
        }
    }
    Ok((used_for, by))
}

fn twice(name: &str) -> String {
    format!("{name} is given twice: leave one of them out")
}

/// Whole seconds within [`PathSettings::LIFETIME_S`].
pub(super) fn lifetime(value: &str) -> Result<Duration, String> {
    units::seconds(value)
        .ok()
        .filter(|seconds| PathSettings::LIFETIME_S.contains(&u64::from(*seconds)))
        .map(|seconds| Duration::from_secs(seconds.into()))
        .ok_or_else(|| format!("lifetime={value} is not allowed: give whole seconds, 10s to 7d"))
}

/// Of IPv4 and of IPv6.
fn prefix(value: &str) -> Result<PathPrefix, String> {
    let read = || {
        let (ipv4, ipv6) = value.split_once(',')?;
        let prefix = PathPrefix { ipv4: ipv4.parse().ok()?, ipv6: ipv6.parse().ok()? };
        (PathPrefix::IPV4.contains(&prefix.ipv4) && PathPrefix::IPV6.contains(&prefix.ipv6)).then_some(prefix)
    };
    read().ok_or_else(|| {
        format!(
            "prefix={value} is not allowed: give the bits of IPv4, 8 to 32, and of IPv6, 32 to 128, such as 24,56"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &str) -> Result<(Option<Duration>, Option<PathPrefix>), String> {
        parse(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_read_and_what_is_none_is_refused_with_its_range() {
        let hour = Some(Duration::from_secs(3_600));
        assert_eq!(set("lifetime=1h"), Ok((hour, None)));
        assert_eq!(set("prefix=8,128 lifetime=60m"), Ok((hour, Some(PathPrefix { ipv4: 8, ipv6: 128 }))));
        assert_eq!(set("lifetime=7d").unwrap().0, Some(Duration::from_secs(604_800)));
        for (wrong, range) in [
            ("lifetime=9s", "10s to 7d"),
            ("lifetime=8d", "10s to 7d"),
            ("lifetime=10500ms", "10s to 7d"),
            ("lifetime=", "10s to 7d"),
            ("prefix=24", "8 to 32"),
            ("prefix=7,56", "8 to 32"),
            ("prefix=33,56", "8 to 32"),
            ("prefix=24,31", "32 to 128"),
            ("prefix=24,129", "32 to 128"),
            ("prefix=24,56,64", "32 to 128"),
            ("age=10m", "lifetime=10m"),
            ("lifetime", "lifetime=10m"),
        ] {
            let other = if wrong.starts_with("lifetime=") { "prefix=24,56" } else { "lifetime=1h" };
            let error = set(&format!("{other} {wrong}")).unwrap_err();
            assert!(error.contains(wrong) && error.contains(range), "{wrong}: {error}");
        }
        assert!(set("prefix=24,56 prefix=24,57").unwrap_err().contains("prefix is given twice"));
        assert!(set("lifetime=1h lifetime=2h").unwrap_err().contains("lifetime is given twice"));
    }

    #[test]
    fn undo_names_what_has_changed_alone() {
        let row =
            |lifetime_s, prefix_ipv4_bits| SettingsRow { lifetime_s, prefix_ipv4_bits, prefix_ipv6_bits: 56 };
        assert_eq!(undoing(&row(600, 32), &row(600, 24)), ["prefix=32,56"]);
        assert_eq!(undoing(&row(600, 32), &row(60, 32)), ["lifetime=600s"]);
        assert_eq!(undoing(&row(600, 32), &row(60, 24)), ["lifetime=600s", "prefix=32,56"]);
    }
}
