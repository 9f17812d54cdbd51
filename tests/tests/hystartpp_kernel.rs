//! hystartpp in the kernel: what the flow counts, how its window grows, and where it leaves, over an emulated link.

mod hystart;

use hystart::{attach, profile, slow_start};
use onramp_loader::{ExitReason, Flow, Phase};
use onramp_tests::Attachments;

fn outcome(flow: &Flow, name: &str) -> u32 {
    let number = flow.algorithm.outcomes().position(|outcome| outcome.name == name).expect("an outcome");
    flow.header.expect("a header").outcomes[number]
}

/// A queue that builds up and stays: Conservative Slow Start is entered once, lasts its five rounds and ends in the
/// exit, at a window that five quarters in each of them make.
#[test]
#[ignore = "in a guest: make test"]
fn a_queue_leads_through_conservative_slow_start_to_the_exit() {
    let attachments = Attachments::lock();
    attach(&attachments, "hystartpp", &[]);
    let start = slow_start(&profile(20, 30_000, 0), 1, "onramp_hystpp", 100_000_000);
    let flow = start.flow.as_ref().expect("a flow of ours");
    println!("{:?} {:?} kernel {:?}", flow.phase(), flow.exports(), start.kernel);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{start:?}") };
    assert_eq!(reason, ExitReason::Algorithm);
    assert_eq!((flow.export("css_entries"), flow.export("css_rounds")), (Some(1), Some(5)));
    assert_eq!((outcome(flow, "css_entered"), outcome(flow, "css_left"), outcome(flow, "exit")), (1, 0, 1));
    assert!(outcome(flow, "css") > 100);
    assert_eq!(start.kernel, [0; 4], "the base's HyStart is silent");
    // The path holds 100 segments; the entry is above that, and five rounds make it three times as much at most.
    assert!((120..1_300).contains(&record.window), "{record:?}");
    assert_eq!(Some(record.window), start.ssthresh);
}

/// Jitter of the RTT that comes and goes: entered, and left again for slow start.
#[test]
#[ignore = "in a guest: make test"]
fn jitter_is_forgiven() {
    let attachments = Attachments::lock();
    attach(&attachments, "hystartpp", &["n_rtt_sample=2", "max_rtt_thresh_us=4000"]);
    let seen = (1..=6).map(|seed| {
        let start = slow_start(&profile(100, 40_000, 40_000), seed, "onramp_hystpp", 4_000_000);
        let flow = start.flow.expect("a flow of ours");
        println!("{:?} {:?}", flow.phase(), flow.exports());
        let (entered, left) = (outcome(&flow, "css_entered"), outcome(&flow, "css_left"));
        assert_eq!(Some(entered), flow.export("css_entries"));
        assert!(left <= entered);
        (entered, left)
    });
    let (entered, left) = seen.fold((0, 0), |sum, seen| (sum.0 + seen.0, sum.1 + seen.1));
    assert!(entered > 0 && left > 0, "entered {entered} times, left again {left} times");
}
