//! Events that consumers get from the kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onramp_loader::algorithm::ack_flag;
use onramp_loader::telemetry::{
    AckPayload, CONSUMER_MAX, CongestionState, Event, Filter, Item, Level, Options, Stream, Subscription,
    What,
};
use onramp_loader::{AttachOptions, Changes, ExitReason};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::DEFAULT;
use onramp_tests::connection::Connection;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, lost, rest, rings, stream, until_ended};
use onramp_tests::traffic::{Transfer, eventually, namespace};
use onramp_tests::wire::{Ack, Data, Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(10);

fn attached(algorithm: &str) -> Attachments {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(onramp_loader::find(algorithm).unwrap().parameters()));
    attachments
}

/// A flow of so many bytes from beginning to end, over a wire where one packet is lost.
fn flow(control: &str, bytes: usize) {
    let lost = |data: Data| if data.number == 100 { Fate::Drop } else { Fate::Deliver };
    let wire = Wire::lay(DELAY, lost);
    wire.sysctl("net.ipv4.tcp_ecn", "0");
    let mut sender = Sender::connect(wire, control);
    sender.send(bytes);
    let all = |flow: &onramp_loader::Flow| flow.info.bytes_acked >= bytes as u64;
    assert!(all(&sender.flow_when(all)));
}

/// Flows over loopback, one after the other, each of which sends more than an initial window.
fn short_flows(inside: &Namespace, number: usize) {
    for _ in 0..number {
        let transfer = Transfer::start(inside, 1_000_000);
        assert!(eventually(|| transfer.received() > 30_000));
    }
}

fn counts(items: &[Item]) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for event in events(items) {
        *counts.entry(event.what.name()).or_default() += 1;
    }
    counts
}

#[test]
#[ignore = "in a guest: make test"]
fn two_consumers_see_every_event_of_a_flow() {
    let _attached = attached("search");
    let (mut one, mut other) = (stream(Level::Ack), stream(Level::Ack));
    flow("onramp_search", 500_000);
    let (seen, others) = (until_ended(&mut one, 1), until_ended(&mut other, 1));
    assert_eq!(seen, others);
    assert_eq!((one.lost(), other.lost()), (0, 0));

    let events = events(&seen);
    let What::Flow(first) = &events[0].what else { panic!("{:?}", events[0]) };
    assert!(!first.again && first.local.is_ipv4() && first.remote.is_ipv4(), "{first:?}");
    let What::End(end) = &events[events.len() - 1].what else { panic!("{:?}", events.last()) };
    for (event, number) in events.iter().zip(1..) {
        assert_eq!((event.sequence, event.flow, event.algorithm.name()), (number, events[0].flow, "search"));
    }
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert!(end.bytes_acked >= 500_000 && end.bytes_retransmitted > 0, "{end:?}");

    let asked = |event: &&&Event| matches!(&event.what, What::Ack(ack) if ack.answer().is_some());
    let verdicts_made: u32 = end.outcomes.iter().sum();
    assert_eq!(events.iter().filter(asked).count(), verdicts_made as usize);
    let counts = counts(&seen);
    assert!(counts["ack"] > verdicts_made as usize, "ACKs are reported after slow start, too: {counts:?}");
    assert_eq!(counts["restart"], end.header.slow_starts as usize);
    assert_eq!((counts["exit"], counts["loss"]), (1, 1), "{counts:?}");
    let exit =
        events.iter().find_map(|event| if let What::Exit(exit) = event.what { Some(exit) } else { None });
    assert_eq!(exit.unwrap().reason, ExitReason::Loss);
    assert_eq!(exit.unwrap().record, end.header.exit);
}

