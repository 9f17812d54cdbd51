//! `onramp explain` of recordings and logs that need no kernel.

use std::fs;
use std::path::Path;

use onramp_tests::cli::{self, Ran, onramp};
use onramp_tests::recordings::recording;
use serde_json::Value;
use tempfile::tempdir;

/// A log has a record for all that was sent between two acknowledgments, and of what is acknowledged within one nothing.
#[test]
fn a_log_is_explained_as_the_recording_that_it_was_made_from_and_as_a_page() {
    let home = tempdir().unwrap();
    let (path, log) = (home.path().join("recording"), home.path().join("flows <1>.sqlog"));
    recording(&path);
    onramp(&format!("lab qlog {} -o {}", path.display(), home.path().join("log").display())).ok();
    fs::rename(home.path().join("log"), &log).unwrap();
    let explain = |words: &[&str], path: &Path| -> Ran {
        cli::command(["explain"]).args(words).arg(path).output().unwrap().into()
    };
    let report = |path| serde_json::from_str::<Value>(&explain(&["--json"], path).ok()).unwrap();
    let (of_recording, of_log) = (report(&path), report(&log));
    assert_eq!((&of_recording["source"], &of_log["source"]), (&"recording".into(), &"qlog".into()));
    let flows = |report: &Value| -> Vec<(Value, Value)> {
        let flows = report["flows"].as_array().unwrap().iter();
        flows.map(|flow| (flow["local_port"].clone(), flow["limited"].clone())).collect()
    };
    assert_eq!(flows(&of_recording), flows(&of_log));
    // Its exits the recorder has from the kernel; a log shows them by thresholds, of which the ACKs of this one have none.
    for (report, state) in [(&of_recording, "ended"), (&of_log, "lasts")] {
        let flows = report["flows"].as_array().unwrap();
        assert!(flows.iter().all(|flow| flow["slow_start"]["state"] == state), "{report}");
    }
    assert_eq!(of_log["flows"].as_array().unwrap().len(), 2);

    let page = explain(&["--html"], &path).ok();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert_eq!((page.matches("<section>").count(), page.matches("<svg").count()), (2, 4));
    for absent in ["<script", "http", "src=", "url("] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    for refused in [["--html", "--json"], ["--html", "--follow"]] {
        assert_eq!(explain(&refused, &path).code, Some(2));
    }
    // What algorithms need is not in it.
    let error: Ran = cli::command(["replay", "--algorithm", "search"]).arg(&log).output().unwrap().into();
    assert!(error.refused(2).contains("qlog"));
}

/// The default algorithm, over the same ACKs; a log has too little for it.
#[test]
fn what_another_algorithm_would_have_done_is_what_its_replay_finds() {
    let home = tempdir().unwrap();
    let (path, log) = (home.path().join("recording"), home.path().join("flows.sqlog"));
    recording(&path);
    onramp(&format!("lab qlog {} -o {}", path.display(), log.display())).ok();
    let json = |words: &str| serde_json::from_str::<Value>(&onramp(&format!("--json {words}")).ok()).unwrap();
    let replayed = json(&format!("replay {} --algorithm ramp", path.display()));
    let found: Vec<_> =
        replayed["flows"].as_array().unwrap().iter().map(|flow| &flow["findings"][0]).collect();
    let explained = json(&format!("explain {}", path.display()));
    let explained: Vec<_> =
        explained["flows"].as_array().unwrap().iter().map(|flow| &flow["would_have"]).collect();
    assert_eq!(explained.len(), found.len());
    for (would_have, finding) in explained.into_iter().zip(found) {
        assert_eq!(would_have["algorithm"], "ramp");
        assert_eq!(would_have["slow_start"] == "left", !finding["exit"].is_null(), "{would_have} {finding}");
        assert_eq!(would_have["at_us"], finding["exit"]["since_start_us"]);
        assert_eq!(would_have["window_bytes"], finding["exit"]["window_bytes"]);
    }
    let explained = json(&format!("explain {}", log.display()));
    assert!(explained["flows"].as_array().unwrap().iter().all(|flow| flow["would_have"].is_null()));
}

#[test]
fn flows_whose_ends_no_row_has_are_explained_and_what_a_filter_leaves_out_is_counted() {
    let home = tempdir().unwrap();
    let path = home.path().join("recording");
    recording(&path);
    let explain = |words: &str| {
        let ran = onramp(&format!("--json explain {} {words}", path.display()));
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let flows = report["flows"].as_array().unwrap().len();
        (ran.code, flows, report["filtered_out"].as_u64().unwrap(), ran.stderr)
    };
    assert_eq!(explain(""), (Some(0), 2, 0, String::new()));
    assert_eq!(explain("sport = :40001"), (Some(0), 1, 1, String::new()));
    assert_eq!(explain("dst 198.51.100.0/24"), (Some(0), 0, 2, String::new()));
    for entry in fs::read_dir(&path).unwrap() {
        let file = entry.unwrap().path();
        if file.file_name().unwrap().to_string_lossy().starts_with("flows") {
            fs::remove_file(file).unwrap();
        }
    }
    let (code, flows, filtered_out, said) = explain("");
    assert_eq!((code, flows, filtered_out), (Some(5), 2, 0));
    assert!(said.contains("the ends of 2 flows are not known"), "{said}");
    let (code, flows, filtered_out, _) = explain("sport = :40001");
    assert_eq!((code, flows, filtered_out), (Some(5), 0, 2));
}
