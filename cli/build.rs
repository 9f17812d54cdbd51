//! Embeds the web page if it was built.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What `npm run build` makes of `web/src`.
const PAGE: &str = "../web/dist";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PAGE}");
    let mut table = String::from("/// The page: names and contents; none if it was not built.\n");
    table += "static EMBEDDED: &[(&str, &[u8])] = &[\n";
    for path in page()? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let path = path.canonicalize()?;
        table += &format!("    ({name:?}, include_bytes!({:?})),\n", path.display().to_string());
    }
    table += "];\n";
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("web.rs"), table)
}

/// Files of the page, which are all of it or none.
fn page() -> io::Result<Vec<PathBuf>> {
    if !Path::new(PAGE).join("index.html").exists() {
        return Ok(Vec::new());
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(PAGE)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension != "md"));
    files.sort();
    Ok(files)
}
