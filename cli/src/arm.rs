//! Arms of an experiment: the kernel's own controls by their kernel name, ours by algorithm name. What an arm attached
//! is detached with it.

use std::sync::Arc;

use anyhow::Context;
use onramp_lab::experiment::{Arm, Exit, ExitSource, FlowStorage};
use onramp_lab::profile::Profile;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, Algorithm};
use onramp_loader::{AttachOptions, Error, Phase, kernel};

use crate::failure::Usage;
use crate::profile;

/// Arms, and what was attached for them; detached when dropped.
pub(crate) struct Arms {
    /// As the lab takes them.
    pub arms: Vec<Arm>,
    attached: Vec<Algorithm>,
}

impl Arms {
    /// Attaches what is not attached yet, with the profile's parameters where the profile is for that algorithm.
    /// `settings` are `algorithm.name=value`.
    pub fn prepare(names: &[String], profile: &Profile, settings: &[String]) -> anyhow::Result<Self> {
        let mut arms = Self { arms: Vec::new(), attached: Vec::new() };
        let registered = kernel::registered()?;
        check(names, settings, &registered)?;
        for name in names {
            let arm = match algorithm::find(name) {
                Some(algorithm) => arms.ours(algorithm, profile, settings)?,
                None => Arm::stock(name),
            };
            arms.arms.push(arm);
        }
        Ok(arms)
    }

    fn ours(&mut self, algorithm: Algorithm, with: &Profile, settings: &[String]) -> anyhow::Result<Arm> {
        let mut parameters = algorithm.parameters();
        if with.algorithm == algorithm.name() {
            profile::apply(with, &mut parameters)?;
        }
        let prefix = format!("{}.", algorithm.name());
        let own: Vec<&str> = settings.iter().filter_map(|setting| setting.strip_prefix(&prefix)).collect();
        parameters.assign(&own).map_err(Error::from)?;
        let mut options = AttachOptions::new(parameters);
        options.profile.clone_from(&with.name);
        options.scoped = true;
        match onramp_loader::attach(&options) {
            Ok(_) => self.attached.push(algorithm),
            Err(Error::AlreadyAttached { .. }) if own.is_empty() => {}
            Err(error) => return Err(error.into()),
        }
        let storage = onramp_loader::FlowStorage::open(algorithm)?;
        let map = storage.fd().try_clone_to_owned().context("cannot keep the flows map open")?;
        Ok(Arm {
            name: algorithm.name().to_owned(),
            congestion_control: algorithm.congestion_control(),
            storage: Some(FlowStorage { map: Arc::new(map), decode: Arc::new(exit) }),
        })
    }
}

impl Drop for Arms {
    fn drop(&mut self) {
        for algorithm in &self.attached {
            if let Err(error) = onramp_loader::detach(*algorithm, false) {
                eprintln!("warning: {error}");
            }
        }
    }
}

/// Every name is a control of this kernel or an algorithm, and every setting belongs to an arm.
fn check(names: &[String], settings: &[String], registered: &[String]) -> anyhow::Result<()> {
    for name in names {
        if algorithm::find(name).is_none() && !registered.contains(name) {
            let ours: Vec<_> = algorithm::all().map(|algorithm| algorithm.name()).collect();
            return Err(Usage::error(format!(
                "there is no arm {name:?}: give an algorithm ({}) or a control of this kernel ({})",
                ours.join(", "),
                registered.join(", ")
            )));
        }
    }
    for setting in settings {
        let arm = setting.split_once('.').map(|(arm, _)| arm);
        let known =
            arm.is_some_and(|arm| names.iter().any(|name| name == arm) && algorithm::find(arm).is_some());
        if !known {
            return Err(Usage::error(format!(
                "--set {setting} names no algorithm among the arms: write ALG.NAME=VALUE, for instance search.threshold_pct=30"
            )));
        }
    }
    Ok(())
}

/// The exit that a flow's storage records.
fn exit(storage: &[u8]) -> Option<Exit> {
    let header = FlowHeader::read(storage)?;
    let (Phase::Left(reason, record) | Phase::Exiting(reason, record)) = onramp_loader::phase(&header) else {
        return None;
    };
    Some(Exit {
        reason: reason.name().to_owned(),
        seconds: record.at_us as f64 / 1e6,
        window_bytes: u64::from(record.window) * u64::from(record.mss),
        source: ExitSource::Record,
    })
}
