//! Objects opened and fitted to the kernel, up to the load.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use libbpf_rs::{Object, ObjectBuilder, OpenObject};
use nix::sys::memfd::{MFdFlags, memfd_create};
use onramp_algorithm::{AfterExit, AfterExitOptions, Algorithm, StartPolicies, StartPolicy};

use crate::object::abi::{Base, padded};
use crate::object::embedded::object;
use crate::object::{constant, log, operations};
use crate::system::clock;
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};

/// The error of a step on an object, with the end of libbpf's messages.
pub(crate) fn failed(action: &'static str, object: &str) -> impl Fn(libbpf_rs::Error) -> Error + use<> {
    let object = object.to_owned();
    move |source| Error::Bpf { action, object: object.clone(), source, log: log::take() }
}

/// An object that is open, with the kernel's types that it is fitted to when it is loaded.
struct Fitted {
    object: OpenObject,
    /// Read by its path.
    _types: File,
}

impl Fitted {
    fn open(name: &str, bytes: &[u8], kernel: &Kernel) -> Result<Self, Error> {
        let in_memory = || Error::io("write", "the types of an object in memory");
        let types = memfd_create("onramp-types", MFdFlags::MFD_CLOEXEC);
        let mut types = File::from(types.map_err(|errno| in_memory()(errno.into()))?);
        let object = open(name, bytes, Some(&types))?;
        // Which types it asks for is known when it is open; libbpf reads them when it loads it.
        let asked = operations::names(&object).map_err(failed("prepare", name))?;
        let excerpt = kernel.types().excerpt(asked.iter().map(String::as_str));
        types.write_all(&excerpt).map_err(in_memory())?;
        Ok(Self { object, _types: types })
    }

    fn load(self, name: &str) -> Result<Object, Error> {
        self.object
            .load()
            .map_err(|error| kernel::locked_down().unwrap_or_else(|| failed("load", name)(error)))
    }
}

/// Opens an object. `types`: what it will be fitted to; `None`: it reads nothing of the kernel's.
fn open(name: &str, bytes: &[u8], types: Option<&File>) -> Result<OpenObject, Error> {
    log::capture();
    let mut builder = ObjectBuilder::default();
    let named = match types {
        Some(types) => builder.btf_custom_path(format!("/proc/self/fd/{}", types.as_raw_fd())),
        None => Ok(&mut builder),
    };
    named.and_then(|builder| builder.name(name)?.open_memory(bytes)).map_err(failed("open", name))
}

/// What a shell does in addition to its algorithm; what it does not is left out of its code.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// It does nothing of what the algorithm wants.
    pub observing: bool,
    /// It compares flows with a control.
    pub guarding: bool,
    /// Options of the base.
    pub after_exit: AfterExitOptions,
    /// What connections do at their start.
    pub start: StartPolicies,
}

impl Mode {
    /// All that a shell can do over a base.
    fn everything(base: Base) -> Self {
        Self {
            observing: false,
            guarding: true,
            after_exit: AfterExitOptions::of_base(base.name()),
            start: StartPolicies::of_base(base.name()),
        }
    }
}

/// The map of learned paths, which only shells with a start policy have.
pub(crate) const PATHS: &str = "paths";
/// What an operator sets of them.
pub(crate) const PATH_SETTINGS: &str = "path_settings";
/// The map of starts that are faster than doubling, which only shells with such a policy have.
const FASTERS: &str = "fasters";
/// The operation that [`AfterExit::Probe`] and [`StartPolicy::Fast`] alone need.
const EVERY_ACK: &str = "in_ack_event";
/// The operation that pacing needs.
const PACING: &str = "min_tso_segs";

/// Whether code can pace, which a start from memory needs. What neither paces nor asks for a start is without [`PACING`], which
/// would cost something with every ACK. BBR has it of its own.
pub(crate) fn paces(algorithm: Algorithm, base: Base, start: StartPolicies) -> bool {
    algorithm.paces() || base == Base::Bbr || !start.is_empty()
}

/// Options of a map that is made without an object; `flags` are those of the kernel.
pub(crate) fn map_options(flags: u32) -> libbpf_sys::bpf_map_create_opts {
    libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: flags,
        ..Default::default()
    }
}

/// Loads the shell of an algorithm with a base, its options and a guard, for a trial: it gets maps of its own. Registers
/// nothing.
pub(crate) fn shell(algorithm: Algorithm, base: Base, kernel: &Kernel) -> Result<Object, Error> {
    fitted(algorithm, base, Mode::everything(base), kernel)?.load(algorithm.name())
}

/// The same with maps that others share, by their names and where they are pinned.
pub(crate) fn sharing_shell(
    algorithm: Algorithm,
    base: Base,
    mode: Mode,
    kernel: &Kernel,
    shared: &[(&str, PathBuf)],
) -> Result<Object, Error> {
    let mut opened = fitted(algorithm, base, mode, kernel)?;
    share(&mut opened.object, shared)?;
    opened.load(algorithm.name())
}

