//! `onramp replay` and `onramp-lab qlog` on recordings that need no kernel, and the queries of docs/recording.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use onramp_lab::experiment::{Amount, Arm, Plan};
use onramp_lab::sim::{self, SourceSpec};
use onramp_loader::algorithm::{Ack, Verdict};
use onramp_profiles::Profile;
use onramp_recording::rows::{AckRow, EndRow, ExitRecordRow, FlowRow, RestartRow, TABLES, UndoRow};
use onramp_recording::{Limits, Manifest, Row, SCHEMA, Spec, Writer};
use onramp_tests::cli::{self, Names, Ran, json, onramp};
use onramp_tests::recordings::{recording, recording_from, slow_start};
use onramp_tests::skip;
use serde_json::Value;
use tempfile::tempdir;

/// One simulated flow, to which `onramp sim path` fits a path that holds.
fn recording_of_a_path(directory: &Path) {
    let profile = Profile::parse(include_str!("../../profiles/cable.toml"), "cable.toml").unwrap();
    let plan = Plan { amount: Amount::Bytes(10_000_000), ..Plan::new(profile) };
    let acks = sim::record(&plan, &Arm::stock("onramp_plain"), 1, SourceSpec::Bulk).unwrap();
    let manifest = Manifest { schema: SCHEMA, ..Manifest::default() };
    let mut writer = Writer::create(directory, manifest, Limits::default()).unwrap();
    let start = FlowRow { flow: 7, event: "start".into(), algorithm: "plain".into(), ..FlowRow::default() };
    writer.push(start).unwrap();
    for (sequence, ack) in (1..).zip(&acks) {
        let row = AckRow::new(7, ack, &Verdict::default(), "none".into());
        writer.push(AckRow { slow_starts: 1, sequence, ..row }).unwrap();
    }
    writer.finish(0).unwrap();
}

fn csv(path: &Path, flaw: &str) {
    let mut text =
        "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited\n"
            .to_owned();
    for ack in slow_start(600) {
        let Ack { now_us, bytes_acked, bytes_sent, rtt_us, cwnd, in_flight, mss, .. } = ack;
        text += &format!(
            "{now_us},{bytes_acked},{bytes_sent},{rtt_us},{cwnd},{in_flight},{mss},0\n{}",
            if cwnd == 50 { flaw } else { "" }
        );
    }
    fs::write(path, text).unwrap();
}

#[test]
fn several_algorithms_and_a_sweep_in_one_call_with_a_plot() {
    let home = tempdir().unwrap();
    let (path, plot) = (home.path().join("acks.csv"), home.path().join("plot.svg"));
    csv(&path, "");
    let report = json(&format!(
        "replay {} --algorithm fixed,plain --sweep fixed.exit_window_bytes=50000:150000:50000 -o {}",
        path.display(),
        plot.display()
    ));
    let findings = report["flows"][0]["findings"].as_array().unwrap();
    let windows: Vec<_> = findings.iter().map(|one| one["exit"]["window_bytes"].as_u64()).collect();
    assert_eq!(windows, [Some(50_000), Some(100_000), Some(150_000), None]);
    assert_eq!(findings[1]["settings"], serde_json::json!(["exit_window_bytes=100000"]));
    assert_eq!(findings[3]["evaluated"], 600);
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("<svg") && svg.contains("exit_window_bytes=150000"), "no plot");
}

#[test]
fn a_profile_gives_its_algorithm_and_parameters_and_settings_go_on_top() {
    let home = tempdir().unwrap();
    let (acks, profile) = (home.path().join("acks.csv"), home.path().join("mine.toml"));
    csv(&acks, "");
    let params = "[params]\nexit_window_bytes = 100000\n[params.search]\nthreshold_pct = 20\n";
    let text =
        "version = 1\nname = 'mine'\nabout = 'x'\nlike = 'geo'\nalgorithm = 'fixed'\n".to_owned() + params;
    fs::write(&profile, text).unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../profiles/geo.toml"), home.path().join("geo.toml"))
        .unwrap();
    let replay = |rest: &str| format!("replay {} --profile {} {rest}", acks.display(), profile.display());
    let finding = |rest: &str| json(&replay(rest))["flows"][0]["findings"][0].clone();
    assert_eq!(
        (finding("")["algorithm"].as_str(), finding("")["exit"]["window_bytes"].as_u64()),
        (Some("fixed"), Some(100_000))
    );
    let on_top = finding("--set exit_window_bytes=150000");
    assert_eq!(on_top["exit"]["window_bytes"], 150_000);
    let search = finding("--algorithm search");
    assert!(search["settings"].as_array().unwrap().contains(&"threshold_pct=20".into()), "{search}");
    let refused = onramp(&replay("--algorithm spacing")).refused(2);
    assert!(refused.names(&["spacing", "fixed", "search"]), "{refused}");
}

