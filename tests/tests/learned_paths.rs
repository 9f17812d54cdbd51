//! Starts from what earlier connections have learned of a path (`--start`): who learns, who is given it, and what is left behind.

#[path = "learned_paths/settings.rs"]
mod settings;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onramp_net::sock_diag::{SockDiag, Socket, States, TcpInfo};
use onramp_tests::Attachments;
use onramp_tests::cli::{json, onramp};
use onramp_tests::connection::{Connection, Reader};
use onramp_tests::sender::Sender;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, FAR, Fate, Wire};

/// One way.
const DELAY: Duration = Duration::from_millis(30);
/// Whole segments of 1,448 bytes that 64 kB hold, in pairs.
const FIRST_MAX: u32 = 44;

/// A wire whose near end has a control as default. Its 400th packet is lost, so that a connection leaves slow start.
fn wire(control: &str) -> Wire {
    let wire = Wire::lay(DELAY, |data| if data.number == 400 { Fate::Drop } else { Fate::Deliver });
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", control).unwrap();
    wire
}

/// One transfer that teaches the path, to its end.
fn teach(wire: Wire) -> Wire {
    let mut sender = Sender::connect_by_default(wire);
    sender.deliver(1_500_000);
    let Sender { wire, stream, .. } = sender;
    drop(stream);
    assert!(eventually(|| paths().len() == 1));
    wire
}

fn paths() -> Vec<serde_json::Value> {
    json("paths list")["paths"].as_array().unwrap().clone()
}

fn connect(wire: &Wire) -> (TcpStream, Reader) {
    Connection::default().over(wire)
}

fn info(wire: &Wire, stream: &TcpStream) -> TcpInfo {
    let local = stream.local_addr().unwrap();
    let mut found = None;
    let mut keep = |socket: Socket| {
        if socket.local == local {
            found = socket.info;
        }
    };
    wire.near.run(|| SockDiag::open()?.dump(States::CONNECTED, &[], &mut keep)).unwrap().unwrap();
    found.unwrap()
}

/// The window with which a new connection begins.
fn first_window(wire: &Wire) -> u32 {
    let (stream, _reader) = connect(wire);
    info(wire, &stream).snd_cwnd
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_begins_with_what_the_one_before_has_learned() {
    let _attachments = Attachments::lock();
    for (algorithm, start, window) in [
        ("plain", "resume+window", FIRST_MAX),
        ("ramp", "window", FIRST_MAX),
        ("plain", "resume", 10),
        ("plain", "double", 10),
    ] {
        onramp(&format!("attach {algorithm} --base cubic --start {start}")).ok();
        let control = format!("onramp_{algorithm}");
        let wire = wire(&control);
        assert_eq!(first_window(&wire), 10, "{start}: nothing is known");
        let wire = if start == "double" {
            let mut sender = Sender::connect_by_default(wire);
            sender.deliver(1_500_000);
            sender.wire
        } else {
            teach(wire)
        };
        assert_eq!(first_window(&wire), window, "{algorithm} {start}");
        let known = paths();
        assert_eq!(known.is_empty(), start == "double", "{known:?}");
        for path in known {
            assert_eq!(path["address"], FAR.to_string());
            let rtt_us = path["min_rtt_us"].as_u64().unwrap();
            assert!((60_000..200_000).contains(&rtt_us), "{path}");
        }
        onramp(&format!("detach {algorithm}")).ok();
        assert_eq!(paths().len(), 0, "what is detached leaves no memory behind");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_that_never_left_slow_start_teaches_its_path_too() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start window").ok();
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    let wire = teach(wire);
    // Windows of 10 to 320 segments, of which the last but one came through whole.
    let rate = paths()[0]["rate_bits_per_s"].as_u64().unwrap();
    assert!(rate >= 10_000_000, "{rate}");
    assert_eq!(first_window(&wire), FIRST_MAX);
}

#[test]
#[ignore = "in a guest: make test"]
fn of_connections_in_parallel_one_starts_from_memory_and_the_next_one_when_it_is_over() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = teach(wire("onramp_plain"));
    let open: Vec<_> = (0..8).map(|_| connect(&wire)).collect();
    let windows: Vec<_> = open.iter().map(|(stream, _)| info(&wire, stream).snd_cwnd).collect();
    assert_eq!(windows.iter().filter(|window| **window == FIRST_MAX).count(), 1, "{windows:?}");
    assert_eq!(windows.iter().filter(|window| **window == 10).count(), 7, "{windows:?}");
    assert_eq!(paths()[0]["claimed"], true);
    // A socket that is closed, and one whose control is another, give back what they have.
    drop(open);
    assert!(eventually(|| paths()[0]["claimed"] == false));
    let (stream, _reader) = connect(&wire);
    assert_eq!(info(&wire, &stream).snd_cwnd, FIRST_MAX);
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::TcpCongestion, &"reno".into()).unwrap();
    assert_eq!(paths()[0]["claimed"], false);
    assert_eq!(first_window(&wire), FIRST_MAX);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_start_that_went_well_is_counted_and_gives_its_claim_back() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start window").ok();
    let wire = teach(wire("onramp_plain"));
    assert_eq!(paths()[0]["confirmed"], 0);
    let mut sender = Sender::connect_by_default(wire);
    sender.deliver(100_000);
    let path = paths().remove(0);
    assert_eq!(
        (&path["confirmed"], &path["retreated"], &path["claimed"]),
        (&1.into(), &0.into(), &false.into())
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn an_upgrade_keeps_what_is_learned_and_no_claim_outlives_its_code() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = teach(wire("onramp_plain"));
    let (stream, _reader) = connect(&wire);
    assert_eq!(info(&wire, &stream).snd_cwnd, FIRST_MAX);
    assert_eq!(paths()[0]["claimed"], true);
    onramp("upgrade plain").ok();
    // It has sent nothing yet, and may begin anew.
    drop(stream);
    assert!(eventually(|| paths()[0]["claimed"] == false));
    assert_eq!(first_window(&wire), FIRST_MAX);
    // Off, and on again: as it was.
    onramp("upgrade plain --start double").ok();
    assert_eq!(first_window(&wire), 10);
    onramp("upgrade plain --start window").ok();
    assert_eq!(json("status")["algorithms"][0]["start"], serde_json::json!(["window"]));
}

fn of_far() -> Option<serde_json::Value> {
    paths().into_iter().find(|path| path["address"] == FAR.to_string())
}

#[test]
#[ignore = "in a guest: make test"]
fn a_loss_in_the_jump_is_remembered() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = Wire::lay(DELAY, |data| if data.number == 60 { Fate::Drop } else { Fate::Deliver });
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    import(&wire, &format!("{FAR} 100mbit,60ms 0s\n"));
    let mut sender = Sender::connect_by_default(wire);
    assert_eq!(sender.info().snd_cwnd, FIRST_MAX);
    sender.deliver(200_000);
    let path = of_far().unwrap();
    assert_eq!(
        (&path["confirmed"], &path["retreated"], &path["claimed"]),
        (&0.into(), &1.into(), &false.into())
    );
}

