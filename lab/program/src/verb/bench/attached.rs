//! An algorithm that is attached for as long as something is measured.

use std::mem;

use onramp_loader::algorithm::Algorithm;
use onramp_loader::{AttachOptions, Base, Detached, Error};

use crate::output::say;

/// Detached when dropped.
pub(super) struct Attached(Algorithm);

impl Attached {
    /// With its default parameters; also as the default of this thread's network namespace if `default`. What is attached
    /// already may have flows of its own and is an error.
    pub fn new(algorithm: Algorithm, default: bool) -> Result<Self, Error> {
        let mut options = AttachOptions::new(algorithm.parameters());
        options.profile = "bench".into();
        // What is measured is the same on every host.
        options.base = Some(Base::Cubic);
        options.scoped = true;
        options.default = default;
        onramp_loader::attach(&options)?;
        Ok(Self(algorithm))
    }

    /// Detaches it now.
    pub fn detach(self) -> Result<Detached, Error> {
        let algorithm = self.0;
        // There is nothing to be dropped any more, also where detaching fails: `status` says what is left then.
        mem::forget(self);
        onramp_loader::detach(algorithm, false)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Err(error) = onramp_loader::detach(self.0, false) {
            say(&format!("warning: {error}"));
        }
    }
}