/// The name of a map, which libbpf makes of a section where it has one element.
pub(crate) fn map_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    name.strip_prefix(".data.").unwrap_or(&name).to_owned()
}

/// Has an object use maps that are pinned, as far as it has maps of these names.
fn share(object: &mut OpenObject, pinned: &[(&str, PathBuf)]) -> Result<(), Error> {
    for mut map in object.maps_mut() {
        let have = map_name(map.name());
        if let Some((name, path)) = pinned.iter().find(|(name, _)| have == *name) {
            map.reuse_pinned_map(path).map_err(failed("share", name))?;
        }
    }
    Ok(())
}

fn fitted(algorithm: Algorithm, base: Base, mode: Mode, kernel: &Kernel) -> Result<Fitted, Error> {
    let name = algorithm.name();
    let mut opened = Fitted::open(name, shell_bytes(algorithm, base), kernel)?;
    decide(&mut opened.object, algorithm, base, mode, kernel).map_err(failed("prepare", name))?;
    Ok(opened)
}

/// The object of an algorithm's shell.
fn shell_bytes(algorithm: Algorithm, base: Base) -> &'static [u8] {
    match (algorithm.outside(), base) {
        (Some(outside), Base::Bbr) => outside.bbr(),
        (Some(outside), Base::Cubic | Base::Reno) => outside.whole(),
        (None, Base::Bbr) => object(&format!("{}_bbr", algorithm.name())),
        (None, Base::Cubic | Base::Reno) => object(algorithm.name()),
    }
}

/// Sets what is decided of a shell before it is loaded.
fn decide(
    object: &mut OpenObject,
    algorithm: Algorithm,
    base: Base,
    mode: Mode,
    kernel: &Kernel,
) -> libbpf_rs::Result<()> {
    constant::set(object, ".rodata.base", &(base as u32).to_ne_bytes())?;
    for (section, on) in [(".rodata.observing", mode.observing), (".rodata.guarding", mode.guarding)] {
        constant::set(object, section, &u32::from(on).to_ne_bytes())?;
    }
    constant::set(object, ".rodata.after_exit", &mode.after_exit.bits().to_ne_bytes())?;
    constant::set(object, ".rodata.start", &mode.start.bits().to_ne_bytes())?;
    let fast = mode.start.has(StartPolicy::Fast);
    for mut map in object.maps_mut() {
        // What leads to it is not in the code then.
        let needed = match map_name(map.name()).as_str() {
            PATHS | PATH_SETTINGS => mode.start.remembers(),
            FASTERS => fast || mode.start.has(StartPolicy::Suss),
            _ => true,
        };
        if !needed {
            map.set_autocreate(false)?;
        }
    }
    constant::set(object, ".rodata.tick", &(clock::tick().as_micros() as u32).to_ne_bytes())?;
    let mut without = Vec::new();
    if !mode.after_exit.has(AfterExit::Probe) && !fast {
        without.push(EVERY_ACK);
    }
    if !paces(algorithm, base, mode.start) {
        without.push(PACING);
    }
    operations::fit(object, kernel, &without)
}

/// Which sockets the iterators of `bpf/migrate.bpf.c` deal with, and how.
#[derive(Clone, Copy)]
pub(crate) struct Migrating<'a> {
    /// The control that they have.
    pub from: &'a str,
    /// The control that they get; `None`: they are only reported.
    pub to: Option<&'a str>,
    /// Code that is the right one, as the id of its struct_ops map: sockets that have it are passed over.
    pub current: Option<u32>,
}

/// Of those iterators the one that moves sockets, or reports them.
pub(crate) const MIGRATE: &str = "migrate";
/// The one that finds those of processes.
pub(crate) const HOLDERS: &str = "holders";
/// The one that finds those that listen.
pub(crate) const LISTENERS: &str = "listeners";

impl Migrating<'_> {
    /// For what only finds sockets.
    pub const NOTHING: Self = Self { from: "", to: None, current: None };
}

/// Loads some of the iterators, which move sockets from one control to another or find them; moves nothing.
pub(crate) fn migrate(migrating: Migrating<'_>, programs: &[&str], kernel: &Kernel) -> Result<Object, Error> {
    let Migrating { from, to, current } = migrating;
    let mut opened = Fitted::open("migrate", object("migrate"), kernel)?;
    for mut program in opened.object.progs_mut() {
        let wanted = programs.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
    }
    for (section, name) in [(".rodata.from", from), (".rodata.to", to.unwrap_or_default())] {
        constant::set(&mut opened.object, section, &padded::<16>(name))
            .map_err(failed("prepare", "migrate"))?;
    }
    for (section, number) in
        [(".rodata.current", current.unwrap_or(0)), (".rodata.moving", to.is_some().into())]
    {
        constant::set(&mut opened.object, section, &number.to_ne_bytes())
            .map_err(failed("prepare", "migrate"))?;
    }
    opened.load("migrate")
}

/// Loads the maps that all algorithms share.
pub(crate) fn telemetry() -> Result<Object, Error> {
    open("telemetry", object("telemetry"), None)?.load().map_err(failed("load", "telemetry"))
}

