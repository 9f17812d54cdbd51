//! What is attached, from the kernel's point of view.

use std::time::Duration;

use onramp_algorithm::{AfterExitOptions, Algorithm, StartPolicies};

use crate::attachment::defaults::Records;
use crate::attachment::guard::{self, GuardState};
use crate::attachment::holders::{self, Held};
use crate::attachment::migrate::{Iterators, Users};
use crate::attachment::namespaces::NamespaceScan;
use crate::attachment::paths::{LearnedPaths, learned_paths};
use crate::host;
use crate::object::abi::{Attachment, Base, Counters, text};
use crate::object::algorithms;
use crate::pins::code;
use crate::pins::parameters::{self, ParameterSet};
use crate::pins::profiles;
use crate::pins::{LOCK_TIMEOUT, Lock, Pins, WaitWhile};
use crate::report::flows;
use crate::run;
use crate::select::{self, RulesSummary};
use crate::system::clock;
use crate::system::error::Error;
use crate::system::kernel;
use crate::telemetry::{self, Consumer};

/// How an algorithm stands in the kernel.
#[derive(Clone, Debug)]
pub enum State {
    /// Registered and pinned.
    Attached(Box<AttachedState>),
    /// Registered and pinned by another build of onramp, whose maps this one would misread: what differs.
    OtherBuild(String),
    /// Registered and pinned, but a pin cannot be read: why.
    Unreadable(String),
    /// Pinned, but not registered or not wholly: an attach or detach was cut off, or pins were removed by other means.
    Interrupted,
    /// Detached, but namespaces still have it as default: what they had is known.
    DefaultKept,
    /// An upgrade was cut off: it is registered with the old code or the newer.
    UpgradeCutOff,
    /// Registered, not pinned by us.
    Foreign,
    /// Not registered any more, but sockets still run its code, or a namespace still has it as default, or its code is
    /// loaded for what no list shows.
    Lingering,
}

/// What is known of an attached algorithm.
#[derive(Clone, Debug)]
pub struct AttachedState {
    /// Its base.
    pub base: Base,
    /// The base's options.
    pub after_exit: AfterExitOptions,
    /// What its connections do at their start with what is remembered of their path.
    pub start: StartPolicies,
    /// It runs and records, and does nothing.
    pub observe: bool,
    /// What its guard has seen, if it has one.
    pub guard: Option<GuardState>,
    /// Id of the attachment.
    pub generation: u64,
    /// When it was attached or upgraded: wall clock as it is set now, microseconds since 1970.
    pub attached_at_us: u64,
    /// How long ago that was, whatever the wall clock has done since.
    pub age: Duration,
    /// Defaults of network namespaces that it replaced and that are not its base, by name.
    pub other_defaults: Vec<String>,
    /// When the base runs alone: wall clock, microseconds since 1970, as it is set now; `None`: never.
    pub expires_at_us: Option<u64>,
    /// What is left until then; 0: that is over.
    pub expires_in: Option<Duration>,
    /// How long it has been over; 0: it is not.
    pub overdue: Duration,
    /// `onramp apply` attached it.
    pub applied: bool,
    /// The process of the scoped run that attached it, and whether a run still needs it.
    pub owner: Option<(u32, bool)>,
    /// Version of onramp that attached it.
    pub version: String,
    /// Its parameter sets.
    pub parameter_sets: Vec<ParameterSet>,
    /// What it has seen of flows that have ended.
    pub counters: Counters,
}

/// One algorithm that is in the kernel, or has left something there.
#[derive(Clone, Debug)]
pub struct Status {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How it stands.
    pub state: State,
    /// Network namespaces whose default it is.
    pub default_in: Vec<String>,
    /// Network namespaces whose default it is not, each with the name of its control; none if it is nowhere's default.
    pub default_not_in: Vec<(String, String)>,
    /// Open sockets on its code, by namespace; also on that of earlier attachments.
    pub users: Vec<Users>,
    /// What holds code of earlier attachments.
    pub held: Held,
}