#[test]
fn bad_rows_are_named_and_the_others_used() {
    let home = tempdir().unwrap();
    let path = home.path().join("acks.csv");
    csv(&path, "1,2,3\n");
    let ran = onramp(&format!("replay {} --algorithm search", path.display()));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.names(&["acks.csv: line 43", "3 values"]), "{ran:?}");
    assert!(ran.stdout.contains("600 acknowledgments"), "{ran:?}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let home = tempdir().unwrap();
    let path = home.path().join("acks.csv");
    csv(&path, "");
    let replay = |rest: &str| onramp(&format!("replay {} {rest}", path.display()));
    assert!(replay("--algorithm serach").refused(2).contains("\"search\""));
    assert!(replay("--algorithm search --set threshold_pct=101").refused(2).contains("0..100 percent"));
    assert!(replay("--algorithm search --sweep threshold_pct=1:2").refused(2).contains("is no sweep"));
    assert_eq!(replay("").code, Some(2));
    let text = fs::read_to_string(&path).unwrap().replacen("app_limited", "app_limited,colour", 1);
    fs::write(&path, text.replace(",0\n", ",0,red\n")).unwrap();
    assert!(replay("--algorithm search").refused(2).contains("colour"));
    assert!(replay("--algorithm search --ignore-unknown").ok().contains("600 acknowledgments"));
    assert!(onramp("replay /nowhere --algorithm search").refused(2).contains("/nowhere"));
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let error = onramp(&format!("replay {} --algorithm search", empty.display())).refused(2);
    assert!(error.names(&["manifest.json", ".parquet"]), "{error}");
}

#[test]
fn the_name_of_a_control_replays_its_algorithm() {
    let home = tempdir().unwrap();
    let path = home.path().join("acks.csv");
    csv(&path, "");
    let [plain, control] = ["search", "onramp_search"].map(|name| {
        let options = [
            format!("--algorithm {name} --set {name}.threshold_pct=30"),
            format!("--algorithm plain,{name} --sweep {name}.threshold_pct=10,20"),
        ];
        options.map(|rest| onramp(&format!("replay {} {rest} --json", path.display())).ok())
    });
    assert_eq!(plain, control);
}

