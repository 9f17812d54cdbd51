//! Detaching: give defaults back, move sockets away, unregister, say what is left.

use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapHandle};
use onramp_algorithm::Algorithm;

use crate::action::Action;
use crate::defaults::{self, Restored};
use crate::error::Error;
use crate::kernel;
use crate::pins::{LINK, Lock, OPERATIONS, Pins, ROOT};
use crate::rehome::{self, Users};
use crate::telemetry;

/// How long the kernel may take to let go of the name; it does so at once, after a grace period.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a detach did.
#[derive(Clone, Debug)]
pub struct Detached {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Namespaces whose default was given back.
    pub restored: Vec<Restored>,
    /// Open sockets moved to another control.
    pub moved: usize,
    /// Open sockets that still run the detached code; it stays loaded until the last of them closes.
    pub stragglers: Vec<Users>,
}

/// Whether there is something to detach and what it would do; changes nothing.
///
/// # Errors
/// [`Error::NotAttached`], or what looking fails with.
pub fn plan_detach(algorithm: Algorithm, leave_sockets: bool) -> Result<Vec<Action>, Error> {
    kernel::require_privilege("detach")?;
    let pins = Pins::of(algorithm);
    let name = algorithm.congestion_control();
    require_traces(&pins)?;
    let undo = format!("onramp attach {}", algorithm.name());
    let mut actions = Vec::new();
    for namespace in defaults::having(&name)? {
        actions
            .push(Action::new(format!("give network namespace {namespace} its former default back"), &undo));
    }
    for users in rehome::users(&name)?.iter().filter(|_| !leave_sockets) {
        actions.push(Action::new(
            format!("move {} sockets of network namespace {} to its default", users.sockets, users.namespace),
            "",
        ));
    }
    if pins.exist() {
        actions.push(Action::new(format!("unregister {name} and remove {}", pins.directory.display()), undo));
    }
    Ok(actions)
}

/// Detaches an algorithm; also clears what an interrupted attach or detach left, and takes sockets and namespaces away
/// from a control that was unregistered by other means.
///
/// Open sockets go to their namespace's default unless `leave_sockets`; those that cannot be moved are reported.
///
/// # Errors
/// [`Error::NotAttached`] if there is nothing; else what failed, after which `status` says what is left and detaching
/// again continues.
pub fn detach(algorithm: Algorithm, leave_sockets: bool) -> Result<Detached, Error> {
    kernel::require_privilege("detach")?;
    let _lock = Lock::take()?;
    detach_locked(algorithm, leave_sockets)
}

/// [`detach`] for a caller that holds the lock.
pub(crate) fn detach_locked(algorithm: Algorithm, leave_sockets: bool) -> Result<Detached, Error> {
    let pins = Pins::of(algorithm);
    let name = algorithm.congestion_control();
    require_traces(&pins)?;
    let restored = defaults::restore(&pins)?;
    let moved = if leave_sockets { 0 } else { rehome::move_sockets(&name)? };
    unregister(&pins)?;
    // Sockets that chose it by name between the move and the end of the name.
    let moved = if leave_sockets { moved } else { moved + rehome::move_sockets(&name)? };
    Ok(Detached { algorithm, restored, moved, stragglers: rehome::users(&name)? })
}

/// Unregisters and removes the pins, and waits until the name is gone.
pub(crate) fn unregister(pins: &Pins) -> Result<(), Error> {
    if !pins.exist() {
        return telemetry::tidy();
    }
    let name = pins.algorithm.congestion_control();
    let operations = pins.path(OPERATIONS);
    if !pins.path(LINK).exists() && operations.exists() && kernel::registered()?.contains(&name) {
        // Registered by the map itself.
        let failed =
            |source| Error::Bpf { action: "unregister", object: name.clone(), source, log: String::new() };
        let map = MapHandle::from_pinned_path(&operations).map_err(failed)?;
        map.delete(&0u32.to_ne_bytes()).map_err(failed)?;
    }
    pins.remove()?;
    telemetry::tidy()?;
    tracing::debug!("unregistered {name}, removed {}", pins.directory.display());
    let deadline = Instant::now() + PATIENCE;
    while kernel::registered()?.contains(&name) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Fails unless an algorithm has pins, or sockets or namespaces that still have its control.
fn require_traces(pins: &Pins) -> Result<(), Error> {
    let name = pins.algorithm.congestion_control();
    if pins.exist() {
        return Ok(());
    }
    if kernel::registered()?.contains(&name) {
        return Err(Error::Foreign { name, root: ROOT });
    }
    if defaults::having(&name)?.is_empty() && rehome::users(&name)?.is_empty() {
        return Err(Error::NotAttached { algorithm: pins.algorithm.name() });
    }
    Ok(())
}

/// Algorithms that [`detach`] has something to do for.
///
/// # Errors
/// [`Error::Privilege`], or what looking fails with.
pub fn detachable() -> Result<Vec<Algorithm>, Error> {
    kernel::require_privilege("detach")?;
    let (users, defaults) = (rehome::all_users()?, defaults::all()?);
    let traces = |algorithm: &Algorithm| {
        let name = algorithm.congestion_control();
        Pins::of(*algorithm).exist() || users.contains_key(&name) || defaults.contains_key(&name)
    };
    Ok(onramp_algorithm::all().filter(traces).collect())
}

/// Algorithms that have pins, attached or half attached.
pub fn pinned() -> Vec<Algorithm> {
    onramp_algorithm::all().filter(|algorithm| Pins::of(*algorithm).exist()).collect()
}
