//! Upgrading: this build's code takes over what another build, or this one, has attached, with its parameters, defaults,
//! time limit and flows.
//!
//! The newer code is loaded, filled and pinned next to the old. Then the registration moves: a link is given the
//! newer code, and the two sets of pins change places. What comes after that only tidies: defaults are set again and
//! sockets moved, because both keep the code that they had, and the old pins are removed. An upgrade that is cut off
//! leaves the second set of pins, and the next one begins with what is registered.

use std::fmt;
use std::fs;
use std::thread;
use std::time::Duration;

use onramp_algorithm::{AfterExitOptions, Algorithm, Named, Options, StartPolicies};

use crate::attachment::basis;
use crate::attachment::guard::{self, GuardOptions};
use crate::attachment::holders::{self, Held};
use crate::attachment::migrate::Users;
use crate::attachment::namespaces::{self, NamespaceScan};
use crate::attachment::options::usual;
use crate::attachment::shell::{self, Contents, Shell};
use crate::object::abi::{
    ABI_VERSION, Attachment, Base, PROFILE_MAX, ParameterSlot, padded, tables_crc32, text,
};
use crate::pins::code;
use crate::pins::parameters::{self, ParameterSet};
use crate::pins::profiles;
use crate::pins::tables;
use crate::pins::{LINK, Lock, Pins};
use crate::system::action::Action;
use crate::system::clock;
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};
use crate::telemetry::{NewMaps, Shared, listeners};

/// How often the newer code is registered where that cannot be undone, and the time between.
const TRIES: usize = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// Between two looks whether a name is free.
const LOOK: Duration = Duration::from_micros(20);

/// What else an upgrade changes; `None`: as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct BaseChange {
    /// Another base.
    pub base: Option<Base>,
    /// Other options of it.
    pub after_exit: Option<AfterExitOptions>,
    /// Another start of its connections.
    pub start: Option<StartPolicies>,
}

/// What an upgrade would do.
#[derive(Clone, Debug)]
pub struct UpgradePlan {
    /// Its steps.
    pub actions: Vec<Action>,
    /// The base that it will have.
    pub base: Base,
    /// The base's options then.
    pub after_exit: AfterExitOptions,
    /// What its connections do at their start then.
    pub start: StartPolicies,
    /// When the base will run alone, then as now: wall clock, microseconds since 1970; `None`: never.
    pub expires_at_us: Option<u64>,
    /// It runs and records, and does nothing, then as now.
    pub observe: bool,
    /// What its guard is to do, then as now.
    pub guard: Option<GuardOptions>,
    /// The process of the scoped run that attached it.
    pub owner_pid: Option<u32>,
    /// The parameter sets that it will have.
    pub parameter_sets: Vec<ParameterSet>,
}

/// What undoes an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeUndo {
    /// A command.
    pub command: String,
    /// Version of the onramp that has to run it; `None`: this one.
    pub by: Option<String>,
}

impl fmt::Display for UpgradeUndo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            None => formatter.write_str(&self.command),
            Some(version) => write!(formatter, "`{}` by the previous build ({version})", self.command),
        }
    }
}

/// What an upgrade did.
#[derive(Clone, Debug)]
pub struct Upgraded {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Id of the attachment now.
    pub generation: u64,
    /// Its base.
    pub base: Base,
    /// The base's options.
    pub after_exit: AfterExitOptions,
    /// What its connections do at their start.
    pub start: StartPolicies,
    /// Version of the onramp that had attached it.
    pub from_version: String,
    /// What undoes it.
    pub undo: UpgradeUndo,
    /// Parameters that it did not have, which have their defaults now.
    pub new_parameters: Vec<&'static str>,
    /// Namespaces whose default it is, and which were switched to the newer code.
    pub defaults: usize,
    /// Open sockets that went over to the newer code.
    pub moved: usize,
    /// Open sockets that stay on the old code.
    pub stragglers: Vec<Users>,
    /// What holds old code.
    pub held: Held,
    /// Where it could not be looked, and why: a namespace there may still have the old code as default, or sockets on it.
    pub unseen: Vec<String>,
}

