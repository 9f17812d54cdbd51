//! Compiles every `bpf/*.bpf.c` and embeds the objects, those of algorithms once more for base BBR; and makes Rust of
//! the headers that say what crosses.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use onramp_bindings::Bindings;

/// Oldest clang whose BPF output is accepted by the oldest kernel supported.
const CLANG_MINIMUM: u32 = 16;
/// What makes a source the shell of an algorithm.
const SHELL: &str = "kernel/congestion_ops.bpf.h";
/// What is mapped into memory and changes there.
const SHARED: [&str; 2] = ["consumer", "telemetry"];
/// Tried in this order unless CLANG names one.
const CLANG_NAMES: [&str; 7] =
    ["clang-19", "clang-20", "clang-21", "clang-18", "clang-17", "clang-16", "clang"];

fn main() {
    println!("cargo::rerun-if-changed=../bpf");
    println!("cargo::rerun-if-changed=src/crossing.h");
    println!("cargo::rerun-if-env-changed=CLANG");
    if let Err(reason) = build() {
        // The last line of a failed build script is what cargo shows; one sentence, no panic message around it.
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let clang = find_clang()?;
    println!("cargo::rustc-env=ONRAMP_CLANG_VERSION={}", clang_version(&clang).unwrap_or_default());
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    bindings(&out)?;
    let headers =
        env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys did not say where libbpf's headers are")?;
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        Ok(other) => {
            return Err(format!("onramp's BPF objects are not built for {other}: use x86_64 or aarch64"));
        }
        Err(_) => return Err("CARGO_CFG_TARGET_ARCH is not set".into()),
    };
    let mut table = String::from(
        "/// Every BPF object, by the name of its source, with `_bbr` for base BBR.\npub(crate) static OBJECTS: &[(&str, &[u8])] = &[\n",
    );
    for source in sources()? {
        let name =
            source.file_name().and_then(|name| name.to_str()).unwrap_or_default().trim_end_matches(".bpf.c");
        let text = fs::read_to_string(&source)
            .map_err(|error| format!("cannot read {}: {error}", source.display()))?;
        let mut objects = vec![(name.to_owned(), None)];
        if text.contains(SHELL) {
            objects.push((format!("{name}_bbr"), Some("-DONRAMP_BBR")));
        }
        for (name, definition) in objects {
            let object = out.join(format!("{name}.bpf.o"));
            compile(&clang, &source, &object, definition, arch, &headers)?;
            table += &format!(
                "    ({name:?}, aya::include_bytes_aligned!({:?})),\n",
                object.display().to_string()
            );
        }
    }
    table += "];\n";
    fs::write(out.join("objects.rs"), table).map_err(|error| format!("cannot write objects.rs: {error}"))
}

/// Rust of what crosses.
fn bindings(out: &Path) -> Result<(), String> {
    let header = "src/crossing.h";
    let files = ["abi.h", "events.h", "guard.h", "holders.h", "select.h", "shadow.h", "path.h"];
    Bindings { header, files: &files, others: &["start"], without: &SHARED, atomic: false, records: None }
        .write(&out.join("abi.rs"))?;
    let shared = Bindings { header, files: &[], others: &SHARED, without: &[], atomic: true, records: None };
    shared.write(&out.join("shared.rs"))
}

fn sources() -> Result<Vec<PathBuf>, String> {
    let directory = Path::new("../bpf");
    let entries =
        fs::read_dir(directory).map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let mut sources: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".bpf.c")))
        .collect();
    sources.sort();
    Ok(sources)
}

fn find_clang() -> Result<String, String> {
    let named = env::var("CLANG").ok();
    let names = named.as_deref().map_or_else(|| CLANG_NAMES.to_vec(), |name| vec![name]);
    let mut oldest = None;
    for name in names {
        match clang_major(name) {
            Some(major) if major >= CLANG_MINIMUM => return Ok(name.to_owned()),
            Some(major) => oldest = Some(format!("{name} is version {major}")),
            None => {}
        }
    }
    let found = oldest.unwrap_or_else(|| match named {
        Some(name) => format!("CLANG={name} does not run"),
        None => "none was found".to_owned(),
    });
    Err(format!(
        "building onramp's BPF objects needs clang {CLANG_MINIMUM} or newer, but {found}: install clang-19 or set CLANG"
    ))
}

/// For instance `19.1.7`, without what a distribution adds to it.
fn clang_version(name: &str) -> Option<String> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, version) = text.split_once("clang version ")?;
    Some(version.chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect())
}

fn clang_major(name: &str) -> Option<u32> {
    clang_version(name)?.split('.').next()?.parse().ok()
}

fn compile(
    clang: &str,
    source: &Path,
    object: &Path,
    definition: Option<&str>,
    arch: &str,
    headers: &str,
) -> Result<(), String> {
    let here =
        env::current_dir().map_err(|error| format!("cannot determine the current directory: {error}"))?;
    let unnamed = [(here.display().to_string(), "."), (headers.to_owned(), "headers")]
        .map(|(directory, name)| format!("-ffile-prefix-map={directory}={name}"));
    let output = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(definition)
        .args(["-I", "../bpf", "-I", headers, "-c"])
        // The same bytes whatever the directory.
        .args(unnamed)
        .arg(source)
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|error| format!("cannot run {clang}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{clang} refuses {}:\n{}", source.display(), String::from_utf8_lossy(&output.stderr)))
}
