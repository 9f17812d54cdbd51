//! Connections over IPv6: exits, records, lists and rules.

use std::time::Duration;

use onramp_loader::telemetry::{Filter, Level, Options, Stream, Subscription, What};
use onramp_loader::{ExitReason, Flow, Phase};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::{SEGMENT, bottleneck};
use onramp_tests::cli::{inside, onramp};
use onramp_tests::connection::Connection;
use onramp_tests::counted::ends;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, rest, until_ended};
use onramp_tests::wire::{Data, Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
/// Of the bottleneck, bytes of payload per second: 27 segments in an RTT.
const RATE: u32 = 1_000_000;
const ALGORITHMS: [&str; 2] = ["ramp", "search"];

const IPV4: Connection = Connection {
    ipv6: false,
    mapped: false,
    mptcp: false,
    segment: None,
    receive_buffer: None,
    fast_open: false,
};
const IPV6: Connection = Connection { ipv6: true, ..IPV4 };

fn left(flow: &Flow) -> bool {
    matches!(flow.phase(), Phase::Left(..))
}

#[test]
#[ignore = "in a guest: make test"]
fn slow_start_ends_by_the_algorithm_and_by_loss_where_it_does_over_ipv4() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let lost = |data: Data| if data.number == 25 { Fate::Drop } else { Fate::Deliver };
    let stock = {
        let mut sender = Sender::connect_as(Wire::lay(DELAY, lost).with_ipv6(), &IPV6);
        sender.choose("cubic");
        sender.bring(200_000)
    };
    for algorithm in ALGORITHMS {
        let control = format!("onramp_{algorithm}");
        let windows = [IPV4, IPV6].map(|connection| {
            let wire = Wire::lay(DELAY, bottleneck(RATE, 16 * 27)).with_ipv6();
            let mut sender = Sender::connect_as(wire, &connection);
            sender.choose(&control);
            let came = sender.bring(700_000);
            let flow = sender.flow();
            let Phase::Left(reason, record) = flow.phase() else { panic!("{algorithm}: {:?}", flow.phase()) };
            assert_eq!((reason, came.retransmitted), (ExitReason::Algorithm, 0), "{algorithm}: {record:?}");
            // The header of IPv6 is 20 bytes longer.
            assert_eq!(u32::from(record.mss), SEGMENT - if connection.ipv6 { 20 } else { 0 });
            assert_eq!(flow.remote.is_ipv6(), connection.ipv6);
            record.window
        });
        // The path holds 27, and its queue sixteen times as many.
        assert!(windows.iter().all(|window| (27..17 * 27).contains(window)), "{algorithm}: {windows:?}");

        let mut sender = Sender::connect_as(Wire::lay(DELAY, lost).with_ipv6(), &IPV6);
        sender.choose(&control);
        assert_eq!(sender.bring(200_000), stock, "{algorithm}");
        let Phase::Left(ExitReason::Loss, record) = sender.flow_when(left).phase() else {
            panic!("{algorithm}: {:?}", sender.flow().phase())
        };
        assert!(record.window >= 20 && record.window_after < record.window, "{algorithm}: {record:?}");
        drop(sender);
        assert_eq!(ends(algorithm), [("algorithm", 2), ("loss", 1)].into(), "{algorithm}");
    }
}

/// Hears of flows whose remote end is in a network.
fn hearing_of(prefix: &str, bits: u8) -> Stream {
    let filter = Filter { remote: Some((prefix.parse().unwrap(), bits)), ..Filter::default() };
    let subscription = Subscription { filter, ..Subscription::new(Level::Exit) };
    Stream::open(&Options { subscription, ..Options::new("test", Level::Exit) }).unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_prefix_of_ipv6_selects_what_goes_there_and_flows_and_consumers_name_its_ends() {
    let _attachments = Attachments::new(&ALGORITHMS);
    onramp("select add --to 2001:db8::/48 --connect --use ramp").ok();
    onramp("select add --to 192.0.2.0/24 --connect --use search").ok();
    let (mut six, mut four) = (hearing_of("2001:db8::", 32), hearing_of("192.0.2.0", 24));
    let mapped = Connection { mapped: true, ..IPV4 };
    for (connection, algorithm, address) in
        [(IPV6, "ramp", "[2001:db8::2]:"), (IPV4, "search", "192.0.2.2:"), (mapped, "search", "192.0.2.2:")]
    {
        let mut sender = Sender::connect_as(Wire::lay(DELAY, |_| Fate::Deliver).with_ipv6(), &connection);
        sender.bring(50_000);
        let listed = inside(&sender.wire.near, "flows").ok();
        assert!(listed.contains(algorithm) && listed.contains(address), "{connection:?}: {listed}");
        drop(sender);
        let (hears, deaf) = if connection.ipv6 { (&mut six, &mut four) } else { (&mut four, &mut six) };
        let reported = until_ended(hears, 1);
        let What::Flow(flow) = &events(&reported)[0].what else { panic!("{:?}", reported[0]) };
        assert!(flow.remote.to_string().starts_with(address), "{connection:?}: {flow:?}");
        assert_eq!(rest(deaf), [], "{connection:?}");
    }
    assert_eq!(ends("ramp"), [("slow start", 1)].into());
    assert_eq!(ends("search"), [("slow start", 2)].into());
}
