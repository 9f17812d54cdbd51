//! `onramp select` at a thousand connections a second while rules come and go: none fails, each has the control of a
//! state of the rules that there was, and nothing remains.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, setsockopt, sockopt, sockopt::TcpCongestion};
use onramp_lab::guest::INSTRUCTIONS_PER_NANOSECOND;
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{DEFAULT, host_state, onramp, status};
use onramp_tests::traffic::{eventually, namespace};

/// Time between two connections.
const BETWEEN: Duration = Duration::from_millis(1);

fn control(socket: &impl AsFd) -> String {
    let name = getsockopt(socket, TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

/// The states that the rules go through: how many of the changes have begun, and how many are over.
#[derive(Default)]
struct Progress {
    begun: AtomicUsize,
    over: AtomicUsize,
}

/// A connection over loopback: its controls, and the states that there may have been when it was made.
struct Made {
    controls: [String; 2],
    first: usize,
    last: usize,
}

/// Makes connections, a thousand a second, until it is stopped. Each sends a word and gets another.
fn connect(place: &Namespace, progress: &Progress, stop: &AtomicBool) -> Vec<Made> {
    let listener = place.run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut made = Vec::new();
    let mut next = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        let first = progress.over.load(Ordering::SeqCst);
        let mut near = TcpStream::connect(address).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut word = [0; 4];
        near.write_all(b"ping").unwrap();
        far.read_exact(&mut word).unwrap();
        far.write_all(b"pong").unwrap();
        near.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"pong");
        let controls = [control(&near), control(&far)];
        made.push(Made { controls, first, last: progress.begun.load(Ordering::SeqCst) });
        next += BETWEEN;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    made
}

/// A thousand rules, the last of which decides here.
fn thousand(path: &std::path::Path, name: &str) -> String {
    let mut text = String::new();
    for n in 0..999 {
        writeln!(text, "--to 10.1.{}.{}/32 --use {name}", n / 256, n % 256).unwrap();
    }
    writeln!(text, "--to 127.0.0.0/8 --use {name}").unwrap();
    fs::write(path, text).unwrap();
    format!("load {}", path.display())
}

#[test]
#[ignore = "in a guest: make test"]
fn at_a_thousand_connections_a_second_each_has_what_was_said_before_or_after_a_change() {
    let _attachments = Attachments::lock();
    let place = Arc::new(namespace());
    place.sysctl_set(DEFAULT, "reno").unwrap();
    onramp("attach plain").ok();
    onramp("attach fixed").ok();
    let before = host_state(&[&place]);
    let directory = tempfile::tempdir().unwrap();
    let (plain, fixed) = (directory.path().join("plain"), directory.path().join("fixed"));
    let round = [
        ("add --to 127.0.0.0/8 --use plain".to_owned(), "onramp_plain"),
        ("add --to 127.0.0.1/32 --use cubic".to_owned(), "cubic"),
        (thousand(&fixed, "fixed"), "onramp_fixed"),
        (thousand(&plain, "plain"), "onramp_plain"),
        ("del --to 127.0.0.0/8".to_owned(), "reno"),
        (format!("load {}", fixed.display()), "onramp_fixed"),
        ("add --to 127.0.0.1/32 --use bbr".to_owned(), "bbr"),
        ("add --to 127.0.0.1/32 --use cubic --replace".to_owned(), "cubic"),
        ("add --to 127.0.0.1/32 --use plain --initial-window 20 --replace".to_owned(), "onramp_plain"),
        ("del --to 127.0.0.1/32".to_owned(), "onramp_fixed"),
        ("del --all".to_owned(), "reno"),
    ];
    let (progress, stop) = (Arc::new(Progress::default()), Arc::new(AtomicBool::new(false)));
    let (inside, shared, stopping) = (Arc::clone(&place), Arc::clone(&progress), Arc::clone(&stop));
    let begin = Instant::now();
    let connections = thread::spawn(move || inside.run(|| connect(&inside, &shared, &stopping)).unwrap());
    let mut states = vec!["reno"];
    for _ in 0..5 {
        for (change, expected) in &round {
            progress.begun.fetch_add(1, Ordering::SeqCst);
            states.push(expected);
            onramp(&format!("select {change}")).ok();
            progress.over.fetch_add(1, Ordering::SeqCst);
            thread::sleep(20 * BETWEEN);
        }
    }
    stop.store(true, Ordering::SeqCst);
    let made = connections.join().expect("no connection fails");
    let rate = made.len() as f64 / begin.elapsed().as_secs_f64();

    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut during = 0;
    for one in &made {
        during += u32::from(one.first != one.last);
        for has in &one.controls {
            let possible = &states[one.first..=one.last];
            assert!(possible.contains(&has.as_str()), "{has}, where there was {possible:?}");
            *seen.entry(has).or_default() += 1;
        }
    }
    println!("{} connections, {rate:.0} a second, {during} during a change: {seen:?}", made.len());
    assert!(rate > 950.0, "{rate} a second");
    assert!(during > 100, "{during} connections met a change");
    for name in ["reno", "cubic", "bbr", "onramp_plain", "onramp_fixed"] {
        assert!(seen.contains_key(name), "{name}: {seen:?}");
    }
    // Every end was counted once, and all are over.
    for name in ["plain", "fixed"] {
        let counted = || {
            let row = status(name).unwrap();
            ["flows_started", "flows_ended", "flows_adopted"].map(|key| row[key].as_u64().unwrap())
        };
        let all = seen[format!("onramp_{name}").as_str()];
        assert!(eventually(|| counted() == [all, all, 0]), "{name}: {:?}, not {all}", counted());
    }
    assert_eq!(host_state(&[&place]), before);
}

/// Prefixes, none of which decides here.
fn others(path: &std::path::Path, count: u32) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "--to 10.{}.{}.{}/32 --use cubic", n >> 16, n >> 8 & 255, n & 255).unwrap();
    }
    fs::write(path, text).unwrap();
    format!("select load {}", path.display())
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_takes_at_most_2200_instructions_more_on_each_side_with_any_number_of_rules() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let listener = place.run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    // Closed by a reset, as no connection may find the ports of those before it taken.
    let reset = libc::linger { l_onoff: 1, l_linger: 0 };
    let connection = || {
        let begin = Instant::now();
        let near = TcpStream::connect(address).unwrap();
        let (far, _) = listener.accept().unwrap();
        let took = begin.elapsed();
        setsockopt(&near, sockopt::Linger, &reset).unwrap();
        (took, [control(&near), control(&far)])
    };
    // Over loopback both sides are established within connect(2). The mean of all but the slowest tenth, which timers
    // interrupt: what some connections take more than others, the one in the middle may or may not have.
    let measured = |expected: [&str; 2]| {
        let mut took: Vec<Duration> = (0..301)
            .map(|_| {
                let (took, controls) = place.run(connection).unwrap();
                assert_eq!(controls, expected);
                took
            })
            .collect();
        took.sort_unstable();
        let most = &took[..took.len() * 9 / 10];
        most.iter().sum::<Duration>() / most.len() as u32
    };
    measured(["reno", "reno"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    for count in [1, 1_000, 100_000] {
        // Anew, because what a connection takes changes with the age of a kernel.
        onramp("select del --all").ok();
        let without = measured(["reno", "reno"]);
        println!("without rules: {} ns", without.as_nanos());
        if count > 1 {
            onramp(&others(file.path(), count - 1)).ok();
        }
        for (side, expected) in
            [("", ["cubic", "cubic"]), (" --accept", ["reno", "cubic"]), (" --connect", ["cubic", "reno"])]
        {
            onramp(&format!("select add --to 127.0.0.0/8 --use cubic{side}")).ok();
            let more = measured(expected).saturating_sub(without);
            let more = more.as_nanos() * u128::from(INSTRUCTIONS_PER_NANOSECOND);
            let rules = format!("{count} rules, one decides{side}");
            println!("{rules}: {more} instructions more for both sides");
            assert!(more <= 2 * 2_200, "{rules}: {more} instructions more");
            onramp(&format!("select del --to 127.0.0.0/8{side}")).ok();
        }
    }
    onramp("select del --all").ok();
}
