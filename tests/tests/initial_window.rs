//! Connections that never have more to send than an initial window holds: nine of ten of a server's. They have no state, and
//! are counted.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};
use onramp_lab::guest::INSTRUCTIONS_PER_NANOSECOND;
use onramp_loader::cost::{RunStatistics, callbacks};
use onramp_loader::telemetry::{Event, Level, What};
use onramp_loader::{AttachOptions, Phase, algorithm};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{DEFAULT, host_state, inside, json, onramp, verdicts};
use onramp_tests::sender::{INITIAL_WINDOW_BYTES, Sender};
use onramp_tests::telemetry::{events, rest, stream, until_ended};
use onramp_tests::traffic::{eventually, namespace};
use onramp_tests::wire::{Fate, Wire};

fn wire() -> Wire {
    Wire::lay(Duration::from_millis(10), |_| Fate::Deliver)
}

/// A connection on this control from its beginning.
fn connected(control: &str) -> Sender {
    let wire = wire();
    wire.near.sysctl_set(DEFAULT, control).unwrap();
    Sender::connect_by_default(wire)
}

/// Of the only algorithm: flows that have started, ended, and ended without state; and exits of those that had some.
fn counted() -> [u64; 4] {
    let row = &json("status")["algorithms"][0];
    let number = |name: &str| row[name].as_u64().unwrap();
    let left: u64 = row["exits"].as_object().unwrap().values().map(|flows| flows.as_u64().unwrap()).sum();
    assert_eq!(number("state_failures"), 0, "{row}");
    let exits = left + number("ended_in_slow_start");
    [number("flows_started"), number("flows_ended"), number("flows_without_state"), exits]
}

