//! Embeds the repository's profiles.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const PROFILES: &str = "../profiles";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PROFILES}");
    let mut table = String::from("/// The repository's profiles: name and text.\n");
    table += "pub(crate) static EMBEDDED: &[(&str, &str)] = &[\n";
    for path in profiles()? {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let path = path.canonicalize()?;
        table += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
    }
    table += "];\n";
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("profiles.rs"), table)
}

fn profiles() -> io::Result<Vec<PathBuf>> {
    if !Path::new(PROFILES).exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(PROFILES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            println!("cargo::rerun-if-changed={}", path.display());
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
