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

fn sources(directory: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending))
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

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A file without its unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

#[test]
fn no_code_above_the_algorithms_names_one() {
    let root = workspace();
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
        sources(&root.join(part), &[".rs", ".ts"], &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        for (number, line) in code(&file).lines().enumerate() {
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

/// What counts connections, what shows their counters, and what computes with one.
const COUNTING: [&str; 2] = ["bpf/kernel/congestion_ops.bpf.h", "bpf/kernel/storage.bpf.h"];
const VIEWS: [&str; 2] = ["cli/src/verb/status/text.rs", "web/src/algorithms.ts"];
const OTHERS: [(&str, &str); 2] = [
    // Connections that have ended.
    ("without_state", "loader/src/pins/mod.rs"),
    // Its name among the metrics.
    ("exits_undone", "cli/src/verb/serve/web/metrics/mod.rs"),
];

#[test]
fn a_counter_of_connections_is_named_by_its_row_the_code_that_counts_and_its_views_alone() {
    let root = workspace();
    let header = fs::read_to_string(root.join("bpf/record.h")).unwrap();
    let rows =
        header.split("#define FLOW_COUNT_FIELDS(X)").nth(1).unwrap().split("struct flow_counts").next();
    let counters: Vec<(&str, &str)> = rows
        .unwrap()
        .split("X(")
        .skip(1)
        .map(|row| row.split_once(", ").unwrap())
        .map(|(name, rest)| (name, rest.split(',').next().unwrap()))
        .collect();
    assert_eq!(counters.len(), 5, "{counters:?}");
    let mut files = Vec::new();
    for part in ["bpf", "cli", "lab", "loader", "monitoring", "net", "recording", "terminal", "web/src"] {
        sources(&root.join(part), &[".c", ".h", ".rs", ".ts", ".json"], &mut files);
    }
    // Made of the rows.
    files.retain(|file| !file.ends_with("web/src/schema.ts") && !file.ends_with("bpf/abi.h"));
    for (name, column) in counters {
        let member = format!("flows.{name}");
        let names = |text: &str| {
            let mut words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && !"_.>-".contains(sign));
            words.any(|word| {
                let last = word.rsplit(['.', '>']).next().unwrap_or_default();
                last == column || word.ends_with(&member)
            })
        };
        let named = files.iter().filter(|file| names(&code(file)));
        let named: Vec<_> = named.map(|file| file.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        let counting = named.iter().filter(|file| COUNTING.contains(file)).count();
        assert_eq!(counting, 1, "{name}: {named:?}");
        let others = named.iter().filter(|file| {
            let known = ["bpf/record.h"].iter().chain(&COUNTING).chain(&VIEWS).any(|one| one == *file);
            !known && !OTHERS.contains(&(name, **file))
        });
        assert_eq!(others.collect::<Vec<_>>(), [&""; 0], "{name}");
    }
}
