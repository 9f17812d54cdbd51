//! `onramp flows`: against ss(8), its filter, its size; and tuning under a flow.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{DEFAULT, Names, inside, json, onramp};
use onramp_tests::connection::Connection;
use onramp_tests::sender::Sender;
use onramp_tests::traffic::{Transfer, eventually, namespace};
use onramp_tests::wire::{Fate, Wire};
use serde_json::Value;

fn flows(namespace: &Namespace, filter: &str) -> Vec<Value> {
    let text = inside(namespace, &format!("flows --json {filter}")).ok();
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(listed["schema"], 1);
    listed["flows"].as_array().unwrap().clone()
}

/// One connection over a wire of 20 ms, sending as fast as it may.
fn connect(control: &str) -> Sender {
    let wire = Wire::lay(Duration::from_millis(10), |_| Fate::Deliver);
    wire.near.sysctl_set(DEFAULT, control).unwrap();
    Sender::connect_by_default(wire)
}

/// Its flow as `onramp flows` lists it.
fn flow_of(sender: &Sender) -> Value {
    let mut flows = flows(&sender.wire.near, "");
    assert_eq!(flows.len(), 1, "{flows:?}");
    flows.remove(0)
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_agree_with_ss() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --set exit_window_bytes=60000").ok();
    let mut sender = connect("onramp_fixed");
    sender.send(400_000);
    // At rest nothing changes between the two listings.
    assert!(eventually(|| flow_of(&sender)["outstanding_segments"] == 0));
    let flow = flow_of(&sender);
    let ss = sender.wire.near.command("ss").args(["-tinH"]).output().unwrap();
    let ss = String::from_utf8(ss.stdout).unwrap();
    let field = |name: &str| -> String {
        let found = ss.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}:")));
        found.unwrap_or_else(|| panic!("{name} in {ss}")).to_owned()
    };
    assert!(
        ss.contains(&format!("{}:{}", flow["local_address"].as_str().unwrap(), flow["local_port"])),
        "{ss}"
    );
    assert!(
        ss.contains(&format!("{}:{}", flow["remote_address"].as_str().unwrap(), flow["remote_port"])),
        "{ss}"
    );
    assert_eq!(field("cwnd"), flow["cwnd_segments"].to_string());
    assert_eq!(field("ssthresh"), flow["ssthresh_segments"].to_string());
    assert_eq!(field("mss"), flow["mss_bytes"].to_string());
    assert_eq!(field("bytes_acked"), flow["acknowledged_bytes"].to_string());
    let rtt_ms: f64 = field("rtt").split('/').next().unwrap().parse().unwrap();
    assert!((rtt_ms * 1000.0 - flow["smoothed_rtt_us"].as_f64().unwrap()).abs() < 1.0, "{ss} {flow}");

    assert_eq!(flow["state"], "left");
    let exit = &flow["exit"];
    assert_eq!(exit["reason"], "algorithm");
    assert!(exit["window_bytes"].as_u64().unwrap() >= 60_000, "{exit}");
    for name in
        ["since_start_us", "acknowledged_bytes", "in_flight_segments", "mss_bytes", "rtt_us", "min_rtt_us"]
    {
        assert!(exit[name].as_u64().unwrap() > 0, "{name} in {exit}");
    }
    assert_eq!(flow["outcomes"], Value::Null, "no subscriber");
    let said = inside(&sender.wire.near, "flows").ok();
    assert!(said.contains("left: algorithm at ") && said.contains("MIN RTT"), "{said}");
}

#[test]
#[ignore = "in a guest: make test"]
fn where_nothing_is_attached_flows_of_all_controls_are_listed_with_what_limits_them() {
    let _attachments = Attachments::lock();
    let kind = Connection { receive_buffer: Some(20_000), ..Connection::default() };
    let wire = Wire::lay(Duration::from_millis(25), |_| Fate::Deliver);
    let mut sender = Sender::connect_as(wire, &kind);
    sender.send(500_000);
    let listed = || -> Value {
        let text = inside(&sender.wire.near, "flows --json").ok();
        serde_json::from_str(&text).unwrap()
    };
    let alone = listed();
    assert_eq!(alone["flows"], Value::Array(Vec::new()));
    let [other] = &alone["others"].as_array().unwrap()[..] else { panic!("{alone}") };
    assert_eq!(other["local_port"], sender.stream.local_addr().unwrap().port());
    assert_eq!(
        (&other["congestion_control"], &other["limited"]),
        (&"reno".into(), &"receive_window".into()),
        "{alone}"
    );
    let text = inside(&sender.wire.near, "flows").ok();
    assert!(text.names(&["onramp explain", "LIMITED BY", "receive window"]), "{text}");
    onramp("attach plain").ok();
    assert_eq!(listed()["others"], Value::Null);
    sender.choose("onramp_plain");
    assert_eq!(flow_of(&sender)["limited"], "receive_window");
}

