//! Compiles the pure algorithm headers for the host, and makes Rust of what crosses the seam.

use std::path::PathBuf;
use std::{env, fs};

use onramp_bindings::Bindings;
use onramp_records::Records;

fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-changed=table.h");
    println!("cargo::rerun-if-changed=src/guard.c");
    println!("cargo::rerun-if-changed=src/shell.c");
    println!("cargo::rerun-if-changed=shell.h");
    println!("cargo::rerun-if-changed=view.h");
    println!("cargo::rerun-if-changed=../shell");
    println!("cargo::rerun-if-changed=../start");
    println!("cargo::rerun-if-changed=../guard.h");
    println!("cargo::rerun-if-changed=src/rows.h");
    println!("cargo::rerun-if-changed=src/crossing.h");
    println!("cargo::rerun-if-changed=../record.h");
    println!("cargo::rerun-if-changed=../algorithm");
    if let Err(reason) = bindings() {
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
    cc::Build::new()
        .file("src/shim.c")
        .file("src/guard.c")
        .file("src/shell.c")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("onramp_algorithms");
}

fn bindings() -> Result<(), String> {
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    let records = Records::read()?;
    let wanted = Bindings {
        header: "src/crossing.h",
        files: &[
            "algorithm.h",
            "guard.h",
            "record.h",
            "rows.h",
            "shell.h",
            "resume.h",
            "path.h",
            "fast.h",
            "suss.h",
        ],
        others: &[
            "sock",
            "limits",
            "flow_header",
            "flow_flag",
            "flow_telemetry",
            "round",
            "ack_step",
            "growth_step",
            "loss_step",
            "startup",
            "startup_step",
        ],
        without: &[],
        atomic: false,
        records: Some(&records),
    };
    wanted.write(&out.join("contract.rs"))?;
    let target = out.join("records.rs");
    fs::write(&target, records.enumerations() + &records.sums(&["flow_counts"]))
        .map_err(|error| format!("cannot write {}: {error}", target.display()))
}
