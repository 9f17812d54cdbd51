//! Detaching: restore defaults, move sockets away, unregister, say what is left.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use onramp_algorithm::Algorithm;

use crate::attachment::defaults::{self, Records, Restored};
use crate::attachment::holders::{self, Held};
use crate::attachment::migrate::{Iterators, Users};
use crate::attachment::namespaces::{self, NamespaceScan, Taken};
use crate::attachment::shell;
use crate::object::algorithms;
use crate::pins::code;
use crate::pins::profiles;
use crate::pins::{DEFAULTS, LINK, Lock, OPERATIONS, Pins, ROOT};
use crate::system::action::Action;
use crate::system::error::Error;
use crate::system::kernel;
use crate::telemetry;

/// How long the kernel may take to let go of the name; it does so at once, after a grace period.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a detach did.
#[derive(Clone, Debug)]
pub struct Detached {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// It was attached, wholly or in part; else only sockets or namespaces had its code still.
    pub was_attached: bool,
    /// Namespaces whose default was restored.
    pub restored: Vec<Restored>,
    /// Open sockets moved to another control.
    pub moved: usize,
    /// The listening ones: their application had chosen this control, and connections that they accept get the
    /// other one until it chooses again.
    pub listening_moved: usize,
    /// Open sockets that still run the detached code; it stays loaded until the last of them closes.
    pub stragglers: Vec<Users>,
    /// What holds the code of this control, of this attachment and of earlier ones.
    pub held: Held,
    /// Where it could not be looked, and why: a namespace there may still have it as default, or sockets on it.
    pub unseen: Vec<String>,
    /// Why pins are left, though it is unregistered.
    pub pins_left: Option<String>,
}

/// Whether there is something to detach and what it would do; changes nothing.
///
/// `undo` is the command that attaches it again.
///
/// # Errors
/// [`Error::NotAttached`], or what looking fails with.
pub fn plan_detach(algorithm: Algorithm, leave_sockets: bool, undo: &str) -> Result<Vec<Action>, Error> {
    kernel::require_everywhere("detach")?;
    let _lock = Lock::take_if_mounted()?;
    let pins = Pins::new(algorithm);
    let name = algorithm.congestion_control();
    let scan = require_traces(&pins)?;
    let mut actions = Vec::new();
    for namespace in scan.defaults.get(&name).into_iter().flatten() {
        actions.push(Action::new(
            format!("restore the previous default of network namespace {namespace}"),
            undo,
        ));
    }
    for users in scan.users.get(&name).into_iter().flatten().filter(|_| !leave_sockets) {
        actions.push(Action::new(
            format!(
                "move {} sockets of network namespace {} to its default, except listening ones",
                users.sockets, users.namespace
            ),
            "",
        ));
    }
    if pins.exist()? {
        actions.push(Action::new(format!("unregister {name} and remove {}", pins.directory.display()), undo));
    }
    Ok(actions)
}

/// Detaches an algorithm; also clears what an interrupted attach or detach left, and takes sockets and namespaces away
/// from a control that was unregistered by other means.
///
/// Open sockets go to their namespace's default unless `leave_sockets`; those that cannot be moved are reported, as is
/// every place that could not be looked into. Listening sockets stay as they are, because connections that they accept
/// get the default anyway, unless their application has chosen the control. What holds the code then is found by
/// [`held`](crate::held), which waits.
///
/// # Errors
/// [`Error::Privilege`] unless this process may look into every namespace; [`Error::NotAttached`] if there is nothing;
/// else what failed, after which `status` says what is left and detaching again continues.
pub fn begin_detach(algorithm: Algorithm, leave_sockets: bool) -> Result<Detached, Error> {
    kernel::require_everywhere("detach")?;
    let _lock = Lock::take()?;
    detach_locked(algorithm, leave_sockets)
}

/// [`begin_detach`], and what holds the code then.
///
/// # Errors
/// As [`begin_detach`].
pub fn detach(algorithm: Algorithm, leave_sockets: bool) -> Result<Detached, Error> {
    let mut detached = begin_detach(algorithm, leave_sockets)?;
    detached.held = holders::held(&[algorithm])?.pop().unwrap_or_default();
    Ok(detached)
}

/// [`begin_detach`] for a caller that holds the lock.
pub(crate) fn detach_locked(algorithm: Algorithm, leave_sockets: bool) -> Result<Detached, Error> {
    let pins = Pins::new(algorithm);
    let name = algorithm.congestion_control();
    let was_attached = pins.exist()?;
    if !was_attached {
        require_traces(&pins)?;
    }
    let (records, mut iterators) = (Records::new(&pins), Iterators::default());
    let registered = kernel::registered()?.contains(&name);
    let mut first = namespaces::take_away(&name, &records, leave_sockets, &mut iterators)?;
    let mut rest = || {
        defaults::pass_on(&pins, None)?;
        let mut pins_left = left(&pins, end(&pins))?;
        // Sockets and namespaces that chose it by name between the first round and the end of the name.
        let last = namespaces::take_away(&name, &records, leave_sockets, &mut iterators)?;
        // A previous default that could not be restored is known only by the pin.
        if !last.kept {
            pins_left = pins_left.or(left(&pins, remove(&pins))?);
        }
        Ok((last, pins_left))
    };
    let (last, pins_left) = rest().map_err(|error| in_part(algorithm, registered, &first, error))?;
    first.restored.extend(last.restored);
    Ok(Detached {
        algorithm,
        was_attached,
        restored: first.restored,
        moved: first.moved + last.moved,
        listening_moved: first.listening + last.listening,
        stragglers: last.stragglers,
        held: Held::default(),
        unseen: last.unseen,
        pins_left,
    })
}

