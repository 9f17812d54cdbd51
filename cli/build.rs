//! Embeds the web page if it was built, and completes the document of the API.

use std::path::{Path, PathBuf};
use std::{env, fs};

use onramp_records::{HEADERS, Records, sources};

/// What `npm run build` makes of `web/src`.
const PAGE: &str = "../web/dist";
/// The API, but for the schemas of records and structures.
const DOCUMENT: &str = "src/verb/serve/web/openapi.json";

fn main() {
    for path in [PAGE, DOCUMENT].into_iter().chain(HEADERS) {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Err(reason) = page().and_then(|()| document()) {
        eprintln!("error: {reason}");
        std::process::exit(1);
    }
}

fn write(name: &str, text: &str) -> Result<(), String> {
    let path = Path::new(&env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set")?).join(name);
    fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn document() -> Result<(), String> {
    let text = fs::read_to_string(DOCUMENT).map_err(|error| format!("cannot read {DOCUMENT}: {error}"))?;
    for path in sources(&text)? {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    write("openapi.json", &Records::read()?.complete(&text)?)
}

fn page() -> Result<(), String> {
    let mut table = String::from("/// The page: names and contents; none if it was not built.\n");
    table += "static EMBEDDED: &[(&str, &[u8])] = &[\n";
    for path in files()? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        table += &format!("    ({name:?}, include_bytes!({:?})),\n", path.display().to_string());
    }
    table += "];\n";
    write("web.rs", &table)
}

/// Files of the page, which are all of it or none.
fn files() -> Result<Vec<PathBuf>, String> {
    if !Path::new(PAGE).join("index.html").exists() {
        return Ok(Vec::new());
    }
    let unreadable = |error| format!("cannot read {PAGE}: {error}");
    let mut files = Vec::new();
    for entry in fs::read_dir(PAGE).map_err(unreadable)? {
        files.push(entry.and_then(|entry| entry.path().canonicalize()).map_err(unreadable)?);
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension != "md"));
    files.sort();
    Ok(files)
}
