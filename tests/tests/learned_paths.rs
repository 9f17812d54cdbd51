//! Starts from what earlier connections have learned of a path (`--start`): who learns, who is given it, and what is left behind.

use std::net::TcpStream;
use std::time::Duration;

use onramp_net::sock_diag::{SockDiag, Socket, States, TcpInfo};
use onramp_tests::Attachments;
use onramp_tests::cli::{json, onramp};
use onramp_tests::connection::{Connection, Reader};
use onramp_tests::sender::Sender;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{FAR, Fate, Wire};

/// One way.
const DELAY: Duration = Duration::from_millis(30);
/// Whole segments of 1,448 bytes that 64 kB hold.
const FIRST_MAX: u32 = 45;

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
