//! Help, completions, JSON, pipes: what needs no kernel.

#[path = "cli_output/examples.rs"]
mod examples;
#[path = "cli_output/progress.rs"]
mod progress;

use std::io::Read;
use std::process::Stdio;

use onramp_tests::cli::{self, Ran, json, onramp};

const VERBS: [&str; 16] = [
    "list",
    "attach",
    "detach",
    "status",
    "tune",
    "run",
    "select",
    "flows",
    "watch",
    "top",
    "doctor",
    "undo",
    "shadow",
    "model",
    "profile",
    "completions",
];

#[test]
fn every_verb_explains_itself_with_an_example() {
    let overview = onramp("--help").ok();
    for verb in VERBS {
        assert!(overview.contains(&format!("\n  {verb}")), "{verb}");
        let help = onramp(&format!("{verb} --help")).ok();
        assert!(help.contains(&format!("onramp {verb}")) && help.contains("Examples:"), "{help}");
    }
    assert!(!overview.contains("expire"), "{overview}");
    assert!(onramp("--version").ok().starts_with("onramp "));
}

#[test]
fn completions_are_made_for_each_shell_and_know_verbs_and_algorithms() {
    for (shell, marks) in
        [("bash", "complete -F _onramp"), ("zsh", "#compdef onramp"), ("fish", "complete -c onramp")]
    {
        let script = onramp(&format!("completions {shell}")).ok();
        assert!(script.contains(marks), "{shell}");
        for word in VERBS.into_iter().chain(["search"]) {
            assert!(script.contains(word), "{shell} {word}");
        }
        assert!(!script.contains("expire"), "{shell}");
    }
    assert_eq!(onramp("completions tcsh").code, Some(2));
    let script = onramp("completions bash").ok();
    let mut bash = std::process::Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}

#[test]
fn every_verb_has_a_manual_page_and_hidden_ones_have_none() {
    let directory = tempfile::tempdir().unwrap();
    onramp(&format!("man {}", directory.path().display())).ok();
    let page = |name: &str| std::fs::read_to_string(directory.path().join(name));
    let overview = page("onramp.1").unwrap();
    for verb in VERBS {
        assert!(overview.contains(&format!("onramp\\-{verb}(1)")), "{verb}: {overview}");
        let page = page(&format!("onramp-{verb}.1")).unwrap();
        assert!(page.contains(".TH onramp") && page.contains("Examples:"), "{page}");
    }
    assert!(page("onramp-lab-run.1").unwrap().contains("profile"));
    assert!(page("onramp-expire.1").is_err());
    let file = directory.path().join("onramp.1");
    let refused = onramp(&format!("man {}", file.display()));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(&format!("cannot make {}", file.display())), "{}", refused.stderr);
}

#[test]
fn the_listing_needs_no_privilege_and_has_every_declaration() {
    let listed = json("list");
    let algorithms = listed["algorithms"].as_array().unwrap();
    assert_eq!(algorithms.len(), onramp_loader::algorithm::all().count());
    for (row, algorithm) in algorithms.iter().zip(onramp_loader::algorithm::all()) {
        assert_eq!(row["name"], algorithm.name());
        assert_eq!(row["state_bytes"], algorithm.kept_size());
        assert_eq!(row["extra_state_bytes"], algorithm.state_size() - algorithm.kept_size());
        assert_eq!(row["header_bytes"], size_of::<onramp_loader::abi::FlowHeader>());
        assert_eq!(row["parameters"].as_array().unwrap().len(), algorithm.declarations().len());
        for (one, declared) in row["parameters"].as_array().unwrap().iter().zip(algorithm.declarations()) {
            assert_eq!(one["name"], declared.name);
            assert!(!one["help"].as_str().unwrap().is_empty());
            assert_eq!(one["default"].is_u64(), declared.choices.is_empty());
        }
    }
    onramp("list serach").refused(2);
    let pretty = onramp("--pretty list").ok();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty).unwrap(), listed);
    assert!(pretty.lines().count() > 20);
}

