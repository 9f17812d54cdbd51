//! Help, completions, JSON, pipes: what needs no kernel.

#[path = "cli_output/completion.rs"]
mod completion;
#[path = "cli_output/examples.rs"]
mod examples;
#[path = "cli_output/progress.rs"]
mod progress;
#[path = "cli_output/refused.rs"]
mod refused;

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use onramp_tests::cli::{self, Names, Ran, json, onramp};

/// What `onramp --help` lists, but for the words of the laboratory.
const VERBS: [&str; 21] = [
    "list", "attach", "confirm", "tune", "detach", "upgrade", "undo", "status", "run", "select", "paths",
    "apply", "flows", "watch", "top", "serve", "record", "replay", "shadow", "explain", "doctor",
];

/// The verbs that a program's help lists.
fn listed(help: &str) -> Vec<&str> {
    let commands = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let lines = commands.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|verb| !verb.is_empty()))
        .collect()
}

/// Runs the laboratory's program.
fn laboratory(arguments: &str) -> Ran {
    Command::new(cli::laboratory()).args(arguments.split_whitespace()).output().unwrap().into()
}

#[test]
fn every_verb_explains_itself_with_an_example() {
    let overview = onramp("--help").ok();
    assert_eq!(listed(&overview), [&VERBS[..], &["lab", "sim", "help"]].concat());
    for verb in VERBS {
        let help = onramp(&format!("{verb} --help")).ok();
        assert!(help.contains(&format!("onramp {verb}")) && help.contains("Examples:"), "{help}");
    }
    assert!(onramp("--version").ok().starts_with("onramp "));
    let overview = laboratory("--help").ok();
    let verbs = listed(&overview);
    assert!(["run", "compare", "sim", "profile"].iter().all(|verb| verbs.contains(verb)), "{overview}");
    for hidden in ["inside", "once", "man", "completions"] {
        assert!(!verbs.contains(&hidden), "{overview}");
    }
    assert!(laboratory("--version").ok().starts_with("onramp-lab "));
}

/// The program alone in a directory.
fn alone() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("onramp");
    std::fs::hard_link(cli::binary(), &program)
        .or_else(|_| std::fs::copy(cli::binary(), &program).map(drop))
        .unwrap();
    (directory, program)
}

#[test]
fn words_of_the_laboratory_execute_it_and_name_its_package_where_it_is_missing() {
    for (word, verb) in [("lab", ""), ("sim", "sim ")] {
        let help = onramp(&format!("{word} --help")).ok();
        assert!(help.contains(&format!("Usage: onramp-lab {verb}")), "{help}");
    }
    let listed = json("lab profile list");
    assert_eq!(
        listed,
        serde_json::from_str::<serde_json::Value>(&laboratory("profile list --json").ok()).unwrap()
    );
    assert_eq!(onramp("lab nonsense").code, Some(2));
    let (directory, program) = alone();
    for words in [["lab", "run"], ["sim", "run"]] {
        let ran = Command::new(&program).args(words).env("PATH", directory.path()).output().unwrap();
        let said = Ran::from(ran).refused(1);
        assert!(said.contains("onramp-lab"), "{said}");
    }
}

#[test]
fn the_laboratory_is_found_next_to_the_program_or_in_the_path_and_takes_its_place() {
    let (directory, program) = alone();
    let elsewhere = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", elsewhere.path().display());
    // env(1) stands for it: it executes what it is given.
    for place in [elsewhere.path(), directory.path()] {
        symlink("/usr/bin/env", place.join("onramp-lab")).unwrap();
        let lab = |script: &str| {
            let mut command = Command::new(&program);
            command.args(["lab", "sh", "-c", script, "name", "two words", "--help"]);
            command.env("PATH", &path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"typed").unwrap();
            child.wait_with_output().unwrap()
        };
        let ran = Ran::from(lab("cat; printf '<%s>' \"$@\"; echo said >&2; exit 42"));
        let got = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(got, (Some(42), "typed<two words><--help>", "said\n"));
        assert_eq!(lab("cat >/dev/null; kill -9 $$").status.signal(), Some(9));
        std::fs::remove_file(elsewhere.path().join("onramp-lab")).ok();
    }
}

