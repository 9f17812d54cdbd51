//! What is attached for arms, and with which parameters at the moment.

use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use onramp_loader::algorithm::{AfterExitOptions, Algorithm, StartPolicies};
use onramp_loader::{AttachOptions, Base, Changes, Error};

use crate::output::say;
use crate::progress;

/// Attachments that there are, so that a signal can end them early.
static LIVE: Mutex<Vec<Weak<Mutex<Attachments>>>> = Mutex::new(Vec::new());

type Loaded = (Option<Base>, Option<AfterExitOptions>, Option<StartPolicies>);

/// Detached when dropped, and when the process is asked to end; what others had attached stays.
#[derive(Default)]
pub(super) struct Attachments {
    /// With what is chosen when code is loaded: the base, its options and the start.
    ours: Vec<(Algorithm, Loaded)>,
}

impl Attachments {
    /// None yet.
    pub fn new() -> Arc<Mutex<Self>> {
        static SIGNALS: Once = Once::new();
        SIGNALS.call_once(|| {
            progress::before_end(detach_all);
            detach_on_signals();
        });
        let attachments = Arc::<Mutex<Self>>::default();
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|one| one.strong_count() > 0);
        live.push(Arc::downgrade(&attachments));
        attachments
    }

    /// Has the algorithm attached with these parameters. Where another process has attached it, it is used as it is if
    /// `as_it_is`.
    pub fn ready(&mut self, options: &AttachOptions, as_it_is: bool) -> Result<(), Error> {
        let algorithm = options.parameters.algorithm();
        let loaded = (options.base, options.after_exit, options.start);
        if let Some(at) = self.ours.iter().position(|(one, _)| *one == algorithm) {
            if self.ours[at].1 == loaded {
                let all: Vec<_> =
                    options.parameters.shown().map(|(name, value)| format!("{name}={value}")).collect();
                let changes = Changes { settings: &all, ..Changes::default() };
                return onramp_loader::tune(algorithm, None, &changes, false).map(|_| ());
            }
            onramp_loader::detach(algorithm, false)?;
            self.ours.remove(at);
        }
        match onramp_loader::attach(options) {
            Ok(_) => self.ours.push((algorithm, loaded)),
            Err(Error::AlreadyAttached { .. }) if as_it_is => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn detach(&mut self) {
        for (algorithm, _) in self.ours.drain(..) {
            if let Err(error) = onramp_loader::detach(algorithm, false) {
                say(&format!("warning: {error}"));
            }
        }
    }
}

impl Drop for Attachments {
    fn drop(&mut self) {
        self.detach();
    }
}

/// From now on signals that would end this process are waited for by a thread, which detaches first. Threads that are
/// started later inherit that, so this comes before them.
fn detach_on_signals() {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        signals.add(signal);
    }
    if signals.thread_block().is_err() {
        return;
    }
    thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            progress::ended_by(signal);
        }
    });
}

/// Detaches what there is for arms, as the process is about to end.
fn detach_all() {
    let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    for attachments in live.iter().filter_map(Weak::upgrade) {
        attachments.lock().unwrap_or_else(PoisonError::into_inner).detach();
    }
}