#[test]
#[ignore = "in a guest: make test"]
fn rounds_and_states_show_the_flows_course() {
    let _attached = attached("plain");
    let mut stream = stream(Level::Ack);
    flow("onramp_plain", 500_000);
    let items = until_ended(&mut stream, 1);
    let events = events(&items);
    let states: Vec<_> = events
        .iter()
        .filter_map(
            |event| if let What::State(state) = event.what { Some((state.from, state.to)) } else { None },
        )
        .collect();
    assert!(states.iter().any(|(_, to)| *to == CongestionState::Recovery), "{states:?}");
    assert!(
        states.windows(2).all(|two| two[0].1 == two[1].0),
        "each begins where the last ended: {states:?}"
    );

    let (mut bytes, mut number, mut acked) = (0, 0, 0);
    let (mut last_us, mut limited_us, mut all_limited_us) = (0, 0, 0);
    let mut offered = 0;
    for event in &events {
        match &event.what {
            What::Ack(AckPayload { ack, .. }) => {
                offered = ack.receive_window;
                acked = ack.bytes_acked;
                if ack.flags & ack_flag::CWND_LIMITED != 0 && bytes != 0 {
                    limited_us += ack.now_us - last_us;
                }
                last_us = ack.now_us;
                // The first ACK begins the first round.
                if bytes == 0 {
                    bytes = acked;
                }
            }
            What::Round(round) => {
                assert_eq!(round.number, number, "no round is missing");
                number += 1;
                bytes += round.bytes;
                assert_eq!(bytes, acked, "rounds follow each other without a gap");
                let rtt = 2 * DELAY.as_micros() as u64;
                assert!(round.duration_us >= rtt * 9 / 10, "a round takes an RTT: {round:?}");
                assert!(round.acks > 0 && round.rate_bps() > 0, "{round:?}");
                assert_eq!(u64::from(round.cwnd_limited_us), limited_us, "as its ACKs say: {round:?}");
                assert!(limited_us <= round.duration_us, "{round:?}");
                assert_eq!(round.receive_window, offered, "as its last ACK says: {round:?}");
                all_limited_us += std::mem::take(&mut limited_us);
            }
            _ => {}
        }
    }
    assert!(number >= 4, "{number} rounds");
    assert!(all_limited_us > 0, "slow start is limited by its window");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_receive_window_is_reported_as_the_receiver_offered_it() {
    let _attached = attached("plain");
    let mut stream = stream(Level::Ack);
    let offered = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&offered);
    let back = move |ack: Ack| {
        noted.lock().unwrap().push(u32::from(ack.window));
        Fate::Deliver
    };
    let connection = Connection { receive_buffer: Some(40_000), ..Connection::default() };
    let mut sender = Sender::connect_as(Wire::lay_both(DELAY, |_| Fate::Deliver, back), &connection);
    sender.choose("onramp_plain");
    sender.reader.rest(true);
    sender.deliver(30_000);
    sender.reader.rest(false);
    sender.bring(200_000);
    let info = sender.info();
    drop(sender);

    let items = until_ended(&mut stream, 1);
    let all = events(&items);
    let What::End(end) = &all[all.len() - 1].what else { panic!("{:?}", all.last()) };
    assert!(info.rwnd_limited_us > 0, "the reader rested: {info:?}");
    assert_eq!(end.receive_window_limited_us, info.rwnd_limited_us);
    assert_eq!(end.send_buffer_limited_us, info.sndbuf_limited_us);
    assert!(end.busy_us >= info.busy_time_us && end.busy_us > end.receive_window_limited_us, "{end:?}");
    let window =
        |event: &Event| if let What::Ack(ack) = &event.what { Some(ack.ack.receive_window) } else { None };
    let reported: Vec<_> = events(&items).into_iter().filter_map(window).collect();
    // That of the first ACK, which answers the SYN, is not scaled.
    let offered: Vec<_> = offered.lock().unwrap().drain(1..).collect();
    let scale = reported.iter().max().unwrap() / offered.iter().max().unwrap();
    let mut in_order = offered.iter();
    for window in &reported {
        assert!(
            in_order.any(|one| one * scale == *window),
            "{window} of {reported:?}: {offered:?} times {scale}"
        );
    }
    assert!(scale.is_power_of_two() && reported.iter().min() < reported.iter().max(), "{reported:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_level_reports_what_it_says_and_nothing_more() {
    let _attached = attached("plain");
    let mut streams = Level::ALL.map(stream);
    flow("onramp_plain", 500_000);
    let all = until_ended(&mut streams[3], 1);
    let seen: Vec<_> = [1, 2].into_iter().map(|level| until_ended(&mut streams[level], 1)).collect();
    assert_eq!(rest(&mut streams[0]), []);
    for (level, items) in [(Level::Exit, &seen[0]), (Level::Round, &seen[1])] {
        let below = |event: &&&Event| {
            let needed = match event.what {
                What::Flow(_) | What::End(_) | What::Exit(_) => Level::Exit,
                What::Undo(undo) if undo.exit_undone != 0 => Level::Exit,
                What::Ack(_) => Level::Ack,
                _ => Level::Round,
            };
            needed <= level
        };
        let expected: Vec<_> = events(&all).iter().filter(below).map(|event| (*event).clone()).collect();
        assert_eq!(events(items).into_iter().cloned().collect::<Vec<_>>(), expected, "{level:?}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn an_exit_that_proves_spurious_is_taken_back() {
    let _attached = attached("plain");
    let mut stream = stream(Level::Exit);
    let late = |data: Data| {
        if data.number == 60 { Fate::HoldBack(Duration::from_millis(25)) } else { Fate::Deliver }
    };
    let mut sender = Sender::connect(Wire::lay(DELAY, late), "onramp_plain");
    sender.send(900_000);
    sender.flow_when(|flow| flow.header.unwrap().exit.undone > 0);
    drop(sender);
    let items = until_ended(&mut stream, 1);
    let course: Vec<_> = events(&items).iter().map(|event| event.what.name()).collect();
    assert_eq!(course[..3], ["flow", "exit", "undo"], "{course:?}");
    let What::Exit(exit) = events(&items)[1].what else { panic!("{course:?}") };
    assert_eq!(exit.reason, ExitReason::Loss);
    let What::Undo(undo) = events(&items)[2].what else { panic!("{course:?}") };
    assert!(undo.exit_undone != 0 && undo.restored > undo.cwnd, "{undo:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_consumer_that_does_not_read_loses_its_own_events_only_and_all_are_counted() {
    let _attached = attached("plain");
    let mut reader = stream(Level::Ack);
    let mut sleeper =
        Stream::open(&Options { ring_bytes: 4096, ..Options::new("sleeper", Level::Ack) }).unwrap();
    flow("onramp_plain", 500_000);
    let all = until_ended(&mut reader, 1);
    assert_eq!((reader.lost(), lost(&all)), (0, 0));
    assert!(sleeper.lost() > 0);
    let consumers = onramp_loader::consumers().unwrap();
    let shown = consumers.iter().find(|consumer| consumer.name == "sleeper").unwrap();
    assert_eq!((shown.lost, shown.ring_bytes, shown.level), (sleeper.lost(), 4096, Level::Ack));

    let kept = rest(&mut sleeper);
    assert_eq!(lost(&kept), sleeper.lost(), "reported in the stream");
    assert_eq!(events(&kept).len() + lost(&kept) as usize, events(&all).len(), "kept and lost are all");
    // Not the first so many: where a long one has no room, a short one may still find it.
    let mut reported = events(&all).into_iter();
    assert!(
        events(&kept).into_iter().all(|event| reported.any(|one| one == event)),
        "the same, in the same order"
    );
    flow("onramp_plain", 20_000);
    let again = until_ended(&mut sleeper, 1);
    assert!(!events(&again).is_empty(), "it goes on once there is room");
}

#[test]
#[ignore = "in a guest: make test"]
fn sampling_reports_whole_flows() {
    let _attached = attached("plain");
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let mut all = stream(Level::Exit);
    let subscription = Subscription { sampling: 3, ..Subscription::new(Level::Exit) };
    let mut some = Stream::open(&Options { subscription, ..Options::new("test", Level::Exit) }).unwrap();
    short_flows(&inside, 6);
    // The ends that only receive need no state, and are not reported.
    let all = until_ended(&mut all, 6);
    let sampled = until_ended(&mut some, 2);
    let kept: Vec<_> = events(&all).into_iter().filter(|event| event.flow % 3 == 0).cloned().collect();
    assert_eq!(events(&sampled).into_iter().cloned().collect::<Vec<_>>(), kept);
    assert_eq!(rest(&mut some), []);
}

#[test]
#[ignore = "in a guest: make test"]
fn filters_keep_what_matches() {
    let _attached = attached("plain");
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let filtered = |filter| {
        let subscription = Subscription { filter, ..Subscription::new(Level::Exit) };
        Stream::open(&Options { subscription, ..Options::new("test", Level::Exit) }).unwrap()
    };
    let remote =
        |prefix: &str, bits| Filter { remote: Some((prefix.parse().unwrap(), bits)), ..Filter::default() };
    let mut near = filtered(remote("127.0.0.0", 8));
    let mut far = filtered(remote("192.0.2.0", 24));
    let mut six = filtered(remote("2001:db8::", 32));
    short_flows(&inside, 1);
    let seen = until_ended(&mut near, 1);
    assert_eq!((rest(&mut far), rest(&mut six)), (vec![], vec![]));

    let ports: Vec<_> = events(&seen)
        .iter()
        .filter_map(|event| if let What::Flow(flow) = &event.what { Some(flow.local.port()) } else { None })
        .collect();
    assert_eq!(ports.len(), 1);
    let transfer = Transfer::start(&inside, 1_000_000);
    let (local, filter) = (transfer.local.port(), Filter::default());
    let mut by_local = filtered(Filter { local_port: Some(local), ..filter });
    let mut by_remote = filtered(Filter { remote_port: Some(transfer.remote.port()), ..filter });
    let mut reversed = filtered(Filter { remote_port: Some(local), ..filter });
    assert!(transfer.goes_on());
    drop(transfer);
    let (sending, same) = (until_ended(&mut by_local, 1), until_ended(&mut by_remote, 1));
    assert_eq!(rest(&mut reversed), []);
    let ends = |items: &[Item]| {
        let flow = events(items).into_iter().find_map(|event| match &event.what {
            What::Flow(flow) => Some((flow.local.port(), flow.remote.port(), flow.again)),
            _ => None,
        });
        flow.unwrap()
    };
    assert_eq!(ends(&sending).0, local);
    assert_eq!(ends(&same).0, local);
    assert!(events(&sending).iter().all(|event| event.flow == events(&sending)[0].flow));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_late_consumer_gets_open_flows_and_subscriptions_change() {
    let _attached = attached("plain");
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    let mut early = stream(Level::Exit);
    let transfer = Transfer::start(&inside, 1_000_000);
    assert!(transfer.goes_on());
    let mut late = stream(Level::Ack);
    let first = late.next_within(Duration::from_secs(5)).unwrap().unwrap();
    let Item::Event(Event { what: What::Flow(flow), flow: id, .. }) = first else { panic!("{first:?}") };
    assert!(flow.again, "{flow:?}");
    let known = rest(&mut early);
    assert!(events(&known).iter().any(|event| event.flow == id), "under the same id for all");

    late.set(&Subscription::new(Level::Off)).unwrap();
    assert!(transfer.goes_on());
    rest(&mut late);
    assert!(transfer.goes_on());
    assert_eq!(rest(&mut late), [], "off");
    late.set(&Subscription::new(Level::Round)).unwrap();
    let mut items = Vec::new();
    eventually(|| {
        items.extend(rest(&mut late));
        counts(&items).contains_key("round")
    });
    let counts = counts(&items);
    assert!(counts.contains_key("flow") && counts.contains_key("round"), "{counts:?}");
    assert!(!counts.contains_key("ack"), "{counts:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_ceiling_bounds_the_level_of_consumers() {
    let _attached = attached("plain");
    let plain = onramp_loader::find("plain").unwrap();
    let ceiling = |profile, level| {
        let changes = Changes { telemetry_max: Some(level), ..Changes::default() };
        onramp_loader::tune(plain, profile, &changes, false)
    };
    assert_eq!(ceiling(None, Level::Exit).unwrap().before.telemetry_max, Level::Ack);
    assert!(ceiling(Some("other"), Level::Exit).unwrap_err().to_string().contains("other"));
    let mut stream = stream(Level::Ack);
    flow("onramp_plain", 100_000);
    let counts_low = counts(&until_ended(&mut stream, 1));
    assert!(!counts_low.contains_key("ack") && !counts_low.contains_key("round"), "{counts_low:?}");
    assert_eq!(onramp_loader::parameter_sets(plain).unwrap()[0].telemetry_max, Level::Exit);

    ceiling(None, Level::Off).unwrap();
    flow("onramp_plain", 100_000);
    assert_eq!(rest(&mut stream), [], "off silences the profile");
    assert_eq!(ceiling(None, Level::Ack).unwrap().before.telemetry_max, Level::Off);
    flow("onramp_plain", 100_000);
    assert!(counts(&until_ended(&mut stream, 1)).contains_key("ack"));
}

#[test]
#[ignore = "in a guest: make test"]
fn changed_parameters_are_reported_before_their_first_ack() {
    let _attached = attached("search");
    let mut stream = stream(Level::Ack);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_search");
    sender.deliver(20_000);
    let search = onramp_loader::find("search").unwrap();
    let changes = Changes { settings: &["threshold_pct=77".to_owned()], ..Changes::default() };
    onramp_loader::tune(search, None, &changes, false).unwrap();
    sender.deliver(20_000);
    drop(sender);
    let items = until_ended(&mut stream, 1);
    let mut generation = None;
    for event in events(&items) {
        match &event.what {
            What::Flow(flow) => {
                let changed = flow.generation == 1;
                assert_eq!(flow.parameters.get("threshold_pct").unwrap() == 77, changed, "{flow:?}");
                generation = Some(flow.generation);
            }
            What::Ack(ack) if ack.answer().is_some() => assert_eq!(Some(ack.generation), generation),
            _ => {}
        }
    }
    assert_eq!(generation, Some(1));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_stream_outlives_attaching_and_detaching_and_leaves_nothing() {
    let attachments = Attachments::lock();
    let before = rings();
    let added = || rings().iter().filter(|ring| !before.contains(ring)).count();
    let mut stream = stream(Level::Round);
    assert_eq!(added(), 1);
    for algorithm in ["plain", "fixed"] {
        let algorithm = onramp_loader::find(algorithm).unwrap();
        attachments.attach(&AttachOptions::new(algorithm.parameters()));
        flow(&algorithm.congestion_control(), 50_000);
        let items = until_ended(&mut stream, 1);
        assert!(events(&items).iter().all(|event| event.algorithm == algorithm));
        onramp_loader::detach(algorithm, false).unwrap();
        assert_eq!(onramp_loader::consumers().unwrap().len(), 1);
    }
    drop(stream);
    assert!(!std::path::Path::new(onramp_loader::ROOT).exists(), "no pin is left");
    assert!(eventually(|| added() == 0), "no ring is left");
}

#[test]
#[ignore = "in a guest: make test"]
fn one_consumer_too_many_is_refused_and_leaves_the_others() {
    let _attached = attached("plain");
    let streams: Vec<_> = (0..CONSUMER_MAX).map(|_| stream(Level::Exit)).collect();
    let error = Stream::open(&Options::new("test", Level::Exit)).err().unwrap().to_string();
    assert!(error.contains(&std::process::id().to_string()) && error.contains('8'), "{error}");
    drop(streams);
    // Where the lock is taken at that moment, the lease process frees the place.
    assert!(eventually(|| onramp_loader::consumers().unwrap().is_empty()), "every place is freed");
    drop(stream(Level::Exit));
}

#[test]
#[ignore = "in a guest: make test"]
fn what_cannot_be_is_refused_with_what_could() {
    let _attachments = Attachments::lock();
    let refused = |options: Options| Stream::open(&options).err().unwrap().to_string();
    let plain = Options::new("test", Level::Exit);
    assert!(refused(Options { ring_bytes: 5000, ..plain.clone() }).contains("power of two"));
    assert!(
        refused(Options {
            subscription: Subscription { sampling: 0, ..plain.subscription },
            ..plain.clone()
        })
        .contains("one in N")
    );
    let filter = Filter { remote: Some(("192.0.2.0".parse().unwrap(), 33)), ..Filter::default() };
    assert!(
        refused(Options { subscription: Subscription { filter, ..plain.subscription }, ..plain })
            .contains("192.0.2.0/33")
    );
    assert!(!std::path::Path::new(onramp_loader::ROOT).exists(), "nothing is left");
}

/// A consumer that does not read drops events. Read and dropped events together are all that there were.
#[test]
#[ignore = "in a guest: make test"]
fn events_that_were_read_and_dropped_are_all_events_by_their_sequence() {
    let _attached = attached("plain");
    let small = Options { ring_bytes: 16 << 10, ..Options::new("test", Level::Ack) };
    let mut stream = Stream::open(&small).unwrap();
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_plain");
    sender.deliver(1_000_000);
    let mut items = rest(&mut stream);
    sender.deliver(20_000);
    drop(sender);
    items.extend(until_ended(&mut stream, 1));
    let reported = events(&items);
    let ended = reported.last().expect("its end");
    assert!(matches!(ended.what, What::End(_)), "{ended:?}");
    assert!(lost(&items) > 100, "{}", lost(&items));
    assert_eq!(reported.len() as u64 + lost(&items), u64::from(ended.sequence));
}
