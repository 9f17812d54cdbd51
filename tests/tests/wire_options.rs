//! Connections whose options are not those of every day: subflows of MPTCP (RFC 8684), data in the SYN (TCP Fast Open, RFC
//! 7413), and the smallest segments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use onramp_loader::{ExitReason, Flow, Phase};
use onramp_net::Namespace;
use onramp_tests::bottleneck::{SEGMENT, bottleneck};
use onramp_tests::cli::{DEFAULT, onramp};
use onramp_tests::connection::Connection;
use onramp_tests::counted::{by_kernel, ends};
use onramp_tests::sender::{Came, INITIAL_WINDOW_BYTES, Sender};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, Fate, Wire};
use onramp_tests::{Attachments, skip};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
const ALGORITHMS: [&str; 2] = ["ramp", "search"];

/// A sender on this control from its beginning.
fn connected(wire: Wire, connection: &Connection, control: &str) -> Sender {
    wire.near.sysctl_set(DEFAULT, control).unwrap();
    Sender::connect_as(wire, connection)
}

fn ip(place: &Namespace, words: &str) {
    assert!(place.command("ip").args(words.split(' ')).status().unwrap().success(), "{words}");
}

/// What runs under an algorithm from one end of a wire.
fn flows(wire: &Wire) -> Vec<Flow> {
    wire.near.run(|| onramp_loader::flows(|_| true)).unwrap().unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn subflows_of_mptcp_take_the_default_make_state_are_moved_and_leave_nothing() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    if wire.near.sysctl_get("net.mptcp.enabled").is_err() {
        skip("the kernel has no CONFIG_MPTCP");
        return;
    }
    // A second path, between other addresses.
    ip(&wire.near, "address add 192.0.2.3/24 dev wire0");
    ip(&wire.near, "mptcp endpoint add 192.0.2.3 dev wire0 subflow");
    for end in [&wire.near, &wire.far] {
        ip(end, "mptcp limits set subflow 1");
    }
    let connection = Connection { mptcp: true, ..Connection::default() };
    let mut sender = connected(wire, &connection, "onramp_search");
    sender.bring(200_000);
    assert!(eventually(|| flows(&sender.wire).len() == 2), "{:?}", flows(&sender.wire));
    assert_eq!(by_kernel(&sender.wire.far, "MPTcpExt", "MPCapableACKRX"), 1, "the peer speaks it");
    assert_eq!(sender.bring(400_000).retransmitted, 0);
    for flow in flows(&sender.wire) {
        assert_eq!(flow.algorithm.name(), "search");
        assert!(matches!(flow.phase(), Phase::SlowStart), "{:?} {:?}", flow.phase(), flow.info);
    }
    // The application's choice is that of all subflows.
    sender.choose("onramp_ramp");
    assert!(flows(&sender.wire).iter().all(|flow| flow.algorithm.name() == "ramp"));
    assert_eq!(ends("search"), [("slow start", 2)].into());
    sender.wire.near.sysctl_set(DEFAULT, "reno").unwrap();
    let detached = onramp_loader::detach(onramp_loader::find("ramp").unwrap(), false).unwrap();
    assert_eq!((detached.moved, detached.held.copies), (2, 0), "{detached:?}");
    assert_eq!(sender.bring(100_000).read, 700_000, "it goes on without");
    assert_eq!(flows(&sender.wire).len(), 0);
}

#[test]
#[ignore = "in a guest: make test"]
fn subflows_of_mptcp_get_what_a_rule_says_on_both_ends() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    if wire.near.sysctl_get("net.mptcp.enabled").is_err() {
        skip("the kernel has no CONFIG_MPTCP");
        return;
    }
    ip(&wire.near, "address add 192.0.2.3/24 dev wire0");
    ip(&wire.near, "mptcp endpoint add 192.0.2.3 dev wire0 subflow");
    for end in [&wire.near, &wire.far] {
        ip(end, "mptcp limits set subflow 1");
    }
    onramp("select add --to 192.0.2.0/24 --use search").ok();
    let connection = Connection { mptcp: true, ..Connection::default() };
    let mut sender = connected(wire, &connection, "cubic");
    sender.bring(200_000);
    let of_search = |end: &Namespace| {
        let flows = end.run(|| onramp_loader::flows(|_| true)).unwrap().unwrap();
        flows.iter().filter(|flow| flow.algorithm.name() == "search").count()
    };
    let both = || [&sender.wire.near, &sender.wire.far].map(of_search);
    assert!(eventually(|| both() == [2, 2]), "{:?}", both());
    // Where they are closed without a wire they would keep the code for a minute.
    onramp("select del --all").ok();
    onramp("detach search").ok();
    assert_eq!(both(), [0, 0]);
}

/// What becomes of the data in a SYN.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Early {
    Taken,
    /// The far end does not do it, and acknowledges the SYN alone.
    Refused,
    Lost,
}

/// An initial window over a wire on which a segment is lost that comes later.
fn initial_window(early: Early, control: &str) -> (Sender, Came) {
    let syns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syns);
    let fate = move |data: Data| {
        counted.fetch_add(usize::from(data.syn), Ordering::Relaxed);
        if data.number == 40 || (data.syn && early == Early::Lost) { Fate::Drop } else { Fate::Deliver }
    };
    let wire = Wire::lay(DELAY, fate);
    // As client and as server, without cookies, also where the listening side has not requested it.
    wire.sysctl("net.ipv4.tcp_fastopen", "1543");
    if early == Early::Refused {
        wire.far.sysctl_set("net.ipv4.tcp_fastopen", "0").unwrap();
    }
    let mut sender = connected(wire, &Connection { fast_open: true, ..Connection::default() }, control);
    let came = sender.bring(INITIAL_WINDOW_BYTES);
    assert_eq!(syns.load(Ordering::Relaxed), 1, "{early:?}, {control}: no data in the SYN");
    (sender, came)
}

