//! `onramp upgrade`: newer code takes over what is attached, with everything that it has, under its traffic.
//!
//! ONRAMP_FORMER is the binary of another build (tests/upgrade.sh); without it this one stands for it. What a build with
//! another ABI or other tables leaves in the pinned maps is written into them.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt, sockopt::TcpCongestion};
use onramp_loader::abi::{ABI_VERSION, Attachment};
use onramp_loader::telemetry::{Item, Level, Options, Stream, What};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, Ran, host_state, inside, json, onramp, state, status};
use onramp_tests::crowd::Crowd;
use onramp_tests::guest::has_links;
use onramp_tests::pinned::{change, element, of_abi, pin, write_u32};
use onramp_tests::telemetry::{events, lost, rest, stream};
use onramp_tests::traffic::{Transfer, eventually, namespace};
use serde_json::Value;

/// Connections of the large test; both ends of each run the code.
const CONNECTIONS: usize = 1000;

/// Another build, if there is one.
fn another() -> Option<PathBuf> {
    std::env::var_os("ONRAMP_FORMER").map(PathBuf::from)
}

/// Runs the old build in a namespace.
fn old(namespace: &Namespace, arguments: &str) -> Ran {
    let binary = another().unwrap_or_else(|| cli::binary().clone());
    namespace.command(binary).args(arguments.split_whitespace()).output().expect("it runs").into()
}

/// `status` of the only algorithm that is attached.
fn row() -> Value {
    only(&json("status"))
}

/// The only algorithm of a `status`.
fn only(status: &Value) -> Value {
    assert_eq!(status["algorithms"].as_array().unwrap().len(), 1, "{status}");
    status["algorithms"][0].clone()
}

/// What an upgrade is not to change.
fn kept() -> Value {
    let row = row();
    let kept =
        ["state", "base", "observe", "applied", "expires_at_us", "default_in", "parameter_sets", "sockets"];
    kept.into_iter().map(|name| (name.to_owned(), row[name].clone())).collect()
}

/// Has the pinned tables be others, of the same length.
fn of_other_tables(algorithm: &str, edit: impl Fn(String) -> String) {
    let path = format!("{algorithm}/tables");
    let (map, value) = element(&path);
    let tables = edit(String::from_utf8(value[..value.len() - 1].to_vec()).unwrap());
    assert_eq!(tables.len(), value.len() - 1);
    map.update(&[0; 4], &[tables.as_bytes(), b"\0"].concat(), MapFlags::ANY).unwrap();
    change(&format!("{algorithm}/attachment"), |value| {
        let crc32 = crc32fast::hash(tables.as_bytes());
        write_u32(value, std::mem::offset_of!(Attachment, tables_crc32), crc32);
    });
}

/// New connections, one after the other, that get a control by default and by its name.
struct Newcomers {
    stop: Arc<AtomicBool>,
    /// Connections, and those for which there was no such name.
    thread: JoinHandle<(usize, usize)>,
}

