//! Compiles the pure algorithm headers for the host.

fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-changed=../algorithm");
    cc::Build::new()
        .file("src/shim.c")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("onramp_algorithms");
}
