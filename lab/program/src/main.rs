// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `onramp-lab`: the laboratory's program.

use std::process::ExitCode;

fn main() -> ExitCode {
    onramp_lab_program::main(std::env::args_os())
}
