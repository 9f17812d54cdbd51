//! Attaching: load, register, pin.

use std::process;

use onramp_algorithm::{Algorithm, Parameters};
use onramp_net::namespace::Namespace;

use crate::attachment::basis::{self, Basis};
use crate::attachment::defaults;
use crate::attachment::defaults::{Defaults, Elsewhere};
use crate::attachment::options::AttachOptions;
use crate::attachment::shell::{Contents, Shell};
use crate::object::abi::{
    ABI_VERSION, Attachment, Base, PARAMETER_MAX, PROFILE_MAX, ParameterSlot, attachment_flag, padded,
    tables_crc32,
};
use crate::pins::{Lock, Pins, ROOT};
use crate::pins::{parameters, profiles};
use crate::system::action::Action;
use crate::system::clock;
use crate::system::error::Error;
use crate::system::everywhere::SYSCTL;
use crate::system::kernel::{self, BPFFS, Kernel};
use crate::telemetry::{self, Level};

/// What an attach did.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Id of this attachment.
    pub generation: u64,
    /// The base that runs, and what it changes.
    pub basis: Basis,
    /// What the namespace's default was, if it was replaced.
    pub replaced_default: Option<String>,
}

/// Whether attaching would work and what it would do; changes nothing.
///
/// # Errors
/// What [`attach`] would fail with, as far as it can be known before.
pub fn plan(options: &AttachOptions) -> Result<Vec<Action>, Error> {
    let algorithm = options.parameters.algorithm();
    let name = algorithm.congestion_control();
    let undo = format!("onramp detach {}", algorithm.name());
    let _lock = Lock::take_if_mounted()?;
    let base = check(options)?.1.base;
    let mut actions = Vec::new();
    if !kernel::has_bpffs() {
        actions.push(Action::new(format!("mount the BPF file system at {BPFFS}"), format!("umount {BPFFS}")));
    }
    actions.extend([
        Action::new(
            format!(
                "load {name} with base {}{}{}{}{}{}",
                base.name(),
                basis::after_exit_text(options.after_exit_over(base)),
                basis::start_text(options.start_over(base)),
                if options.observe { ", to observe only" } else { "" },
                options.guard.map_or_else(String::new, |guard| format!(
                    ", guarded ({guard}) by {}% of its flows, which run the base alone",
                    guard.control_share()
                )),
                match options.telemetry_max {
                    Level::Ack => String::new(),
                    level => format!(", telemetry of its flows limited to level {}", level.name()),
                }
            ),
            &undo,
        ),
        Action::new(
            format!("register {name} and pin it under {}", Pins::new(algorithm).directory.display()),
            &undo,
        ),
    ]);
    if options.default {
        let before = Namespace::current()?.sysctl_get(SYSCTL)?;
        actions.push(Action::new(
            format!("set {}={name} in this network namespace (now {before})", SYSCTL),
            &undo,
        ));
    }
    Ok(actions)
}

/// Loads, registers and pins an algorithm. It stays until detached, whatever becomes of this process.
///
/// # Errors
/// Nothing is left behind when it fails: not a pin, not a registration, not a changed default.
pub fn attach(options: &AttachOptions) -> Result<Attached, Error> {
    kernel::require_privilege("attach")?;
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    attach_locked(options)
}

/// What [`take_default`] would do; changes nothing.
///
/// # Errors
/// What [`take_default`] fails with, as far as it can be known before.
pub fn plan_default(algorithm: Algorithm) -> Result<Vec<Action>, Error> {
    kernel::require_privilege("attach")?;
    defaults::require_settable()?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    pins.attachment()?;
    let name = algorithm.congestion_control();
    let before = Namespace::current()?.sysctl_get(SYSCTL)?;
    if before == name {
        return Ok(Vec::new());
    }
    Ok(vec![Action::new(
        format!("set {}={name} in this network namespace (now {before})", SYSCTL),
        format!("sysctl -w {}={before}", SYSCTL),
    )])
}

/// Makes an algorithm that is attached the default of the current network namespace, as [`AttachOptions::default`] does
/// when it is attached; detaching restores the previous default. Returns what that was, `None` if it was this already.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::Interrupted`], [`Error::OtherBuild`], [`Error::Privilege`], or a default that cannot be
/// set.
pub fn take_default(algorithm: Algorithm) -> Result<Option<String>, Error> {
    kernel::require_privilege("attach")?;
    defaults::require_settable()?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    pins.attachment()?;
    defaults::take(&pins)
}

/// Makes an algorithm that is attached the default of other network namespaces, too, as [`take_default`] does for the
/// current one. Returns those that had another default, with what that was.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NotAttached`], a file that is no network namespace, which changes nothing, or a default
/// that cannot be set.
pub fn take_default_elsewhere(algorithm: Algorithm, which: &Elsewhere) -> Result<Defaults, Error> {
    kernel::require_everywhere("attach --default of other network namespaces")?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    pins.attachment()?;
    defaults::take_elsewhere(&pins, which)
}