/// Has the near end remember what a file says.
fn import(wire: &Wire, lines: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let said = format!("paths import {}", file.path().display());
    wire.near.run(|| onramp(&said)).unwrap().ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn paths_are_imported_listed_masked_exported_and_forgotten_and_a_full_map_goes_on_learning() {
    let _attachments = Attachments::lock();
    let wire = wire("reno");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "192.0.2.7 50mbit,600ms 0s\n").unwrap();
    let said = format!("paths import {}", file.path().display());
    assert!(onramp(&said).refused(2).contains("--start"));
    onramp("attach plain --base cubic --start resume+window").ok();
    import(&wire, "192.0.2.7 50mbit,600ms 20s\n2001:db8::7 8mbit,40ms 0s\n");
    let export = || wire.near.run(|| onramp("paths export")).unwrap().ok();
    let exported = export();
    assert!(
        exported.contains("192.0.2.7 50000000bit,600000us ")
            && exported.contains("2001:db8::7 8000000bit,40000us ")
    );
    // It was learned before this kernel was booted.
    import(&wire, "lifetime=2h\n198.51.100.7 8mbit,40ms 90m\n");
    let old = paths().into_iter().find(|path| path["address"] == "198.51.100.7").unwrap();
    assert!((5_400..5_700).contains(&old["age_s"].as_u64().unwrap()), "{old}");
    onramp("paths flush --to 198.51.100.7").ok();
    // Of another namespace there are none.
    assert!(!onramp("paths export").ok().contains("192.0.2.7"));
    let masked = json("paths list --mask-addresses")["paths"].clone();
    assert_eq!((&masked[0]["address"], &masked[1]["address"]), (&"192.0.2.0".into(), &"2001:db8::".into()));
    assert_eq!(json("paths flush --to 2001:db8::/32")["forgotten"], 1);
    assert_eq!(paths().len(), 1);
    let lines: String =
        (0..16_384).map(|n| format!("10.0.{}.{} 50mbit,600ms 0s\n", n / 256, n % 256)).collect();
    import(&wire, &lines);
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    let mut sender = Sender::connect_by_default(wire);
    sender.deliver(1_500_000);
    let Sender { wire, stream, .. } = sender;
    drop(stream);
    assert!(eventually(|| of_far().is_some()));
    assert_eq!(first_window(&wire), FIRST_MAX);
    assert!(json("paths flush")["forgotten"].as_u64().unwrap() > 8_000);
    assert_eq!(paths().len(), 0);
    assert_eq!(first_window(&wire), 10);
}