#[test]
fn options_of_the_base_are_listed_and_an_unknown_one_is_refused_with_those_that_there_are() {
    let listed = json("list")["after_exit"].clone();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["plateau", "floor"]), "{listed}");
    let help = onramp("attach --help").ok();
    for call in [
        "attach ramp --after-exit floors",
        "upgrade ramp --after-exit floors",
        "run --after-exit floors -- true",
    ] {
        let ran = onramp(call);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(names.iter().all(|name| ran.stderr.contains(name) && help.contains(name)), "{ran:?}");
    }
}

#[test]
fn every_verb_has_a_manual_page_and_hidden_ones_have_none() {
    let directory = tempfile::tempdir().unwrap();
    onramp(&format!("man {}", directory.path().display())).ok();
    laboratory(&format!("-q man {}", directory.path().display())).ok();
    let page = |name: &str| std::fs::read_to_string(directory.path().join(name));
    let overview = page("onramp.8").unwrap();
    for verb in VERBS {
        let named = verb.replace('-', "\\-");
        assert!(overview.contains(&format!("onramp\\-{named}(8)")), "{verb}: {overview}");
        let page = page(&format!("onramp-{verb}.8")).unwrap();
        assert!(page.contains(".TH onramp") && page.contains(".SH EXAMPLES\n"), "{page}");
    }
    for verb in ["run", "compare", "sim-tune", "bench-load"] {
        let page = page(&format!("onramp-lab-{verb}.1")).unwrap();
        assert!(page.contains(".TH onramp") && page.contains(".SH EXAMPLES\n"), "{page}");
    }
    for hidden in ["onramp-expire.8", "onramp-man.8", "onramp-lab-inside.1"] {
        assert!(page(hidden).is_err(), "{hidden}");
    }
    let mut written = 0;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.contains("help"), "{name}");
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains(".SH \"EXIT STATUS\"\n0 done"), "{page}");
        assert!(page.contains(".SH \"SEE ALSO\"\nonramp"), "{page}");
        assert!(!page.contains(".SH EXTRA"), "{page}");
        written += 1;
    }
    assert!((40..80).contains(&written), "{written} pages");
    let file = directory.path().join("onramp.8");
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
fn what_replaced_a_verb_or_an_option_is_named() {
    for (arguments, successor) in [
        ("export recording --format qlog", "lab qlog"),
        ("help export", "lab qlog"),
        ("bench", "lab bench"),
        ("model", "lab model"),
        ("profile check x.toml", "lab profile"),
        ("compare-arms ramp", "status --guard"),
        ("doctor --undo", "undo settings"),
        ("shadow --algorithms ramp", "--algorithm "),
        ("shadow --under-way", "--established"),
        ("serve --otlp http://127.0.0.1:4318", "/metrics"),
        ("lab calibrate", "closed forms"),
    ] {
        let ran = onramp(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(successor), "{ran:?}");
    }
    assert!(!onramp("export x").stderr.contains("expire"));
}

#[test]
fn a_time_limit_that_is_none_or_is_never_reached_is_refused() {
    for limit in ["0s", "0.0000001us", "36501d", "99999999999d", "10"] {
        let ran = onramp(&format!("attach ramp --for {limit} --dry-run"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(limit), "{ran:?}");
    }
}

#[test]
fn doctor_checks_buffers_against_a_path() {
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
    assert!(onramp("doctor --fix").refused(2).contains("--fix"));
    assert!(onramp("doctor --dry-run").refused(2).names(&["--dry-run", "--fix"]));
    assert_eq!(onramp("doctor --undo").code, Some(2));
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
    assert!(ran.refused(1).contains("stdout"));
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
        vec!["lab", "profile", "show", &good],
        vec!["lab", "profile", "show", &bad],
        vec!["--json", "lab", "profile", "show", &good],
        vec!["replay", &csv, "--algorithm", "search"],
        vec!["replay", &recording, "--algorithm", "search"],
        vec!["-v", "replay", &missing, "--algorithm", "search"],
        vec!["lab", "qlog", &missing],
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

#[test]
fn programs_look_up_users_and_hosts_without_the_name_services_that_static_ones_lack() {
    for program in [cli::binary(), &cli::laboratory()] {
        let program = std::fs::read(program).unwrap();
        // But for getpwuid_r: the library that completes paths has it for `~`, and is not asked (completions of onramp_terminal).
        for name in ["getaddrinfo", "getpwnam_r", "getgrnam_r", "getgrgid_r", "getservbyname_r"] {
            let symbol = format!("\0{name}\0");
            assert!(!program.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes()), "{name}");
        }
    }
}
