//! What the next connection of a server runs: servers that were listening before or while an algorithm was the
//! default, by default or by their own choice, after each way in which its code goes.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process;

use nix::sys::socket::{SockaddrIn, connect};
use onramp_loader::abi::{Attachment, attachment_flag};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{DEFAULT, Ran, host_state, inside, json, onramp, state, status};
use onramp_tests::pinned::{change, write_u32};
use onramp_tests::traffic::{Server, control, eventually, namespace};
use serde_json::{Value, json};

/// A namespace whose default is reno.
fn place() -> Namespace {
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    place
}

fn next(servers: &[Server; 4]) -> [String; 4] {
    servers.each_ref().map(Server::next)
}

fn trip() {
    change("plain/attachment", |value| {
        let at = std::mem::offset_of!(Attachment, flags);
        let flags = u32::from_ne_bytes(*value[at..].first_chunk().unwrap());
        write_u32(value, at, flags | attachment_flag::TRIPPED);
    });
}

/// What keeps code loaded, but for who it is.
fn holders(row: &Value) -> Vec<(String, bool, u64)> {
    let rows = row["held_by"].as_array().unwrap();
    rows.iter()
        .map(|one| {
            assert_eq!(one["pid"], process::id(), "{row}");
            let state = one["state"].as_str().unwrap().to_owned();
            (state, one["only_listens"].as_bool().unwrap(), one["sockets"].as_u64().unwrap())
        })
        .collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn however_code_goes_the_next_connection_runs_what_decides_then() {
    let _attachments = Attachments::lock();
    for (attach, goes) in [
        ("attach plain --default", "detach plain"),
        ("attach plain --default", "undo"),
        ("attach plain --default --for 2s", "expiry"),
        ("attach plain --default --guard goodput=-10%", "trip"),
    ] {
        let place = place();
        let before = host_state(&[&place]);
        let first = Server::begin(&place, None);
        inside(&place, attach).ok();
        let servers = [
            first,
            Server::begin(&place, None),
            Server::begin(&place, Some("onramp_plain")),
            Server::begin(&place, Some("cubic")),
        ];
        assert_eq!(next(&servers), ["onramp_plain", "onramp_plain", "onramp_plain", "cubic"], "{goes}");
        let ran: Option<Ran> = match goes {
            "expiry" => {
                assert!(eventually(|| place.sysctl_get(DEFAULT).unwrap() == "reno"));
                None
            }
            "trip" => {
                trip();
                assert_eq!(next(&servers)[..2], ["onramp_plain", "onramp_plain"]);
                Some(onramp("--json detach --all"))
            }
            verb => Some(onramp(&format!("--json {verb}"))),
        };
        if let Some(ran) = ran {
            let report: Value = serde_json::from_str(&ran.ok()).unwrap();
            let row = &report["detached"][0];
            // Of the servers only the one that had chosen it moves.
            assert_eq!((&row["listening_moved"], &row["still_loaded"]), (&json!(1), &json!(1)), "{row}");
            assert_eq!((&row["was_attached"], &row["stragglers"]), (&json!(true), &json!([])), "{row}");
            assert_eq!(holders(row), [("LISTEN".to_owned(), true, 1)], "{row}");
        }
        assert!(eventually(|| state("plain").as_deref() == Some("lingering")), "{goes}");
        let row = status("plain").unwrap();
        assert_eq!(holders(&row), [("LISTEN".to_owned(), true, 1)], "{row}");

        assert_eq!(next(&servers), ["reno", "reno", "reno", "cubic"], "{goes}");
        place.sysctl_set(DEFAULT, "cubic").unwrap();
        assert_eq!(next(&servers), ["cubic", "cubic", "reno", "cubic"], "{goes}");
        let route = |control: &str| {
            let route = format!("route change local 127.0.0.1 dev lo table local {control}");
            assert!(place.command("ip").args(route.split_whitespace()).status().unwrap().success());
        };
        route("congctl bbr");
        assert_eq!(next(&servers), ["bbr", "bbr", "bbr", "bbr"], "{goes}");
        route("");
        place.sysctl_set(DEFAULT, "reno").unwrap();
        drop(servers);
        assert!(eventually(|| state("plain").is_none()), "{goes}");
        assert_eq!(host_state(&[&place]), before, "{goes}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_server_of_an_earlier_attachment_follows_the_next_attachment_and_rules() {
    let _attachments = Attachments::lock();
    let place = place();
    inside(&place, "attach plain --default").ok();
    let server = Server::begin(&place, None);
    onramp("detach plain").ok();
    // Not attached, and nothing that a second call could do.
    let again = json("detach plain");
    assert_eq!(again["detached"][0]["was_attached"], false, "{again}");
    assert_eq!(again["detached"][0]["sockets_moved"], 0, "{again}");
    assert!(!onramp("detach plain").ok().contains("detached plain"));

    inside(&place, "attach plain --default").ok();
    let (near, far) = server.accept();
    assert_eq!(control(&far), "onramp_plain");
    // It runs the code of now: only the server has that of before.
    let row = status("plain").unwrap();
    assert_eq!((&row["state"], &row["older_code"]), (&json!("attached"), &json!(1)), "{row}");
    assert_eq!(holders(&row), [("LISTEN".to_owned(), true, 1)], "{row}");
    drop((near, far));
    place.sysctl_set(DEFAULT, "reno").unwrap();
    assert_eq!(server.next(), "reno");
    onramp(&format!("select add --port {} --accept --use plain", server.port())).ok();
    assert_eq!(server.next(), "onramp_plain");
    onramp("select del --all").ok();
    assert_eq!(server.next(), "reno");
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_server_has_chosen_is_said_to_decide_and_does() {
    let _attachments = Attachments::lock();
    let place = place();
    inside(&place, "attach plain --default").ok();
    for (chosen, decided_by) in
        [(None, "port"), (Some("cubic"), "application"), (Some("onramp_plain"), "application")]
    {
        let server = Server::begin(&place, chosen);
        let port = server.port();
        onramp("attach fixed").ok();
        onramp(&format!("select add --port {port} --accept --use fixed")).ok();
        let test: Value = serde_json::from_str(
            &inside(&place, &format!("--json select test 127.0.0.1:{port} --accept")).ok(),
        )
        .unwrap();
        let answer = &test["answers"][0];
        assert_eq!(answer["decided_by"], decided_by, "{test}");
        let (near, far) = server.accept();
        assert_eq!(answer["congestion_control"], control(&far), "{test}");
        if chosen == Some("onramp_plain") {
            let flows: Value = serde_json::from_str(&inside(&place, "--json flows --why").ok()).unwrap();
            let flows = flows["flows"].as_array().unwrap();
            let accepted = flows.iter().find(|flow| flow["why"]["side"] == "accept").unwrap();
            assert_eq!(accepted["why"]["chosen_by"], "application", "{accepted}");
        }
        drop((near, far));
        onramp("select del --all").ok();
        onramp("detach fixed").ok();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_socket_that_connects_again_keeps_the_rule_of_its_first_peer() {
    let _attachments = Attachments::lock();
    let place = place();
    for algorithm in ["search", "plain"] {
        onramp(&format!("attach {algorithm}")).ok();
    }
    onramp("select add --to 127.0.0.2 --connect --use search --profile geo").ok();
    onramp("select add --to 127.0.0.3 --connect --use plain").ok();
    let listen = |address: &str| place.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let (first, second) = (listen("127.0.0.2:5001"), listen("127.0.0.3:5001"));
    let socket = place.run(|| TcpStream::connect("127.0.0.2:5001")).unwrap().unwrap();
    assert_eq!(control(&socket), "onramp_search");
    drop(first.accept().unwrap());
    let unspecified = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    // SAFETY: one system call on a socket that is open, with an address that lives as long as it.
    let disconnected = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            &raw const unspecified,
            size_of::<libc::sockaddr>() as libc::socklen_t,
        )
    };
    assert_eq!(disconnected, 0);
    connect(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 3, 5001)).unwrap();
    let far = second.accept().unwrap();
    assert_eq!(control(&socket), "onramp_search");
    let flows: Value = serde_json::from_str(&inside(&place, "--json flows --why").ok()).unwrap();
    let why = &flows["flows"][0]["why"];
    assert_eq!(
        (&why["chosen_by"], &why["new_connections_get"]),
        (&json!("other"), &json!("onramp_plain")),
        "{flows}"
    );
    // A new socket gets what its peer's rule says.
    assert_eq!(
        control(&place.run(|| TcpStream::connect("127.0.0.3:5001")).unwrap().unwrap()),
        "onramp_plain"
    );
    drop((socket, far));
}

#[test]
#[ignore = "in a guest: make test"]
fn an_upgrade_gives_new_connections_the_newer_code_and_no_server_a_choice() {
    let _attachments = Attachments::lock();
    let place = place();
    let first = Server::begin(&place, None);
    inside(&place, "attach plain --default").ok();
    let servers = [
        first,
        Server::begin(&place, None),
        Server::begin(&place, Some("onramp_plain")),
        Server::begin(&place, Some("cubic")),
    ];
    for _ in 0..2 {
        let report = json("upgrade plain");
        let row = &report["upgraded"][0];
        assert_eq!(holders(row), [("LISTEN".to_owned(), true, 1)], "{row}");
        let open = servers.each_ref().map(Server::accept);
        let controls = open.each_ref().map(|(_, far)| control(far));
        assert_eq!(controls, ["onramp_plain", "onramp_plain", "onramp_plain", "cubic"]);
        // None of them runs old code, nor does the server whose application chose the name.
        assert_eq!(holders(&status("plain").unwrap()), [("LISTEN".to_owned(), true, 1)]);
    }
    place.sysctl_set(DEFAULT, "cubic").unwrap();
    assert_eq!(next(&servers), ["cubic", "cubic", "onramp_plain", "cubic"]);
    inside(&place, "attach fixed --default").ok();
    assert_eq!(next(&servers), ["onramp_fixed", "onramp_fixed", "onramp_plain", "cubic"]);
    onramp("undo").ok();
    assert_eq!(next(&servers), ["cubic", "cubic", "cubic", "cubic"]);
}
