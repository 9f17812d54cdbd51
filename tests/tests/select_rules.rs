//! Rules of `onramp select` that name several things: what connections get is what the answer said, and what was changed
//! comes back by the undo that was printed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, socket,
    sockopt::TcpCongestion,
};
use onramp_loader::ROOT;
use onramp_loader::select::{self, Cgroup, Choice, Connection, Profile, Rule, Side, Target};
use onramp_loader::telemetry::Level;
use onramp_loader::{By, Deciders};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cgroups::{Nested, cgroups};
use onramp_tests::cli::{self, DEFAULT, Ran, host_state, json, onramp};
use onramp_tests::traffic::namespace;
use serde_json::Value;

/// Addresses of the namespace, in addition to that of loopback.
const FOUR: [&str; 4] = ["127.0.0.1", "192.0.2.1", "192.0.2.77", "198.51.100.1"];
const SIX: [&str; 2] = ["2001:db8::1", "2001:db8:1::1"];
/// Ports of the listening sockets: in the root, in the outer cgroup and in the inner one.
const PORTS: [u16; 3] = [7001, 7002, 7003];
const CGROUPS: [&str; 3] = ["..", "", "inner"];

/// A namespace whose default is reno, with a route of a control of its own.
fn place() -> Namespace {
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let ip = |words: &str| {
        assert!(place.command("ip").args(words.split(' ')).status().unwrap().success(), "{words}");
    };
    for address in &FOUR[1..] {
        ip(&format!("address add {address}/32 dev lo"));
    }
    for address in SIX {
        ip(&format!("address add {address}/128 dev lo nodad"));
    }
    ip("route replace local 198.51.100.1 dev lo table local congctl bbr");
    place
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) % bound as u64) as usize
    }

    fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn target(&mut self, cgroups: &[Cgroup]) -> Target {
        let prefixes = [
            "0.0.0.0/0",
            "127.0.0.0/8",
            "127.0.0.1/32",
            "192.0.2.0/24",
            "192.0.2.64/26",
            "192.0.2.77/32",
            "::ffff:192.0.2.0/121",
            "198.51.0.0/16",
            "::/0",
            "2001:db8::/32",
            "2001:db8:1::/48",
            "2001:db8::1/128",
        ];
        loop {
            let target = Target {
                to: (self.below(3) > 0).then(|| self.choose(&prefixes).parse().unwrap()),
                port: (self.below(2) > 0).then(|| *self.choose(&[7001, 7002, 7003, 9])),
                cgroup: (self.below(3) > 0).then(|| self.choose(cgroups).clone()),
                side: *self.choose(&[Side::Both, Side::Accept, Side::Connect]),
            };
            if target.to.is_some() || target.port.is_some() || target.cgroup.is_some() {
                return target;
            }
        }
    }

    /// One of the controls is registered nowhere.
    fn choice(&mut self) -> Choice {
        let control =
            *self.choose(&["onramp_plain", "onramp_fixed", "onramp_search", "cubic", "reno", "bbr"]);
        let has_profiles = ["onramp_plain", "onramp_fixed"].contains(&control);
        let profile = *self.choose(&[None, Some("one"), Some("other")]);
        Choice {
            control: control.into(),
            profile: profile.filter(|_| has_profiles).map(str::to_owned),
            initial_window: *self.choose(&[None, Some(4), Some(32)]),
            resume: None,
        }
    }
}

fn profiles() -> Vec<Profile> {
    let named = |algorithm: &str| {
        let parameters = onramp_loader::find(algorithm).unwrap().parameters();
        ["one", "other"].map(|name| Profile {
            name: name.into(),
            parameters: parameters.clone(),
            telemetry_max: Level::Ack,
        })
    };
    [named("plain"), named("fixed")].concat()
}

/// What a socket has: its control, its window in segments, and the profile that was chosen for it.
#[derive(Debug, PartialEq)]
struct Has {
    control: String,
    window: u32,
    profile: Option<String>,
}

