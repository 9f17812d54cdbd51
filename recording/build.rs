//! Makes the tables' rows of `bpf/record.h`.

use std::path::PathBuf;
use std::{env, fs};

use onramp_records::{HEADERS, Records};

fn main() {
    for header in HEADERS {
        println!("cargo::rerun-if-changed={header}");
    }
    if let Err(reason) = rows() {
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
}

fn rows() -> Result<(), String> {
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    let target = out.join("rows.rs");
    fs::write(&target, Records::read()?.rows(&["ack", "verdict"]))
        .map_err(|error| format!("cannot write {}: {error}", target.display()))
}