#[test]
#[ignore = "in a guest: make test"]
fn searchs_exports_are_listed_by_name() {
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    let mut sender = connect("onramp_search");
    assert_eq!(flow_of(&sender)["state"], "initial_window");
    sender.send(50_000);
    assert!(eventually(|| flow_of(&sender)["state"] == "slow_start"));
    let flow = flow_of(&sender);
    for export in json("list search")["algorithms"][0]["exports"].as_array().unwrap() {
        let name = export["name"].as_str().unwrap();
        assert!(!flow["exports"][name].is_null(), "{name} in {flow}");
    }
    assert!(inside(&sender.wire.near, "flows").ok().contains('%'));
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_of_other_namespaces_are_listed_by_name_by_process_and_all_together() {
    let _attachments = Attachments::lock();
    let (one, other) = (namespace(), namespace());
    for place in [&one, &other] {
        inside(place, "attach plain --default").ok();
    }
    let transfers = [Transfer::start(&one, 100_000), Transfer::start(&other, 100_000)];
    let mut waiting = one.command("sleep").arg("1000").spawn().unwrap();
    let listed = |options: &str| json(&format!("flows {options}"))["flows"].as_array().unwrap().clone();
    let ports = |flows: &[Value]| {
        let mut ports: Vec<_> = flows.iter().map(|flow| flow["local_port"].as_u64().unwrap()).collect();
        ports.sort_unstable();
        ports
    };
    let of_one = listed(&format!("--netns {}", waiting.id()));
    assert_eq!(ports(&of_one), ports(&flows(&one, "")));
    assert_eq!(of_one.len(), 2, "both ends");
    assert_eq!(of_one[0]["namespace"], format!("/proc/{}/ns/net", waiting.id()));
    assert_eq!(of_one[0]["why"]["chosen_by"], "default", "{of_one:?}");
    let path = format!("/proc/{}/ns/net", waiting.id());
    assert_eq!(ports(&listed(&format!("--netns {path}"))), ports(&of_one));
    assert_eq!(listed(""), Vec::<Value>::new(), "none is in this namespace");

    let all = listed("--all");
    let both = [flows(&one, ""), flows(&other, "")].concat();
    assert_eq!(ports(&all), ports(&both));
    assert!(all.iter().all(|flow| flow["namespace"].is_string()), "{all:?}");
    let text = onramp("flows --all --why").ok();
    assert_eq!(text.matches("network namespace ").count(), 2, "{text}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    drop(transfers);
    assert!(onramp("flows --netns nowhere").refused(2).contains("ip netns"));
    assert_eq!(onramp("flows --all --netns 1").code, Some(2));
}

#[test]
#[ignore = "in a guest: make test"]
fn filters_pick_flows() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let inside_namespace = namespace();
    inside_namespace.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let one = Transfer::start(&inside_namespace, 10_000);
    let _two = Transfer::start(&inside_namespace, 10_000);
    let count = |filter: &str| flows(&inside_namespace, filter).len();
    let port = one.local.port();
    assert_eq!(count(""), 4);
    assert_eq!(count("dst 127.0.0.0/8"), 4);
    assert_eq!(count("dst 127.0.0.1 and src 127.0.0.1"), 4);
    assert_eq!(count("dst 10.0.0.0/8"), 0);
    assert_eq!(count("dst ::/0"), 0);
    assert_eq!(count(&format!("sport = :{port}")), 1);
    assert_eq!(count(&format!("dport = :{port}")), 1);
    assert_eq!(count(&format!("src 127.0.0.1:{port}")), 1);
    assert_eq!(count(&format!("sport = :{port} and dport = :{port}")), 0);
    for (filter, said) in
        [("dst 10.0.0.0/33", "0 to 32"), ("cwnd > 10", "not understood"), ("dst", "needs a value")]
    {
        assert!(inside(&inside_namespace, &format!("flows {filter}")).refused(2).contains(said));
    }
}

/// Both ends of connections to these listeners, by which ss and onramp are compared.
fn connections(
    namespace: &Namespace,
    addresses: &[&'static str],
) -> Vec<(TcpListener, TcpStream, TcpStream)> {
    let open = |address: &&'static str| {
        let address = *address;
        let open = namespace.run(move || {
            let listener = TcpListener::bind(address).unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let far = listener.accept().unwrap().0;
            (listener, near, far)
        });
        open.unwrap()
    };
    addresses.iter().map(open).collect()
}

/// Both ends of what ss lists, in order; none: it does not understand the filter.
fn by_ss(namespace: &Namespace, filter: &str) -> Option<Vec<String>> {
    let ran = namespace.command("ss").args(["-tnH", "state", "established", filter]).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    // Without the state, which is the same for all: queues, both ends.
    let ends = |line: &str| line.split_whitespace().skip(2).take(2).collect::<Vec<_>>().join(" ");
    let mut ends: Vec<String> = text.lines().map(ends).collect();
    ends.sort();
    ran.status.success().then_some(ends)
}

fn by_onramp(namespace: &Namespace, filter: &str) -> Vec<String> {
    let end = |flow: &Value, side: &str| {
        let address = flow[format!("{side}_address")].as_str().unwrap();
        let port = &flow[format!("{side}_port")];
        if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
    };
    let listed =
        namespace.command(onramp_tests::cli::binary()).args(["flows", "--json", filter]).output().unwrap();
    let listed: Value =
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{filter}: {listed:?}"));
    let flows = listed["flows"].as_array().unwrap().iter();
    let mut ends: Vec<String> =
        flows.map(|flow| format!("{} {}", end(flow, "local"), end(flow, "remote"))).collect();
    ends.sort();
    ends
}

/// An expression of what ss and onramp know, by numbers that decide what comes next.
fn expression(numbers: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
    const PREDICATES: [&str; 17] = [
        "dst 127.0.0.1",
        "dst 127.0.0.0/8",
        "src 127.0.0.2",
        "src 127.0.0.2:7002",
        "dst *:7001",
        "dst :7003",
        "src [::1]",
        "dst [::1]:7004",
        "dst = 127/8",
        "sport = :7001",
        "sport 7002",
        "dport != :7003",
        "dport ne 7004",
        "sport >= :7002",
        "dport lt :7003",
        "sport gt :7003",
        "dport leq 7001",
    ];
    let mut text = String::new();
    for at in 0..=numbers(3) {
        text += ["", " and ", " & ", " && ", " or ", " | ", " || ", " "]
            [if at == 0 { 0 } else { 1 + numbers(7) }];
        text += ["", "not ", "! ", ""][numbers(4)];
        text += &if depth > 0 && numbers(3) == 0 {
            format!("( {} )", expression(numbers, depth - 1))
        } else {
            PREDICATES[numbers(PREDICATES.len())].to_owned()
        };
    }
    text
}

#[test]
#[ignore = "in a guest: make test"]
fn any_filter_that_ss_knows_picks_the_flows_that_ss_picks() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let place = namespace();
    place.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let _open = connections(&place, &["127.0.0.1:7001", "127.0.0.2:7002", "127.0.0.1:7003", "[::1]:7004"]);
    assert_eq!(by_onramp(&place, "").len(), 8);
    let mut state = 1_u64;
    let mut numbers = |below: usize| {
        // A generator of Knuth's; the upper bits are the better ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let filter = expression(&mut numbers, 2);
        let listed = by_onramp(&place, &filter);
        assert_eq!(Some(&listed), by_ss(&place, &filter).as_ref(), "{filter}");
        sizes.insert(listed.len());
    }
    assert!(sizes.len() > 3, "{sizes:?}");
    // Refused by name, or the same: what ss knows in addition to addresses and ports.
    for word in ["state established", "exclude listening", "dev lo", "fwmark = 1", "cgroup /", "autobound"] {
        let word_alone = word.split(' ').next().unwrap();
        assert!(inside(&place, &format!("flows {word}")).refused(2).contains(&format!("{word_alone:?}")));
    }
    assert!(inside(&place, "flows dport = :+7001").refused(2).contains("\"+7001\""));
}