#[test]
fn doctor_judges_buffers_by_a_path() {
    let by_profile = json_of("doctor --profile geo");
    let by_numbers = json_of("doctor --rate 150mbit --rtt 600ms");
    for report in [&by_profile, &by_numbers] {
        assert_eq!(report["path"]["bdp_bytes"], 11_250_000);
        let names: Vec<_> = report["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
        assert!(names.contains(&&"net.ipv4.tcp_rmem".into()), "{names:?}");
    }
    assert_eq!(onramp("doctor --rate 150mbit").code, Some(2));
    assert_eq!(onramp("doctor --rate fast --rtt 1s").code, Some(2));
    onramp("doctor --rate 1mbit --rtt 0s").refused(2);
    onramp("doctor --profile nowhere").refused(2);
    assert!(onramp("doctor --fix").refused(2).contains("--fix needs a path"));
    assert!(onramp("doctor --dry-run").refused(2).contains("--dry-run goes with --fix or --undo"));
    assert_eq!(onramp("doctor --undo --profile geo").code, Some(2));
    assert_eq!(onramp("doctor --undo --fix").code, Some(2));
}

/// As [`json`] for a verb that fails where something is missing.
fn json_of(arguments: &str) -> serde_json::Value {
    let ran = onramp(&format!("--json {arguments}"));
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [["list", "--json"], ["list", "--pretty"], ["completions", "bash"]] {
        let mut child =
            cli::command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran: Ran = cli::command(["list"]).stdout(full).output().unwrap().into();
    assert!(ran.refused(1).contains("cannot write to stdout"));
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let colored = |arguments: &str| onramp(arguments).ok().contains('\x1b');
    assert!(!colored("list"));
    assert!(colored("list --color always"));
    assert!(!colored("list --color never"));
    assert!(!colored("list --color always --json"));
}

#[test]
fn unknown_verbs_and_options_are_usage_errors() {
    for arguments in ["", "atach search", "list --colour", "attach search --no-such"] {
        assert_eq!(onramp(arguments).code, Some(2), "{arguments}");
    }
}

/// What a terminal acts on: clears the screen, rings, returns, turns the order of signs round, begins a line.
const HOSTILE: &str = "a\u{1b}[2J\u{7}\r\u{9b}31m\u{202e}\u{2066}\nerror: forged";

/// Nothing of [`HOSTILE`] as it is, nor a line that it began.
fn harmless(text: &str) {
    let is_terminal_control =
        |sign: char| sign.is_control() || ('\u{202a}'..='\u{202e}').contains(&sign) || sign == '\u{2066}';
    assert!(!text.chars().any(|sign| is_terminal_control(sign) && sign != '\n' && sign != '\t'), "{text:?}");
    assert!(
        !text.lines().any(|line| line == "error: forged" || line.starts_with("error: forged")),
        "{text:?}"
    );
}

#[test]
fn strings_from_outside_reach_no_terminal_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let place = |end: &str| directory.path().join(format!("{HOSTILE}{end}")).display().to_string();
    // Files of such names: a profile that cannot be read, one that can, CSV, rules, what is wanted, a recording.
    let profile = std::fs::read_to_string("../profiles/geo.toml").unwrap();
    std::fs::write(place(".toml"), profile.replace("about = \"", "about = \"\\u202e")).unwrap();
    std::fs::write(place("-bad.toml"), format!("version = 1\nname = '''{HOSTILE}'''\n")).unwrap();
    std::fs::write(place(".csv"), format!("at_us,{}\n1,2\n", HOSTILE.replace('\n', ""))).unwrap();
    std::fs::write(place(".rules"), "--port 80 --use \u{1b}[2J\u{202e}\n").unwrap();
    std::fs::create_dir(place("-recording")).unwrap();
    std::fs::write(format!("{}/manifest.json", place("-recording")), "{}").unwrap();
    let (good, bad, csv, rules) = (place(".toml"), place("-bad.toml"), place(".csv"), place(".rules"));
    let (recording, missing) = (place("-recording"), place("-missing"));
    for arguments in [
        vec!["attach", HOSTILE],
        vec![HOSTILE],
        vec!["flows", HOSTILE],
        vec!["--color", HOSTILE, "list"],
        vec!["attach", "search", "--profile", HOSTILE],
        vec!["attach", "search", "--set", HOSTILE],
        vec!["profile", "show", &good],
        vec!["profile", "show", &bad],
        vec!["--json", "profile", "show", &good],
        vec!["replay", &csv, "--algorithm", "search"],
        vec!["replay", &recording, "--algorithm", "search"],
        vec!["-v", "replay", &missing, "--algorithm", "search"],
        vec!["export", &recording, "--format", "csv"],
        vec!["select", "load", &rules],
        vec!["apply", &bad],
        vec!["lab", "verify", &bad],
        vec!["sim", "path", &recording],
        vec!["sim", "sweep", "--population", &bad],
        vec!["-vv", "status"],
    ] {
        let output = cli::command(&arguments).output().unwrap();
        let code = output.status.code().unwrap_or_else(|| panic!("{arguments:?} was ended by a signal"));
        assert!(code <= 5, "{arguments:?}: {code}");
        harmless(&String::from_utf8(output.stdout).unwrap());
        harmless(&String::from_utf8(output.stderr).unwrap());
    }
}
