//! Examples of `--help` that need no kernel and no root are run, as they stand but for their sizes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use onramp_mutation::commands::of_page;
use onramp_tests::cli::{self, onramp};

/// Verbs whose examples are not run here, and why. They are parsed all the same (`arguments.rs` of both programs), and what they do is
/// tested by the programs next to this one, in guests.
const ONLY_PARSED: [(&str, &str); 43] = [
    ("attach", "changes the kernel"),
    ("confirm", "changes the kernel"),
    ("detach", "changes the kernel"),
    ("upgrade", "changes the kernel"),
    ("undo", "changes the kernel"),
    ("apply", "changes the kernel"),
    ("tune", "changes the kernel"),
    ("run", "changes the kernel"),
    ("select", "changes the kernel"),
    ("paths", "looks at the kernel, and changes it"),
    ("doctor", "looks at the kernel, and --fix changes it"),
    ("status", "looks at the kernel"),
    ("flows", "looks at the kernel"),
    ("watch", "looks at the kernel"),
    ("top", "looks at the kernel"),
    ("record", "looks at the kernel"),
    ("shadow", "looks at the kernel"),
    ("explain", "looks at the kernel"),
    ("serve", "serves until it is ended"),
    ("curl", "asks a server"),
    ("tcpdump", "captures what passes the host"),
    ("ssh", "needs another host"),
    ("(umask", "writes what is root's"),
    ("bench", "measures for minutes, as root"),
    ("qlog", "needs a recording"),
    ("plot", "needs a result"),
    ("sim compare --arms cubic,search --json", "needs the page; shown by a test of the laboratory's pages"),
    ("replay", "needs a recording"),
    ("sim path", "needs a recording"),
    ("sim tune spacing", "asks the kernel"),
    ("sim reproduce --all", "takes minutes; simulated claims have tests of their own"),
    ("sim sweep --population", "needs a population of its own"),
    ("sim compare --profile ./slow.toml", "needs what `sim path` writes"),
    ("sim agree runs", "needs a sweep of the lab"),
    ("sim tune best", "finds nothing better in so small a search"),
    ("profile check ./mine.toml", "needs a profile of its own"),
    ("profile show ./mine.toml", "needs a profile of its own"),
    ("profile import", "needs a trace; done by its own tests"),
    ("lab", "makes guests"),
    ("build", "needs a header; done by the test of docs/outside.md"),
    ("sim compare --arms cubic,./mine.o", "needs an object; done by the test of docs/outside.md"),
    ("sim agree tests", "simulates sixty transfers; run by the tests of the simulator"),
    ("help", "has no example"),
];

/// Verbs of the laboratory that make no guest.
const WITHOUT_A_GUEST: [&str; 8] = ["bench", "build", "model", "new", "plot", "profile", "qlog", "sim"];

/// What says by another code than 0 that something does not hold.
const HOLDS_NOT: [&str; 2] = ["onramp lab model buffers --default-bytes", "onramp sim reproduce bod-model"];

/// What takes long as it stands: in place of these words, those.
const SMALLER: [(&str, &str); 7] = [
    (" --paths 90", ""),
    ("-n 100", "-n 2"),
    ("--paths 1000", "--paths 10"),
    ("sim compare --arms cubic,search --bytes 20M", "sim compare --arms cubic,search -n 1 --bytes 4M"),
    ("sim compare --arms search:", "sim compare -n 1 --arms search:"),
    ("sim tune search", "sim tune search --candidates 3 --paths 3 --seed 9"),
    ("sim reproduce early-loss", "sim reproduce early-loss --quick"),
];

/// The words that lead to each command, from what its help lists.
fn commands(words: &str, all: &mut BTreeSet<String>) {
    let help = onramp(format!("{words} --help").trim()).ok();
    for verb in super::listed(&help) {
        // `onramp lab sim` is `onramp sim`.
        if verb != "help" && (words, verb) != ("lab", "sim") {
            commands(format!("{words} {verb}").trim(), all);
        }
    }
    let examples = help.split_once("\nExamples:\n").map_or("", |(_, rest)| rest);
    for line in examples.lines().take_while(|line| !line.is_empty()) {
        let example =
            line.strip_prefix("  ").unwrap_or_else(|| panic!("{words}: {line:?} is not a line of its own"));
        all.insert(example.to_owned());
    }
}

/// Where the profiles and golden results of the sources are, and `onramp` is found.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["profiles", "tests"] {
        symlink(fs::canonicalize(sources.join(name)).unwrap(), place.path().join(name)).unwrap();
    }
    fs::create_dir(place.path().join("bin")).unwrap();
    for program in [cli::binary().clone(), cli::laboratory()] {
        let name = program.file_name().unwrap();
        symlink(fs::canonicalize(&program).unwrap(), place.path().join("bin").join(name)).unwrap();
    }
    place
}

/// Runs it in a place of its own; `false`: it is only parsed.
fn runs(example: &str, unused: &mut Vec<&str>) -> bool {
    let words = example.replacen("onramp-lab ", "onramp lab ", 1);
    let words = words.strip_prefix("onramp ").unwrap_or(&words);
    let words = words
        .strip_prefix("lab ")
        .filter(|words| WITHOUT_A_GUEST.iter().any(|verb| words.starts_with(verb)))
        .unwrap_or(words);
    if let Some((verb, _)) = ONLY_PARSED.iter().find(|(verb, _)| words.starts_with(verb)) {
        unused.retain(|other| other != verb);
        return false;
    }
    let small = SMALLER.iter().fold(example.to_owned(), |text, (from, to)| text.replacen(from, to, 1));
    let place = place();
    let path = format!("{}:{}", place.path().join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &small])
        .current_dir(place.path())
        .env("PATH", &path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = i32::from(HOLDS_NOT.iter().any(|begin| example.starts_with(begin)));
    assert_eq!(output.status.code(), Some(code), "{example} (as {small}): {stderr}");
    assert!(!output.stdout.is_empty(), "{example} says nothing");
    true
}

#[test]
fn every_example_that_needs_no_kernel_runs_as_it_stands_but_for_its_size() {
    let mut all = BTreeSet::new();
    commands("", &mut all);
    let mut unused = ONLY_PARSED.map(|(verb, _)| verb).to_vec();
    let ran = all.iter().filter(|example| runs(example, &mut unused)).count();
    assert!(ran >= 20, "{ran} of {}", all.len());
    unused.retain(|verb| *verb != "help");
    assert!(unused.is_empty(), "no example begins with {unused:?}");
}

/// Of the pages of what needs no kernel; all others are parsed (`arguments.rs` of both programs).
#[test]
fn every_command_of_a_page_that_needs_no_kernel_runs_but_for_its_size() {
    let pages = [include_str!("../../../README.md"), include_str!("../../../docs/simulator.md")];
    let ran = pages.iter().flat_map(|page| of_page(page)).filter(|line| runs(line, &mut Vec::new())).count();
    assert!(ran >= 3, "{ran}");
}
