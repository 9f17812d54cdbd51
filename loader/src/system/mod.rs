//! The host that runs this process: its kernel, its cgroups, its network namespaces, and who may change what.

pub(crate) mod action;
pub(crate) mod bbr;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod everywhere;
pub(crate) mod hierarchy;
pub mod kernel;
pub(crate) mod kind;
pub(crate) mod trust;
pub(crate) mod trusted;
pub(crate) mod types;