impl Has {
    fn new(socket: &impl AsFd, choices: &MapHandle) -> Self {
        let control = getsockopt(socket, TcpCongestion).unwrap().to_string_lossy().into_owned();
        let fd = socket.as_fd().as_raw_fd();
        let chosen = choices.lookup(&fd.to_ne_bytes(), MapFlags::ANY).unwrap();
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.iter().copied().take_while(|byte| *byte != 0).collect()).unwrap()
        };
        Self {
            control: control.trim_end_matches('\0').to_owned(),
            window: window(fd),
            profile: chosen.map(|name| text(&name[16..])),
        }
    }

    /// What is said of it before.
    fn said(deciders: &mut Deciders, connection: &Connection) -> Self {
        let decision = deciders.decide(connection).unwrap();
        let by_rule = match &decision.by {
            By::Rule(rule) => Some(rule.choice.clone()),
            _ => None,
        };
        // That of a rule whose control is not there is chosen too, and means nothing.
        let named = decision.rule().and_then(|rule| rule.choice.profile.clone());
        Self {
            control: decision.control,
            window: by_rule.and_then(|choice| choice.initial_window).unwrap_or(10),
            profile: named,
        }
    }
}

fn window(fd: i32) -> u32 {
    let mut info = [0u32; 64];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the array.
    let failed = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut length)
    };
    assert_eq!(failed, 0);
    // tcpi_snd_cwnd of struct tcp_info: eight bytes, then numbers of four.
    info[20]
}

/// A connection from an address; to an IPv4 address over a socket of IPv6 where `mapped`.
fn connected(from: IpAddr, to: SocketAddr, mapped: bool) -> TcpStream {
    let wide = |address: IpAddr| match address {
        IpAddr::V4(inner) if mapped => inner.to_ipv6_mapped().into(),
        address => address,
    };
    let (from, to) = (wide(from), SocketAddr::new(wide(to.ip()), to.port()));
    let family = if from.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(from, 0))).unwrap();
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).unwrap();
    TcpStream::from(socket)
}