/// Loads the maps that the selection and all algorithms share.
pub(crate) fn profiles() -> Result<Object, Error> {
    open("profiles", object("profiles"), None)?.load().map_err(failed("load", "profiles"))
}

/// Loads the map of learned paths and that of their settings.
pub(crate) fn paths() -> Result<Object, Error> {
    open(PATHS, object(PATHS), None)?.load().map_err(failed("load", PATHS))
}

/// What is watched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// Also flows whose beginning has not been seen.
    pub established: bool,
    /// Also what comes after slow start, see [`crate::shadow::Follower::past`].
    pub past: bool,
    /// One flow in so many; of 0 and 1 every flow.
    pub sampling: u32,
}

/// Loads the observer of flows on any control; watches nothing yet.
pub(crate) fn shadow(watch: Watch, kernel: &Kernel) -> Result<Object, Error> {
    let mut opened = Fitted::open("shadow", object("shadow"), kernel)?;
    for (section, value) in [
        (".rodata.established", u32::from(watch.established)),
        (".rodata.past", u32::from(watch.past)),
        (".rodata.sampling", watch.sampling),
    ] {
        constant::set(&mut opened.object, section, &value.to_ne_bytes())
            .map_err(failed("prepare", "shadow"))?;
    }
    opened.load("shadow")
}

/// Loads the kernel's own CUBIC as a control of BPF, whose slow start ends at so many segments; 0: as CUBIC ends it.
pub(crate) fn yardstick(threshold: u32, kernel: &Kernel) -> Result<Object, Error> {
    let mut opened = Fitted::open("cubic", object("cubic"), kernel)?;
    let failed = failed("prepare", "cubic");
    constant::set(&mut opened.object, ".rodata.threshold", &threshold.to_ne_bytes()).map_err(&failed)?;
    operations::fit(&mut opened.object, kernel, &[]).map_err(&failed)?;
    opened.load("cubic")
}

/// Loads the program that gives connections what rules say, with those of its maps that are pinned, by name, and others of
/// its own.
pub(crate) fn select(pinned: &[(&str, PathBuf)], kernel: &Kernel) -> Result<Object, Error> {
    let mut opened = Fitted::open("select", object("select"), kernel)?;
    share(&mut opened.object, pinned)?;
    opened.load("select")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libbpf made of an object's programs: their instructions, without descriptors of maps, which are others each time.
    fn code(object: &Object) -> Vec<(String, Vec<[i64; 5]>)> {
        let programs = object.progs().map(|program| {
            let instructions = program.insns().iter().map(|one| {
                // BPF_LD | BPF_IMM | BPF_DW with BPF_PSEUDO_MAP_FD or BPF_PSEUDO_MAP_VALUE.
                let map = one.code == 0x18 && matches!(one.src_reg(), 1 | 2);
                let imm = if map { 0 } else { one.imm.into() };
                [one.code.into(), one.dst_reg().into(), one.src_reg().into(), one.off.into(), imm]
            });
            (program.name().to_string_lossy().into_owned(), instructions.collect())
        });
        programs.collect()
    }

    /// How many instructions were compared.
    fn same_as_by_all_types(name: &str, fitted: Object, whole: Result<OpenObject, Error>) -> usize {
        let whole = whole.and_then(|object| object.load().map_err(failed("load", name))).unwrap();
        let (fitted, whole) = (code(&fitted), code(&whole));
        for (one, other) in fitted.iter().zip(&whole) {
            assert_eq!(one, other, "{name}");
        }
        assert_eq!(fitted.len(), whole.len(), "{name}");
        fitted.iter().map(|(_, instructions)| instructions.len()).sum()
    }

    #[test]
    #[ignore = "in a guest: make test"]
    fn an_object_becomes_the_same_by_an_excerpt_as_by_all_of_the_kernels_types() {
        let kernel = Kernel::read().unwrap();
        let mut compared = 0;
        // The shells read the same of the kernel: that of the least algorithm stands for all, over each base.
        let plain = onramp_algorithm::find("plain").unwrap();
        for (base, name) in [(Base::Cubic, "plain"), (Base::Bbr, "plain_bbr")] {
            let mut whole = open(name, object(name), None).unwrap();
            decide(&mut whole, plain, base, Mode::everything(base), &kernel).unwrap();
            let fitted = shell(plain, base, &kernel).unwrap();
            compared += same_as_by_all_types(name, fitted, Ok(whole));
        }
        compared += same_as_by_all_types(
            "migrate",
            migrate(Migrating::NOTHING, &[MIGRATE, HOLDERS, LISTENERS], &kernel).unwrap(),
            open("migrate", object("migrate"), None),
        );
        compared += same_as_by_all_types(
            "select",
            select(&[], &kernel).unwrap(),
            open("select", object("select"), None),
        );
        compared += same_as_by_all_types(
            "shadow",
            shadow(Watch::default(), &kernel).unwrap(),
            open("shadow", object("shadow"), None),
        );
        assert!(compared > 10_000, "only {compared} instructions");
    }
}