/// Whether an upgrade would work and what it would do; changes nothing.
///
/// # Errors
/// What [`upgrade`] fails with, as far as it can be known before.
pub fn plan_upgrade(algorithm: Algorithm, change: BaseChange) -> Result<UpgradePlan, Error> {
    kernel::require_everywhere("upgrade")?;
    let _lock = Lock::take()?;
    let kernel = Kernel::read()?;
    let pins = Pins::new(algorithm);
    let old = OldAttachment::new(&pins, change, &kernel)?;
    old.require_understanding_listeners(algorithm)?;
    let name = algorithm.congestion_control();
    let undo = old.undo.to_string();
    let scan = NamespaceScan::of_all()?;
    let mut actions = Vec::new();
    if pins.upgrade_cut_off()? {
        actions.push(Action::new(format!("finish or clear an upgrade of {name} that was cut off"), ""));
    }
    let base = Base::from_number(old.contents.attachment.base);
    actions.push(Action::new(
        format!(
            "load {name} with base {}{}{} and the parameters that it has now{}",
            base.name(),
            basis::after_exit_text(old.contents.attachment.after_exit()),
            basis::start_text(old.contents.attachment.start()),
            old.new_text()
        ),
        "",
    ));
    actions.push(Action::new(
        if kernel.has_link() {
            format!("have the link of {name} register the newer code")
        } else {
            format!("unregister {name} and register the newer code, between which for a moment there is none")
        },
        &undo,
    ));
    for namespace in scan.defaults.get(&name).into_iter().flatten() {
        actions.push(Action::new(
            format!("set the default of network namespace {namespace} to {name} again"),
            &undo,
        ));
    }
    for Users { namespace, sockets } in scan.users.get(&name).into_iter().flatten() {
        actions.push(Action::new(
            format!(
                "move {sockets} sockets of network namespace {namespace} to the newer code, except listening ones"
            ),
            &undo,
        ));
    }
    let Contents { attachment, slots, guard, .. } = &old.contents;
    Ok(UpgradePlan {
        actions,
        base,
        after_exit: attachment.after_exit(),
        start: attachment.start(),
        expires_at_us: clock::wall_clock_us(attachment.deadline_ns),
        observe: attachment.observes(),
        guard: guard.as_ref().map(GuardOptions::from_abi),
        owner_pid: Some(attachment.owner_pid).filter(|pid| *pid != 0),
        parameter_sets: parameters::sets_in(algorithm, attachment, slots),
    })
}

/// Has this build's code take over what is attached.
///
/// New connections get the old code or the newer; before Linux 6.4 there is a moment without the name. Open sockets go
/// over; a slow start in progress ends where the window is then, or starts anew if it has hardly begun.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NotAttached`], [`Error::Interrupted`], [`Error::NotTakenOver`], [`Error::Listening`], a
/// base that cannot be, or what the kernel refuses. The old attachment is whole then. What could not be seen or moved
/// afterwards is not an error but reported. If the old pins cannot be removed, or before Linux 6.4 the newer code
/// cannot be registered, `status` says so, and upgrading again continues.
pub fn upgrade(algorithm: Algorithm, change: BaseChange) -> Result<Upgraded, Error> {
    kernel::require_everywhere("upgrade")?;
    let lock = Lock::take()?;
    let kernel = Kernel::read()?;
    let pins = Pins::new(algorithm);
    // First, so that nothing is settled where nothing can be done.
    OldAttachment::new(&pins, change, &kernel)?;
    shell::settle(&pins)?;
    let old = OldAttachment::new(&pins, change, &kernel)?;
    old.require_understanding_listeners(algorithm)?;
    replace(&pins, &old, &kernel)?;
    let name = algorithm.congestion_control();
    tracing::debug!("{name} has newer code");
    let renewed = namespaces::renew(&name, code::pinned(&pins))
        .and_then(|renewed| shell::settle(&pins).map(|()| renewed))
        .map_err(|error| Error::DoneInPart {
            verb: "upgrade",
            algorithm: algorithm.name(),
            done: "the newer code is registered".into(),
            source: Box::new(error),
        })?;
    drop(lock);
    Ok(Upgraded {
        algorithm,
        generation: old.contents.attachment.generation,
        base: Base::from_number(old.contents.attachment.base),
        after_exit: old.contents.attachment.after_exit(),
        start: old.contents.attachment.start(),
        from_version: old.version(),
        undo: old.undo,
        new_parameters: old.new_parameters,
        defaults: renewed.defaults,
        moved: renewed.moved,
        held: holders::held(&[algorithm])?.pop().unwrap_or_default(),
        stragglers: renewed.stragglers,
        unseen: renewed.unseen,
    })
}

