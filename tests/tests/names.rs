//! Names of single algorithms are data: above `bpf/` no code knows one.

use std::fs;
use std::path::{Path, PathBuf};

use onramp_loader::algorithm;

/// What names algorithms as data, or in a test: paths that end so, or have this in them.
const DATA: [&str; 5] = [
    // A profile, and the algorithm whose flows are measured.
    "/verb/bench/mod.rs",
    "/tests/",
    "tests.rs",
    "/testing.rs",
    "/serve/web/load.rs",
];

/// Attributes of HTML, whose values are words of that language or of style sheets.
const ATTRIBUTES: [&str; 6] = ["class:", "for:", "id:", "role:", "type:", "h("];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if (name.ends_with(".rs") || name.ends_with(".ts"))
            && !DATA.iter().any(|part| name.contains(part))
        {
            found.push(path);
        }
    }
}

/// Quoted names of algorithms or of their controls on a line of code.
fn named(line: &str, names: &[String]) -> Vec<String> {
    let code = line.trim_start();
    if code.starts_with("//") || ATTRIBUTES.iter().any(|attribute| code.contains(attribute)) {
        return Vec::new();
    }
    names.iter().filter(|name| code.contains(&format!("\"{name}\""))).cloned().collect()
}

#[test]
fn no_code_above_the_algorithms_names_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names: Vec<String> =
        algorithm::all().flat_map(|one| [one.name().to_owned(), one.congestion_control()]).collect();
    let mut files = Vec::new();
    for part in [
        "cli/src",
        "lab/src",
        "lab/program/src",
        "loader/src",
        "net/src",
        "profiles/src",
        "recording/src",
        "terminal/src",
        "web/src",
    ] {
        sources(&root.join(part), &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            for name in named(line, &names) {
                found.push(format!("{}:{}: {name}", file.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_name_counts_where_code_quotes_it() {
    let names = ["search".to_owned(), "onramp_search".to_owned()];
    for (line, count) in [
        (r#"    "search" => Some(3),"#, 1),
        (r#"if control == "onramp_search" {"#, 1),
        (r#"    /// `cc="onramp_search"`"#, 0),
        (r#"h("label", { for: "search" }, "Filter"),"#, 0),
        (r#"  onramp attach search"#, 0),
    ] {
        assert_eq!(named(line, &names).len(), count, "{line}");
    }
}