#[test]
#[ignore = "in a guest: make test"]
fn data_in_a_syn_are_counted_once_to_the_initial_window_whatever_becomes_of_them() {
    let _attachments = Attachments::new(&ALGORITHMS);
    for early in [Early::Taken, Early::Refused, Early::Lost] {
        let (mut stock, at_first) = initial_window(early, "cubic");
        let at_last = stock.bring(100_000);
        for algorithm in ALGORITHMS {
            let (mut sender, came) = initial_window(early, &format!("onramp_{algorithm}"));
            assert_eq!(came, at_first, "{early:?}, {algorithm}");
            assert!(sender.flow().in_initial_window(), "{early:?}, {algorithm}: {:?}", sender.flow());
            sender.bring(1);
            let flow = sender.flow();
            assert!(matches!(flow.phase(), Phase::SlowStart), "{early:?}, {algorithm}: {flow:?}");
            assert_eq!(sender.bring(99_999), at_last, "{early:?}, {algorithm}");
            let flow = sender.flow();
            let Phase::Left(ExitReason::Loss, record) = flow.phase() else { panic!("{early:?}: {flow:?}") };
            assert!(record.window >= 20 && record.window_after < record.window, "{early:?}: {record:?}");
            assert_eq!(flow.header.unwrap().slow_starts, 1);
        }
    }
    for algorithm in ALGORITHMS {
        assert_eq!(ends(algorithm), [("loss", 3)].into(), "{algorithm}");
    }
}

/// The window that a rule gives holds from the first flight on, also where a part of it leaves in the SYN.
#[test]
#[ignore = "in a guest: make test"]
fn data_in_a_syn_are_a_part_of_the_initial_window_that_a_rule_gives() {
    let _attachments = Attachments::new(&ALGORITHMS);
    for control in ["cubic", "ramp", "search"] {
        let flight = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&flight);
        let mut begun = None;
        let fate = move |_: Data| {
            let begun = *begun.get_or_insert_with(Instant::now);
            // The SYN and its acknowledgment take one round trip, and the first flight leaves as one.
            counted.fetch_add(usize::from(begun.elapsed() < 3 * DELAY), Ordering::Relaxed);
            Fate::Deliver
        };
        let wire = Wire::lay(DELAY, fate);
        wire.sysctl("net.ipv4.tcp_fastopen", "1543");
        onramp(&format!("select add --to 192.0.2.0/24 --use {control} --initial-window 40")).ok();
        let mut sender = connected(wire, &Connection { fast_open: true, ..Connection::default() }, "reno");
        let came = sender.bring(100 * SEGMENT as usize);
        assert_eq!((came.read, came.retransmitted), (100 * u64::from(SEGMENT), 0), "{control}");
        assert_eq!(flight.load(Ordering::Relaxed), 41, "{control}: the SYN and forty more");
        onramp("select del --all").ok();
    }
}

/// A sender that its application holds to a third of the path's rate (`SO_MAX_PACING_RATE`) meets no queue, and its rate, which
/// does not grow any more, is no sign of a full path.
#[test]
#[ignore = "in a guest: make test"]
fn a_limit_of_the_pacing_rate_ends_no_slow_start() {
    let _attachments = Attachments::new(&ALGORITHMS);
    for algorithm in ALGORITHMS {
        let wire = Wire::lay(DELAY, bottleneck(6_000_000, 16 * 160));
        let mut sender = connected(wire, &Connection::default(), &format!("onramp_{algorithm}"));
        sender.pace(2_000_000);
        let came = sender.bring(4_000_000);
        let flow = sender.flow();
        assert!(matches!(flow.phase(), Phase::SlowStart), "{algorithm}: {flow:?}");
        assert_eq!(came.retransmitted, 0, "{algorithm}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn segments_of_the_smallest_size_leave_slow_start_at_windows_of_as_many_segments() {
    let _attachments = Attachments::new(&ALGORITHMS);
    // The least that TCP_MAXSEG takes; timestamps are twelve bytes of it.
    let smallest = (Connection { segment: Some(88), ..Connection::default() }, 76);
    let usual = (Connection::default(), SEGMENT);
    let bring = |control: &str, (connection, mss): (Connection, u32)| {
        let wire = Wire::lay(DELAY, bottleneck(1_000_000, 16 * 27));
        let mut sender = connected(wire, &connection, control);
        let came = sender.bring(480 * mss as usize);
        assert_eq!((came.retransmitted, sender.info().snd_mss), (0, mss), "{control}");
        (sender, came)
    };
    let (_, stock) = bring("cubic", smallest);
    for algorithm in ALGORITHMS {
        let control = format!("onramp_{algorithm}");
        let windows = [usual, smallest].map(|kind| {
            let (sender, came) = bring(&control, kind);
            if kind.1 == smallest.1 {
                assert_eq!(came, stock, "{algorithm}");
            }
            let phase = sender.flow().phase();
            let Phase::Left(ExitReason::Algorithm, record) = phase else { panic!("{algorithm}: {phase:?}") };
            assert_eq!(u32::from(record.mss), kind.1, "{algorithm}: {record:?}");
            record.window
        });
        // The bottleneck takes packets of either size as fast: 27 in an RTT, and sixteen times as many in its queue.
        assert!(windows.iter().all(|window| (27..17 * 27).contains(window)), "{algorithm}: {windows:?}");
        assert_eq!(ends(algorithm), [("algorithm", 2)].into(), "{algorithm}");
    }
}
