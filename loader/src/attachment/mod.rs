//! Attaching an algorithm, changing what is attached, and detaching it.

pub(crate) mod attach;
pub(crate) mod basis;
pub(crate) mod defaults;
pub(crate) mod detach;
pub(crate) mod expiry;
pub mod guard;
pub(crate) mod holders;
pub(crate) mod migrate;
pub(crate) mod namespaces;
pub(crate) mod options;
pub(crate) mod path_settings;
pub(crate) mod paths;
mod shell;
pub(crate) mod tune;
pub(crate) mod upgrade;
