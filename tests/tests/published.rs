//! Published starts, built from outside the tree (lab/examples): each does in the simulator what it is there to be compared for.

use std::fs;
use std::path::{Path, PathBuf};

use onramp_tests::cli::json;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/examples")
}

/// Those that there are: of each there is a file of tests.
fn names() -> Vec<String> {
    let files =
        fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.filter_map(|file| Some(file.strip_suffix("_test.c")?.to_owned())).collect()
}

/// Builds one, which runs its tests: where its object is.
fn build(place: &TempDir, name: &str) -> String {
    let object = place.path().join(format!("{name}.o")).display().to_string();
    let report = json(&format!("lab build {} -o {object}", examples().join(format!("{name}.h")).display()));
    assert_eq!(report["algorithm"], *name);
    assert!(report["tests"].as_array().is_some_and(|tests| tests.len() >= 3), "{report}");
    object
}

/// The one run of each of these arms.
fn runs(arms: &str, transfer: &str) -> Vec<Value> {
    let result = json(&format!("sim compare --arms {arms} {transfer} -n 1"));
    let runs: Vec<_> = result["arms"].as_array().unwrap().iter().map(|arm| arm["runs"][0].clone()).collect();
    assert!(runs.iter().all(|run| run["valid"] == true), "{result}");
    runs
}

fn seconds(run: &Value) -> f64 {
    run["seconds"].as_f64().unwrap()
}

fn retransmitted(run: &Value) -> u64 {
    run["retransmitted_segments"].as_u64().unwrap()
}

#[test]
fn each_builds_passes_its_tests_and_completes_over_long_and_short_paths() {
    let place = tempdir().unwrap();
    let names = names();
    assert!(names.len() >= 4, "{names:?}");
    let arms: Vec<_> = names.iter().map(|name| build(&place, name)).collect();
    for profile in ["geo", "cable"] {
        assert_eq!(runs(&arms.join(","), &format!("--profile {profile} --bytes 500k")).len(), names.len());
    }
}

#[test]
fn stopeg_leaves_before_the_queue_overflows() {
    let place = tempdir().unwrap();
    let arms = format!("plain,{}", build(&place, "stopeg"));
    let runs = runs(&arms, "--profile terrestrial --bytes 10M");
    assert!(retransmitted(&runs[0]) > 100 && retransmitted(&runs[1]) == 0, "{runs:?}");
    assert_eq!(runs[1]["exit"]["reason"], "algorithm");
}

#[test]
fn afstart_leaves_at_what_a_steady_path_holds() {
    let place = tempdir().unwrap();
    let object = build(&place, "afstart");
    let runs = runs(&object, "--profile terrestrial --bytes 10M");
    // 100 Mb/s, 30 ms.
    let window = runs[0]["exit"]["window_bytes"].as_u64().unwrap();
    assert!((300_000..450_000).contains(&window), "{runs:?}");
}

#[test]
fn flash_is_faster_than_hystart_by_its_second_round_trip() {
    let place = tempdir().unwrap();
    let arms = format!("hystart,{}", build(&place, "flash"));
    let runs = runs(&arms, "--profile terrestrial --bytes 500k");
    assert!(seconds(&runs[1]) < seconds(&runs[0]), "{runs:?}");
}

#[test]
fn scubic_without_a_memory_is_hystart_and_with_one_faster() {
    let place = tempdir().unwrap();
    let object = build(&place, "scubic");
    let arms = format!("hystart,{object},{object}:rate_kbps=100000:rtt_us=30000");
    let runs = runs(&arms, "--profile terrestrial --bytes 500k");
    assert_eq!(runs[0], runs[1]);
    assert!(seconds(&runs[2]) < 0.9 * seconds(&runs[0]), "{runs:?}");
}