/// What is attached, as it is to be attached again.
struct OldAttachment {
    contents: Contents,
    new_parameters: Vec<&'static str>,
    version: [u8; 16],
    undo: UpgradeUndo,
    /// Whether the consumers of its flows can read events of this build, too.
    same_build: bool,
}

/// What was not asked for over the base that it `has` is not over another either.
fn over<T: Named>(
    algorithm: Algorithm,
    options: Options<T>,
    has: Base,
    base: Base,
    observes: bool,
) -> Options<T> {
    let usual = |base| usual(algorithm, base, observes);
    if options == usual(has) { usual(base) } else { options }
}

impl OldAttachment {
    fn new(pins: &Pins, change: BaseChange, kernel: &Kernel) -> Result<Self, Error> {
        let algorithm = pins.algorithm;
        let cannot = |why: String| Error::NotTakenOver { algorithm: algorithm.name(), why };
        if !pins.exist()? {
            return Err(Error::NotAttached { algorithm: algorithm.name() });
        }
        let registered = kernel::registered()?.contains(&algorithm.congestion_control());
        if !pins.are_complete()? || kernel.has_link() && !registered {
            return Err(pins.interrupted());
        }
        let bytes = pins.attachment_bytes()?;
        let mut attachment = Attachment::of_size(&bytes)
            .ok_or_else(|| cannot("another onramp has attached it, whose maps are of another form".into()))?;
        if attachment.abi_version == 0 {
            return Err(pins.interrupted());
        }
        let has = Base::known(attachment.base).ok_or_else(|| {
            cannot("another onramp has attached it with a base that this one has not".into())
        })?;
        let same_build =
            attachment.abi_version == ABI_VERSION && attachment.tables_crc32 == tables_crc32(algorithm);
        let (slots, new_parameters) = slots(pins, &attachment).map_err(&cannot)?;
        let base = change.base.unwrap_or(has);
        let observes = attachment.observes();
        let after_exit = change
            .after_exit
            .unwrap_or_else(|| over(algorithm, attachment.after_exit(), has, base, observes));
        let start = change.start.unwrap_or_else(|| over(algorithm, attachment.start(), has, base, observes));
        basis::require(kernel, algorithm, base)?;
        basis::require_options(base, after_exit, start, attachment.observes())?;
        let version = attachment.version;
        // What going back to its base would not bring back by itself.
        let (had, started) = (attachment.after_exit(), attachment.start());
        let options: String = [
            (base != has).then(|| format!(" --base {}", has.name())),
            (had != over(algorithm, after_exit, base, has, observes)).then(|| format!(" --after-exit {had}")),
            (started != over(algorithm, start, base, has, observes)).then(|| format!(" --start {started}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let by_this = !options.is_empty() && text(&version) == env!("CARGO_PKG_VERSION");
        let undo = UpgradeUndo {
            command: format!("onramp upgrade {}{options}", algorithm.name()),
            by: (!by_this).then(|| text(&version)),
        };
        let now = clock::now_us();
        attachment.abi_version = ABI_VERSION;
        attachment.base = base as u32;
        attachment.set_after_exit(after_exit);
        attachment.set_start(start);
        attachment.generation = now;
        attachment.attached_ns = clock::boot_ns();
        attachment.tables_crc32 = tables_crc32(algorithm);
        attachment.version = padded(env!("CARGO_PKG_VERSION"));
        let guard = guard::read(pins, &attachment)?.map(|old| guard::taken_over(old, now));
        let contents = Contents { attachment, slots, applied: pins.are_applied()?, guard };
        Ok(Self { contents, new_parameters, version, undo, same_build })
    }

    fn version(&self) -> String {
        text(&self.version)
    }

    fn new_text(&self) -> String {
        match self.new_parameters.join(", ") {
            none if none.is_empty() => none,
            new => format!("; new ones have their defaults ({new})"),
        }
    }

    /// Fails where a consumer reads events of these flows, and would misread them afterwards.
    fn require_understanding_listeners(&self, algorithm: Algorithm) -> Result<(), Error> {
        let listeners = match Shared::open() {
            Err(Error::OtherTelemetry { found, .. }) => NewMaps::listeners(found)?,
            Ok(Some(shared)) if !self.same_build => {
                Some(listeners(&shared)).filter(|listeners| !listeners.is_empty())
            }
            other => other.map(|_| None)?,
        };
        match listeners {
            Some(listeners) => Err(Error::Listening { algorithm: algorithm.name(), listeners }),
            None => Ok(()),
        }
    }
}

/// The parameters of an attachment as this build has them, and those that it did not have; else why they cannot be known.
fn slots(pins: &Pins, attachment: &Attachment) -> Result<(Vec<ParameterSlot>, Vec<&'static str>), String> {
    let algorithm = pins.algorithm;
    let read = pins.parameter_slots().and_then(|slots| {
        let slot = |index| slots.get(&index, 0).map_err(pins.failed("read", "params"));
        (0..PROFILE_MAX as u32).map(slot).collect::<Result<Vec<_>, _>>()
    });
    let mut slots: Vec<ParameterSlot> = read.map_err(|error| error.to_string())?;
    if attachment.tables_crc32 == tables_crc32(algorithm) {
        return Ok((slots, Vec::new()));
    }
    let old = tables::read(pins, attachment.tables_crc32).ok_or_else(|| {
        "another onramp has attached it, and has not left what its parameters mean".to_owned()
    })?;
    for slot in &mut slots {
        let words = slot.sets[slot.active as usize & 1];
        let parameters = tables::translate(algorithm, &old, &words)?;
        slot.active = 0;
        slot.sets = [parameters::words(&parameters); 2];
    }
    Ok((slots, tables::unknown_to(&old, algorithm)))
}

/// Loads the newer code and has it registered in place of the old, whose pins are the second set then.
fn replace(pins: &Pins, old: &OldAttachment, kernel: &Kernel) -> Result<(), Error> {
    let other = Pins::other_of(pins.algorithm);
    let mut new_maps = None;
    let telemetry = match Shared::open_or_create() {
        Err(Error::OtherTelemetry { .. }) => new_maps.insert(NewMaps::make()?).directory(),
        shared => shared?.directory().to_owned(),
    };
    profiles::ensure()?;
    let staged = Staged(Some(&other));
    let mut shell = Shell::load(&old.contents, kernel, &telemetry, &other)?;
    let (from, mut to) = (pins.defaults()?, other.defaults()?);
    for record in from.iter() {
        let (cookie, before) = record.map_err(pins.failed("read", "defaults"))?;
        to.insert(cookie, before, 0).map_err(other.failed("write", "defaults"))?;
    }
    if let Some(new_maps) = &mut new_maps {
        new_maps.put_in_place()?;
    }
    let taken = if kernel.has_link() {
        take_over(pins, &other, &mut shell)
    } else {
        succeed(pins, &mut shell, kernel).and_then(|()| pins.exchange(&other))
    };
    // Else the old code has gone, and what was begun can only be finished.
    if taken.is_ok() || !shell::is_registered(pins).unwrap_or(false) {
        staged.keep();
        if let Some(new_maps) = new_maps {
            new_maps.keep();
        }
    }
    taken
}

/// By the link, which never is without code.
fn take_over(pins: &Pins, other: &Pins, shell: &mut Shell<'_>) -> Result<(), Error> {
    let (link, its_second) = (pins.path(LINK), other.path(LINK));
    fs::hard_link(&link, &its_second).map_err(Error::io("pin", &its_second))?;
    shell.take_over(&link)?;
    pins.exchange(other).or_else(|error| {
        shell::restore(&link, pins)?;
        Err(error)
    })
}

/// Where a registration has no link. The name is free while the old one is being ended, which takes a grace period
/// more.
fn succeed(pins: &Pins, shell: &mut Shell<'_>, kernel: &Kernel) -> Result<(), Error> {
    let name = pins.algorithm.congestion_control();
    let registered = shell::is_registered(pins)?;
    thread::scope(|scope| {
        let ending = registered.then(|| scope.spawn(|| shell::unregister(pins)));
        while ending.as_ref().is_some_and(|ending| !ending.is_finished())
            && kernel::registered()?.contains(&name)
        {
            thread::sleep(LOOK);
        }
        let newer = if kernel::registered()?.contains(&name) {
            Err(pins.interrupted())
        } else {
            (1..TRIES).fold(shell.register(kernel), |answer, _| {
                answer.or_else(|_| {
                    thread::sleep(BETWEEN_TRIES);
                    shell.register(kernel)
                })
            })
        };
        // A thread that panicked has said so.
        ending.map_or(Ok(()), |ending| ending.join().unwrap_or(Ok(())))?;
        newer
    })
}

/// Removes the second set of pins unless it is to stay.
struct Staged<'a>(Option<&'a Pins>);

impl Staged<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.map(Pins::remove) {
            tracing::error!("{error}");
        }
    }
}