/// What `onramp select test` answers for a connection.
fn answer(place: &Namespace, connection: &Connection, cgroup: &str) -> String {
    let to = SocketAddr::new(connection.peer, connection.port.unwrap()).to_string();
    let side = format!("--{}", connection.side.name());
    let arguments = ["--json", "select", "test", &to, "--cgroup", cgroup, &side];
    let ran: Ran = place.command(cli::binary()).args(arguments).output().unwrap().into();
    let said: Value = serde_json::from_str(&ran.ok()).unwrap();
    said["answers"][0]["congestion_control"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_said_of_a_connection_is_what_it_gets_over_hundreds_of_random_rule_sets() {
    const SETS: usize = 300;
    let _attachments = Attachments::new(&["plain", "fixed"]);
    let place = place();
    let nested = Nested::new();
    let paths = [cgroups(), cgroups().join("onramp-test-select"), cgroups().join("onramp-test-select/inner")];
    let ids = paths.map(|path| fs::metadata(path).unwrap().ino());
    let named: Vec<_> = ids.iter().map(|id| Cgroup { id: *id, path: None }).collect();
    let words = ["/", "/onramp-test-select", "/onramp-test-select/inner"];
    // A listening socket is in the cgroup that it was made in, and so is what it accepts.
    let listeners: Vec<_> = CGROUPS
        .iter()
        .zip(PORTS)
        .map(|(cgroup, port)| {
            nested.enter(cgroup);
            place.run(|| TcpListener::bind(("::", port)).unwrap()).unwrap()
        })
        .collect();
    let mut random = Random(5);
    let mut decided: BTreeMap<String, usize> = BTreeMap::new();
    for set in 0..SETS {
        let rules: BTreeMap<Target, Choice> =
            (0..random.below(16)).map(|_| (random.target(&named), random.choice())).collect();
        let rules: Vec<_> = rules.into_iter().map(|(target, choice)| Rule { target, choice }).collect();
        select::replace(&rules, &profiles()).unwrap();
        let mut deciders = place.run(Deciders::here).unwrap().unwrap();
        let choices = MapHandle::from_pinned_path(Path::new(ROOT).join("profiles/profile_choices")).unwrap();
        let here = random.below(3);
        nested.enter(CGROUPS[here]);
        for _ in 0..3 {
            let addresses = if random.below(3) == 0 { &SIX[..] } else { &FOUR[..] };
            let (from, to): (IpAddr, IpAddr) =
                (random.choose(addresses).parse().unwrap(), random.choose(addresses).parse().unwrap());
            let there = random.below(3);
            let (port, mapped) = (PORTS[there], random.below(2) == 0);
            let near = place.run(|| connected(from, SocketAddr::new(to, port), mapped)).unwrap();
            let (far, _) = listeners[there].accept().unwrap();
            let connection = |peer, local, side, cgroup: usize| Connection {
                peer,
                local: Some(local),
                interface: 0,
                port: Some(port),
                cgroup: Some(ids[cgroup]),
                side,
            };
            for (end, connection, cgroup) in [
                (&near, connection(to, from, Side::Connect, here), here),
                (&far, connection(from, to, Side::Accept, there), there),
            ] {
                let (has, said) = (Has::new(end, &choices), Has::said(&mut deciders, &connection));
                assert_eq!(has, said, "set {set}: {connection:?} in {}\n{rules:#?}", words[cgroup]);
                if set % 60 == 0 {
                    assert_eq!(answer(&place, &connection, words[cgroup]), has.control, "{connection:?}");
                }
                let decision = deciders.decide(&connection).unwrap();
                let names = |rule: &Rule| {
                    let Target { to, port, cgroup, side } = &rule.target;
                    let parts = [
                        to.map(|to| if to.address().is_ipv4() { "IPv4" } else { "IPv6" }),
                        port.map(|_| "port"),
                        cgroup.as_ref().map(|_| "cgroup"),
                        (*side != Side::Both).then_some("side"),
                    ];
                    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
                };
                *decided.entry(decision.rule().map_or_else(String::new, names)).or_default() += 1;
            }
        }
    }
    nested.enter("..");
    println!("{decided:#?}");
    // Every combination of prefix, port, cgroup and side has decided, and none has.
    assert_eq!(decided.len(), 23, "{decided:#?}");
    assert_eq!(decided.values().sum::<usize>(), SETS * 6);
    assert!(decided.values().all(|times| *times >= 3), "{decided:#?}");
}

/// Runs what was printed as an undo, in a shell.
fn undone(command: &str) {
    let binary = cli::binary().display();
    let script = format!("onramp() {{ '{binary}' \"$@\"; }}; {command}");
    let ran: Ran = Command::new("sh").args([OsStr::new("-c"), OsStr::new(&script)]).output().unwrap().into();
    ran.ok();
}

fn listed() -> String {
    onramp("select list").ok()
}

/// A file of rules in a directory of its own, whose name has blanks.
fn rules_file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::Builder::new().prefix("of the edge").tempdir().unwrap();
    let path = directory.path().join("the rules");
    fs::write(&path, text).unwrap();
    (directory, path)
}

/// Runs `onramp select` and the undo that it prints, after which the list is as it was before. Returns what it does not
/// restore.
fn there_and_back(words: &[&str]) -> Vec<String> {
    let before = (listed(), host_state(&[]).len());
    let arguments = ["--json", "select"].iter().chain(words);
    let ran: Ran = cli::command(arguments).output().unwrap().into();
    let report: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_ne!(listed(), before.0, "{words:?}");
    if let Some(undo) = report["undo"].as_str() {
        undone(undo);
    }
    let left: Vec<String> = serde_json::from_value(report["undo_leaves_out"].clone()).unwrap();
    assert_eq!((listed(), host_state(&[]).len()) == before, left.is_empty(), "{words:?}: {report}");
    left
}

#[test]
#[ignore = "in a guest: make test"]
fn every_undo_that_is_printed_makes_the_list_again_or_says_what_it_does_not_restore() {
    let _attachments = Attachments::new(&["search", "plain"]);
    let nested = Nested::new();
    let add = |rule: &str| onramp(&format!("select add {rule}")).ok();
    let restored = |words: &[&str]| assert_eq!(there_and_back(words), Vec::<String>::new(), "{words:?}");
    // The first rule and the last, with a profile of their own.
    restored(&["add", "--to", "203.0.113.0/24", "--port", "443", "--accept", "--use", "cubic"]);
    add("--to 203.0.113.0/24 --port 443 --accept --use search --profile geo --initial-window 20");
    restored(&["del", "--to", "203.0.113.0/24", "--port", "443", "--accept"]);
    restored(&["del", "--all"]);
    restored(&["add", "--port", "443", "--to", "203.0.113.0/24", "--accept", "--replace", "--use", "plain"]);
    add("--to 203.0.113.0/24 --use plain");
    add("--cgroup /onramp-test-select --port 80 --connect --use cubic");
    restored(&["add", "--to", "::/0", "--use", "reno"]);
    restored(&["add", "--to", "203.0.113.0/24", "--use", "search", "--profile", "leo", "--replace"]);
    restored(&["del", "--cgroup", "/onramp-test-select", "--port", "80", "--connect"]);
    restored(&["del", "--all"]);
    // A name that a shell would take for something else; systemd's have backslashes.
    let odd = r"/onramp-test-select/a\x2db;c'd";
    fs::create_dir(cgroups().join(&odd[1..])).unwrap();
    restored(&["add", "--cgroup", odd, "--use", "cubic"]);
    Ran::from(cli::command(["select", "add", "--cgroup", odd, "--use", "cubic"]).output().unwrap()).ok();
    restored(&["del", "--cgroup", odd]);
    restored(&["del", "--all"]);
    Ran::from(cli::command(["select", "del", "--cgroup", odd]).output().unwrap()).ok();
    fs::remove_dir(cgroups().join(&odd[1..])).unwrap();
    // More than a line has room for.
    let many: String = (1..40).map(|port| format!("--port {port} --use cubic\n")).collect();
    let (directory, file) = rules_file(&many);
    let (file, kept) = (file.to_str().unwrap(), directory.path().join("kept rules"));
    let kept = kept.to_str().unwrap();
    assert_eq!(there_and_back(&["load", file]).len(), 1);
    assert_eq!(there_and_back(&["del", "--all"]).len(), 1);
    restored(&["load", file]);
    onramp("select del --all").ok();
    restored(&["load", file]);
    add("--port 443 --use cubic");
    restored(&["load", file, "--keep", kept]);
    fs::remove_file(kept).unwrap();
    restored(&["del", "--all", "--keep", kept]);
    fs::remove_file(kept).unwrap();
    onramp("select del --all").ok();

    // What no command restores is said: a profile that was given as a file, one that has been tuned, a control that is
    // gone, a cgroup that is gone.
    let (_directory, profile) = rules_file("");
    let profile = profile.with_extension("toml");
    let text = "version = 1\nname = 'mine'\nabout = 'a test'\nalgorithm = 'search'\n[params]\n\
        [link.forward]\nrate_bps = 10_000_000\ndelay_us = 10_000\nqueue_bytes = 100_000\n\
        [link.return]\nrate_bps = 10_000_000\ndelay_us = 10_000\nqueue_bytes = 100_000\n\
        [host]\ntcp_rmem = [4_096, 131_072, 6_291_456]\ntcp_wmem = [4_096, 16_384, 4_194_304]\n";
    fs::write(&profile, text).unwrap();
    let add_with = |profile: &str| {
        let words = ["select", "add", "--port", "80", "--use", "search", "--profile", profile];
        Ran::from(cli::command(words).output().unwrap()).ok();
    };
    add_with(profile.to_str().unwrap());
    assert_eq!(there_and_back(&["del", "--port", "80"]).len(), 1);
    add_with("geo");
    onramp("tune search --profile geo exit_action=hold").ok();
    assert_eq!(there_and_back(&["del", "--port", "80"]).len(), 1);
    add("--port 81 --use plain");
    onramp("detach plain").ok();
    assert_eq!(there_and_back(&["del", "--port", "81"]).len(), 1);
    add("--port 82 --use cubic");
    add("--cgroup /onramp-test-select/inner --port 83 --use cubic");
    fs::remove_dir(cgroups().join("onramp-test-select/inner")).unwrap();
    let before = json("select list");
    let left = there_and_back(&["del", "--all", "--keep", kept]);
    assert!(left.len() == 1 && left[0].contains("--port 83"), "{left:?}");
    let rules = |list: &Value| list["rules"].as_array().unwrap().clone();
    assert_eq!(rules(&json("select list")), rules(&before)[..1]);
    onramp("select del --all").ok();
    drop(nested);
}