impl Newcomers {
    fn start(namespace: &Namespace, control: &'static str) -> Self {
        let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let plain = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let inside = namespace.clone();
        let thread = thread::spawn(move || {
            let (mut connections, mut nameless) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                let address = listener.local_addr().unwrap();
                let near = inside.run(|| TcpStream::connect(address)).unwrap().unwrap();
                let far = listener.accept().unwrap().0;
                for end in [&near, &far] {
                    let name = getsockopt(end, TcpCongestion).unwrap();
                    assert_eq!(name.to_string_lossy().trim_end_matches('\0'), control);
                }
                connections += 1;
                match setsockopt(&plain, TcpCongestion, &"reno".into())
                    .and_then(|()| setsockopt(&plain, TcpCongestion, &control.into()))
                {
                    Err(Errno::ENOENT) => nameless += 1,
                    other => other.unwrap(),
                }
                thread::sleep(Duration::from_millis(2));
            }
            (connections, nameless)
        });
        Self { stop, thread }
    }

    fn finish(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_thousand_flows_go_over_to_the_code_of_another_build_and_back() {
    let attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    old(&place, "attach search --profile geo --telemetry exit --default").ok();
    old(&place, "tune search threshold_pct=33").ok();
    let crowd = Crowd::start(&place, CONNECTIONS);
    assert!(crowd.goes_on());
    let newcomers = Newcomers::start(&place, "onramp_search");
    // Events of a build with another ABI could not be read.
    let options = Options { ring_bytes: 32 << 20, ..Options::new("test", Level::Exit) };
    let mut stream = another().is_none().then(|| Stream::open(&options).unwrap());
    let mut flows_reported = 0;
    if let Some(stream) = &mut stream {
        assert!(eventually(|| {
            flows_reported +=
                events(&rest(stream)).iter().filter(|one| matches!(one.what, What::Flow(_))).count();
            flows_reported >= CONNECTIONS
        }));
    }

    let planned = onramp("upgrade search --dry-run").ok();
    assert!(planned.names(&["onramp_search", "base reno"]), "{planned}");
    let mut kept_before = None;
    let both_ways = Command::new(another().unwrap_or_else(|| cli::binary().clone()))
        .args(["upgrade", "--help"])
        .output()
        .unwrap()
        .status
        .success();
    for (number, is_this) in [true, false].into_iter().enumerate() {
        if !is_this && !both_ways {
            println!("the other build cannot upgrade: not back");
            continue;
        }
        // The one whose code it is; the other would call it another build's.
        let asked = |arguments: &str| -> Value {
            let ran = if is_this { inside(&place, arguments) } else { old(&place, arguments) };
            serde_json::from_str(&ran.ok()).unwrap()
        };
        let generation = old(&place, "status --json").ok();
        let report = asked("--json upgrade");
        let upgraded = &report["upgraded"][0];
        println!("upgrade {number}: {upgraded}");
        assert_eq!(upgraded["stragglers"], serde_json::json!([]), "{report}");
        // A socket that is listening since the beginning keeps the first code loaded.
        assert!(upgraded["still_loaded"].as_u64().unwrap() <= 1, "{report}");
        for holder in upgraded["held_by"].as_array().unwrap() {
            assert_eq!(holder["only_listens"], true, "{report}");
        }
        assert_eq!(upgraded["defaults"], 1, "{report}");
        assert!(upgraded["sockets_moved"].as_u64().unwrap() >= 2 * CONNECTIONS as u64, "{report}");
        assert!(!generation.contains(upgraded["generation"].as_str().unwrap()), "{report}");
        assert!(crowd.goes_on());
        let row = only(&asked("--json status"));
        assert_eq!(row["older_code"], upgraded["still_loaded"], "{row}");
        assert_eq!(row["parameter_sets"][0]["parameters"]["threshold_pct"], 33, "{row}");
        assert_eq!(row["parameter_sets"][0]["profile"], "geo", "{row}");
        assert_eq!(row["parameter_sets"][0]["telemetry_max"], "exit", "{row}");
        assert_eq!(row["default_in"].as_array().unwrap().len(), 1, "{row}");
        // What both builds report.
        let set = ["profile", "parameters_generation", "parameters", "telemetry_max"]
            .map(|name| row["parameter_sets"][0][name].clone());
        assert_eq!(*kept_before.get_or_insert(set.clone()), set);
        let listing = asked("--json flows");
        let flows = listing["flows"].as_array().unwrap();
        assert!(flows.len() >= 2 * CONNECTIONS, "{}", flows.len());
        for flow in flows {
            assert!(!["detached_code", "other_build"].contains(&flow["state"].as_str().unwrap()), "{flow}");
        }
    }
    if let Some(stream) = &mut stream {
        let items: Vec<Item> = rest(stream);
        let count = |which: fn(&What) -> bool| events(&items).iter().filter(|one| which(&one.what)).count();
        let (ended, begun) =
            (count(|what| matches!(what, What::End(_))), count(|what| matches!(what, What::Flow(_))));
        println!(
            "{flows_reported} flows reported before, {ended} ends and {begun} flows since, {} lost",
            lost(&items)
        );
        assert_eq!(lost(&items), 0);
        // Each flow ends on the old code and begins on the newer, twice. The far ends send nothing.
        assert!(ended >= 2 * CONNECTIONS && begun >= 2 * CONNECTIONS);
    }
    let (connections, nameless) = newcomers.finish();
    println!("{connections} new connections, {nameless} times without the name");
    assert!(connections > 10);
    assert!(!has_links() || nameless == 0, "{nameless}");
    let finished = crowd.finish();
    assert_eq!(finished.len(), CONNECTIONS);
    for (sent, received) in finished {
        assert!(sent > 0);
        assert_eq!(sent, received);
    }
    drop(stream);
    onramp("detach --all").ok();
    assert_eq!(host_state(&[&place]), before);
    drop(attachments);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_another_abi_has_attached_is_taken_over_with_all_that_it_has() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    inside(&place, "attach search --default --observe --base reno --for 2h").ok();
    inside(&place, "tune search missed_bins_rtts=7 exit_action=drain").ok();
    let transfer = Transfer::start(&place, 1_000_000);
    let had = kept();
    of_abi("search", ABI_VERSION + 1);
    assert_eq!(state("search").as_deref(), Some("other_build"));
    let dry = host_state(&[&place]);
    onramp("upgrade --dry-run").ok();
    assert_eq!(host_state(&[&place]), dry);

    let said = onramp("upgrade").ok();
    assert!(said.contains("2 sockets"), "{said}");
    let has = kept();
    for (name, value) in has.as_object().unwrap() {
        if name == "expires_at_us" {
            // By two clocks, each time anew.
            assert!(value.as_u64().unwrap().abs_diff(had[name].as_u64().unwrap()) < 1_000_000);
        } else {
            assert_eq!(*value, had[name], "{name}");
        }
    }
    assert!(transfer.goes_on());
    // A consumer that subscribes now gets the flow.
    let watched = onramp("watch --count 1 --level exit").ok();
    assert!(watched.contains("search"), "{watched}");
    assert!(eventually(|| cli::processes().iter().filter(|one| one.contains("onramp expire")).count() == 1));
    let report = json("detach search");
    assert_eq!(report["detached"][0]["defaults_restored"][0]["congestion_control"], "reno", "{report}");
    assert!(transfer.goes_on());
    drop(transfer);
    assert_eq!(host_state(&[&place]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn parameters_of_other_tables_are_taken_over_by_name_or_refused() {
    let _attachments = Attachments::lock();
    onramp("attach search --set missed_bins_rtts=7 --set threshold_pct=33").ok();
    let lines = |tables: &str| tables.lines().map(str::to_owned).collect::<Vec<_>>();
    let (_, tables) = element("search/tables");
    let tables = String::from_utf8(tables[..tables.len() - 1].to_vec()).unwrap();
    let parameters: Vec<String> =
        lines(&tables).into_iter().filter(|line| line.starts_with("parameter ")).collect();
    let place = |name: &str| {
        parameters.iter().position(|line| line.starts_with(&format!("parameter {name} "))).unwrap()
    };
    let (alpha, threshold) = (place("missed_bins_rtts"), place("threshold_pct"));
    // The two have changed places.
    of_other_tables("search", |tables| {
        let mut lines = lines(&tables);
        let at = |name: &str| {
            lines.iter().position(|line| line.starts_with(&format!("parameter {name} "))).unwrap()
        };
        let (one, other) = (at("missed_bins_rtts"), at("threshold_pct"));
        lines.swap(one, other);
        lines.iter().map(|line| format!("{line}\n")).collect()
    });
    let words = std::mem::offset_of!(onramp_loader::abi::ParameterSlot, sets);
    change("search/params", |slot| {
        for byte in 0..8 {
            slot.swap(words + 8 * alpha + byte, words + 8 * threshold + byte);
        }
    });
    assert_eq!(state("search").as_deref(), Some("other_build"));
    // A listener of that build would take one for the other.
    let before = host_state(&[]);
    onramp("upgrade search").ok();
    let now = json("tune search");
    assert_eq!(
        (&now["parameters"]["missed_bins_rtts"], &now["parameters"]["threshold_pct"]),
        (&7.into(), &33.into()),
        "{now}"
    );
    assert_eq!(host_state(&[]), before);

    // One that this build has not.
    of_other_tables("search", |tables| {
        tables.replace("parameter missed_bins_rtts ", "parameter former_bins_rtts ")
    });
    for refused in ["upgrade search", "upgrade search --dry-run"] {
        let error = onramp(refused).refused(1);
        assert!(error.contains("former_bins_rtts=7"), "{error}");
    }
    assert_eq!(state("search").as_deref(), Some("other_build"));
    assert_eq!(host_state(&[]), before);
    // No description of what they mean was left.
    std::fs::remove_file(pin("search/tables")).unwrap();
    let error = onramp("upgrade search").refused(1);
    assert!(error.contains("has not left what its parameters mean"), "{error}");
    // Nothing was done.
    assert_eq!(onramp("upgrade").code, Some(1));
    assert_eq!(state("search").as_deref(), Some("other_build"));
}

#[test]
#[ignore = "in a guest: make test"]
fn who_would_misread_the_events_is_named_and_nothing_is_changed() {
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    let listening = stream(Level::Exit);
    // To a listener of the same build nothing changes.
    onramp("upgrade search").ok();
    let generation = row()["generation"].clone();
    for misread in [
        (|| {
            of_other_tables("search", |tables| {
                tables.replace("parameter missed_bins_rtts 1 ", "parameter missed_bins_rtts 2 ")
            })
        }) as fn(),
        || of_abi("search", ABI_VERSION + 1),
    ] {
        misread();
        let before = host_state(&[]);
        let error = onramp("upgrade search").refused(1);
        let who = format!("test (pid {})", std::process::id());
        assert!(error.contains(&who) && error.contains("end them"), "{error}");
        assert_eq!(host_state(&[]), before);
    }
    drop(listening);
    onramp("upgrade search").ok();
    assert_ne!(row()["generation"], generation);
}

#[test]
#[ignore = "in a guest: make test"]
fn rules_and_other_algorithms_go_on_and_the_base_changes_only_when_asked() {
    let _attachments = Attachments::lock();
    let place = namespace();
    onramp("attach search").ok();
    onramp("attach plain --base reno").ok();
    onramp("select add --port 7000 --use search").ok();
    let rules = json("select list");
    let report = json("upgrade");
    let names: Vec<_> =
        report["upgraded"].as_array().unwrap().iter().map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "{report}");
    assert_eq!(json("select list"), rules);
    let listener = place.run(|| TcpListener::bind("127.0.0.1:7000")).unwrap().unwrap();
    let _near = place.run(|| TcpStream::connect("127.0.0.1:7000")).unwrap().unwrap();
    let far = listener.accept().unwrap().0;
    let name = getsockopt(&far, TcpCongestion).unwrap();
    assert_eq!(name.to_string_lossy().trim_end_matches('\0'), "onramp_search");

    let base_of = |algorithm: &str| status(algorithm).unwrap()["base"].clone();
    assert_eq!((base_of("plain"), base_of("search")), ("reno".into(), "cubic".into()));
    onramp("upgrade search --base reno").ok();
    assert_eq!(base_of("search"), "reno");
    assert_eq!(onramp("upgrade --base reno").code, Some(2));
    onramp("detach --all").ok();
    assert!(onramp("upgrade").ok().contains("nothing is attached"));
    assert!(onramp("upgrade search").refused(1).contains("search"));
}
