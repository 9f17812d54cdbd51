//! `onramp select`: which connection gets what, with real TCP, and what becomes of the rules.

#[path = "cli_select/loads.rs"]
mod loads;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, setsockopt, socket,
    sockopt::TcpCongestion,
};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cgroups::{Nested, cgroups};
use onramp_tests::cli::{self, DEFAULT, Names, Ran, host_state, json, onramp, run_cgroups, status};
use onramp_tests::traffic::{eventually, namespace};
use onramp_tests::wire::{FAR, Fate, Wire};

/// A namespace whose default is reno, with some addresses of its own in addition to those of loopback.
fn place() -> Namespace {
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    for address in
        ["192.0.2.1/32", "192.0.2.77/32", "198.51.100.1/32", "2001:db8::1/128", "2001:db8:1::1/128"]
    {
        let words = ["address", "add", address, "dev", "lo", "nodad"];
        let words = if address.contains(':') { &words[..] } else { &words[..5] };
        assert!(place.command("ip").args(words).status().unwrap().success(), "{address}");
    }
    place
}

/// The congestion control of a socket.
fn control(socket: &impl std::os::fd::AsFd) -> String {
    let name = getsockopt(socket, TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

/// Both ends of a connection between two addresses of a namespace.
struct Ends {
    connected: TcpStream,
    accepted: TcpStream,
}

impl Ends {
    fn new(place: &Namespace, from: &str, to: &TcpListener) -> Self {
        let to = to.try_clone().unwrap();
        let from: IpAddr = from.parse().unwrap();
        let connected = place.run(|| connected(from, to.local_addr().unwrap())).unwrap();
        Self { connected, accepted: to.accept().unwrap().0 }
    }

    /// What the end that connected and the end that accepted have.
    fn controls(&self) -> (String, String) {
        (control(&self.connected), control(&self.accepted))
    }
}

fn listen(place: &Namespace, address: &str) -> TcpListener {
    let address: SocketAddr = address.parse().unwrap();
    place.run(|| TcpListener::bind(address).unwrap()).unwrap()
}

/// A connection from an address; to an IPv4 address also over a socket of IPv6, where `from` is mapped.
fn connected(from: IpAddr, to: SocketAddr) -> TcpStream {
    let family = if from.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let to = match (from, to.ip()) {
        (IpAddr::V6(_), IpAddr::V4(inner)) => SocketAddr::new(inner.to_ipv6_mapped().into(), to.port()),
        _ => to,
    };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(from, 0))).unwrap();
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).unwrap();
    TcpStream::from(socket)
}

fn both(name: &str) -> (String, String) {
    (name.into(), name.into())
}

