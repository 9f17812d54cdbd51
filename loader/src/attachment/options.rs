//! What to attach, and how.

use std::time::Duration;

use onramp_algorithm::{AfterExitOptions, Algorithm, Named, Options, Parameters, StartPolicies};

use crate::attachment::guard::GuardOptions;
use crate::object::abi::Base;
use crate::object::level::Level;

/// What to attach, and how.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The algorithm's parameters.
    pub parameters: Parameters,
    /// Name of the parameter set, shown by `status`; at most 31 bytes.
    pub profile: String,
    /// The base; `None`: what the current network namespace has as default, if that can be one.
    pub base: Option<Base>,
    /// Options of the base; `None`: those that the algorithm has [usually](usual). Not with `observe`.
    pub after_exit: Option<AfterExitOptions>,
    /// What connections do at their start; `None`: what they do [usually](usual). Not with `observe`.
    pub start: Option<StartPolicies>,
    /// Run the algorithm and record when it would have left, and leave everything to the base.
    pub observe: bool,
    /// Keep some flows on the base as control, and have the base run alone once the others are worse. Not with `observe`,
    /// which does nothing that could be.
    pub guard: Option<GuardOptions>,
    /// Become the default of the current network namespace.
    pub default: bool,
    /// The time after which the base runs alone, unless [`crate::confirm`] comes before; a process that watches the clock may
    /// detach it then.
    pub expires_in: Option<Duration>,
    /// `onramp apply` attaches it, and may detach it when no file names it any more.
    pub applied: bool,
    /// It belongs to a scoped run of this process.
    pub scoped: bool,
    /// Maximum telemetry level for its flows, whatever consumers subscribe to.
    pub telemetry_max: Level,
}

impl AttachOptions {
    /// Attach with these parameters, and nothing else.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            profile: "default".into(),
            base: None,
            after_exit: None,
            start: None,
            observe: false,
            guard: None,
            default: false,
            expires_in: None,
            applied: false,
            scoped: false,
            telemetry_max: Level::Ack,
        }
    }

    /// The options that a base will have by it.
    pub fn after_exit_over(&self, base: Base) -> AfterExitOptions {
        self.after_exit.unwrap_or_else(|| usual(self.parameters.algorithm(), base, self.observe))
    }

    /// What connections will do at their start over a base.
    pub fn start_over(&self, base: Base) -> StartPolicies {
        self.start.unwrap_or_else(|| usual(self.parameters.algorithm(), base, self.observe))
    }
}

/// What an algorithm has over a base where nothing is asked for; nothing where it only observes.
pub fn usual<T: Named>(algorithm: Algorithm, base: Base, observe: bool) -> Options<T> {
    if observe { Options::default() } else { Options::usual(algorithm, base.name()) }
}
