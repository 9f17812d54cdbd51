//! What is asked for wrongly: exit code 2, and an error that names the argument and what to give instead.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use onramp_tests::cli::{self, Names, Ran, onramp};

fn recording() -> String {
    format!("{}/../recording/src/tests/recorded", env!("CARGO_MANIFEST_DIR"))
}

/// Standard error of a command that is refused, however many lines it has.
#[track_caller]
fn says(command: &str) -> String {
    let ran = onramp(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command}: {ran:?}");
    ran.stderr
}

#[test]
fn numbers_are_refused_with_their_range() {
    for (command, range) in [
        ("sim compare --arms cubic,plain --seed 99999999999999999999", "0 to 18446744073709551615"),
        ("sim compare --arms cubic,plain --seed -1", "0 to 18446744073709551615"),
        ("sim compare --arms cubic,plain -n -1", "1 to 10000"),
        ("explain --for -5s", "for instance 30s"),
        ("sim compare --arms cubic,plain -n 0", "1 to 10000"),
        ("sim compare --arms cubic,plain -n 999999999999", "1 to 10000"),
        ("sim agree x --percent many", "0 to 100"),
        ("lab compare --arms cubic --jobs 17", "1 to 16"),
        ("lab qlog x --flow -", "0 to 18446744073709551615"),
        ("watch --count 0", "1 to 1000000000000"),
        ("explain --for 99999999d", "1us to 36500d"),
        ("record --for 0s -o x", "1us to 36500d"),
    ] {
        let error = says(command);
        assert!(error.contains(range), "{command}: {error}");
    }
}

#[test]
fn the_simulator_is_not_compared_with_itself() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("result.json");
    fs::write(&file, onramp("--json sim compare --arms cubic --bytes 100k -n 1").ok()).unwrap();
    for command in ["sim agree FILE", "sim agree ../tests/golden/6.1-geo.json --against FILE"] {
        let error = says(&command.replace("FILE", &file.display().to_string()));
        assert!(error.contains("was simulated"), "{error}");
    }
}

#[test]
fn files_that_are_not_there_or_are_something_else_are_wrong_usage() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    fs::write(path("text"), "text\n").unwrap();
    fs::create_dir(path("empty")).unwrap();
    for file in ["nowhere", "text", "empty"] {
        for command in [
            "explain FILE",
            "replay FILE --algorithm search",
            "lab qlog FILE",
            "lab verify FILE",
            "lab plot FILE -o -",
            "sim agree FILE",
            "lab profile import FILE --rtt 10ms -o x.toml",
        ] {
            // Where there is a directory, it cannot be read as a file.
            if file == "empty" && command.contains("import") {
                continue;
            }
            let file =
                path(if file == "nowhere" && command.starts_with("explain") { "no.pcap" } else { file });
            let error = onramp(&command.replace("FILE", &file)).refused(2);
            assert!(error.contains(&file), "{command}: {error}");
        }
    }
    for command in [
        format!("sim sweep --paths 2 --arms plain -o {}", path("text")),
        format!("replay {} --algorithm search -o {}", recording(), path("empty")),
        format!("lab plot {} -o {}", path("result.json"), path("result.pdf")),
        format!("lab compare --arms cubic --kernel {}", path("empty")),
    ] {
        let error = onramp(&command).refused(2);
        assert!(error.contains(place.path().to_str().unwrap()), "{command}: {error}");
    }
    assert!(onramp("lab kernel fetch 5.10").refused(2).contains("6.12"));
    for command in ["6.1 6.12 --from .", "6.12 --from /nowhere", "6.12 --from http://127.0.0.1/k"] {
        onramp(&format!("lab kernel fetch {command}")).refused(2);
    }
    assert!(!Path::new(&path("result.pdf")).exists());
}

#[test]
fn a_flow_that_is_not_recorded_is_no_qlog() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("flows.sqlog");
    let qlog = |flow: u32| onramp(&format!("lab qlog {} --flow {flow} -o {}", recording(), log.display()));
    assert!(qlog(4_711).refused(1).contains("of flow 4711"));
    assert!(!log.exists());
    assert_eq!(qlog(7).code, Some(0));
    assert!(fs::read_to_string(log).unwrap().lines().count() > 24);
}

#[test]
fn what_is_given_twice_is_refused() {
    for command in [
        "sim compare --arms cubic,search --set search.threshold_pct=1 --set search.threshold_pct=2",
        "sim compare --arms cubic,search:threshold_pct=1:threshold_pct=2",
        "replay x --algorithm search --set threshold_pct=1 --sweep threshold_pct=1,2",
        "attach search --dry-run --set threshold_pct=1 --set threshold_pct=2",
    ] {
        assert!(onramp(command).refused(2).contains("threshold_pct"), "{command}");
    }
}

#[test]
fn a_word_that_could_be_meant_otherwise_is_named_with_what_it_could_be() {
    assert!(says("attach ramp exit_pct=90").contains("--set exit_pct=90"));
    assert!(!says("status exit_pct=90").contains("--set"));
    assert!(onramp("explain nothere").refused(2).names(&["no file", "\"nothere\"", "filter"]));
    assert!(!onramp("explain src nothere").refused(2).contains("no file"));
    let error = onramp("sim compare --arms cubic,nothing").refused(2);
    assert!(error.contains("oracle") && !error.contains("dctcp"), "{error}");
    for (words, place) in [(&["explain"][..], "argument 2"), (&["attach", "ramp", "--set"], "argument 4")] {
        let mut command = cli::command(words);
        let ran: Ran = command.arg(OsStr::from_bytes(b"\xff.pcap")).output().unwrap().into();
        assert!(ran.refused(2).names(&[place, "UTF-8"]), "{words:?}");
    }
}
