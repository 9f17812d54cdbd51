//! Objects opened and fitted to the kernel, up to the load.

use std::path::{Path, PathBuf};

use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::abi::{Base, padded};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::object::object;
use crate::pins::TELEMETRY_MAPS;
use crate::profiles::{self, CHOICES};
use crate::{constant, log, operations};

/// The error of a step on an object, with the end of libbpf's messages.
pub(crate) fn failed(action: &'static str, object: &str) -> impl Fn(libbpf_rs::Error) -> Error + use<> {
    let object = object.to_owned();
    move |source| Error::Bpf { action, object: object.clone(), source, log: log::take() }
}

fn open(name: &str) -> Result<OpenObject, Error> {
    log::capture();
    let bytes = object(name).unwrap_or_default();
    ObjectBuilder::default()
        .name(name)
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(failed("open", name))
}

/// What a shell does beside its algorithm; what it does not is left out of its code.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// It does nothing of what the algorithm wants.
    pub observing: bool,
    /// It compares flows with a control.
    pub guarding: bool,
}

/// Options of a map that is made without an object; `flags` are those of the kernel.
pub(crate) fn map_options(flags: u32) -> libbpf_sys::bpf_map_create_opts {
    libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: flags,
        ..Default::default()
    }
}

/// Loads the shell of an algorithm with a base and a guard, for a trial: it gets maps of its own. Registers nothing.
pub(crate) fn shell(name: &str, base: Base, kernel: &Kernel) -> Result<Object, Error> {
    fitted(name, base, Mode { observing: false, guarding: true }, kernel)?
        .load()
        .map_err(failed("load", name))
}

/// The same with the maps that all algorithms share, pinned in the directory `telemetry`.
pub(crate) fn sharing_shell(
    name: &str,
    base: Base,
    mode: Mode,
    kernel: &Kernel,
    telemetry: &Path,
) -> Result<Object, Error> {
    let mut opened = fitted(name, base, mode, kernel)?;
    for mut map in opened.maps_mut() {
        if let Some(shared) = TELEMETRY_MAPS.into_iter().find(|shared| map.name() == *shared) {
            map.reuse_pinned_map(telemetry.join(shared)).map_err(failed("share", shared))?;
        }
        if map.name() == CHOICES {
            map.reuse_pinned_map(profiles::path(CHOICES)).map_err(failed("share", CHOICES))?;
        }
    }
    opened.load().map_err(failed("load", name))
}

fn fitted(name: &str, base: Base, mode: Mode, kernel: &Kernel) -> Result<OpenObject, Error> {
    let mut opened = match base {
        Base::Bbr => open(&format!("{name}_bbr"))?,
        Base::Cubic | Base::Reno => open(name)?,
    };
    constant::set(&mut opened, ".rodata.base", &(base as u32).to_ne_bytes())
        .map_err(failed("prepare", name))?;
    for (section, on) in [(".rodata.observing", mode.observing), (".rodata.guarding", mode.guarding)] {
        constant::set(&mut opened, section, &u32::from(on).to_ne_bytes()).map_err(failed("prepare", name))?;
    }
    operations::fit(&mut opened, kernel).map_err(failed("prepare", name))?;
    Ok(opened)
}

/// Loads the iterator that moves sockets from one control to another; moves nothing.
pub(crate) fn rehome(from: &str, to: &str) -> Result<Object, Error> {
    let mut opened = open("rehome")?;
    constant::set(&mut opened, ".rodata.from", &padded::<16>(from)).map_err(failed("prepare", "rehome"))?;
    constant::set(&mut opened, ".rodata.to", &padded::<16>(to)).map_err(failed("prepare", "rehome"))?;
    opened.load().map_err(failed("load", "rehome"))
}

/// Loads the maps that all algorithms share.
pub(crate) fn telemetry() -> Result<Object, Error> {
    open("telemetry")?.load().map_err(failed("load", "telemetry"))
}

/// Loads the maps that the selection and all algorithms share.
pub(crate) fn profiles() -> Result<Object, Error> {
    open("profiles")?.load().map_err(failed("load", "profiles"))
}

/// Loads the observer of flows on any control; watches nothing yet.
pub(crate) fn shadow(under_way: bool, sampling: u32) -> Result<Object, Error> {
    let mut opened = open("shadow")?;
    for (section, value) in [(".rodata.under_way", u32::from(under_way)), (".rodata.sampling", sampling)] {
        constant::set(&mut opened, section, &value.to_ne_bytes()).map_err(failed("prepare", "shadow"))?;
    }
    opened.load().map_err(failed("load", "shadow"))
}

/// Loads the program that gives connections what rules say, with those of its maps that are pinned, by name, and others of
/// its own.
pub(crate) fn select(pinned: &[(&str, PathBuf)]) -> Result<Object, Error> {
    let mut opened = open("select")?;
    for mut map in opened.maps_mut() {
        if let Some((_, path)) = pinned.iter().find(|(name, _)| map.name() == *name) {
            map.reuse_pinned_map(path).map_err(failed("share", "select"))?;
        }
    }
    opened.load().map_err(failed("load", "select"))
}
