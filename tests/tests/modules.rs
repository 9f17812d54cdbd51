//! Which modules may use which.

#[path = "modules/graph.rs"]
mod graph;
#[path = "modules/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use graph::{Graph, Module, Use};

/// The folders of the loader: each uses only those before it.
const LOADER: [&str; 10] =
    ["system", "object", "pins", "telemetry", "shadow", "host", "select", "attachment", "run", "report"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Directories of the crates' sources.
fn crates() -> Vec<PathBuf> {
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let members = members.trim_end_matches(']').split(", ").map(|member| member.trim_matches('"'));
    let found: Vec<_> = members.map(|member| workspace().join(member).join("src")).collect();
    assert!(found.len() > 5 && found.iter().all(|path| path.is_dir()), "{found:?}");
    found
}

fn named(module: &Module) -> String {
    if module.is_empty() { "the root".into() } else { module.join("::") }
}

#[test]
fn a_folder_of_the_loader_uses_only_those_before_it() {
    let graph = Graph::read(&workspace().join("loader/src"));
    let place = |module: &Module| {
        let folder = module.first()?;
        Some(LOADER.iter().position(|one| one == folder).unwrap_or_else(|| panic!("{folder} has no place")))
    };
    let mut against = String::new();
    let (mut seen, mut folders) = (0, BTreeSet::new());
    for (module, uses) in graph.uses() {
        let Some(from) = place(module) else { continue };
        folders.insert(from);
        for one in uses {
            seen += 1;
            if place(&one.to).is_none_or(|to| to > from) {
                writeln!(against, "{}, line {}: {}", named(module), one.line, named(&one.to)).unwrap();
            }
        }
    }
    assert!(seen > 300 && folders.len() == LOADER.len(), "{seen} uses in {folders:?}");
    assert!(against.is_empty(), "against the order {LOADER:?}:\n{against}");
}

#[test]
fn no_modules_depend_on_each_other_in_a_cycle() {
    let mut found = String::new();
    for sources in crates() {
        let crate_name = sources.strip_prefix(workspace()).unwrap().parent().unwrap();
        let graph = Graph::read(&sources);
        let uses = graph.uses();
        // Elsewhere a part may use the root of the folder that it is in.
        let is_loader = crate_name == Path::new("loader");
        let counts = |from: &Module, to: &Module| is_loader || !from.starts_with(to);
        for cycle in graph.cycles(counts) {
            writeln!(found, "{}, {} modules:", crate_name.display(), cycle.len()).unwrap();
            for module in &cycle {
                let within = |one: &&Use| !one.public && cycle.contains(&one.to) && counts(module, &one.to);
                for one in uses[*module].iter().filter(within) {
                    writeln!(found, "  {}, line {}: {}", named(module), one.line, named(&one.to)).unwrap();
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn a_name_is_followed_through_re_exports_to_the_module_that_defines_it() {
    let crate_root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = crate_root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod low;\nmod high;\npub use high::inner::Thing;\npub use low::*;\n");
    write(
        "low.rs",
        "// use crate::high;\npub fn one() { let _ = \"crate::high\"; crate::Thing::new(); }\n#[cfg(test)]\nmod tests { use crate::high::two; }\n",
    );
    write("high/mod.rs", "pub mod inner;\npub fn two() {}\n");
    write("high/inner.rs", "use crate::one;\nuse super::{self, two as deux};\npub struct Thing;\n");
    let graph = Graph::read(crate_root.path());
    let uses: Vec<_> = graph
        .uses()
        .into_iter()
        .flat_map(|(module, uses)| {
            uses.into_iter().map(move |one| (named(module), named(&one.to), one.line, one.public))
        })
        .filter(|(from, ..)| from != "the root")
        .collect();
    let expected = [
        ("high::inner", "low", 1, false),
        ("high::inner", "high", 2, false),
        ("high::inner", "high", 2, false),
        ("low", "high::inner", 2, false),
    ];
    let expected = expected.map(|(from, to, line, public)| (from.to_owned(), to.to_owned(), line, public));
    assert_eq!(uses, expected);
    let cycles = graph.cycles(|_, _| true);
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0].iter().map(|one| named(one)).collect::<Vec<_>>(), ["high::inner", "low"]);
}
