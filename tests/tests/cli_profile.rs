//! `onramp-lab profile`: needs no kernel and no privilege; only /etc is a guest's.

use std::fs;
use std::path::{Path, PathBuf};

use onramp_tests::cli::{command, json, onramp};
use onramp_tests::guest;
use serde_json::Value;
use tempfile::{NamedTempFile, tempdir};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn example() -> &'static str {
    include_str!("../../docs/example.toml")
}

/// A file with this text, gone when dropped.
fn profile_of(text: &str) -> NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn every_shipped_profile_and_the_annotated_example_are_right() {
    let mut paths = vec![root().join("docs/example.toml")];
    let shipped = fs::read_dir(root().join("profiles")).unwrap().map(|entry| entry.unwrap().path());
    // Profiles are named in lower case; the crate next to them has its Cargo.toml.
    let is_profile = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
    };
    paths.extend(shipped.filter(is_profile));
    assert!(paths.len() > 2);
    let mut check = command(["lab", "profile", "check"]);
    let output = check.args(&paths).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with(": ok")).count(), paths.len());
}

#[test]
fn the_example_has_every_setting_of_the_hosts() {
    for key in onramp_profiles::host::HostSpec::KEYS {
        assert!(example().contains(&format!("\n{key} = ")), "{key}");
    }
}

#[test]
fn what_is_wrong_is_named_with_key_value_and_range() {
    for (name, from, to, expected) in [
        (
            "link",
            "delay_us = 50_000",
            "delay_us = 50_000_000_000",
            "link.forward.delay_us = 50000000000 is out of range: expected 0 to 10000000",
        ),
        (
            "aqm",
            "drop_probability = 0.1",
            "drop_probability = 10",
            "link.forward.aqm.drop_probability = 10 is out of range: expected 0 to 1",
        ),
        (
            "host",
            "mtu_bytes = 1_500",
            "mtu_bytes = 9_000",
            "host.mtu_bytes = 9000 is out of range: expected 256 to 1500",
        ),
        (
            "buffers",
            "tcp_wmem = [4_096, 16_384",
            "tcp_wmem = [4_096, 1_024",
            "host.tcp_wmem[1] = 1024 is out of range",
        ),
        ("key", "tcp_sack = true", "tcp_sac = true", "unknown key `tcp_sac`"),
        (
            "algorithm",
            "algorithm = \"search\"",
            "algorithm = \"serach\"",
            "\"serach\" is not known (did you mean \"search\"?): give one of plain",
        ),
        (
            "parameter",
            "threshold_pct = 26",
            "treshold_pct = 26",
            "no parameter \"treshold_pct\" (did you mean \"threshold_pct\"?); it has form",
        ),
        (
            "value",
            "threshold_pct = 26",
            "threshold_pct = 126",
            "threshold_pct=126 is not allowed: give 0..100 percent",
        ),
        (
            "choice",
            "look_back = \"min\"",
            "look_back = \"never\"",
            "look_back=never is not allowed: give latest|smoothed|min",
        ),
        (
            "algorithm of a table",
            "[params.inflight]",
            "[params.inflght]",
            "params.\"inflght\" is not known (did you mean \"inflight\"?): give one of plain",
        ),
        (
            "parameter of a table",
            "[params.inflight]",
            "[params.fixed]\nexit_window = 3",
            "no parameter \"exit_window\" (did you mean \"exit_window_bytes\"?); it has exit_window_bytes",
        ),
        (
            "value of a table",
            "[params.inflight]",
            "[params.hystart]\nlow_window_segments = 3_000_000_000",
            "is not allowed: give",
        ),
        (
            "twice",
            "[params.inflight]",
            "[params.search]\nthreshold_pct = 30",
            "threshold_pct stands in [params] and in [params.search]: say it once",
        ),
        ("version", "version = 1", "version = 2", "version = 2 is out of range"),
    ] {
        assert!(example().contains(from), "{from}");
        let file = profile_of(&example().replacen(from, to, 1));
        let ran = onramp(&format!("--json lab profile check {}", file.path().display()));
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&report["schema"], &report["profiles"][0]["valid"]), (&1.into(), &false.into()));
        let error = report["profiles"][0]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn a_profile_that_is_not_there_is_a_usage_error_and_the_others_are_checked_all_the_same() {
    let ran = onramp("lab profile check geo nowhere ./nowhere.toml");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.starts_with("geo: ok\nnowhere: there is no profile"), "{ran:?}");
    onramp("lab profile show nowhere").refused(2);
    assert_eq!(onramp("lab profile check").code, Some(2));
}

