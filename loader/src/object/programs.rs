//! What the verifier and the compiler of the running kernel make of each operation, measured by loading it; nothing is
//! attached.

use aya::programs::{ProgramInfo, loaded_programs};
use libbpf_rs::Program as Loaded;
use onramp_algorithm::Algorithm;
use std::os::fd::AsFd;

use crate::object::abi::Base;
use crate::object::open;
use crate::system::bbr;
use crate::system::error::Error;
use crate::system::kernel::{self, Kernel};

/// The compiler that made the objects: its version, for instance `19.1.7`.
pub const COMPILER: &str = env!("ONRAMP_CLANG_VERSION");

/// One operation of an algorithm, loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The base that it was loaded with.
    pub base: Base,
    /// Name of the operation, for instance `pkts_acked`.
    pub operation: String,
    /// Instructions that the verifier walked to accept it; it gives up at a million.
    pub verified_instructions: u32,
    /// Machine code, bytes.
    pub jited_bytes: u32,
}

/// The operations of an algorithm by base and name: with the base that `attach` would choose, and with BBR where that
/// is offered. They are loaded for it and gone afterwards; it does not matter whether the algorithm is attached.
///
/// # Errors
/// What loading fails with: [`Error::Privilege`], [`Error::Unsupported`], [`Error::Bpf`] with the verifier's words.
pub fn programs(algorithm: Algorithm) -> Result<Vec<Program>, Error> {
    kernel::require_privilege("bench")?;
    let kernel = Kernel::read()?;
    kernel.require_struct_ops()?;
    let base = if kernel.missing_cubic().is_some() { Base::Reno } else { Base::Cubic };
    let mut programs = loaded(algorithm, base, &kernel)?;
    if !algorithm.is_always_called() && bbr::require(&kernel).is_ok() {
        programs.extend(loaded(algorithm, Base::Bbr, &kernel)?);
    }
    Ok(programs)
}

/// A loaded program by its id; `None`: it has gone.
pub(crate) fn info(id: u32) -> Option<ProgramInfo> {
    loaded_programs().filter_map(Result::ok).find(|info| info.id() == id)
}

fn loaded(algorithm: Algorithm, base: Base, kernel: &Kernel) -> Result<Vec<Program>, Error> {
    let object = open::shell(algorithm, base, kernel)?;
    let prefix = format!("{}_", algorithm.name());
    let mut programs = Vec::new();
    // Operations that this kernel does not have are not loaded.
    for program in object.progs().filter(|program| program.autoload()) {
        let id = Loaded::id_from_fd(program.as_fd()).map_err(open::failed("look at", algorithm.name()))?;
        let info = info(id);
        programs.push(Program {
            base,
            operation: program.name().to_string_lossy().trim_start_matches(&prefix).to_owned(),
            verified_instructions: info
                .as_ref()
                .and_then(|info| info.verified_instruction_count())
                .unwrap_or(0),
            jited_bytes: info.as_ref().map_or(0, |info| info.size_jitted()),
        });
    }
    programs.sort_by(|one, other| one.operation.cmp(&other.operation));
    Ok(programs)
}
