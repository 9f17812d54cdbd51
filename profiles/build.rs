// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Embeds the repository's profiles, which lie next to this file.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    println!("cargo::rerun-if-changed={}", here.display());
    let mut table = String::from("/// The repository's profiles: name and text.\n");
    table += "static EMBEDDED: &[(&str, &str)] = &[\n";
    for path in profiles(&here)? {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        table += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
    }
    table += "];\n";
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("profiles.rs"), table)
}

/// Names of profiles are in lower case, so this package's own Cargo.toml is none.
fn profiles(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".toml") && name != "Cargo.toml"
    });
    found.sort();
    Ok(found)
}
