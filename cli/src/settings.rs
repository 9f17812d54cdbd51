//! What attach, run and tune share: the algorithm and its parameters.

use clap::{Args, ValueEnum};
use onramp_loader::algorithm::{self, AfterExit, AfterExitOptions, StartPolicies, StartPolicy};
use onramp_loader::telemetry::Level;
use onramp_loader::{AttachOptions, AttachedState, Base};
use onramp_profiles::Profile;
pub(crate) use onramp_profiles::parameters::{AlgorithmName, Value, changes};
use serde::Deserialize;

use crate::consumer::level_from;
use crate::profile;

/// An algorithm, a profile and settings on top of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true, help = format!("Algorithm; `onramp list` shows them [default: the profile's, else {}]", algorithm::default().name()))]
    pub algorithm: Option<String>,
    /// Take parameters from this profile: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Set a parameter, on top of the profile; `onramp list ALG` shows names, units and ranges
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Control that does congestion avoidance, loss reaction and undo; bbr: the whole of BBR after slow start [default: that of
    /// this network namespace, which has to be one of these]
    #[arg(long, value_enum)]
    pub base: Option<BaseName>,
    #[arg(long, value_name = "OPTIONS", help = after_exit_help("ramp: floor over cubic and reno; others: none"))]
    pub after_exit: Option<AfterExitOptions>,
    #[arg(long, value_name = "POLICY", help = start_help("ramp: suss over cubic and reno; others: double"))]
    pub start: Option<StartPolicies>,
    /// Maximum telemetry level for its flows; a consumer that subscribes to more gets this level [default: the profile's, else ack]
    #[arg(long, value_name = "LEVEL", value_parser = level_from(Level::Off))]
    pub telemetry: Option<Level>,
}

/// What `--after-exit` takes; `default`: what holds without it.
pub(crate) fn after_exit_help(default: &str) -> String {
    let options = AfterExit::ALL.map(|one| format!("{}: {}", one.name(), one.help())).join("; ");
    format!(
        "Options of the base after slow start, separated by commas, or none. {options} [default: {default}]"
    )
}

/// The line of a report that says which options a base has; empty where it has none.
pub(crate) fn after_exit_line(options: AfterExitOptions) -> String {
    if options.is_empty() {
        String::new()
    } else {
        format!("  options of the base after the exit: {options}\n")
    }
}

/// What `--start` takes; `default`: what holds without it.
pub(crate) fn start_help(default: &str) -> String {
    let policies = StartPolicy::ALL.map(|one| format!("{}: {}", one.name(), one.help())).join("; ");
    format!(
        "How connections start: double; by what is remembered of their path: resume, window or resume+window; or faster where nothing is known of it: fast or suss. resume+fast: fast where no path is remembered. {policies} [default: {default}]"
    )
}

/// The line of a report that says how connections start; empty where they double.
pub(crate) fn start_line(start: StartPolicies) -> String {
    let paths = if start.remembers() { ": onramp paths" } else { "" };
    if start.is_empty() { String::new() } else { format!("  start: {start}{paths}\n") }
}

/// A base by its name.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BaseName {
    Cubic,
    Reno,
    Bbr,
}

impl From<BaseName> for Base {
    fn from(name: BaseName) -> Self {
        match name {
            BaseName::Cubic => Self::Cubic,
            BaseName::Reno => Self::Reno,
            BaseName::Bbr => Self::Bbr,
        }
    }
}

impl Settings {
    /// Whether what is attached is not what is asked for. Where nothing is asked for, it is taken as it is.
    pub fn differ_from(&self, attached: &AttachedState, options: &AttachOptions) -> bool {
        let asked = self.profile.is_some() || !self.settings.is_empty() || self.telemetry.is_some();
        let set = attached.parameter_sets.first();
        let other_set = set.is_some_and(|set| !set.has(&options.parameters, options.telemetry_max));
        let other_options = self.after_exit.is_some_and(|options| options != attached.after_exit);
        let other_start = self.start.is_some_and(|start| start != attached.start);
        (asked && other_set)
            || other_options
            || other_start
            || options.base.is_some_and(|base| base != attached.base)
    }

    /// Everything checked; nothing done yet.
    pub fn options(&self) -> anyhow::Result<AttachOptions> {
        let profile = self.profile.as_deref().map(profile::load).transpose()?;
        let mut parameters = match (&self.algorithm, &profile) {
            (Some(name), _) => onramp_loader::find(name)?.parameters(),
            (None, Some(profile)) => profile::algorithm(profile)?.parameters(),
            (None, None) => algorithm::default().parameters(),
        };
        let (mut name, mut telemetry_max) = (None, None);
        if let Some(profile) = profile {
            profile::apply(&profile, &mut parameters)?;
            telemetry_max = self::telemetry_max(&profile);
            name = Some(profile.name);
        }
        parameters.assign(&self.settings).map_err(onramp_loader::Error::from)?;
        let mut options = AttachOptions::new(parameters);
        options.profile = name.unwrap_or(options.profile);
        options.telemetry_max = self.telemetry.or(telemetry_max).unwrap_or(options.telemetry_max);
        options.base = self.base.map(Base::from);
        options.after_exit = self.after_exit;
        options.start = self.start;
        Ok(options)
    }
}

/// A profile's maximum telemetry level for its flows, if it has one.
pub(crate) fn telemetry_max(profile: &Profile) -> Option<Level> {
    profile.telemetry.as_deref().and_then(Level::find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_know_every_level_of_telemetry() {
        assert_eq!(onramp_profiles::TELEMETRY_LEVELS, Level::ALL.map(Level::name));
    }
}