#[test]
#[ignore = "in a guest: make test"]
fn the_longest_prefix_decides_on_both_sides_over_both_families_and_nothing_remains() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("attach plain").ok();
    onramp("attach fixed").ok();
    let before = host_state(&[&place]);
    let (four, six) = (listen(&place, "127.0.0.1:0"), listen(&place, "[::]:0"));
    let here = SocketAddr::new("127.0.0.1".parse().unwrap(), six.local_addr().unwrap().port());
    assert_eq!(Ends::new(&place, "192.0.2.1", &four).controls(), both("reno"));

    // The peer of the end that accepts is 192.0.2.1 or 192.0.2.77, that of the end that connects 127.0.0.1.
    for rule in [
        "--to 192.0.0.0/8 --use cubic",
        "--to 192.0.2.0/24 --use plain",
        "--to 192.0.2.1 --connect --use cubic",
        "--to 127.0.0.1/32 --use fixed",
        "--to 127.0.0.1/32 --accept --use cubic",
        "--to ::/0 --use cubic",
        "--to 2001:db8::/48 --use plain",
    ] {
        onramp(&format!("select add {rule}")).ok();
    }
    let pair = |connected: &str, accepted: &str| (connected.to_owned(), accepted.to_owned());
    assert_eq!(Ends::new(&place, "192.0.2.1", &four).controls(), pair("onramp_fixed", "onramp_plain"));
    assert_eq!(Ends::new(&place, "127.0.0.1", &four).controls(), pair("onramp_fixed", "cubic"));
    assert_eq!(Ends::new(&place, "198.51.100.1", &four).controls(), pair("onramp_fixed", "reno"));
    // Both ends have sockets of IPv6, the peers are IPv4.
    let mapped = place.run(|| connected("::ffff:192.0.2.77".parse().unwrap(), here)).unwrap();
    let accepted = six.accept().unwrap().0;
    assert_eq!((control(&mapped), control(&accepted)), pair("onramp_fixed", "onramp_plain"));
    drop((mapped, accepted));
    let six_one = listen(&place, "[2001:db8::1]:0");
    assert_eq!(Ends::new(&place, "2001:db8:1::1", &six_one).controls(), pair("onramp_plain", "cubic"));
    assert_eq!(Ends::new(&place, "2001:db8::1", &six_one).controls(), both("onramp_plain"));

    // The connections began with what was chosen, none was taken over.
    let status = json("status");
    for row in status["algorithms"].as_array().unwrap() {
        assert_eq!(row["flows_adopted"], 0, "{status}");
        assert!(row["flows_ended"].as_u64().unwrap() > 0, "{status}");
    }
    assert_eq!(status["selection"]["rules"], 7, "{status}");
    assert_eq!(status["selection"]["active"], true, "{status}");
    for line in onramp("select list").ok().lines() {
        let target = line.split(" --use ").next().unwrap();
        let removed = onramp(&format!("select del {target}")).ok();
        assert!(removed.contains(&format!("undo: onramp select add {line}")), "{removed}");
    }
    assert_eq!(host_state(&[&place]), before);
    assert_eq!(Ends::new(&place, "192.0.2.1", &four).controls(), both("reno"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_port_comes_after_prefixes_and_before_cgroups_and_test_says_what_happens() {
    let _attachments = Attachments::lock();
    let place = place();
    let nested = Nested::new();
    onramp("attach plain").ok();
    let to = listen(&place, "127.0.0.1:0");
    let port = to.local_addr().unwrap().port();
    let other = listen(&place, "127.0.0.1:0");
    for rule in [
        "--to 192.0.2.1/32 --accept --use plain".to_owned(),
        format!("--port {port} --use bbr"),
        format!("--port {port} --connect --use cubic"),
        "--cgroup /onramp-test-select --use cubic".to_owned(),
        format!("--cgroup {}/onramp-test-select/inner --use plain", cgroups().display()),
    ] {
        onramp(&format!("select add {rule}")).ok();
    }
    let mut compared = 0;
    for (cgroup, word) in [("", "/onramp-test-select"), ("inner", "/onramp-test-select/inner"), ("..", "/")] {
        nested.enter(cgroup);
        for listener in [&to, &other] {
            for from in ["192.0.2.1", "192.0.2.77"] {
                // The listener's socket was made in the root, and so were those that it accepts.
                let ends = Ends::new(&place, from, listener);
                let (connected, accepted) = ends.controls();
                let port = listener.local_addr().unwrap().port();
                for (side, peer, cgroup, has) in
                    [("connect", "127.0.0.1", word, connected), ("accept", from, "/", accepted)]
                {
                    let said = place
                        .command(cli::binary())
                        .args(["--json", "select", "test", &format!("{peer}:{port}")])
                        .args(["--cgroup", cgroup, &format!("--{side}")])
                        .output();
                    let said: serde_json::Value =
                        serde_json::from_str(&Ran::from(said.unwrap()).ok()).unwrap();
                    let answer = &said["answers"][0];
                    let expected = answer["congestion_control"].as_str().unwrap_or("reno");
                    assert_eq!(has, expected, "{side} {from} {port} in {cgroup}: {said}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 24);
    nested.enter("inner");
    assert_eq!(Ends::new(&place, "192.0.2.77", &to).controls(), ("cubic".into(), "bbr".into()));
    assert_eq!(Ends::new(&place, "192.0.2.1", &other).controls(), both("onramp_plain"));
    nested.enter("");
    assert_eq!(Ends::new(&place, "192.0.2.77", &other).controls(), ("cubic".into(), "reno".into()));
    let said = onramp(&format!("select test 192.0.2.77:{port} --connect")).ok();
    assert!(said.names(&["cubic", "--port"]) && said.contains("no prefix, so the port"), "{said}");
    let said = onramp("select test 192.0.2.77 --accept").ok();
    assert!(said.contains("no rule decides") && said.contains("`congctl`"), "{said}");
    // A cgroup that is gone takes its rule with it, which is said.
    nested.enter("..");
    fs::remove_dir(cgroups().join("onramp-test-select/inner")).unwrap();
    let listed = onramp("select list").ok();
    assert!(listed.contains("# --cgroup id:"), "{listed}");
    let rules = json("select list")["rules"].as_array().unwrap().clone();
    let orphan = rules.iter().find(|rule| rule["cgroup"].is_null() && !rule["cgroup_id"].is_null()).unwrap();
    let named = format!("--cgroup id:{}", orphan["cgroup_id"]);
    assert_eq!(json("status")["selection"]["rules_without_cgroup"], 1);
    onramp(&format!("select add {named} --use cubic")).refused(2);
    // It can be named, and goes alone.
    let side = match orphan["side"].as_str().unwrap() {
        "both" => String::new(),
        side => format!(" --{side}"),
    };
    onramp(&format!("select del {named}{side} --dry-run")).ok();
    onramp(&format!("select del {named}{side}")).ok();
    assert_eq!(json("select list")["rules"].as_array().unwrap().len(), rules.len() - 1);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_an_application_or_a_locked_route_chooses_wins_and_a_rule_over_the_rest() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("select add --to 0.0.0.0/0 --use cubic").ok();
    let to = listen(&place, "127.0.0.1:0");
    let ends = Ends::new(&place, "192.0.2.1", &to);
    assert_eq!(ends.controls(), both("cubic"));
    // After.
    setsockopt(&ends.connected, TcpCongestion, &"bbr".into()).unwrap();
    assert_eq!(control(&ends.connected), "bbr");
    // Before, on the connecting socket and on the listening one.
    setsockopt(&to, TcpCongestion, &"bbr".into()).unwrap();
    let early = place
        .run(|| {
            let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
            setsockopt(&socket, TcpCongestion, &"reno".into()).unwrap();
            connect(socket.as_raw_fd(), &SockaddrStorage::from(to.local_addr().unwrap())).unwrap();
            socket
        })
        .unwrap();
    assert_eq!((control(&early), control(&to.accept().unwrap().0)), ("reno".into(), "bbr".into()));

    let to = listen(&place, "127.0.0.1:0");
    let route = |words: &str| {
        let route = format!("route replace local 192.0.2.77 dev lo table local {words}");
        assert!(place.command("ip").args(route.split(' ')).status().unwrap().success(), "{route}");
    };
    route("congctl reno");
    assert_eq!(control(&Ends::new(&place, "192.0.2.77", &to).accepted), "cubic");
    route("congctl lock bbr");
    assert_eq!(control(&Ends::new(&place, "192.0.2.77", &to).accepted), "bbr");
}

/// Why each end of a connection has its control, as `onramp flows` shows it: the end that connected, and the end that
/// accepted.
fn why(place: &Namespace, ends: &Ends) -> [serde_json::Value; 2] {
    let text = cli::inside(place, "flows --json").ok();
    let listed: serde_json::Value = serde_json::from_str(&text).unwrap();
    [&ends.connected, &ends.accepted].map(|end| {
        // Ports alone may be those of another connection, of other addresses.
        let (local, remote) = (end.local_addr().unwrap(), end.peer_addr().unwrap());
        let rows = listed["flows"].as_array().unwrap();
        rows.iter()
            .find(|row| {
                row["local_address"] == local.ip().to_canonical().to_string()
                    && row["local_port"] == local.port()
                    && row["remote_address"] == remote.ip().to_canonical().to_string()
                    && row["remote_port"] == remote.port()
            })
            .map_or(serde_json::Value::Null, |row| row["why"].clone())
    })
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_show_which_rule_route_default_or_application_chose_and_which_code_they_run() {
    let _attachments = Attachments::lock();
    let place = place();
    let nested = Nested::new();
    onramp("attach plain").ok();
    place.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let to = listen(&place, "192.0.2.77:0");
    let port = to.local_addr().unwrap().port();
    nested.enter("inner");
    let ends = Ends::new(&place, "192.0.2.1", &to);
    nested.enter("..");
    let chosen = || why(&place, &ends).map(|why| why["chosen_by"].as_str().unwrap_or("none").to_owned());
    let [connected, accepted] = why(&place, &ends);
    assert_eq!(chosen(), ["default", "default"]);
    assert_eq!((&connected["side"], &accepted["side"]), (&"connect".into(), &"accept".into()));
    assert_eq!((&connected["code"], &accepted["code"]), (&"attached".into(), &"attached".into()));
    // The listener was made in the root, and so is what it accepts.
    let inner = "/onramp-test-select/inner";
    assert_eq!((&connected["cgroup"], &accepted["cgroup"]), (&inner.into(), &"/".into()));

    let rule = |verb: &str, rule: &str| onramp(&format!("select {verb} {rule}")).ok();
    rule("add", "--cgroup /onramp-test-select --use plain");
    assert_eq!(chosen(), ["cgroup", "default"]);
    rule("add", &format!("--port {port} --accept --use plain"));
    assert_eq!(chosen(), ["cgroup", "port"]);
    rule("add", "--to 192.0.2.1 --use cubic");
    let [_, accepted] = why(&place, &ends);
    assert_eq!(
        (&accepted["chosen_by"], &accepted["new_connections_get"]),
        (&"other".into(), &"cubic".into())
    );
    assert_eq!(accepted["rule"], "--to 192.0.2.1/32 --use cubic");
    rule("del", "--to 192.0.2.1");
    rule("add", "--to 192.0.2.0/24 --use plain");
    assert_eq!(chosen(), ["prefix", "prefix"]);
    let said = cli::inside(&place, "flows --why").ok();
    assert!(said.contains("--to 192.0.2.0/24 --use plain"), "{said}");
    onramp("select del --all").ok();

    // What is new is asked about as `select test` asks, and gets what that says.
    place.sysctl_set(DEFAULT, "reno").unwrap();
    assert_eq!(chosen(), ["other", "other"]);
    for (lock, word) in [("", "route"), ("lock ", "route")] {
        let route = format!("route replace local 192.0.2.77 dev lo table local congctl {lock}onramp_plain");
        assert!(place.command("ip").args(route.split(' ')).status().unwrap().success(), "{route}");
        let new = Ends::new(&place, "192.0.2.1", &to);
        assert_eq!(new.controls(), ("onramp_plain".into(), "reno".into()));
        assert_eq!(why(&place, &new)[0]["chosen_by"], word);
        let said = cli::inside(&place, "select test 192.0.2.77 --connect").ok();
        assert!(said.starts_with("connect: onramp_plain by the route"), "{said}");
        assert_eq!(said.lines().next().unwrap().contains("lock"), !lock.is_empty(), "{said}");
    }
    // An application's choice shows as what nothing else explains.
    let to = listen(&place, "127.0.0.1:0");
    let ends = Ends::new(&place, "192.0.2.1", &to);
    setsockopt(&ends.connected, TcpCongestion, &"onramp_plain".into()).unwrap();
    let [connected, accepted] = why(&place, &ends);
    assert_eq!((&connected["chosen_by"], accepted.is_null()), (&"other".into(), true));
    assert!(connected["explanation"].as_str().unwrap().starts_with("by its application, or"), "{connected}");

    // Code that has been detached meanwhile: known by the state, which a connection in its initial window has not.
    let more_than_a_window = [0; 20_000];
    (&ends.connected).write_all(&more_than_a_window).unwrap();
    (&ends.accepted).read_exact(&mut more_than_a_window.clone()).unwrap();
    onramp("detach plain --leave-sockets").ok();
    onramp("attach plain").ok();
    assert_eq!(why(&place, &ends)[0]["code"], "older");
    setsockopt(&ends.accepted, TcpCongestion, &"onramp_plain".into()).unwrap();
    assert_eq!(why(&place, &ends)[1]["code"], "unknown");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_initial_window_is_what_is_sent_at_first() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let first_flight = || {
        let counter = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&counter);
        // Nothing arrives, so nothing is acknowledged. A probe of new data comes after two round trips at the earliest.
        let wire = Wire::lay(Duration::from_millis(200), move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Fate::Drop
        });
        let to = wire.far.run(|| TcpListener::bind((FAR, 0)).unwrap()).unwrap();
        let address = to.local_addr().unwrap();
        let mut stream = wire.near.run(|| TcpStream::connect(address).unwrap()).unwrap();
        setsockopt(&stream, nix::sys::socket::sockopt::SndBuf, &4_000_000).unwrap();
        stream.set_nonblocking(true).unwrap();
        let written = stream.write(&vec![0; 200_000]).unwrap();
        assert!(written > 32 * 1448, "{written}");
        thread::sleep(Duration::from_millis(500));
        counter.load(Ordering::Relaxed)
    };
    assert_eq!(first_flight(), 10);
    onramp(&format!("select add --to {FAR} --use plain --initial-window 32")).ok();
    assert_eq!(first_flight(), 32);
    onramp(&format!("select del --to {FAR}")).ok();
    onramp(&format!("select add --to {FAR} --use bbr --initial-window 4")).ok();
    assert_eq!(first_flight(), 4);
    // A control that is gone takes its window with it.
    onramp(&format!("select del --to {FAR}")).ok();
    onramp(&format!("select add --to {FAR} --use plain --initial-window 32")).ok();
    onramp("detach plain").ok();
    assert_eq!(first_flight(), 10);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_rule_whose_algorithm_is_detached_gives_the_default_and_says_so() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("attach plain").ok();
    onramp("select add --to 192.0.2.0/24 --use plain").ok();
    onramp("select add --port 7 --use cubic").ok();
    let said = onramp("detach plain").ok();
    assert!(said.names(&["onramp select", "(1)"]), "{said}");
    let to = listen(&place, "192.0.2.1:0");
    assert_eq!(Ends::new(&place, "192.0.2.1", &to).controls(), both("reno"));
    let listed = onramp("select list").ok();
    let note = "--to 192.0.2.0/24 --use plain  # onramp_plain is not registered";
    assert!(listed.contains(note), "{listed}");
    assert_eq!(json("status")["selection"]["controls_missing"], serde_json::json!(["onramp_plain"]));
    let said = onramp("select test 192.0.2.1").ok();
    assert!(said.names(&["--to 192.0.2.0/24 --use plain", "onramp_plain"]), "{said}");
    onramp("attach plain").ok();
    assert_eq!(Ends::new(&place, "192.0.2.1", &to).controls(), both("onramp_plain"));
    let report = json("detach --all");
    assert_eq!(report["selection_removed"], 2, "{report}");
    assert!(json("status")["selection"].is_null());
}

#[test]
#[ignore = "in a guest: make test"]
fn a_run_goes_before_rules_and_keeps_what_its_command_chooses() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("select add --to 127.0.0.0/8 --use bbr").ok();
    let _to = listen(&place, "127.0.0.1:7002");
    let ran: Ran = place
        .command(cli::binary())
        .args(["run", "plain", "--", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7002; ss -tinH"])
        .output()
        .unwrap()
        .into();
    let listed = ran.ok();
    assert!(listed.contains("onramp_plain") && listed.contains("bbr"), "{listed}");
    assert!(run_cgroups().is_empty());
}

const APACHE: &str = "/usr/sbin/apache2";

#[test]
#[ignore = "in a guest: make test"]
fn a_web_server_serves_each_client_with_what_its_prefix_says() {
    let _attachments = Attachments::lock();
    if !Path::new(APACHE).exists() {
        onramp_tests::skip("apache2 is not installed");
        return;
    }
    let place = place();
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let root = directory.path().display();
    fs::create_dir(directory.path().join("www")).unwrap();
    fs::write(directory.path().join("www/object"), vec![7; 3_000_000]).unwrap();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot {root}\nPidFile {root}/pid\nErrorLog {root}/error.log\nServerName lab\nListen 127.0.0.1:8080\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\nLoadModule authz_core_module {modules}/mod_authz_core.so\n\
         DocumentRoot {root}/www\n"
    );
    fs::write(directory.path().join("apache.conf"), configuration).unwrap();
    onramp("attach plain").ok();
    onramp("attach fixed").ok();
    onramp("select add --to 192.0.2.0/24 --accept --use plain --initial-window 20").ok();
    onramp("select add --to 198.51.100.0/24 --accept --use fixed").ok();
    let mut server = place
        .command(APACHE)
        .args(["-X", "-f"])
        .arg(directory.path().join("apache.conf"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let get = |from: &str| -> Ran {
        let mut curl: Command = place.command("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{size_download}", "--interface", from]);
        curl.arg("http://127.0.0.1:8080/object").output().unwrap().into()
    };
    assert!(eventually(|| get("127.0.0.1").code == Some(0)));
    for (from, times) in [("192.0.2.1", 3), ("192.0.2.77", 2), ("198.51.100.1", 4)] {
        for _ in 0..times {
            assert_eq!(get(from).ok(), "3000000");
        }
    }
    let started = |name: &str| status(name).unwrap()["flows_started"].as_u64().unwrap();
    let served = eventually(|| (started("plain"), started("fixed")) == (5, 4));
    let _ = server.kill();
    server.wait().unwrap();
    assert!(served, "plain {}, fixed {}", started("plain"), started("fixed"));
}
