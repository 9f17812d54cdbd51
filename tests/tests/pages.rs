//! The commands of README.md and docs/ that act on a kernel: each page's run in a guest, in the order in which they stand, as
//! a reader pastes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use onramp_mutation::commands::{of_page, pages};
use onramp_tests::Attachments;
use onramp_tests::cli::{Ran, binary, onramp};

macro_rules! pages {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("../../", $path)))),*] };
}

/// Pages with commands.
const PAGES: [(&str, &str); 22] = pages![
    "README.md",
    "docs/after-exit.md",
    "docs/apply.md",
    "docs/bbr.md",
    "docs/bench.md",
    "docs/explain.md",
    "docs/fleet.md",
    "docs/install.md",
    "docs/lab.md",
    "docs/outside.md",
    "docs/recording.md",
    "docs/replay.md",
    "docs/reproduction.md",
    "docs/safety.md",
    "docs/select.md",
    "docs/serve.md",
    "docs/shadow.md",
    "docs/simulator.md",
    "docs/start.md",
    "docs/top.md",
    "docs/virtual-time.md",
    "docs/watch.md",
];

/// Commands that other tests run: how they begin, on which page (empty: any), and which test that is.
const ELSEWHERE: [(&str, &str, &str); 13] = [
    ("onramp sim ", "", "cli_output/examples.rs"),
    (
        "onramp lab ",
        "",
        "cli_lab.rs, cli_lab_shell.rs, and those of the laboratory itself: guests have none of their own",
    ),
    ("onramp-lab ", "", "outside.rs, bench by its own tests"),
    ("onramp top", "", "cli_top.rs, with a terminal"),
    ("onramp list ./mine.o", "docs/outside.md", "outside.rs"),
    ("onramp run ./mine.o", "docs/outside.md", "outside_kernel.rs"),
    ("onramp attach ./mine.o", "docs/outside.md", "outside_kernel.rs"),
    ("onramp tune mine", "docs/outside.md", "outside_kernel.rs"),
    ("onramp detach mine", "docs/outside.md", "outside_kernel.rs"),
    ("onramp explain slow.pcap", "docs/explain.md", "cli_explain_capture.rs"),
    ("onramp replay recording", "docs/replay.md", "cli_replay.rs, with a recording of a flow"),
    ("onramp serve --listen 192.0.2.1:8443", "docs/serve.md", "cli_serve.rs, with a certificate of its own"),
    ("onramp flows --json", "docs/fleet.md", "that page's are run on hosts of a fleet; cli_flows.rs"),
];

/// What pages say of the host before their commands: a script.
const BEFORE: [(&str, &str); 3] = [
    (
        "docs/apply.md",
        "mkdir -p /etc/onramp; cat page.toml >/etc/onramp/edge.toml; chmod 644 /etc/onramp/edge.toml",
    ),
    ("docs/safety.md", "onramp attach search --default"),
    ("docs/select.md", "onramp attach ramp --start resume+window"),
];

/// What ends by itself only after a while, or not at all.
const SHORTER: [(&str, &str); 3] = [
    ("run -- iperf3 -s", "run -- iperf3 --version"),
    ("--for 1h", "--for 1s"),
    ("record -o recording", "record -o recording --for 1s"),
];

/// What says by its code that there is something to do.
const CODES: [(&str, i32); 1] = [("onramp apply --check", 1)];

fn is_run_elsewhere(page: &str, line: &str) -> bool {
    ELSEWHERE.iter().any(|(begin, of, _)| line.starts_with(begin) && (of.is_empty() || *of == page))
}

/// A shell in this directory, which finds `onramp`.
fn sh(directory: &Path, script: &str) -> Ran {
    let programs = binary().parent().expect("a directory").display();
    let path = format!("{programs}:{}", env::var("PATH").unwrap_or_default());
    Command::new("sh").args(["-c", script]).current_dir(directory).env("PATH", path).output().unwrap().into()
}

/// Runs a page's commands; the result is how many.
fn run(page: &str, text: &str) -> usize {
    let directory = tempfile::tempdir().unwrap();
    if let Some((_, toml)) = text.split_once("```toml\n") {
        fs::write(directory.path().join("page.toml"), toml.split("```").next().unwrap()).unwrap();
    }
    for (_, script) in BEFORE.iter().filter(|(of, _)| *of == page) {
        sh(directory.path(), script).ok();
    }
    let mut ran = 0;
    for line in of_page(text).iter().filter(|line| !is_run_elsewhere(page, line)) {
        let (from, to) = SHORTER.iter().find(|(from, _)| line.contains(from)).unwrap_or(&("", ""));
        let mut script = line.replacen(from, to, 1);
        if line.starts_with("onramp serve") {
            script = format!("timeout --preserve-status --signal=INT 2 {script}");
        }
        let code = CODES.iter().find(|(begin, _)| line.starts_with(begin)).map_or(0, |(_, code)| *code);
        let said = sh(directory.path(), &script);
        assert_eq!(said.code, Some(code), "{page}: {script}: {said:?}");
        ran += 1;
    }
    onramp("undo").ok();
    ran
}

#[test]
#[ignore = "in a guest: make test"]
fn commands_of_pages_run_in_the_order_in_which_they_stand() {
    let _attachments = Attachments::lock();
    let ran: usize = PAGES.iter().map(|(page, text)| run(page, text)).sum();
    assert!(ran > 25, "{ran}");
    fs::remove_dir_all("/etc/onramp").unwrap();
}

#[test]
fn every_page_with_commands_is_run_and_every_exception_is_needed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let with_commands = pages(&root).into_iter().filter(|(_, text)| !of_page(text).is_empty());
    let there: BTreeSet<_> = with_commands.map(|(path, _)| path).collect();
    let named: BTreeSet<_> = PAGES.iter().map(|(path, _)| PathBuf::from(path)).collect();
    assert_eq!(there, named);
    let lines: Vec<_> = PAGES
        .iter()
        .flat_map(|(page, text)| of_page(text).into_iter().map(move |line| (page, line)))
        .collect();
    for (begin, of, test) in ELSEWHERE {
        let is_there =
            lines.iter().any(|(page, line)| line.starts_with(begin) && (of.is_empty() || of == **page));
        assert!(is_there, "no command begins with {begin:?} of {of} ({test})");
    }
}
