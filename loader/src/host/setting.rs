//! A setting that was changed.

use super::place::{is_parameter, parameter};

/// What [`super::change`] has set: a sysctl, or a module's parameter, `MODULE.PARAMETER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it was before.
    pub before: String,
    /// What it was set to.
    pub set: String,
}

impl Setting {
    /// The command that sets it to [`Setting::set`] without onramp.
    pub fn command(&self) -> String {
        let Self { name, set, .. } = self;
        if is_parameter(name) {
            format!("echo {set} > {}", parameter(name).display())
        } else {
            format!("sysctl -w {name}=\"{set}\"")
        }
    }
}
