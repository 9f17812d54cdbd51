//! `onramp lab` as a script sees them.

use onramp_tests::Attachments;
use onramp_tests::cli::{host_state, json, onramp};
use tempfile::tempdir;

#[test]
#[ignore = "in a guest: make test"]
fn a_comparison_is_one_object_with_the_promised_fields_and_leaves_nothing_attached() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let directory = home.path().join("lab");
    let command = format!(
        "-q lab compare --clock machine --arms cubic,fixed --bytes 2000000 -n 1 --set fixed.exit_window_bytes=300000 -o {}",
        directory.display()
    );
    let text = onramp(&format!("--json {command}")).ok();
    assert_eq!(text.matches("\"schema\"").count(), 1, "{text}");
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((result["schema"].as_u64(), result["profile"].as_str()), (Some(1), Some("geo")));
    assert_eq!(result["bytes"].as_u64(), Some(2_000_000));
    let arms = result["arms"].as_array().unwrap();
    assert_eq!(arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["cubic", "fixed"]);
    for arm in arms {
        for run in arm["runs"].as_array().unwrap() {
            for field in [
                "valid",
                "seconds",
                "goodput_bps",
                "retransmitted_segments",
                "queue_drops",
                "max_rtt_us",
                "exit",
            ] {
                assert!(run.get(field).is_some(), "no {field} in {run}");
            }
        }
    }
    let exit = &arms[1]["runs"][0]["exit"];
    assert_eq!(
        (exit["reason"].as_str(), exit["source"].as_str()),
        (Some("algorithm"), Some("record")),
        "{exit}"
    );
    // HyStart's, which only sampling shows, has the record's word.
    let stock = &arms[0]["runs"][0]["exit"];
    assert_eq!((stock["reason"].as_str(), stock["source"].as_str()), (Some("algorithm"), Some("sampled")));
    let window = exit["window_bytes"].as_u64().unwrap();
    assert!((300_000..600_000).contains(&window), "{exit}");
    assert!(exit["seconds"].as_f64().unwrap() > 0.6, "{exit}");
    // An ACK acknowledges at most two segments here, and the window has grown by what they acknowledged.
    let acks = exit["acks"].as_u64().unwrap();
    assert!((window / 1_448 / 3..window / 1_448).contains(&acks), "{exit}");

    for file in ["manifest.json", "result.json", "table.tex", "plot.svg", "plot-points.csv", "plot.py"] {
        assert!(directory.join(file).exists(), "{file} is missing");
    }
    assert_eq!(json("status")["algorithms"].as_array().map(Vec::len), Some(0), "fixed was detached again");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_transfer_over_the_limit_counts_as_at_least_that_long() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let directory = home.path().join("lab");
    let command = format!(
        "--json lab compare --clock machine --profile terrestrial --arms cubic,plain --bytes 200M --timeout 2s -n 1 -o {}",
        directory.display()
    );
    let ran = onramp(&command);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for arm in result["arms"].as_array().unwrap() {
        let run = &arm["runs"][0];
        assert_eq!((&run["valid"], &run["cut_off"]), (&false.into(), &true.into()), "{run}");
        // The limit counts from the first packet of the opening, the time from the first data.
        let seconds = run["seconds"].as_f64().unwrap();
        assert!((1.5..2.1).contains(&seconds), "{seconds}");
        let received = run["received_bytes"].as_u64().unwrap();
        assert!((5_000_000..30_000_000).contains(&received), "{received}");
        // What arrived until then is its goodput, which bounds nothing.
        assert_eq!(
            (&arm["seconds"]["bound"], &arm["goodput_bps"]["bound"]),
            (&"at_least".into(), &serde_json::Value::Null)
        );
        assert_eq!((&arm["valid_runs"], &arm["cut_off_runs"]), (&0.into(), &1.into()));
    }
    assert_eq!(result["paired"]["of"], 1);
    assert_eq!(result["paired"]["seeds"].as_array().map(Vec::len), Some(0));
}