/// One file of each kind that is not ours, with a word that names it.
const KINDS: [(&str, &[u8], &str); 12] = [
    ("capture.pcap", b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0", "pcap"),
    ("capture.pcapng", b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a", "pcapng"),
    ("other.sqlog", b"\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\"}\n", "qlog"),
    ("iperf3.json", b"{\"start\":{\"connected\":[{\"socket\":5}]},\"intervals\":[]}", "iperf3"),
    (
        "ss.txt",
        b"State Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n",
        "ss(8)",
    ),
    ("flent.json", b"{\"metadata\": {\"DATA_FILENAME\": \"x\"}, \"raw_values\": {}}", "flent"),
    ("acks.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
    ("utf16.csv", b"\xff\xfea\0t\0_\0u\0s\0", "UTF-16"),
    ("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0", "ELF"),
    ("picture.png", b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
    ("page.html", b"<!DOCTYPE html><html></html>", "HTML"),
    ("empty", b"", "empty"),
];

#[test]
fn every_verb_that_reads_a_file_names_what_it_is_given_in_its_place() {
    let home = tempdir().unwrap();
    for (name, bytes, kind) in KINDS {
        let path = home.path().join(name);
        fs::write(&path, bytes).unwrap();
        for call in [
            "replay FILE --algorithm search",
            "lab qlog FILE",
            "sim path FILE",
            "lab profile check ./FILE",
            "attach --profile ./FILE --dry-run",
            "lab verify FILE",
            "sim agree FILE",
            "sim sweep --population FILE --path 1",
            "sim run search --profile ./FILE",
        ] {
            let ran = cli::command(call.replace("FILE", name).split(' '))
                .current_dir(home.path())
                .output()
                .unwrap();
            let ran = Ran::from(ran);
            assert!(matches!(ran.code, Some(1 | 2)), "{call} {name}: {ran:?}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains(kind) && said.contains(name), "{call} {name}: {ran:?}");
        }
    }
    // A directory of another kind, and what is not there.
    for call in ["replay . --algorithm search", "sim path .", "lab verify ."] {
        let ran = cli::command(call.split(' ')).current_dir(home.path()).output().unwrap();
        assert!(matches!(ran.status.code(), Some(1 | 2)), "{call}: {ran:?}");
    }
}

#[test]
fn a_dash_is_standard_input_and_output_and_never_a_file() {
    let home = tempdir().unwrap();
    let recorded = home.path().join("recording");
    recording(&recorded);
    recording_of_a_path(&home.path().join("path"));
    csv(&home.path().join("acks.csv"), "");
    let profile = onramp("lab profile show geo").ok();
    fs::write(home.path().join("geo.toml"), &profile[profile.find("version = ").unwrap()..]).unwrap();
    let run = |call: &str, input: Option<&str>| -> Ran {
        let mut command = cli::command(call.split(' '));
        if let Some(file) = input {
            command.stdin(fs::File::open(home.path().join(file)).unwrap());
        }
        command.current_dir(home.path()).output().unwrap().into()
    };
    // What is read.
    let acks = "recording/acks-000001.parquet";
    for (call, file) in [
        ("replay FILE --algorithm search --json", "acks.csv"),
        ("replay FILE --algorithm search --json", acks),
        ("lab qlog FILE", acks),
        ("sim path FILE --flow 1 --json", acks),
        ("sim run search --profile FILE --bytes 1M --json", "geo.toml"),
    ] {
        // As a file a profile is distinguished from a name by its slash.
        let plain = run(&call.replace("FILE", &format!("./{file}")), None);
        let dash = run(&call.replace("FILE", "-"), Some(file));
        assert_eq!(dash.code, plain.code, "{call}: {dash:?}");
        let without = |text: &str| text.replace(&format!("./{file}"), "-");
        assert_eq!(without(&plain.stdout), dash.stdout, "{call}");
    }
    // What is written.
    for (call, begins) in [
        ("lab qlog recording -o -", "\u{1e}{"),
        ("replay recording --algorithm search -o -", "<svg"),
        ("lab model buffers -o -", "<svg"),
        ("lab model bod -o -", "<svg"),
        ("sim path path --bytes 10M --write-profile -", "# Simulate it"),
        ("sim sweep --path 1 --write-profile -", "# Simulate it"),
    ] {
        let ran = run(call, None);
        assert!(
            ran.stdout.starts_with(begins),
            "{call}: {:?} {}",
            ran.code,
            &ran.stdout[..ran.stdout.len().min(200)]
        );
    }
    for call in ["sim sweep --paths 1 -o -", "sim reproduce -o -", "lab evaluate -o -"] {
        assert!(run(call, None).code == Some(2), "{call}");
    }
    assert!(!home.path().join("-").exists());
}

#[test]
fn a_reader_that_leaves_is_no_error_in_any_verb() {
    let home = tempdir().unwrap();
    recording(&home.path().join("recording"));
    recording_of_a_path(&home.path().join("path"));
    for call in [
        "lab qlog recording",
        "lab qlog recording -o -",
        "replay recording --algorithm search",
        "replay recording --algorithm search -o -",
        "list",
        "list --json",
        "lab profile show geo",
        "lab model buffers -o -",
        "sim sweep --path 1 --write-profile -",
        "sim path path --bytes 10M",
        "sim path path --bytes 10M --write-profile -",
    ] {
        // The end that would read is closed before anything is written.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = cli::command(call.split(' ')).current_dir(home.path()).stdout(writer).output().unwrap();
        // What progress there is goes to stderr.
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(0) && !said.contains("error: "), "{call}: {ran:?}");
    }
}

#[test]
fn what_a_recording_says_does_not_steer_the_terminal() {
    let directory = tempdir().unwrap();
    let made = directory.path().join("recording");
    // Retitles the window, clears the screen, and turns the order of signs round.
    recording_from(&made, "192.0.2.1\x1b]0;title\x07\x1b[2J\u{202e}");
    let said = onramp(&format!("replay {} --algorithm search", made.display())).ok();
    assert!(said.contains(r"192.0.2.1\u001b]0;title\u0007\u001b[2J\u202e"), "{said:?}");
    assert!(!said.contains(['\x1b', '\x07', '\u{202e}']), "{said:?}");
    let missing = onramp("replay /nonexistent\x1b[2J --algorithm search");
    assert!(missing.code == Some(2) && !missing.stderr.contains('\x1b'), "{missing:?}");
}

#[test]
fn a_damaged_file_is_named_and_the_others_replayed_and_exported() {
    let home = tempdir().unwrap();
    let path = home.path().join("recording");
    recording(&path);
    let whole = json(&format!("replay {} --algorithm search --continue", path.display()));
    assert_eq!(whole["flows"].as_array().unwrap().len(), 2);
    for flow in whole["flows"].as_array().unwrap() {
        assert_eq!(flow["acks"], 600);
        assert_eq!(flow["findings"][0]["recorded"]["different"], 0);
        assert_eq!(flow["recorded_exit"]["reason"], "loss");
    }
    let one = json(&format!("replay {} --algorithm search --flow 2", path.display()));
    assert_eq!(one["flows"].as_array().unwrap().len(), 1);
    let file = path.join("acks-000003.parquet");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    for verb in ["replay --algorithm search --continue", "lab qlog"] {
        let ran = onramp(&format!("{verb} {}", path.display()));
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert!(ran.stderr.contains("acks-000003.parquet"), "{ran:?}");
        assert!(!ran.stdout.is_empty());
    }
    // Where none can be read, it is not how it was recorded.
    for file in fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("acks-") {
            fs::write(file, "x").unwrap();
        }
    }
    for verb in ["replay --algorithm search", "lab sim path"] {
        let ran = onramp(&format!("{verb} {}", path.display()));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(!ran.stderr.contains("--level"), "{ran:?}");
    }
}

#[test]
fn qlog_goes_to_files_and_pipes_and_says_when_the_disk_is_full() {
    let home = tempdir().unwrap();
    let path = home.path().join("recording");
    recording(&path);
    let qlog = |rest: &str| onramp(&format!("lab qlog {} {rest}", path.display())).ok();
    let metrics = |text: &str| text.matches("recovery:metrics_updated").count();
    assert_eq!((metrics(&qlog("")), metrics(&qlog("--flow 1"))), (1_200, 600));
    let sqlog = home.path().join("flows.sqlog");
    qlog(&format!("-o {}", sqlog.display()));
    let text = fs::read_to_string(&sqlog).unwrap();
    assert!(text.starts_with("\u{1e}{") && text.contains("\"qlog_format\":\"JSON-SEQ\""));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran: Ran = cli::command(["lab", "qlog"]).arg(&path).stdout(full).output().unwrap().into();
    assert!(ran.refused(1).contains("No space left on device"));
}

/// With `ONRAMP_WRITE` in the environment the tables are written.
#[test]
fn every_column_is_documented_as_it_is_declared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recording.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut declared = page.clone();
    for (table, columns) in TABLES {
        let header = ["column", "type", "meaning"].map(str::to_owned);
        let row = |Spec { name, kind, help, .. }: &Spec| {
            [(*name).to_owned(), format!("{kind:?}").to_lowercase(), help.trim().to_owned()]
        };
        // What tables have as `flows` has it stands there alone.
        let (_, first) = &TABLES[0];
        let own = |one: &&Spec| {
            let shared = first[..3].iter().any(|other| (other.name, other.help) == (one.name, one.help));
            *table == TABLES[0].0 || !shared
        };
        let rows: Vec<_> = std::iter::once(header).chain(columns.iter().filter(own).map(row)).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let (name, kind) = (width(0), width(1));
        let line = |[one, two, help]: &[String; 3]| format!("{one:<name$}  {two:<kind$}  {help}\n");
        let lines = rows.iter().map(line).collect::<String>();
        let heading = format!("\n### {table}\n");
        let (before, section) = declared.split_once(&heading).unwrap_or_else(|| panic!("{table}"));
        let (about, block) = section.split_once("```\n").unwrap_or_else(|| panic!("{table}"));
        let (_, after) = block.split_once("```\n").unwrap_or_else(|| panic!("{table}"));
        declared = format!("{before}{heading}{about}```\n{lines}```\n{after}");
    }
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        fs::write(&path, &declared).unwrap();
        return;
    }
    let differs = page.lines().zip(declared.lines()).find(|(page, declared)| page != declared);
    assert!(
        page == declared,
        "docs/recording.md: {differs:?}; ONRAMP_WRITE=1 has this test write the tables"
    );
}

#[test]
fn the_page_on_watch_names_every_field_of_records_that_are_no_table() {
    let page = include_str!("../../docs/watch.md");
    let records = [ExitRecordRow::COLUMNS, EndRow::COLUMNS, UndoRow::COLUMNS, RestartRow::COLUMNS];
    for Spec { name, .. } in records.into_iter().flatten() {
        let named = [format!("`{name}`"), format!("\"{name}\":")];
        assert!(named.iter().any(|one| page.contains(one)), "docs/watch.md does not name {name}");
    }
}

#[test]
fn the_documented_duckdb_queries_run() {
    let Some(python) = duckdb() else {
        return skip("DuckDB cannot be installed without the network");
    };
    let pages = [include_str!("../../docs/recording.md"), include_str!("../../docs/fleet.md")];
    let queries = pages.iter().flat_map(|page| page.split("```sql\n").skip(1));
    let queries: Vec<&str> = queries.map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(queries.len() >= 3, "{} queries", queries.len());
    let home = tempdir().unwrap();
    for place in ["recording", "host=a/run=1", "host=b/run=1"] {
        let place = home.path().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        recording(&place);
    }
    for query in queries {
        // What lies in a store lies here.
        let query = &query.replace("s3://onramp/", "");
        let script = "import duckdb, sys\nmade = duckdb.sql(sys.argv[1])\nprint(1 if made is None else len(made.fetchall()))";
        let ran =
            Command::new(&python).args(["-c", script, query]).current_dir(home.path()).output().unwrap();
        let ran = Ran::from(ran);
        assert_eq!(ran.code, Some(0), "{query}\n{ran:?}");
        assert!(ran.stdout.trim().parse::<usize>().unwrap() > 0, "{query} finds nothing");
    }
    // The CSV file that one of them writes is replayed as the recording is.
    let exits = |path: &str| -> Vec<Value> {
        let call = format!("--json replay {path} --algorithm search --set threshold_pct=5");
        let ran = cli::command(call.split(' ')).current_dir(home.path()).output().unwrap();
        let report: Value = serde_json::from_str(&Ran::from(ran).ok()).unwrap();
        report["flows"].as_array().unwrap().iter().map(|flow| flow["findings"][0]["exit"].clone()).collect()
    };
    assert_eq!(exits("acks.csv"), exits("recording"));
}

/// Python with DuckDB, in a virtual environment below the build directory; none: it is not there, and neither is the
/// network.
fn duckdb() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("duckdb");
    let python = environment.join("bin/python");
    let works =
        || Command::new(&python).args(["-c", "import duckdb"]).output().is_ok_and(|ran| ran.status.success());
    if works() {
        return Some(python);
    }
    let made: Ran = Command::new("python3").args(["-m", "venv"]).arg(&environment).output().unwrap().into();
    assert_eq!(made.code, Some(0), "python3 -m venv (Debian: python3-venv): {made:?}");
    let pip = ["-m", "pip", "install", "--quiet", "--retries", "1", "duckdb==1.4.1"];
    let installed: Ran = Command::new(&python).args(pip).output().unwrap().into();
    if installed.code == Some(0) {
        assert!(works(), "DuckDB is installed and cannot be imported");
        return Some(python);
    }
    // What pip says when it reaches no server; anything else is a fault of the test's own.
    let offline =
        ["NewConnectionError", "ConnectTimeoutError", "Name or service not known", "name resolution"];
    assert!(offline.iter().any(|sign| installed.stderr.contains(sign)), "{installed:?}");
    None
}