/// What there is in the kernel.
#[derive(Debug)]
pub struct Host {
    /// Algorithms that are there or have left something.
    pub algorithms: Vec<Status>,
    /// The selection, if there is one.
    pub selection: Option<RulesSummary>,
    /// Cgroups of scoped runs that have died.
    pub leftovers: Vec<run::Leftover>,
    /// Settings of the host that were changed for a path, in all network namespaces.
    pub settings: Vec<host::Changed>,
    /// What connections have learned of paths; `None`: nothing remembers any.
    pub paths: Option<LearnedPaths>,
    /// Consumers of telemetry, or why they cannot be listed.
    pub consumers: Result<Vec<Consumer>, Error>,
    /// What else cannot be read, and why.
    pub unreadable: Vec<String>,
    /// Where it could not be looked, and why: there may be more.
    pub unseen: Vec<String>,
}

/// What pins alone say.
#[derive(Debug)]
pub struct Pinned {
    /// Algorithms that are registered or pinned.
    pub algorithms: Vec<(Algorithm, State)>,
    /// Consumers of telemetry, or why they cannot be listed.
    pub consumers: Result<Vec<Consumer>, Error>,
}

/// The consumers of telemetry. Clears what consumers have left that died together with their lease processes.
///
/// # Errors
/// [`Error::Privilege`], [`Error::OtherTelemetry`], or maps that cannot be read.
pub fn consumers() -> Result<Vec<Consumer>, Error> {
    kernel::require_privilege("status")?;
    let _lock = Lock::take()?;
    consumers_locked()
}

/// [`consumers`] for a caller that holds the lock. Slots that cannot be cleared now are cleared by the next command.
fn consumers_locked() -> Result<Vec<Consumer>, Error> {
    for tidied in [profiles::tidy(), telemetry::tidy()] {
        if let Err(error) = tidied {
            tracing::debug!("{error}");
        }
    }
    telemetry::consumers()
}

/// [`status`] by pins alone, without a look into other processes and namespaces. Waits for other commands as long as the
/// caller is patient.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NotMounted`], [`Error::ReadOnly`], [`Error::Locked`], [`Error::Untrusted`].
pub fn pinned_status(wait: WaitWhile<'_>) -> Result<Pinned, Error> {
    kernel::require_privilege("status")?;
    kernel::require_bpffs()?;
    let _lock = Lock::take_while(wait)?;
    let registered = kernel::registered()?;
    let state = |algorithm: Algorithm| {
        let registered = registered.contains(&algorithm.congestion_control());
        Ok(state_of(&Pins::new(algorithm), registered)?.map(|state| (algorithm, state)))
    };
    Ok(Pinned {
        algorithms: algorithms::all()
            .filter_map(|algorithm| state(algorithm).transpose())
            .collect::<Result<_, Error>>()?,
        consumers: consumers_locked().map_err(kernel::explained),
    })
}