/// Why pins could not be removed, which is an error only while the control is registered.
fn left(pins: &Pins, removed: Result<(), Error>) -> Result<Option<String>, Error> {
    match removed {
        Ok(()) => Ok(None),
        Err(error) if kernel::registered()?.contains(&pins.algorithm.congestion_control()) => Err(error),
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// The error of a detach that fails after its first round; if nothing has changed by then, it is as it came.
fn in_part(algorithm: Algorithm, registered: bool, first: &Taken, error: Error) -> Error {
    let still = kernel::registered().is_ok_and(|names| names.contains(&algorithm.congestion_control()));
    let done: Vec<String> = [
        (!first.restored.is_empty()).then(|| format!("defaults restored: {}", first.restored.len())),
        (first.moved > 0).then(|| format!("sockets moved: {}", first.moved)),
        (registered && !still).then(|| "unregistered".into()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if done.is_empty() {
        return error;
    }
    Error::DoneInPart {
        verb: "detach",
        algorithm: algorithm.name(),
        done: done.join(", "),
        source: Box::new(error),
    }
}

/// Unregisters and removes the pins, and waits until the name is gone.
pub(crate) fn unregister(pins: &Pins) -> Result<(), Error> {
    end(pins)?;
    remove(pins)
}

/// Unregisters, removes the pins but those of the records of defaults, and waits until the name is gone.
fn end(pins: &Pins) -> Result<(), Error> {
    if !pins.exist()? {
        return Ok(());
    }
    let name = pins.algorithm.congestion_control();
    shell::settle(pins)?;
    let unlinked = !pins.has(LINK)? && pins.has(OPERATIONS)?;
    if unlinked && kernel::registered()?.contains(&name) {
        shell::unregister(pins)?;
    }
    pins.remove_all_but(Some(DEFAULTS))?;
    tracing::debug!("unregistered {name}");
    let deadline = Instant::now() + TIMEOUT;
    while kernel::registered()?.contains(&name) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Removes the pins that are left, and what nothing needs any more then.
fn remove(pins: &Pins) -> Result<(), Error> {
    pins.remove()?;
    profiles::tidy()?;
    telemetry::tidy()
}

/// Fails unless an algorithm has pins, or code that is loaded: nothing can have its control without.
fn require_traces(pins: &Pins) -> Result<NamespaceScan, Error> {
    let name = pins.algorithm.congestion_control();
    let scan = NamespaceScan::of_all()?;
    if pins.exist()? {
        return Ok(scan);
    }
    if kernel::registered()?.contains(&name) {
        return Err(Error::Foreign { name, root: ROOT });
    }
    let loaded = code::loaded()?;
    let may_be_seen = loaded.is_none() && (scan.has(&name) || !scan.unseen.is_empty());
    if !may_be_seen && code::unpinned(&loaded, pins).is_empty() {
        return Err(Error::NotAttached { algorithm: pins.algorithm.name() });
    }
    Ok(scan)
}

/// What there is to detach.
#[derive(Clone, Debug)]
pub struct Detachable {
    /// Algorithms that [`detach`] has something to do for.
    pub algorithms: Vec<Algorithm>,
    /// Where it could not be looked, and why: there may be more.
    pub unseen: Vec<String>,
}

/// Algorithms that [`detach`] has something to do for.
///
/// # Errors
/// [`Error::Privilege`], or what looking fails with.
pub fn detachable() -> Result<Detachable, Error> {
    kernel::require_everywhere("detach")?;
    let (scan, loaded) = (NamespaceScan::of_all()?, code::loaded()?);
    let mut algorithms = Vec::new();
    for algorithm in algorithms::all() {
        let pins = Pins::new(algorithm);
        if pins.exist()?
            || scan.has(&algorithm.congestion_control())
            || !code::unpinned(&loaded, &pins).is_empty()
        {
            algorithms.push(algorithm);
        }
    }
    // Where no code is loaded, nothing has it.
    let unseen = if loaded.as_ref().is_some_and(BTreeMap::is_empty) { Vec::new() } else { scan.unseen };
    Ok(Detachable { algorithms, unseen })
}

/// Whether `onramp apply` attached an algorithm, wholly or half.
///
/// # Errors
/// [`Error::Io`] where this process may not look.
pub fn is_applied(algorithm: Algorithm) -> Result<bool, Error> {
    Pins::new(algorithm).are_applied()
}