#[test]
fn wrong_arms_settings_and_profiles_are_refused_before_anything_is_done() {
    for (arguments, expected) in [
        ("lab run nonsense", "there is no arm \"nonsense\""),
        ("lab compare --arms plain,plain", "given twice"),
        ("lab compare --arms plain --set plain", "write ALG.NAME=VALUE"),
        ("lab compare --arms plain --set search.missed_bins_rtts=2", "names no algorithm among the arms"),
        ("lab run plain --profile nowhere", "there is no profile \"nowhere\""),
        ("lab run plain:base=vegas", "names no base"),
        ("lab run plain:missed_bins_rtts", "write KEY=VALUE"),
        ("lab run cubic:missed_bins_rtts=2", "host.KEY=VALUE only"),
        ("lab run ramp --record --clock machine", "--record is for virtual time"),
        ("lab run cubic:host.mtu_bytes=9000", "host.mtu_bytes = 9000 is out of range"),
        ("lab run search:missed_bins_rtts=0", "missed_bins_rtts=0 is not allowed: give 1..1000"),
        ("lab compare --profile geo,leo", "there is no profile \"geo,leo\""),
        ("lab run cubic --at 1s:path=nowhere", "there is no profile \"nowhere\""),
        ("lab evaluate --case nowhere", "there is no case \"nowhere\""),
        ("lab evaluate --case short,short", "case \"short\" is named twice"),
        ("lab evaluate nothing --case short", "nothing"),
        ("lab matrix --profile geo,nowhere", "there is no profile \"nowhere\""),
        ("lab reproduce nonsense", "there is no claim \"nonsense\""),
        ("lab bench --pairs 0", "give 1 to 100"),
    ] {
        let message = onramp(arguments).refused(2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn arms_of_one_algorithm_have_their_own_parameters_when_their_turn_comes() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let directory = home.path().join("lab-arms");
    let labels = [
        "fixed:exit_window_bytes=60000",
        "fixed:exit_window_bytes=200000:base=reno",
        "fixed:exit_window_bytes=200000:host.mtu_bytes=512",
    ];
    let command = format!(
        "-q --json lab compare --clock machine --profile terrestrial --arms {} --bytes 3000000 -n 2 -o {}",
        labels.join(","),
        directory.display()
    );
    let result: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
    // The kernel counts by ticks: a short run may fall between two, all of them cannot.
    let mut machine_cpu_seconds = 0.0;
    for (arm, window, mss) in [(0, 60_000, 1_448), (1, 200_000, 1_448), (2, 200_000, 460)] {
        assert_eq!(result["arms"][arm]["arm"], labels[arm]);
        for run in result["arms"][arm]["runs"].as_array().unwrap() {
            let found = run["exit"]["window_bytes"].as_u64().unwrap_or_else(|| panic!("{run}"));
            assert!((window..2 * window).contains(&found) && found % mss == 0, "{}: {found}", labels[arm]);
            machine_cpu_seconds += run["machine_cpu_seconds"].as_f64().unwrap();
        }
    }
    assert!(machine_cpu_seconds > 0.0, "{result}");
    assert_eq!(json("status")["algorithms"].as_array().map(Vec::len), Some(0), "fixed was detached again");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_manifest_has_the_parameters_of_what_was_attached_before_and_is_used_as_it_is() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    onramp("attach fixed --set exit_window_bytes=60000").ok();
    let before = host_state(&[]);
    let directory = home.path().join("lab-attached");
    let command = format!(
        "-q --json lab run fixed --clock machine --profile terrestrial --bytes 1000000 -o {}",
        directory.display()
    );
    let result: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
    let window = result["arms"][0]["runs"][0]["exit"]["window_bytes"].as_u64().unwrap();
    assert!((60_000..120_000).contains(&window), "{window}");
    let text = std::fs::read_to_string(directory.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["arms"][0]["parameters"]["exit_window_bytes"], "60000");
    assert_eq!(host_state(&[]), before, "still attached as before");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_matrix_has_a_row_for_each_arm_and_profile_and_is_resumed() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let directory = home.path().join("matrix");
    let command = format!(
        "-q --json lab matrix --clock machine --arms cubic,plain --profile bod,geo-ramp --seconds 2 -n 1 -o {}",
        directory.display()
    );
    let first: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
    let rows = first["rows"].as_array().unwrap();
    let names: Vec<_> =
        rows.iter().map(|row| (row["profile"].as_str().unwrap(), row["arm"].as_str().unwrap())).collect();
    assert_eq!(names, [("bod", "cubic"), ("bod", "plain"), ("geo-ramp", "cubic"), ("geo-ramp", "plain")]);
    // On a busy machine the emulator may spoil all runs of a row; then it lacks the figure, but not all rows do.
    let figures = |name: &str| rows.iter().filter_map(|row| row[name].as_f64()).collect::<Vec<_>>();
    let (shares, rates) = (figures("competitor_share"), figures("goodput_bps"));
    assert!(!shares.is_empty() && shares.iter().all(|share| (0.0..=1.0).contains(share)), "{rows:?}");
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate > 5e4), "{rows:?}");
    let marked = std::fs::read_to_string(directory.join("matrix.md")).unwrap();
    assert_eq!(marked.lines().count(), 6, "{marked}");
    // What is there is not measured again: it would not be the same to the last digit.
    let again: serde_json::Value =
        serde_json::from_str(&onramp(&format!("{command} --resume")).ok()).unwrap();
    assert_eq!(again, first);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_queue_that_marks_ends_slow_start_without_a_loss_where_both_hosts_take_part() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let of = |ecn: bool| {
        let path = home.path().join(format!("{ecn}.toml"));
        let aqm = format!(
            "[link.forward.aqm]\nkind = \"codel\"\ntarget_us = 5_000\ninterval_us = 100_000\necn = {ecn}\n"
        );
        let text = format!(
            "version = 1\nname = \"codel\"\nabout = \"codel\"\nalgorithm = \"plain\"\n\n\
             [link.forward]\nrate_bps = 25_000_000\ndelay_us = 40_000\nqueue_bytes = 1_000_000\n\n{aqm}\n\
             [link.return]\nrate_bps = 25_000_000\ndelay_us = 40_000\nqueue_bytes = 1_000_000\n\n\
             [host]\ntcp_rmem = [4_096, 131_072, 6_291_456]\ntcp_wmem = [4_096, 16_384, 4_194_304]\n\
             tcp_ecn = {ecn}\n"
        );
        std::fs::write(&path, text).unwrap();
        let directory = home.path().join(format!("run-{ecn}"));
        let command = format!(
            "-q --json lab run plain --clock machine --profile {} --bytes 8000000 -o {}",
            path.display(),
            directory.display()
        );
        let result: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
        result["arms"][0]["runs"][0].clone()
    };
    let marked = of(true);
    assert!(marked["ecn_marks"].as_u64().unwrap() > 0, "{marked}");
    assert_eq!(
        (&marked["exit"]["reason"], &marked["retransmitted_segments"]),
        (&"ecn".into(), &0.into()),
        "{marked}"
    );
    assert_eq!((&marked["aqm_drops"], &marked["queue_drops"]), (&0.into(), &0.into()), "{marked}");
    // By the link's own rate and delay: not early, and with a queue, without which CoDel marks nothing.
    let regret = &marked["regret"];
    assert!(regret["window_to_bdp"].as_f64().unwrap() > 1.0 && regret["early_us"] == 0, "{marked}");
    assert!(regret["queue_us"].as_u64().unwrap() > 5_000 && regret["at_least"] == false, "{marked}");
    let dropped = of(false);
    assert!(dropped["ecn_marks"].is_null() && dropped["aqm_drops"].as_u64().unwrap() > 0, "{dropped}");
    assert_eq!(dropped["exit"]["reason"], "loss", "{dropped}");
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_have_round_trip_times_of_their_own_and_packets_take_another_path_when_asked() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let run = |name: &str, arguments: &str| {
        let directory = home.path().join(name);
        let command = format!(
            "-q --json lab run cubic --clock machine --profile terrestrial --seconds 2 -o {} {arguments}",
            directory.display()
        );
        let result: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
        (result["plan"].clone(), result["arms"][0]["runs"][0].clone())
    };
    // A flow finds no other RTT than its own, but for what packets wait.
    let is = |flow: &serde_json::Value, base_rtt_us: u64| {
        let least = flow["min_rtt_us"].as_u64().unwrap();
        assert!((base_rtt_us..base_rtt_us + 10_000).contains(&least), "{flow}");
    };
    let (plan, apart) =
        run("apart", "--flows 2 --extra-rtt 0ms,60ms,20ms --stagger 500ms --competitor reno --lead 1");
    assert_eq!(plan["extra_rtt_us"], serde_json::json!([0, 60_000, 20_000]));
    for (flow, base_rtt_us) in [(0, 30_000), (1, 90_000)] {
        let flow = &apart["flows"][flow];
        assert_eq!(flow["base_rtt_us"], base_rtt_us, "{apart}");
        is(flow, base_rtt_us);
    }
    assert_eq!(
        (&apart["base_rtt_us"], &apart["competitor"]["base_rtt_us"]),
        (&30_000.into(), &50_000.into())
    );

    let (plan, changed) = run("changed", "--at 1s:path=cable");
    assert_eq!(plan["paths"][0]["profile"], "cable", "{plan}");
    is(&changed, 12_000);
    assert!(changed["base_rtt_us"].is_null() && changed["regret"].is_null(), "{changed}");
    let (_, stayed) = run("stayed", "");
    is(&stayed, 30_000);
    let message = onramp("lab run cubic --clock machine --extra-rtt 1ms,2ms").refused(2);
    assert!(message.contains("extra_rtt_us = 2"), "{message}");
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_transfer_before_has_taught_is_there_when_a_run_begins() {
    let _attachments = Attachments::lock();
    let home = tempdir().unwrap();
    let directory = home.path().join("warm");
    let command = format!(
        "-q --json lab compare --clock machine --profile geo --arms ramp,ramp:start=window --bytes 300k --warm 2M -n 1 -o {}",
        directory.display()
    );
    let result: serde_json::Value = serde_json::from_str(&onramp(&command).ok()).unwrap();
    assert_eq!(result["plan"]["warm_bytes"], 2_000_000);
    for arm in result["arms"].as_array().unwrap() {
        for run in arm["runs"].as_array().unwrap() {
            assert_eq!(run["received_bytes"], 300_000, "{run}");
            assert!(run["warm"]["seconds"].as_f64().unwrap() > 0.0, "{run}");
            assert_ne!(run["warm"]["digest"], run["digest"], "{run}");
        }
    }
    // By that transfer alone, for each run has namespaces of its own.
    let first_window = |run: &str| {
        let text = std::fs::read_to_string(directory.join(run).join("flow.csv")).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let column = rows[0].iter().position(|name| *name == "cwnd_segments").unwrap();
        rows[1][column].parse::<u32>().unwrap()
    };
    for (run, window) in [("000-ramp", 10), ("001-ramp_start_window", 44)] {
        assert_eq!(first_window(run), window, "{run}");
    }
    let said = onramp("lab run ramp --clock machine --warm 2M --tool iperf3").refused(2);
    assert!(said.contains("warm_bytes = 2000000"), "{said}");
}

#[test]
fn claims_that_need_no_link_are_evaluated_with_all_their_files() {
    let home = tempdir().unwrap();
    let directory = home.path().join("claims");
    let ran = onramp(&format!("--json lab reproduce buffers-map -o {}", directory.display()));
    let report: serde_json::Value = serde_json::from_str(&ran.ok()).unwrap();
    let claim = &report["claims"][0];
    assert_eq!(
        (&report["schema"], &claim["id"], &claim["holds"]),
        (&1.into(), &"buffers-map".into(), &true.into())
    );
    for field in ["source", "measured", "runs", "checks"] {
        assert!(!claim[field].is_null(), "{field}");
    }
    for file in ["report.html", "claims.json", "buffers-map.csv", "buffers-map.svg"] {
        assert!(directory.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let cases = json("lab evaluate --list");
    let sources = cases["cases"].as_array().unwrap().iter().map(|case| case["source"].as_str().unwrap());
    assert_eq!(
        sources.filter(|source| source.starts_with("RFC 9743")).count(),
        onramp_lab::evaluate::CASES.len()
    );
    let listed = json("lab reproduce --list");
    assert_eq!(listed["claims"].as_array().unwrap().len(), onramp_reproduce::CLAIMS.len());
}

#[test]
#[ignore = "in a guest: make test"]
fn an_experiment_that_is_asked_to_end_detaches_first() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for signal in [nix::sys::signal::SIGINT, nix::sys::signal::SIGTERM] {
        let home = tempdir().unwrap();
        let directory = home.path().join("ended");
        let command =
            format!("-q lab run plain --clock machine --profile geo --seconds 60 -o {}", directory.display());
        let mut lab = command_of(&command);
        let attached = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            host_state(&[]) != before && directory.join("manifest.json").exists()
        });
        assert!(attached);
        std::thread::sleep(std::time::Duration::from_secs(1));
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(lab.id().cast_signed()), signal).unwrap();
        assert_eq!(lab.wait().unwrap().code(), Some(128 + signal as i32));
        assert_eq!(host_state(&[]), before, "after {signal}");
    }
}

fn command_of(arguments: &str) -> std::process::Child {
    let mut command = onramp_tests::cli::command(arguments.split(' '));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
}
