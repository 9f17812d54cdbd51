//! Many rules at once, and rules whose commands end anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use onramp_loader::ROOT;
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{Ran, as_nobody, host_state, json, onramp};
use onramp_tests::faults::Traced;
use onramp_tests::traffic::eventually;

use super::{Ends, both, listen, place};

/// A file that is gone with the test.
struct Rules(PathBuf);

impl Rules {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onramp-test-{name}"));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn load(&self) -> Ran {
        onramp(&format!("select load {}", self.0.display()))
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let _attachments = Attachments::lock();
    onramp("select add --port 443 --use cubic").ok();
    let before = (host_state(&[]), onramp("select list").ok());
    for (arguments, code, said) in [
        ("add --port 443 --use reno", 1, "there is a rule for --port 443 already"),
        ("add --to 10.0.0.1/8 --use reno", 2, "bits set behind its length"),
        ("add --port 0 --use reno", 2, "1 to 65535"),
        ("add --port 80 --use search", 1, "search is not attached; `onramp attach search`"),
        ("add --port 80 --use nonsense", 2, "there is no congestion control \"nonsense\""),
        ("add --cgroup /nonexistent --use reno", 2, "there is no cgroup /nonexistent"),
        ("add --cgroup /../etc --use reno", 2, "without .."),
        ("add --port 80 --use reno --initial-window 0", 2, "1 to 300"),
        ("del --port 80", 1, "there is no rule for --port 80"),
        ("load /nonexistent", 1, "cannot read /nonexistent"),
    ] {
        for dry_run in ["", " --dry-run"] {
            let error = onramp(&format!("select {arguments}{dry_run}")).refused(code);
            assert!(error.contains(said), "{arguments}: {error}");
        }
        assert_eq!((host_state(&[]), onramp("select list").ok()), before, "{arguments}");
    }
    for (last, said) in [
        ("--to 10.0.0.0/33 --use reno", "line 3: \"10.0.0.0/33\" has a prefix length"),
        ("--port 80 --use reno", "line 3: --port 80 has a rule in line 1 already"),
        ("--port 81 --use search", "line 3: search is not attached"),
    ] {
        let rules = Rules::new("bad", &format!("--port 80 --use reno\n# two\n{last}\n"));
        let error = onramp(&format!("select load {}", rules.0.display()));
        assert!(error.stderr.contains(said) && error.code != Some(0), "{error:?}");
        assert_eq!((host_state(&[]), onramp("select list").ok()), before, "{last}");
    }
    let many: String = (0..250_001u32)
        .map(|n| format!("--to 10.{}.{}.{}/32 --use reno\n", n >> 16, n >> 8 & 255, n & 255))
        .collect();
    assert!(Rules::new("many", &many).load().refused(2).contains("250000"));
    for arguments in ["list", "add --port 80 --use reno", "del --all", "test 192.0.2.1"] {
        let mut command = as_nobody("+bpf,+perfmon,+net_admin,+dac_override");
        let ran: Ran =
            command.arg("select").args(arguments.split(' ')).current_dir("/").output().unwrap().into();
        assert!(ran.refused(4).contains("CAP_SYS_ADMIN"), "{arguments}");
    }
    for wrong in
        ["add --use reno", "add --accept --use reno", "add --port 80", "del", "del --all --port 80", "test x"]
    {
        assert_eq!(onramp(&format!("select {wrong}")).code, Some(2), "{wrong}");
    }
    assert_eq!((host_state(&[]), onramp("select list").ok()), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_load_under_traffic_gives_each_connection_the_previous_or_the_new_and_can_be_reverted() {
    let _attachments = Attachments::lock();
    let place = place();
    // A connection that found a part of one table and a part of the other would have reno, or two controls.
    let table = |name: &str| -> String {
        let fill = (0..2000).map(|n| format!("--to 10.1.{}.{}/32 --use {name}\n", n / 256, n % 256));
        fill.chain([format!("--to 127.0.0.0/8 --use {name}\n"), format!("--to 192.0.2.0/24 --use {name}\n")])
            .collect()
    };
    let (one, two) = (Rules::new("one", &table("cubic")), Rules::new("two", &table("bbr")));
    one.load().ok();
    let stop = Arc::new(AtomicBool::new(false));
    let to = listen(&place, "127.0.0.1:0");
    let stopping = Arc::clone(&stop);
    let connections = thread::spawn(move || {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        while !stopping.load(Ordering::Relaxed) {
            let (connected, accepted) = Ends::new(&place, "192.0.2.1", &to).controls();
            *seen.entry(connected).or_default() += 1;
            *seen.entry(accepted).or_default() += 1;
            // Ports of closed connections come back after a minute.
            thread::sleep(Duration::from_millis(1));
        }
        seen
    });
    for _ in 0..3 {
        two.load().ok();
        one.load().ok();
    }
    let kept = std::env::temp_dir().join("onramp-test-kept");
    let _ = fs::remove_file(&kept);
    let said = onramp(&format!("select load {} --keep {}", two.0.display(), kept.display())).ok();
    assert!(said.contains("2002 rules by 2002 rules"), "{said}");
    onramp(said.split("undo: onramp ").nth(1).unwrap().trim()).ok();
    stop.store(true, Ordering::Relaxed);
    let seen = connections.join().unwrap();
    println!("connections by control: {seen:?}");
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["bbr", "cubic"]);
    assert_eq!(onramp("select list").ok(), fs::read_to_string(&kept).unwrap());
    fs::remove_file(&kept).unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn the_first_rule_is_there_or_not_wherever_its_command_ends_and_the_next_goes_on() {
    let _attachments = Attachments::lock();
    let here = Namespace::current().unwrap();
    let before = host_state(&[]);
    let add = Traced { namespace: &here, arguments: "select add --port 80 --use cubic".into() };
    let clear = || {
        onramp("select del --all").ok();
        assert_eq!(host_state(&[]), before);
    };
    onramp(&add.arguments).ok();
    add.disturb(clear, |call, ran| {
        let (listed, status) = (onramp("select list").ok(), json("status"));
        let (rule, active) = (listed.contains("--port 80 --use cubic"), &status["selection"]["active"]);
        println!("{call}: rule {rule}, active {active}");
        // There may be a rule only where connections are asked about.
        assert!(!rule || active == true, "{call}: {listed}{status}");
        if let Some(ran) = ran {
            assert_eq!(ran.code == Some(0), rule, "{call}: {ran:?}");
            // It reports what failed, not what the rollback met.
            assert!(!ran.stderr.contains("cannot remove"), "{call}: {ran:?}");
        }
        // The next command goes on, whatever it finds.
        let again = onramp(&add.arguments);
        assert!(again.code == Some(0) || again.stderr.contains("already"), "{call}: {again:?}");
        assert_eq!(json("status")["selection"]["active"], true, "{call}");
        assert_eq!(onramp("select list").ok(), "--port 80 --use cubic\n", "{call}");
    });
    clear();
}

#[test]
#[ignore = "in a guest: make test"]
fn a_load_and_a_removal_are_done_or_not_wherever_they_end() {
    let _attachments = Attachments::lock();
    let here = Namespace::current().unwrap();
    let before = host_state(&[]);
    let lines =
        |port: u32| (0..300).map(|n| format!("--port {} --use cubic\n", port + n)).collect::<String>();
    let (one, two) = (Rules::new("one", &lines(1000)), Rules::new("two", &lines(2000)));
    one.load().ok();
    let previous = onramp("select list").ok();
    two.load().ok();
    let new = onramp("select list").ok();
    let load = Traced { namespace: &here, arguments: format!("select load {}", two.0.display()) };
    load.disturb(
        || {
            one.load().ok();
        },
        |call, ran| {
            let listed = onramp("select list").ok();
            assert!(listed == previous || listed == new, "{call}: {listed}");
            if let Some(ran) = ran {
                assert_eq!(listed == new, ran.code == Some(0), "{call}: {ran:?}");
            }
            assert_eq!(json("status")["selection"]["rules"], 300, "{call}");
        },
    );
    let remove = Traced { namespace: &here, arguments: "select del --all".into() };
    remove.disturb(
        || {
            one.load().ok();
        },
        |call, _| {
            onramp("select del --all").ok();
            assert_eq!(host_state(&[]), before, "{call}");
        },
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn pins_that_are_removed_by_hand_are_explained_and_mended_or_cleared() {
    let _attachments = Attachments::lock();
    let place = place();
    let before = host_state(&[]);
    let pin = |name: &str| Path::new(ROOT).join("select").join(name);
    onramp("select add --to 127.0.0.0/8 --use cubic").ok();
    let to = listen(&place, "127.0.0.1:0");

    fs::remove_file(pin("link")).unwrap();
    assert!(eventually(|| Ends::new(&place, "127.0.0.1", &to).controls() == both("reno")));
    assert_eq!(json("status")["selection"]["active"], false);
    assert!(onramp("select list").ok().starts_with("# not in use"));
    assert!(onramp("select test 127.0.0.1").ok().contains("no rule decides"));
    onramp("select add --port 7 --use cubic").ok();
    assert_eq!(Ends::new(&place, "127.0.0.1", &to).controls(), both("cubic"));
    assert_eq!(onramp("select list").ok().lines().count(), 2);

    fs::remove_file(pin("tables")).unwrap();
    assert_eq!(Ends::new(&place, "127.0.0.1", &to).controls(), both("cubic"));
    for refused in ["list", "add --port 8 --use cubic", "del --port 7", "test 127.0.0.1"] {
        let error = onramp(&format!("select {refused}")).refused(1);
        assert!(error.contains("lost its pin") && error.contains("select del --all"), "{refused}: {error}");
    }
    assert!(json("status")["selection"]["rules"].is_null());
    onramp("select del --all").ok();
    assert_eq!(host_state(&[]), before);
    assert!(eventually(|| Ends::new(&place, "127.0.0.1", &to).controls() == both("reno")));
}

/// Calls and nanoseconds of the selection program since statistics were switched on.
fn cost() -> (u64, u64) {
    let programs = ProgInfoIter::default().filter(|one| one.name == "select_control");
    programs.fold((0, 0), |sum, one| (sum.0 + one.run_cnt, sum.1 + one.run_time_ns))
}

#[test]
#[ignore = "in a guest: make test"]
fn a_hundred_thousand_prefixes_are_loaded_at_once_and_what_a_connection_costs_is_printed() {
    let _attachments = Attachments::lock();
    let place = place();
    let before = host_state(&[]);
    let to = listen(&place, "127.0.0.1:0");
    let _statistics = onramp_loader::cost::RunStatistics::enable("bench").unwrap();
    for count in [0u32, 1_000, 100_000] {
        let whole = Instant::now();
        if count == 0 {
            onramp("select add --port 9 --use cubic").ok();
        } else {
            // Of /24 and /32, with two that decide.
            let mut text: String = (0..count - 2)
                .map(|n| {
                    let bits = n.wrapping_mul(2_654_435_761) >> 8;
                    format!("--to {}.{}.{}.0/24 --use cubic\n", 11 + (bits >> 23), bits >> 16 & 127, n & 255)
                })
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect();
            for n in text.lines().count() as u32..count - 2 {
                text += &format!("--to 13.{}.{}.{}/32 --use cubic\n", n >> 16, n >> 8 & 255, n & 255);
            }
            text += "--to 127.0.0.0/8 --use cubic\n--to 192.0.2.0/24 --use cubic\n";
            assert_eq!(text.lines().count() as u32, count);
            let rules = Rules::new("hundred-thousand", &text);
            let begin = Instant::now();
            rules.load().ok();
            println!("{count} rules loaded in {:.3} s", begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            rules.load().ok();
            println!("{count} rules loaded over as many in {:.3} s", begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            assert_eq!(json("select list")["rules"].as_array().unwrap().len(), count as usize);
            println!("{count} rules listed in {:.3} s", begin.elapsed().as_secs_f64());
        }
        let from = cost();
        const CONNECTIONS: u64 = 200;
        for _ in 0..CONNECTIONS {
            let ends = Ends::new(&place, "192.0.2.1", &to);
            assert_eq!(ends.controls(), both(if count == 0 { "reno" } else { "cubic" }));
        }
        let to = cost();
        let each = (to.1 - from.1) as f64 / (2 * CONNECTIONS) as f64;
        let calls = (to.0 - from.0) as f64 / (2 * CONNECTIONS) as f64;
        println!(
            "{count} prefixes: {each:.0} ns and {calls:.1} calls for an end of a connection ({:.1} s in all)",
            whole.elapsed().as_secs_f64()
        );
        assert!(calls > 1.0);
    }
    onramp("select del --all").ok();
    assert_eq!(host_state(&[]), before);
}