/// A wire over which `plain` is the default, and of whose path 100 Mbit/s are remembered.
fn remembered() -> Wire {
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    import(&wire, &format!("{FAR} 100mbit,60ms 0s\n"));
    wire
}

/// The flow of a connection, as `onramp flows` has it.
fn flows(wire: &Wire) -> Vec<serde_json::Value> {
    wire.near.run(|| json("flows")["flows"].as_array().unwrap().clone()).unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn eight_transfers_in_parallel_make_one_jump_at_most() {
    let _attachments = Attachments::lock();
    for start in ["resume+window", "resume"] {
        onramp(&format!("attach plain --base cubic --start {start}")).ok();
        let wire = remembered();
        let mut open: Vec<_> = (0..8).map(|_| connect(&wire)).collect();
        let bytes = vec![0; 300_000];
        // One after the other they would have the path in turn: a socket takes all of it only as some is acknowledged.
        thread::scope(|scope| {
            for (stream, _) in &mut open {
                scope.spawn(|| stream.write_all(&bytes).unwrap());
            }
        });
        assert!(eventually(|| open.iter().all(|(stream, _)| info(&wire, stream).bytes_acked >= 300_000)));
        let starts: Vec<_> = flows(&wire).into_iter().map(|flow| flow["start"].clone()).collect();
        assert_eq!(starts.len(), 8);
        let jumps: Vec<_> = starts.iter().filter_map(|start| start["jump_segments"].as_u64()).collect();
        // To half of what the path holds, 750 kB; none where the ACKs of the others have held up its own.
        assert!(jumps.len() <= 1 && jumps.iter().all(|jump| *jump <= 259), "{starts:?}");
        let started = starts.iter().find(|start| !start.is_null()).unwrap();
        assert_eq!(started["min_rtt_us"], 60_000);
        assert!(started["rate_bits_per_s"].as_u64().unwrap() <= 100_000_000, "{started}");
        drop(open);
        assert!(eventually(|| of_far().unwrap()["claimed"] == false));
        onramp("detach plain").ok();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_says_how_its_start_went() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let mut sender = Sender::connect_by_default(wire);
    let start = |sender: &Sender| flows(&sender.wire)[0]["start"].clone();
    assert_eq!(start(&sender)["phase"], "reconnaissance");
    sender.deliver(1_500_000);
    let start = start(&sender);
    assert_eq!((&start["phase"], &start["end"]), (&"over".into(), &"validated".into()));
    // Half of what the path holds, 750 kB.
    assert!((u64::from(FIRST_MAX)..=259).contains(&start["jump_segments"].as_u64().unwrap()), "{start}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_that_has_nothing_to_send_keeps_no_other_from_starting() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let mut quiet = connect(&wire);
    assert_eq!(info(&wire, &quiet.0).snd_cwnd, FIRST_MAX);
    assert_eq!(of_far().unwrap()["claimed"], true);
    assert!(eventually(|| of_far().unwrap()["claimed"] == false));
    let other = connect(&wire);
    assert_eq!(info(&wire, &other.0).snd_cwnd, FIRST_MAX);
    // What the first one has to send later, it sends without the jump, which is the other's.
    quiet.0.write_all(&vec![0; 300_000]).unwrap();
    assert!(eventually(|| info(&wire, &quiet.0).bytes_acked >= 300_000));
    let local = quiet.0.local_addr().unwrap().port();
    let flow = flows(&wire).into_iter().find(|flow| flow["local_port"] == local).unwrap();
    assert_eq!(
        (&flow["start"]["end"], &flow["start"]["jump_segments"]),
        (&"late".into(), &serde_json::Value::Null)
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_that_sends_less_than_its_jump_gives_up_the_rest_of_it() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let (mut stream, _reader) = connect(&wire);
    stream.write_all(&vec![0; 150_000]).unwrap();
    assert!(eventually(|| info(&wire, &stream).bytes_acked >= 150_000));
    let start = flows(&wire)[0]["start"].clone();
    assert_eq!((&start["phase"], &start["end"]), (&"over".into(), &"validated".into()));
    // As if it had doubled: a segment for each that was acknowledged.
    assert!(info(&wire, &stream).snd_cwnd <= FIRST_MAX + 150_000 / 1_448, "{start}");
    assert_eq!(of_far().unwrap()["claimed"], false);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_ends_a_start_from_outside_loses_nothing_and_leaves_no_claim() {
    let _attachments = Attachments::lock();
    // The connection's process is killed.
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let listener = wire.far.run(|| Connection::default().listen((FAR, 0).into())).unwrap();
    let to = format!("TCP4:{}", listener.local_addr().unwrap());
    let mut sends = wire
        .near
        .run(|| Command::new("socat").args(["-u", "/dev/zero", &to]).stderr(Stdio::null()).spawn())
        .unwrap()
        .unwrap();
    let (mut reads, _) = listener.accept().unwrap();
    reads.read_exact(&mut [0; 1_000]).unwrap();
    sends.kill().unwrap();
    sends.wait().unwrap();
    drop((reads, listener));
    assert!(eventually(|| of_far().unwrap()["claimed"] == false));
    assert_eq!(first_window(&wire), FIRST_MAX);
    // Its code is replaced, and then detached, while the jump is on its way.
    for command in ["upgrade plain", "detach plain"] {
        let wire = remembered();
        let mut sender = Sender::connect_by_default(wire);
        assert_eq!(sender.info().snd_cwnd, FIRST_MAX);
        sender.send(300_000);
        onramp(command).ok();
        let came = sender.bring(300_000);
        assert_eq!((came.read, came.retransmitted), (600_000, 0), "{command}");
        let claimed = || paths().iter().any(|path| path["claimed"] == true);
        assert!(eventually(|| !claimed()), "{command}");
    }
    assert_eq!(paths().len(), 0);
    // Its network namespace is deleted.
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let (stream, _reader) = connect(&wire);
    assert_eq!(paths()[0]["claimed"], true);
    drop((stream, wire));
    assert!(eventually(|| paths()[0]["claimed"] == false));
    onramp("detach plain").ok();
    assert_eq!(paths().len(), 0);
}

/// A bottleneck of 25 Mbit/s that lets a burst of so much time through: it holds packets back, or as a policer drops them.
fn bottleneck(burst: Duration, holds: bool) -> impl FnMut(Data) -> Fate + Send + 'static {
    slower_bottleneck(Duration::from_micros(480), burst, holds)
}

/// The same, in which each packet takes so long.
fn slower_bottleneck(
    packet: Duration,
    burst: Duration,
    holds: bool,
) -> impl FnMut(Data) -> Fate + Send + 'static {
    let mut free_at = Instant::now();
    move |_| {
        let now = Instant::now();
        let waits = free_at.saturating_duration_since(now);
        if waits > burst {
            return Fate::Drop;
        }
        free_at = free_at.max(now) + packet;
        if holds { Fate::HoldBack(waits) } else { Fate::Deliver }
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_memory_four_times_too_large_loses_no_more_than_its_jump_and_is_corrected() {
    let _attachments = Attachments::lock();
    let lay = |holds| {
        let wire = Wire::lay(DELAY, bottleneck(DELAY, holds));
        wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
        wire
    };
    onramp("attach plain --base cubic").ok();
    let doubled = [true, false].map(|holds| Sender::connect_by_default(lay(holds)).bring(1_500_000));
    onramp("detach plain").ok();
    onramp("attach plain --base cubic --start resume+window").ok();
    for (holds, without) in [true, false].into_iter().zip(doubled) {
        let wire = lay(holds);
        import(&wire, &format!("{FAR} 100mbit,60ms 0s\n"));
        let mut sender = Sender::connect_by_default(wire);
        assert_eq!(sender.info().snd_cwnd, FIRST_MAX);
        let came = sender.bring(1_500_000);
        assert_eq!(came.read, 1_500_000);
        // Half of what the memory says that the path holds, besides what doubling loses.
        assert!(came.retransmitted <= without.retransmitted + 259, "{came:?}, {without:?}");
        let path = of_far().unwrap();
        assert_eq!(path["claimed"], false, "{holds}");
        let Sender { wire, stream, .. } = sender;
        drop(stream);
        assert!(
            eventually(|| of_far().unwrap()["rate_bits_per_s"].as_u64().unwrap() < 50_000_000),
            "{holds}"
        );
        drop(wire);
        onramp("paths flush").ok();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_path_that_is_forgotten_while_its_jump_is_on_the_way_loses_nothing() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered();
    let mut sender = Sender::connect_by_default(wire);
    assert_eq!(sender.info().snd_cwnd, FIRST_MAX);
    sender.send(300_000);
    // As a full map does to the path that was not used for longest.
    onramp("paths flush").ok();
    let came = sender.bring(300_000);
    assert_eq!((came.read, came.retransmitted), (600_000, 0));
    assert!(paths().iter().all(|path| path["claimed"] == false));
}
