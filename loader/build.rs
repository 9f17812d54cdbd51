//! Compiles every `bpf/*.bpf.c` and embeds the objects, those of algorithms once more for base BBR; and makes Rust of
//! the headers that say what crosses.

#[path = "src/object/clang.rs"]
mod clang;

use std::path::{Path, PathBuf};
use std::{env, fs};

use onramp_bindings::Bindings;

/// What makes a source the shell of an algorithm.
const SHELL: &str = "kernel/congestion_ops.bpf.h";
/// Directories of `bpf/` with headers that an algorithm from outside the tree is built with.
const CARRIED: [&str; 7] = ["", "algorithm", "shell", "start", "kernel", "host", "host/src"];
/// What is mapped into memory and changes there.
const SHARED: [&str; 2] = ["consumer", "telemetry"];

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
    let clang = clang::find_clang()?;
    println!("cargo::rustc-env=ONRAMP_CLANG_VERSION={}", clang::clang_version(&clang).unwrap_or_default());
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?);
    bindings(&out)?;
    let headers =
        env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys did not say where libbpf's headers are")?;
    let target = env::var("CARGO_CFG_TARGET_ARCH").map_err(|_| "CARGO_CFG_TARGET_ARCH is not set")?;
    let arch = clang::architecture(&target)
        .ok_or_else(|| format!("onramp's BPF objects are not built for {target}: use x86_64 or aarch64"))?;
    carried(&out, &headers)?;
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

/// The headers that an algorithm from outside the tree is built with, by their names below `bpf/`, and libbpf's.
fn carried(out: &Path, libbpf: &str) -> Result<(), String> {
    let mut table = String::from("/// Headers by name.\npub(crate) static HEADERS: &[(&str, &str)] = &[\n");
    let own = CARRIED.iter().map(|directory| (PathBuf::from("../bpf").join(directory), *directory));
    for (directory, name) in own.chain([(Path::new(libbpf).join("bpf"), "bpf")]) {
        for path in files(&directory)? {
            let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            if file.ends_with(".h") {
                let path = fs::canonicalize(&path)
                    .map_err(|error| format!("cannot find {}: {error}", path.display()))?;
                let name = if name.is_empty() { file.to_owned() } else { format!("{name}/{file}") };
                table += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
            }
        }
    }
    table += "];\n";
    fs::write(out.join("headers.rs"), table).map_err(|error| format!("cannot write headers.rs: {error}"))
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(directory).map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

fn sources() -> Result<Vec<PathBuf>, String> {
    let mut sources = files(Path::new("../bpf"))?;
    sources.retain(|path| path.to_str().is_some_and(|path| path.ends_with(".bpf.c")));
    Ok(sources)
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
    let output = clang::command(clang, arch)
        .arg("-Werror")
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
