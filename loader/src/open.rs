//! Objects opened and fitted to the kernel, up to the load.

use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::abi::padded;
use crate::attach::Base;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::object::object;
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

/// Loads the shell of an algorithm with a base; registers nothing.
pub(crate) fn shell(name: &str, base: Base, kernel: &Kernel) -> Result<Object, Error> {
    let mut opened = open(name)?;
    constant::set(&mut opened, ".rodata.base", &(base as u32).to_ne_bytes())
        .map_err(failed("prepare", name))?;
    operations::fit(&mut opened, kernel).map_err(failed("prepare", name))?;
    opened.load().map_err(failed("load", name))
}

/// Loads the iterator that moves sockets from one control to another; moves nothing.
pub(crate) fn rehome(from: &str, to: &str) -> Result<Object, Error> {
    let mut opened = open("rehome")?;
    constant::set(&mut opened, ".rodata.from", &padded::<16>(from)).map_err(failed("prepare", "rehome"))?;
    constant::set(&mut opened, ".rodata.to", &padded::<16>(to)).map_err(failed("prepare", "rehome"))?;
    opened.load().map_err(failed("load", "rehome"))
}
