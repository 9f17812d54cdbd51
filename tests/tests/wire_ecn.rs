//! Congestion marks in slow start, as the receiver reports them: by RFC 3168 and as AccECN (RFC 9768).

use std::time::Duration;

use onramp_loader::ExitReason;
use onramp_loader::shadow::{Follower, Shadow, Watch};
use onramp_loader::telemetry::{CongestionState, Level, What};
use onramp_tests::Attachments;
use onramp_tests::counted::ends;
use onramp_tests::sender::{Came, Sender};
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::wire::{Data, Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
const BYTES: usize = 500_000;
const ALGORITHMS: [&str; 3] = ["plain", "ramp", "search"];

/// Ten marks in the third round, and one in a later round.
fn marks(data: Data) -> Fate {
    if matches!(data.number, 30..40 | 150) { Fate::Mark } else { Fate::Deliver }
}

/// Over the marking wire, with this of the kernel's ways to report marks. `None`: it does not have it.
fn sender(tcp_ecn: &str) -> Option<Sender> {
    let wire = Wire::lay(DELAY, marks);
    wire.near.sysctl_set("net.ipv4.tcp_ecn", tcp_ecn).ok()?;
    wire.sysctl("net.ipv4.tcp_ecn", tcp_ecn);
    Some(Sender::connect_by_default(wire))
}

/// What the kernel's own CUBIC makes of it, and the threshold that two reductions leave. `onramp shadow` sees why.
fn stock(tcp_ecn: &str) -> Option<(Came, u32)> {
    let mut shadow = Shadow::open(Watch::default()).unwrap();
    let mut sender = sender(tcp_ecn)?;
    sender.choose("cubic");
    let came = sender.bring(BYTES);
    let info = sender.info();
    if tcp_ecn == "3" {
        assert_eq!(info.delivered_ce, 11, "AccECN counts them");
    }
    let local = sender.stream.local_addr().unwrap();
    let mut follower = Follower::default();
    while let Some(snapshot) = shadow.next_within(Duration::from_millis(300)) {
        if snapshot.local() == local {
            follower.take(&snapshot);
        }
    }
    assert_eq!(follower.exit().map(|(reason, _)| reason), Some(ExitReason::Ecn), "tcp_ecn {tcp_ecn}");
    Some((came, info.snd_ssthresh.expect("reduced")))
}

fn assert_each_round_reduces_once(tcp_ecn: &str, (came, threshold): (Came, u32)) {
    for algorithm in ALGORITHMS {
        let mut stream = stream(Level::Round);
        let mut sender = sender(tcp_ecn).unwrap();
        sender.choose(&format!("onramp_{algorithm}"));
        assert_eq!(sender.bring(BYTES), came, "{algorithm}");
        let reduced = sender.info().snd_ssthresh.unwrap();
        assert!(reduced.abs_diff(threshold) <= 1, "{algorithm}: {reduced}, and of cubic {threshold}");
        drop(sender);
        let reported = until_ended(&mut stream, 1);
        let (mut exits, mut reductions) = (Vec::new(), 0);
        for event in events(&reported) {
            match &event.what {
                What::Exit(exit) => exits.push((exit.reason, exit.record)),
                What::State(state) if state.to == CongestionState::Cwr => reductions += 1,
                What::Undo(undo) => panic!("{algorithm}: {undo:?}"),
                _ => {}
            }
        }
        let [(ExitReason::Ecn, record)] = exits[..] else { panic!("{algorithm}: {exits:?}") };
        // A round of 40 segments is in flight when the first mark is reported.
        assert!((38..=42).contains(&record.window), "{algorithm}: {record:?}");
        assert_eq!(record.window_after, record.window * 7 / 10, "CUBIC keeps 0.7: {record:?}");
        assert_eq!(reductions, 2, "{algorithm}: marks of one round are one event");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn marks_of_one_round_end_slow_start_once_and_a_later_mark_reduces_once_more_as_under_cubic() {
    let _attachments = Attachments::new(&ALGORITHMS);
    assert_each_round_reduces_once("1", stock("1").expect("RFC 3168"));
    // A kernel without AccECN refuses the number.
    let accurate = stock("3");
    let has_it = accurate.is_some();
    if let Some(stock) = accurate {
        assert_each_round_reduces_once("3", stock);
    }
    for algorithm in ALGORITHMS {
        assert_eq!(ends(algorithm), [("ecn", 1 + u64::from(has_it))].into(), "{algorithm}");
    }
}
