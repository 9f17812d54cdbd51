//! Compiles the BPF objects that only tests load.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "tests/hystart/witness.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=../bpf/algorithm");
    println!("cargo::rerun-if-changed=../bpf/kernel");
    println!("cargo::rerun-if-env-changed=CLANG");
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let object = PathBuf::from(variable("OUT_DIR")).join("witness.bpf.o");
    let arch = if variable("CARGO_CFG_TARGET_ARCH") == "aarch64" { "arm64" } else { "x86" };
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".into());
    // Left from a build before, it would hide that this one failed.
    let _ = fs::remove_file(&object);
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(["-I", "../bpf", "-I", &variable("DEP_BPF_INCLUDE"), "-c", SOURCE, "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} refuses {SOURCE} ({status})"),
        Err(error) => panic!("cannot run {clang}: {error}; install clang-19 or set CLANG"),
    }
}