#[track_caller]
fn assert_counted(expected: [u64; 4]) {
    assert!(eventually(|| counted() == expected), "{:?}, not {expected:?}", counted());
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_initial_window_holds_needs_no_state_and_one_byte_more_does_on_every_base() {
    let _attachments = Attachments::lock();
    for base in ["cubic", "reno", "bbr"] {
        onramp(&format!("attach plain --base {base}")).ok();
        let mut small = connected("onramp_plain");
        small.deliver(INITIAL_WINDOW_BYTES);
        assert!(
            small.flow().in_initial_window() && small.flow().header.is_none(),
            "{base}: {:?}",
            small.flow()
        );
        let listed = inside(&small.wire.near, "flows").ok();
        assert!(listed.contains(" initial window "), "{listed}");
        let mut larger = connected("onramp_plain");
        larger.deliver(INITIAL_WINDOW_BYTES + 1);
        let flow = larger.flow();
        assert!(matches!(flow.phase(), Phase::SlowStart) && !flow.in_initial_window(), "{base}: {flow:?}");
        assert_eq!(flow.header.unwrap().slow_starts, 1);

        assert_counted([2, 0, 0, 0]);
        drop(small);
        assert_counted([2, 1, 1, 0]);
        drop(larger);
        assert_counted([2, 2, 1, 1]);
        onramp("detach plain").ok();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn requests_on_a_connection_kept_alive_need_state_once_they_are_more_than_a_initial_window_together() {
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    let mut sender = connected("onramp_search");
    let request = INITIAL_WINDOW_BYTES / 8;
    for number in 1..=8 {
        sender.deliver(request);
        assert!(sender.flow().header.is_none(), "after {number}");
    }
    sender.deliver(request);
    assert!(matches!(sender.flow().phase(), Phase::SlowStart), "{:?}", sender.flow().phase());
    drop(sender);
    assert_counted([1, 1, 0, 1]);
}

#[test]
#[ignore = "in a guest: make test"]
fn the_first_acknowledgment_of_a_bulk_flow_is_evaluated_with_any_consumer() {
    let attachments = Attachments::lock();
    for algorithm in algorithm::all() {
        attachments.attach(&AttachOptions::new(algorithm.parameters()));
        let mut before = 0;
        let verdicts_made = [Level::Off, Level::Exit, Level::Ack].map(|level| {
            let mut listening = stream(level);
            let mut small = connected(&algorithm.congestion_control());
            small.deliver(INITIAL_WINDOW_BYTES);
            drop(small);
            let mut sender = connected(&algorithm.congestion_control());
            sender.deliver(2 * INITIAL_WINDOW_BYTES);
            let kept = sender.flow().telemetry.map(|kept| kept.outcomes.iter().sum::<u32>().into());
            drop(sender);
            // Where nobody listens verdicts that are alike are counted together, at the end of the flow at the latest.
            assert!(eventually(|| counted()[0] == counted()[1]), "{:?}", counted());
            let verdicts_made = verdicts(algorithm.name()).values().sum::<u64>() - before;
            before += verdicts_made;
            // What is kept for consumers is kept where there is one.
            assert_eq!(kept, (level != Level::Off).then_some(verdicts_made), "{level:?}");
            let reported =
                if level == Level::Off { rest(&mut listening) } else { until_ended(&mut listening, 1) };
            let events = events(&reported);
            let begins = |event: &&&Event| matches!(event.what, What::Flow(_));
            assert_eq!(events.iter().filter(begins).count(), usize::from(level != Level::Off), "{level:?}");
            let first = events.iter().find_map(|event| match &event.what {
                What::Ack(reported) => Some(reported),
                _ => None,
            });
            if let Some(first) = first {
                assert!(first.answer().is_some(), "{first:?}");
                // And one for the handshake.
                assert!(first.ack.bytes_acked <= u64::from(first.ack.acked * first.ack.mss) + 1, "{first:?}");
            }
            assert_eq!(first.is_some(), level == Level::Ack);
            verdicts_made
        });
        println!("{}: {verdicts_made:?} verdicts", algorithm.name());
        assert!(verdicts_made.iter().all(|one| *one >= 5), "{}: {verdicts_made:?}", algorithm.name());
        onramp_loader::detach(algorithm, false).unwrap();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_taken_over_has_state_at_once_if_it_has_sent_more_than_a_initial_window() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let mut small = Sender::connect(wire(), "reno");
    small.deliver(INITIAL_WINDOW_BYTES);
    small.choose("onramp_plain");
    assert!(small.flow().header.is_none());
    small.deliver(1);
    assert!(matches!(small.flow().phase(), Phase::SlowStart), "{:?}", small.flow().phase());

    let mut large = Sender::connect(wire(), "reno");
    large.deliver(INITIAL_WINDOW_BYTES + 1);
    large.choose("onramp_plain");
    assert!(matches!(large.flow().phase(), Phase::Adopted), "{:?}", large.flow().phase());
    large.choose("reno");
    small.choose("reno");
    assert_counted([2, 2, 0, 2]);
    assert_eq!(json("status")["algorithms"][0]["flows_adopted"], 1);
}

#[test]
#[ignore = "in a guest: make test"]
fn connections_of_a_guards_control_are_counted_as_without_state() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --guard goodput=-10% --control-share 50%").ok();
    let (mut of_control, mut wire) = (0, wire());
    wire.near.sysctl_set(DEFAULT, "onramp_fixed").unwrap();
    for _ in 0..20 {
        let mut sender = Sender::connect_by_default(wire);
        sender.deliver(INITIAL_WINDOW_BYTES + 1);
        of_control += u64::from(sender.flow().header.is_none());
        drop(sender.stream);
        wire = sender.wire;
    }
    assert!((1..20).contains(&of_control), "{of_control}");
    assert_counted([20, 20, of_control, 20 - of_control]);
}

/// The memory of a socket's options, also of what BPF keeps for it, bytes; restored when dropped.
struct OptionMemory(String);

impl OptionMemory {
    const PATH: &str = "/proc/sys/net/core/optmem_max";

    fn limit(bytes: &str) -> Self {
        let before = fs::read_to_string(Self::PATH).unwrap();
        fs::write(Self::PATH, bytes).unwrap();
        Self(before)
    }
}

impl Drop for OptionMemory {
    fn drop(&mut self) {
        let _ = fs::write(Self::PATH, &self.0);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn without_memory_for_its_state_the_base_runs_a_connection_alone_and_it_is_counted() {
    let _attachments = Attachments::lock();
    onramp("attach ramp").ok();
    let wire = wire();
    wire.near.sysctl_set(DEFAULT, "onramp_ramp").unwrap();
    // Of all namespaces, or of each its own since Linux 6.8.
    let _memory = OptionMemory::limit("300");
    let _ = wire.near.sysctl_set("net.core.optmem_max", "300");
    let mut sender = Sender::connect_by_default(wire);
    sender.deliver(20 * INITIAL_WINDOW_BYTES);
    assert!(sender.flow().header.is_none(), "{:?}", sender.flow());
    let row = || json("status")["algorithms"][0].clone();
    assert!(row()["state_failures"].as_u64() > Some(0), "{}", row());
    drop(sender);
    let counted = || ["flows_started", "flows_ended", "flows_without_state"].map(|name| row()[name].as_u64());
    assert!(eventually(|| counted() == [Some(1); 3]), "{:?}", counted());
}

/// So many connections inside a namespace, both ends of each, that say nothing.
fn idle(place: &Namespace, connections: usize) -> Vec<[TcpStream; 2]> {
    let wanted = 2 * connections as u64 + 500;
    setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted).unwrap();
    let connect = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pair = |_| [TcpStream::connect(address).unwrap(), listener.accept().unwrap().0];
        (0..connections).map(pair).collect()
    };
    place.run(connect).unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_in_its_initial_window_begins_and_ends_in_five_hundred_instructions() {
    const CONNECTIONS: usize = 1_000;
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    inside(&place, "attach search --default").ok();
    let _counting = RunStatistics::enable("bench").unwrap();
    let search = algorithm::find("search").unwrap();
    let run = |name: &str| {
        let all = callbacks(search).unwrap();
        all.into_iter().find(|one| one.name == name).map_or((0, 0), |one| (one.calls, one.nanoseconds))
    };
    drop(idle(&place, CONNECTIONS));
    let ends = 2 * CONNECTIONS as u64;
    assert!(eventually(|| run("release").0 >= ends));
    let mut both = 0;
    for name in ["init", "release"] {
        let (calls, nanoseconds) = run(name);
        let instructions = nanoseconds * INSTRUCTIONS_PER_NANOSECOND / calls;
        println!("{name}: {calls} calls, {instructions} instructions each");
        // Older kernels release the listener, too.
        assert!(calls - ends <= 1, "{calls}");
        both += instructions;
    }
    assert!(both <= 500, "{both} instructions");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_thousand_idle_connections_are_found_and_moved_by_upgrade_and_detach() {
    // So many that a guest's table of 1,024 sockets has some in its first place, where Linux 6.1's iterator left them out.
    const CONNECTIONS: usize = 1_000;
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    inside(&place, "attach search --default").ok();
    let pairs = idle(&place, CONNECTIONS);
    let both = 2 * CONNECTIONS as u64;
    assert_counted([both, 0, 0, 0]);
    let sockets = json("status")["algorithms"][0]["sockets"].clone();
    assert_eq!(sockets[0]["sockets"], both, "{sockets}");
    let listed = inside(&place, "flows").ok();
    assert_eq!(listed.matches(" initial window ").count() as u64, both);

    let upgraded = json("upgrade search");
    assert_eq!(upgraded["upgraded"][0]["sockets_moved"], both, "{upgraded}");
    assert_counted([both, 0, 0, 0]);
    let detached = json("detach search");
    assert_eq!(detached["detached"][0]["sockets_moved"], both, "{detached}");
    assert_eq!(detached["detached"][0]["still_loaded"], 0, "{detached}");
    assert_eq!(host_state(&[&place]), before);
    drop(pairs);
}

#[test]
#[ignore = "in a guest: make test"]
fn an_idle_connection_takes_the_memory_of_stock_cubics_until_it_has_sent_more_than_an_initial_window() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let report = json("lab bench memory search --flows 2000");
    println!("{report}");
    let bytes = |arm: usize, name: &str| report["arms"][arm][name].as_f64().unwrap();
    let more = |name: &str| bytes(1, name) - bytes(0, name);
    assert_eq!((&report["arms"][0]["arm"], &report["arms"][1]["arm"]), (&"cubic".into(), &"search".into()));
    assert!(bytes(0, "initial_window_bytes_per_flow") > 4_000.0, "{report}");
    assert!(more("initial_window_bytes_per_flow") < 100.0, "{report}");
    // The state and the header, and less than twice as much again for what the kernel adds to a socket's storage.
    let listed = json("list");
    let listed = listed["algorithms"].as_array().unwrap().iter().find(|one| one["name"] == "search").unwrap();
    let kept = listed["state_bytes"].as_f64().unwrap() + listed["header_bytes"].as_f64().unwrap();
    let beyond = more("established_bytes_per_flow");
    assert!((kept..3.0 * kept).contains(&beyond), "{beyond}, and {kept} is kept: {report}");
    assert_eq!(host_state(&[]), before);
}

#[test]
fn memory_of_fewer_or_more_connections_than_can_be_distinguished_or_held_is_refused() {
    for flows in ["99", "200001"] {
        let ran = onramp(&format!("lab bench memory --flows {flows}"));
        assert!(ran.code == Some(2) && ran.stderr.contains("100 to 200000"), "{ran:?}");
    }
}
