//! Loads, attaches, tunes and reads onramp's congestion controls.
//!
//! libbpf (libbpf-rs) opens, loads, registers and pins; aya opens what is pinned. What is attached is what is pinned
//! under [`ROOT`]: every function here reads that, and none keeps a record of its own.

pub mod abi;
mod action;
mod attach;
mod basis;
mod bbr;
mod code;
mod constant;
pub mod cost;
mod defaults;
mod detach;
mod doctor;
mod error;
mod expiry;
mod flows;
pub mod guard;
mod hierarchy;
mod holders;
pub mod host;
pub mod kernel;
#[cfg(test)]
mod layout_tests;
mod log;
mod namespaces;
mod object;
mod open;
mod operations;
mod path;
mod pins;
mod profiles;
pub mod programs;
mod rehome;
mod run;
pub mod select;
pub mod shadow;
mod shell;
mod status;
mod stdout;
mod tables;
pub mod telemetry;
mod trust;
mod trusted;
mod tune;
mod types;
mod upgrade;

pub use abi::Base;
pub use action::Action;
pub use attach::{
    AttachOptions, Attached, attach, former_default, give_default_back, plan as plan_attach, plan_default,
    take_default, take_default_elsewhere,
};
pub use basis::{Basis, basis};
pub use defaults::{DefaultOf, Defaults, Elsewhere, Restored, SYSCTL as DEFAULT_SYSCTL, defaults_everywhere};
pub use detach::{Detachable, Detached, begin_detach, detach, detachable, is_applied, pinned, plan_detach};
pub use doctor::{Check, Verdict, doctor};
pub use error::{Error, Kind, quoted};
pub use expiry::{Expiry, Watching, confirm, detach_expired, expire_after, expiry, watch};
pub use flows::{Flow, FlowStorage, Phase, exports, flows, listening_ports, older_code, phase, unreadable};
pub use holders::{Held, HeldBy, held};
pub use onramp_algorithm::{self as algorithm, ExitReason};
pub use path::{Path, Wanted, fq_by_default, hystart_off, wanted};
pub use pins::{LOCK_PATIENCE, Patience, ROOT};
pub use rehome::Users;
pub use run::{Leftover, Ran, clear_leftovers, run};
pub use status::{
    AttachedState, Host, Pinned, State, Status, attached_state, consumers, pinned_status, status,
};
pub use stdout::stdout_was_closed;
pub use trusted::require_trusted;
pub use tune::{Changes, ParameterSet, Tuned, parameter_sets, parameter_sets_while, tune};
pub use upgrade::{UpgradePlan, Upgraded, plan_upgrade, upgrade};

use onramp_algorithm::Algorithm;

/// Names of all algorithms, separated by commas.
pub(crate) fn known() -> String {
    onramp_algorithm::all().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// The algorithm of this name; its congestion control's name (`onramp_…`) is understood too.
///
/// # Errors
/// [`Error::UnknownAlgorithm`].
pub fn find(name: &str) -> Result<Algorithm, Error> {
    onramp_algorithm::find(name).ok_or_else(|| Error::UnknownAlgorithm { name: name.into(), known: known() })
}
