//! What the verifier and the compiler of this kernel make of each operation.

use onramp_loader::Base;
use onramp_loader::algorithm;
use onramp_loader::programs;
use serde::Serialize;

use crate::output::Output;
use crate::table::Table;

#[derive(Serialize)]
pub(super) struct Programs {
    /// Release of the kernel.
    kernel: String,
    /// Version of the clang that made the objects.
    clang: &'static str,
    programs: Vec<Program>,
}

#[derive(Serialize)]
struct Program {
    /// With `:base=bbr` where that is its base.
    algorithm: String,
    operation: String,
    verified_instructions: u32,
    jited_bytes: u32,
}

/// Loads every algorithm once for each kind of base; attaches nothing.
pub(super) fn measure() -> anyhow::Result<Programs> {
    let mut all = Vec::new();
    for algorithm in algorithm::all() {
        all.extend(programs::programs(algorithm)?.into_iter().map(|program| Program {
            algorithm: match program.base {
                Base::Bbr => format!("{}:base=bbr", algorithm.name()),
                Base::Cubic | Base::Reno => algorithm.name().to_owned(),
            },
            operation: program.operation,
            verified_instructions: program.verified_instructions,
            jited_bytes: program.jited_bytes,
        }));
    }
    Ok(Programs { kernel: onramp_loader::kernel::release(), clang: programs::COMPILER, programs: all })
}

pub(super) fn text(report: &Programs, output: &Output) -> String {
    let mut table = Table::new(["ALGORITHM", "OPERATION", ">VERIFIED", ">JITED"]);
    for program in &report.programs {
        table.push([
            program.algorithm.clone(),
            program.operation.clone(),
            program.verified_instructions.to_string(),
            format!("{} B", program.jited_bytes),
        ]);
    }
    table.render(output)
}
