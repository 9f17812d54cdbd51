//! What a recording says of the host.

use std::collections::BTreeMap;

use anyhow::Context;
use nix::time::{ClockId, clock_gettime};
use onramp_loader::algorithm::Algorithm;
use onramp_loader::telemetry::Level;
use onramp_loader::{AttachedState, DEFAULT_SYSCTL, State};
use onramp_net::Namespace;
use onramp_recording::{Attached, Manifest, SCHEMA};

use crate::consumer::{self, Signals};
use crate::output::say;
use crate::units;

/// Sysctls that decide what a flow may do.
const SYSCTLS: [&str; 13] = [
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
    DEFAULT_SYSCTL,
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// The manifest of a recording that begins now.
pub(super) fn manifest(level: Level, signals: &Signals) -> anyhow::Result<Manifest> {
    let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
    let here = Namespace::current()?;
    let host: BTreeMap<String, String> =
        SYSCTLS.into_iter().filter_map(|name| Some((name.to_owned(), here.sysctl_get(name).ok()?))).collect();
    let kernel = nix::sys::utsname::uname().context("cannot ask for the kernel's release")?;
    Ok(Manifest {
        schema: SCHEMA,
        onramp: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        level: level.name().to_owned(),
        started_us: units::now_us(),
        started_monotonic_us: monotonic.tv_sec() as u64 * 1_000_000 + monotonic.tv_nsec() as u64 / 1_000,
        kernel: kernel.release().to_string_lossy().into_owned(),
        host,
        algorithms: algorithms(signals),
        ..Manifest::default()
    })
}

/// What is attached. A recording is worth having also where this cannot be read.
fn algorithms(signals: &Signals) -> Vec<Attached> {
    let pinned = match consumer::open(signals, |wait| onramp_loader::pinned_status(wait)) {
        Ok(pinned) => pinned.map_or_else(Vec::new, |pinned| pinned.algorithms),
        Err(error) => {
            say(&format!("warning: what is attached cannot be read, and is not in the recording: {error}"));
            Vec::new()
        }
    };
    let mut all = Vec::new();
    for (algorithm, state) in pinned {
        match state {
            State::Attached(state) => all.extend(attached(algorithm, &state)),
            State::Unreadable(why) => {
                say(&format!("warning: {} is not described in the recording: {why}", algorithm.name()));
            }
            _ => {}
        }
    }
    all
}

fn attached(algorithm: Algorithm, state: &AttachedState) -> Vec<Attached> {
    let set = |set: &onramp_loader::ParameterSet| Attached {
        algorithm: algorithm.name().to_owned(),
        profile: set.profile.clone(),
        base: state.base.name().to_owned(),
        after_exit: state.after_exit.iter().map(|one| one.name().to_owned()).collect(),
        generation: set.generation,
        parameters: set.parameters.shown().map(|(name, value)| (name.to_owned(), value)).collect(),
    };
    state.parameter_sets.iter().map(set).collect()
}