/// All that is in the kernel.
///
/// # Errors
/// [`Error::Privilege`], or what looking fails with.
pub fn status() -> Result<Host, Error> {
    kernel::require_privilege("status")?;
    // Else a command in progress would be seen half done.
    let _lock = Lock::look_while(&|waited| waited < LOCK_TIMEOUT)?;
    let registered = kernel::registered()?;
    let mut scan = NamespaceScan::of_all()?;
    let loaded = code::loaded()?;
    let (mut algorithms, mut of_processes, mut iterators) = (Vec::new(), None, Iterators::default());
    let mut unreadable = Vec::new();
    let mut note = |what: &str, error| unreadable.push(format!("{what}: {}", kernel::reason(error)));
    for algorithm in algorithms::all() {
        let name = algorithm.congestion_control();
        let pins = Pins::new(algorithm);
        let has = scan.has(&name) || !code::unpinned(&loaded, &pins).is_empty();
        let users = scan.users.remove(&name).unwrap_or_default();
        let default_in = scan.defaults.get(&name).cloned().unwrap_or_default();
        let registered = registered.contains(&name);
        let state = match state_of(&pins, registered)? {
            Some(State::Interrupted)
                if !registered && !default_in.is_empty() && pins.are_records_only()? =>
            {
                State::DefaultKept
            }
            Some(state) => state,
            None if has => State::Lingering,
            None => continue,
        };
        // What is registered without our pins is its own code.
        let held = match state {
            State::Foreign => Held::default(),
            _ => holders::look(&pins, &loaded, &mut of_processes, &mut iterators).unwrap_or_else(|error| {
                note(&format!("sockets on earlier code of {}", algorithm.name()), error);
                holders::unseen(&pins, &loaded)
            }),
        };
        let default_not_in = if default_in.is_empty() { Vec::new() } else { scan.not_of(&name) };
        algorithms.push(Status { algorithm, state, default_in, default_not_in, users, held });
    }
    Ok(Host {
        algorithms,
        selection: select::rules_summary().unwrap_or_else(|error| {
            note("rules of onramp select", error);
            None
        }),
        leftovers: run::leftovers().unwrap_or_else(|error| {
            note("cgroups of dead runs", error);
            Vec::new()
        }),
        settings: host::changed_locked().unwrap_or_else(|error| {
            note("settings of onramp doctor --fix", error);
            Vec::new()
        }),
        paths: learned_paths().unwrap_or_else(|error| {
            note("paths", error);
            None
        }),
        consumers: consumers_locked().map_err(kernel::explained),
        unreadable,
        unseen: scan.unseen,
    })
}

/// How an algorithm stands by its pins and its registration; `None`: it has neither.
fn state_of(pins: &Pins, registered: bool) -> Result<Option<State>, Error> {
    Ok(Some(match (pins.exist()?, registered) {
        (true, true) if pins.are_whole()? => match describe(pins) {
            Ok(state) => State::Attached(Box::new(state)),
            Err(Error::OtherBuild { difference, .. }) => State::OtherBuild(difference),
            Err(Error::Interrupted { .. }) => State::Interrupted,
            Err(error) => State::Unreadable(kernel::reason(error)),
        },
        (true, _) if pins.upgrade_cut_off()? => State::UpgradeCutOff,
        (true, _) => State::Interrupted,
        (false, true) => State::Foreign,
        (false, false) => return Ok(None),
    }))
}

/// How an algorithm is attached, by its pins alone: who uses it is not looked for, which takes a look into every process.
/// `None`: it is not attached, or half, or by another build, whose maps this one would misread.
///
/// # Errors
/// [`Error::Privilege`], or maps that cannot be read.
pub fn attached_state(algorithm: Algorithm) -> Result<Option<AttachedState>, Error> {
    kernel::require_privilege("status")?;
    let _lock = Lock::take()?;
    let pins = Pins::new(algorithm);
    if !pins.are_attached()? {
        return Ok(None);
    }
    match describe(&pins) {
        Err(Error::OtherBuild { .. } | Error::Interrupted { .. }) => Ok(None),
        described => described.map(Some),
    }
}

fn describe(pins: &Pins) -> Result<AttachedState, Error> {
    let attachment: Attachment = pins.attachment()?;
    flows::require_storages(pins)?;
    let owner = match attachment.owner_pid {
        0 => None,
        pid => Some((pid, run::is_needed(pins.algorithm)?)),
    };
    Ok(AttachedState {
        base: Base::from_number(attachment.base),
        after_exit: attachment.after_exit(),
        start: attachment.start(),
        observe: attachment.observes(),
        guard: guard::state(pins, &attachment)?,
        generation: attachment.generation,
        attached_at_us: clock::wall_clock_us(attachment.attached_ns).unwrap_or_default(),
        age: clock::since(attachment.attached_ns),
        other_defaults: Records::new(pins).other_than(Base::from_number(attachment.base)),
        expires_at_us: clock::wall_clock_us(attachment.deadline_ns),
        expires_in: clock::left(attachment.deadline_ns),
        overdue: clock::overdue(attachment.deadline_ns),
        applied: pins.are_applied()?,
        owner,
        version: text(&attachment.version),
        parameter_sets: parameters::sets(pins)?,
        counters: pins.counters()?,
    })
}