#[test]
fn what_is_shown_is_the_profile_again_with_what_follows_from_it() {
    let shown = json("lab profile show geo");
    let derived = &shown["derived"];
    assert_eq!((&derived["bdp_bytes"], &derived["base_rtt_us"]), (&11_250_000.into(), &600_000.into()));
    assert_eq!(derived["recommended_buffer_bytes"], 26_214_400);
    assert!((derived["queue_to_bdp"].as_f64().unwrap() - 3.2).abs() < 1e-9);
    assert_eq!((&derived["algorithm"], &derived["buffers_hold_bdp"]), (&"ramp".into(), &true.into()));
    // What the profile does not set has the algorithm's default.
    assert_eq!(shown["parameters"].as_object().unwrap().len(), 1);
    assert_eq!(shown["other_algorithms"]["search"]["threshold_pct"], 10);

    let text = onramp("lab profile show geo").ok();
    let file = profile_of(&text);
    let again = json(&format!("lab profile show {}", file.path().display()));
    assert_eq!((&again["profile"], &again["derived"]), (&shown["profile"], derived));
}

#[test]
fn parameters_are_shown_of_each_algorithm_that_the_profile_has_some_for() {
    let text = example().replacen("[params.inflight]", "[params.fixed]\nexit_window_bytes = 99_000", 1);
    let file = profile_of(&text);
    let shown = json(&format!("lab profile show {}", file.path().display()));
    assert_eq!(shown["parameters"]["threshold_pct"], 26);
    assert_eq!(shown["other_algorithms"], serde_json::json!({ "fixed": { "exit_window_bytes": 99_000 } }));
    let shown = onramp(&format!("lab profile show {}", file.path().display())).ok();
    assert!(shown.contains("\n# fixed: exit_window_bytes=99000\n"), "{shown}");
    // Whichever of them is asked for gets its own, and the others keep their defaults. Reordering is not simulated.
    let (before, from) = text.split_once("[link.forward.reordering]").unwrap();
    let file = profile_of(&format!("{before}{}", &from[from.find("[link.return]").unwrap()..]));
    let arm = |algorithm: &str| {
        let profile = file.path().display();
        let result = json(&format!("sim run {algorithm} --profile {profile} --bytes 100000"));
        result["arms"][0]["definition"]["parameters"].clone()
    };
    assert_eq!(arm("fixed")["exit_window_bytes"], "99000");
    assert_eq!(arm("search")["threshold_pct"], "26");
    assert_eq!(arm("hystart")["low_window_segments"], "16");
}

#[test]
fn a_name_is_not_looked_up_where_the_caller_is_but_a_path_is() {
    let directory = tempdir().unwrap();
    let here = directory.path().join("profiles");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("geo.toml"), example()).unwrap();
    let rate = |given: &str| {
        let mut show = command(["--json", "lab", "profile", "show", given]);
        let output = show.current_dir(&directory).output().unwrap();
        assert!(output.status.success());
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["profile"]["link"]["forward"]["rate_bps"].as_u64().unwrap()
    };
    assert_eq!((rate("geo"), rate("profiles/geo.toml")), (150_000_000, 50_000_000));
}

#[test]
#[ignore = "in a guest: make test"]
fn own_profiles_come_before_those_built_in_and_wrong_ones_are_listed_with_their_error() {
    guest::required();
    let own = Path::new("/etc/onramp/profiles");
    fs::create_dir_all(own).unwrap();
    fs::write(own.join("geo.toml"), example()).unwrap();
    fs::write(own.join("broken.toml"), "version = 1\n").unwrap();
    let listed = json("lab profile list");
    fs::remove_dir_all("/etc/onramp").unwrap();
    let rows = listed["profiles"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(
        (&row("geo")["origin"], &row("leo")["origin"]),
        (&"/etc/onramp/profiles/geo.toml".into(), &"built in".into())
    );
    assert_eq!(row("geo")["summary"]["rate_bps"], 50_000_000);
    assert!(row("broken")["error"].as_str().unwrap().contains("is missing"), "{listed}");
    assert_eq!(rows.iter().filter(|row| row["name"] == "geo").count(), 1);
}