#[test]
#[ignore = "in a guest: make test"]
fn families_are_those_of_ss_and_an_ipv4_mapped_address_is_one_of_ipv4() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let place = namespace();
    place.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let _open = connections(&place, &["127.0.0.1:7001", "127.0.0.2:7002", "[::1]:7004"]);
    let same = |filter: &str| {
        let canonical = |end: String| end.replace("[::ffff:127.0.0.1]", "127.0.0.1");
        let mut by_ss: Vec<_> = by_ss(&place, filter).unwrap().into_iter().map(canonical).collect();
        by_ss.sort();
        assert_eq!(by_onramp(&place, filter), by_ss, "{filter}");
    };
    let of_ipv4 = [
        "dst 127.0.0.1",
        "not dst 127.0.0.1",
        "dst 0.0.0.0/0",
        "dst 127/8 or dst [::1]",
        "dst *:7001",
        "dst [::1]",
    ];
    of_ipv4.into_iter().for_each(same);
    for filter in [
        "dst inet:*",
        "dst inet6:*",
        "dst inet:",
        "src inet6:any",
        "dst inet::7001",
        "dst inet6:*:7004",
        "dport = inet::7001",
        "dport = inet6::7001",
        "dport != inet6::7001",
        "not dport = inet6::7001",
        "not dst inet:127.0.0.1",
        "dst inet:127.0.0.1 or dport = :7004",
        "dport >= inet::7002",
        "dst inet6:[::1]",
        "dst ::/0",
        "dst ::/1",
    ] {
        same(filter);
    }
    // Filters of IPv4 take a client of a socket of IPv6 that goes over IPv4, as those of ss do.
    let mapped = Connection { mapped: true, ..Connection::default() };
    let (stream, _reader) = mapped.between(&place, &place, Ipv4Addr::LOCALHOST.into());
    of_ipv4.into_iter().for_each(same);
    // Telemetry does not know the socket's family, so that for onramp the address alone decides, whoever is asked.
    let port = stream.peer_addr().unwrap().port();
    for (filter, flows) in [
        ("dst [::ffff:127.0.0.1]", 1),
        ("dst 127.0.0.1", 1),
        ("dst ::ffff:0:0/96", 1),
        ("dst inet:127.0.0.1", 1),
        ("dst ::/0", 0),
        ("dst inet6:*", 0),
    ] {
        assert_eq!(by_onramp(&place, &format!("dport = :{port} and {filter}")).len(), flows, "{filter}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn tuning_reaches_a_open_flows() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --set exit_window_bytes=1000000000").ok();
    let mut sender = connect("onramp_fixed");
    sender.send(100_000);
    assert!(eventually(|| flow_of(&sender)["outstanding_segments"] == 0));
    let before = flow_of(&sender);
    assert_eq!(
        (&before["state"], &before["parameters_generation"]),
        (&"slow_start".into(), &0.into()),
        "{before}"
    );

    let said = onramp("tune fixed exit_window_bytes=30000").ok();
    assert!(said.names(&["exit_window_bytes", "1000000000 -> 30000"]), "{said}");
    assert!(said.contains("generation 1"), "{said}");
    assert!(said.contains("onramp tune fixed exit_window_bytes=1000000000"), "{said}");
    sender.send(100_000);
    assert!(eventually(|| flow_of(&sender)["state"] == "left"), "{}", flow_of(&sender));
    let after = flow_of(&sender);
    assert_eq!((&after["exit"]["reason"], &after["parameters_generation"]), (&"algorithm".into(), &1.into()));

    assert!(onramp("tune fixed exit_window_bytes=30000").ok().contains("nothing changes"));
    onramp("tune fixed exit_window_bytes=-1").refused(2);
    onramp("tune fixed exit_window_bytes=5 nonsense=3").refused(2);
    onramp("tune fixed --profile other exit_window_bytes=5").refused(2);
    onramp("tune plain").refused(1);
    let now = json("tune fixed");
    assert_eq!(
        (&now["parameters"]["exit_window_bytes"], &now["parameters_generation"]),
        (&30000.into(), &1.into())
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn ten_thousand_flows_are_listed_in_well_under_a_second() {
    const CONNECTIONS: usize = 5_000;
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    let inside_namespace = namespace();
    inside_namespace.sysctl_set(DEFAULT, "onramp_search").unwrap();
    let wanted = 2 * CONNECTIONS as u64 + 500;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, wanted, wanted).unwrap();
    let sockets = inside_namespace
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let pair = |_| {
                let near = TcpStream::connect(address).unwrap();
                let (far, _) = listener.accept().unwrap();
                (&near).write_all(b"data").unwrap();
                (&far).write_all(b"data").unwrap();
                [near, far]
            };
            (0..CONNECTIONS).map(pair).collect::<Vec<_>>()
        })
        .unwrap();
    for (arguments, lines) in [("flows", 2 * CONNECTIONS + 1), ("flows --json", 1)] {
        let begin = Instant::now();
        let listed = inside(&inside_namespace, arguments).ok();
        let took = begin.elapsed();
        assert_eq!(listed.lines().count(), lines);
        println!("{} flows, {arguments}: {took:?}, {} bytes", 2 * CONNECTIONS, listed.len());
        // Unoptimised and in addition to other tests; optimised it is a tenth of this.
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
    drop(sockets);
}