/// What [`restore_default`] would make the default of the current network namespace; `None`: its default is another.
///
/// # Errors
/// What [`restore_default`] fails with, as far as it can be known before.
pub fn previous_default(algorithm: Algorithm) -> Result<Option<String>, Error> {
    kernel::require_privilege("attach")?;
    defaults::require_settable()?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    defaults::previous(&pins)
}

/// Restores the current network namespace's previous default if an algorithm is its default, which stays attached.
/// Returns what the default is now, `None` if it was another.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::Interrupted`], [`Error::Privilege`], or a default that cannot be set.
pub fn restore_default(algorithm: Algorithm) -> Result<Option<String>, Error> {
    kernel::require_privilege("attach")?;
    defaults::require_settable()?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    defaults::restore_here(&pins)
}

/// [`attach`] for a caller that holds the lock.
pub(crate) fn attach_locked(options: &AttachOptions) -> Result<Attached, Error> {
    let (kernel, basis) = check(options)?;
    let algorithm = options.parameters.algorithm();
    let pins = Pins::new(algorithm);
    let undo = Undo(Some(&pins));
    let generation = register(options, &kernel, basis.base, &pins)?;
    tracing::debug!(
        "registered {}, pinned under {}",
        algorithm.congestion_control(),
        pins.directory.display()
    );
    let replaced_default = if options.default { defaults::take(&pins)? } else { None };
    undo.keep();
    Ok(Attached { algorithm, generation, basis, replaced_default })
}

/// Removes the pins unless asked to keep them.
struct Undo<'a>(Option<&'a Pins>);

impl Undo<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(pins) = self.0
            && let Err(error) = crate::attachment::detach::unregister(pins)
        {
            tracing::error!("{error}");
        }
    }
}

/// The kernel and the base that will run, if attaching can work.
fn check(options: &AttachOptions) -> Result<(Kernel, Basis), Error> {
    kernel::require_privilege("attach")?;
    let algorithm = options.parameters.algorithm();
    let kernel = Kernel::read()?;
    kernel.require_struct_ops()?;
    let name = algorithm.congestion_control();
    let pins = Pins::new(algorithm);
    let registered = kernel::registered()?.contains(&name);
    if pins.exist()? {
        if !(registered && pins.are_whole()?) {
            return Err(pins.interrupted());
        }
        return Err(Error::AlreadyAttached {
            algorithm: algorithm.name(),
            generation: pins.attachment()?.generation,
        });
    }
    if registered {
        return Err(Error::Foreign { name, root: ROOT });
    }
    let basis = basis::choose(&kernel, options)?;
    if options.default {
        defaults::require_settable()?;
    }
    Ok((kernel, basis))
}

fn register(options: &AttachOptions, kernel: &Kernel, base: Base, pins: &Pins) -> Result<u64, Error> {
    let telemetry = telemetry::Shared::open_or_create()?;
    profiles::ensure()?;
    let generation = clock::now_us();
    let contents = Contents {
        attachment: describe(options, base, generation),
        slots: vec![parameter_slot(&options.parameters, options.telemetry_max); PROFILE_MAX],
        applied: options.applied,
        guard: options.guard.map(|guard| guard.begin(generation)),
    };
    Shell::load(&contents, kernel, telemetry.directory(), pins)?.register(kernel)?;
    Ok(generation)
}

fn parameter_slot(parameters: &Parameters, telemetry_max: Level) -> ParameterSlot {
    ParameterSlot {
        active: 0,
        generation: 0,
        telemetry_max: telemetry_max as u32,
        unused: 0,
        sets: [parameters::words(parameters), [0; PARAMETER_MAX]],
    }
}

fn describe(options: &AttachOptions, base: Base, generation: u64) -> Attachment {
    let mut profile_names = [[0; 32]; PROFILE_MAX];
    profile_names[0] = padded(&options.profile);
    let observes = if options.observe { attachment_flag::OBSERVES } else { 0 };
    let guarded = if options.guard.is_some() { attachment_flag::GUARDED } else { 0 };
    let mut attachment = Attachment {
        abi_version: ABI_VERSION,
        base: base as u32,
        generation,
        attached_ns: clock::boot_ns(),
        deadline_ns: options.expires_in.map_or(0, clock::deadline_ns),
        owner_pid: if options.scoped { process::id() } else { 0 },
        profiles: 1,
        flags: observes | guarded,
        tables_crc32: tables_crc32(options.parameters.algorithm()),
        version: padded(env!("CARGO_PKG_VERSION")),
        profile_names,
    };
    attachment.set_after_exit(options.after_exit_over(base));
    attachment.set_start(options.start_over(base));
    attachment
}
