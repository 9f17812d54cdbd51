//! Makes the tables' rows of `bpf/record.h`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use onramp_bindings::Records;

fn main() {
    println!("cargo::rerun-if-changed=../bpf/record.h");
    println!("cargo::rerun-if-changed=../bpf/algorithm/algorithm.h");
    if let Err(reason) = rows() {
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
}

fn rows() -> Result<(), String> {
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    let records = Records::read(Path::new("../bpf"), &out)?;
    let target = out.join("rows.rs");
    fs::write(&target, records.rows(&["ack", "verdict"]))
        .map_err(|error| format!("cannot write {}: {error}", target.display()))
}
