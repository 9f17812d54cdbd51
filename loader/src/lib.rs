//! Loads, attaches, tunes and reads onramp's congestion controls.
//!
//! libbpf (libbpf-rs) opens, loads, registers and pins; aya opens what is pinned. What is attached is what is pinned
//! under [`ROOT`]: every function here reads that, and none keeps a record of its own.
//!
//! A folder uses only those before it:
//!
//! * `system`: the running kernel, its cgroups and network namespaces, clocks, errors
//! * `object`: the objects, their structures in Rust, and what is fitted to the kernel before they are loaded
//! * `pins`: where things are pinned, the lock, parameter sets
//! * `telemetry`: consumers, their rings, events
//! * `shadow`: samples of flows under any control
//! * `host`: settings of the host that were changed for a path
//! * `select`: rules
//! * `attachment`: attach, tune, upgrade, detach; defaults and sockets that they move
//! * `run`: one command's sockets
//! * `report`: status, flows, doctor, costs, and what decides about a connection

mod attachment;
pub mod host;
mod object;
mod pins;
mod report;
mod run;
pub mod select;
pub mod shadow;
mod system;
pub mod telemetry;

pub use attachment::attach::{
    Attached, attach, plan as plan_attach, plan_default, previous_default, restore_default, take_default,
    take_default_elsewhere,
};
pub use attachment::basis::{Basis, basis};
pub use attachment::defaults::{DefaultOf, Defaults, Elsewhere, Restored, defaults_everywhere};
pub use attachment::detach::{
    Detachable, Detached, begin_detach, detach, detachable, is_applied, plan_detach,
};
pub use attachment::expiry::{Expiry, Watching, confirm, detach_expired, expire_after, expiry, watch};
pub use attachment::guard;
pub use attachment::holders::{Held, HeldBy, held};
pub use attachment::migrate::Users;
pub use attachment::options::{AttachOptions, usual};
pub use attachment::path_settings::{PathPrefix, PathSettings, path_settings};
pub use attachment::paths::{
    LearnedPath, LearnedPaths, PathsSet, forget_paths, learned_paths, netns_cookie, remember_paths,
    set_path_settings,
};
pub use attachment::tune::{Changes, Tuned, tune};
pub use attachment::upgrade::{BaseChange, UpgradePlan, UpgradeUndo, Upgraded, plan_upgrade, upgrade};
pub use object::abi::{self, Base, PATHS_MAX};
pub use object::algorithms::find;
pub use object::{outside, programs};
pub use onramp_algorithm::{self as algorithm, ExitReason};
pub use pins::parameters::{ParameterSet, parameter_sets, parameter_sets_while};
pub use pins::{LOCK_TIMEOUT, ROOT, WaitWhile, pinned};
pub use report::cost;
pub use report::deciders::{By, Deciders, Decision};
pub use report::doctor::path::{Path, Wanted, fq_by_default, hystart_off, wanted};
pub use report::doctor::{Check, Scope, Verdict, doctor, is_hosts_own, receiver};
pub use report::flows::{
    Flow, FlowStorage, Phase, exports, flows, listening_ports, older_code, phase, state, unreadable,
};
pub use report::status::{
    AttachedState, Host, Pinned, State, Status, attached_state, consumers, pinned_status, status,
};
pub use report::yardstick::Yardstick;
pub use run::{Leftover, Ran, clear_leftovers, run};
pub use system::action::Action;
pub use system::error::{Error, quoted};
pub use system::everywhere::SYSCTL as DEFAULT_SYSCTL;
pub use system::kernel;
pub use system::kind::Kind;
pub use system::trusted::require_trusted;
