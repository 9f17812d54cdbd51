//! `onramp select` under servers of other projects: nginx, and socat as a relay that chooses for itself; with curl
//! over an emulated link.

use std::process::Child;

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, json, onramp, status};
use onramp_tests::clients::{FIBRE, SATELLITE, arrive, control, downloads, have, hosts};
use onramp_tests::servers::{Server, answers};
use onramp_tests::traffic::eventually;
use serde_json::Value;

/// The flow with this peer as `onramp flows` has it.
fn flow(place: &Namespace, peer: &str) -> Value {
    let listed: Value = serde_json::from_str(&cli::inside(place, "flows --json").ok()).unwrap();
    let rows = listed["flows"].as_array().unwrap();
    rows.iter().find(|row| row["remote_address"] == peer).cloned().unwrap_or_default()
}

#[test]
#[ignore = "in a guest: make test"]
fn nginx_serves_each_prefix_of_both_families_with_its_control_and_flows_say_why() {
    let _attachments = Attachments::lock();
    let hosts = hosts();
    onramp("select add --to 203.0.113.0/24 --use search").ok();
    onramp("select add --to 2001:db8:5::/48 --use search").ok();
    let _nginx = Server::nginx(hosts.sender());
    answers(hosts.sender(), "http://127.0.0.1/object");
    let started = |name: &str| status(name).unwrap()["flows_started"].as_u64().unwrap();
    let before = (started("search"), started("plain"));

    let established = downloads(&hosts, &[SATELLITE, FIBRE].concat(), 80);
    for (peers, by, rules) in [
        (SATELLITE, "prefix", ["--to 203.0.113.0/24 --use search", "--to 2001:db8:5::/48 --use search"]),
        (FIBRE, "default", ["", ""]),
    ] {
        for (peer, rule) in peers.into_iter().zip(rules) {
            let mut seen = Value::Null;
            assert!(eventually(|| {
                seen = flow(hosts.sender(), peer);
                !seen.is_null()
            }));
            let why = &seen["why"];
            assert_eq!(
                (&why["chosen_by"], &why["side"], &why["code"]),
                (&by.into(), &"accept".into(), &"attached".into()),
                "{seen}"
            );
            assert_eq!(why["rule"].as_str().unwrap_or(""), rule, "{seen}");
            let name = if by == "prefix" { "onramp_search" } else { "onramp_plain" };
            have(hosts.sender(), "sport", 80, &[(peer, name)]);
        }
    }
    let said = cli::inside(hosts.sender(), "flows --why").ok();
    assert!(said.contains("--to 2001:db8:5::/48 --use search"), "{said}");
    arrive(established);
    // One connection for each client, none of which was begun by another control.
    assert!(eventually(|| (started("search"), started("plain")) == (before.0 + 2, before.1 + 2)));
    let status = json("status");
    assert!(status["algorithms"].as_array().unwrap().iter().all(|row| row["flows_adopted"] == 0), "{status}");
}

/// socat as a relay from this port to nginx, with options for its listening side and for its connecting side.
fn relay(place: &Namespace, port: u16, listening: &str, connecting: &str) -> Child {
    place
        .command("socat")
        .arg(format!("TCP-LISTEN:{port},reuseaddr,fork{listening}"))
        .arg(format!("TCP:127.0.0.1:80{connecting}"))
        .spawn()
        .unwrap()
}

/// socat's option that sets TCP_CONGESTION: before a socket is bound, or when it is connected.
fn chooses(name: &str, early: bool) -> String {
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    if early {
        let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!(",setsockopt-listen={level}:{option}:x{hex}")
    } else {
        format!(",setsockopt-string={level}:{option}:{name}")
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_proxy_that_chooses_for_itself_keeps_its_choice_on_both_sides_whenever_it_chooses() {
    let _attachments = Attachments::lock();
    let hosts = hosts();
    for rule in [
        "--to 203.0.113.0/24 --use search",
        "--to 198.51.100.0/24 --use search",
        "--to 127.0.0.1 --connect --use search",
    ] {
        onramp(&format!("select add {rule}")).ok();
    }
    let place = hosts.sender();
    let _nginx = Server::nginx(place);
    answers(place, "http://127.0.0.1/object");
    for (port, early, client) in
        [(8081, Some(true), SATELLITE[0]), (8082, Some(false), FIBRE[0]), (8083, None, SATELLITE[0])]
    {
        let option = |name| early.map_or_else(String::new, |early| chooses(name, early));
        let mut socat = relay(place, port, &option("bbr"), &option("cubic"));
        let listens = format!("sport = :{port}");
        assert!(eventually(|| {
            let ss = place.command("ss").args(["-tlnH", &listens]).output().unwrap();
            !ss.stdout.is_empty()
        }));
        let established = downloads(&hosts, &[client], port);
        let (accepts, connects) = match early {
            Some(_) => ("bbr", "cubic"),
            None => ("onramp_search", "onramp_search"),
        };
        have(place, "sport", port, &[(client, accepts)]);
        have(place, "dport", 80, &[("127.0.0.1", connects)]);
        arrive(established);
        // Its own; the connections have gone with their children.
        socat.kill().unwrap();
        socat.wait().unwrap();
        assert!(eventually(|| control(place, "dport", 80, "127.0.0.1").is_none()));
    }
}
