//! hystartpp in the kernel: what the flow counts, how its window grows, and where it leaves, over an emulated link.

mod hystart;

use hystart::{attach, profile, slow_start};
use onramp_loader::{ExitReason, Phase};
use onramp_tests::Attachments;
use onramp_tests::cli::verdicts;

/// How often slow start was cautious, and how often that was forgiven, since it was attached.
fn css() -> (u64, u64) {
    let verdicts = verdicts("hystartpp");
    (verdicts["css_entered"], verdicts["css_left"])
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
    assert_eq!((css(), verdicts("hystartpp")["exit"]), ((1, 0), 1));
    assert!(verdicts("hystartpp")["css"] > 100);
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
    attach(&attachments, "hystartpp", &["rtt_samples=2", "max_rtt_thresh_us=4000"]);
    let mut entries = 0;
    for seed in 1..=6 {
        let start = slow_start(&profile(100, 40_000, 40_000), seed, "onramp_hystpp", 4_000_000);
        let flow = start.flow.expect("a flow of ours");
        println!("{:?} {:?}", flow.phase(), flow.exports());
        entries += u64::from(flow.export("css_entries").expect("an export"));
        assert_eq!(css().0, entries);
    }
    let (entered, left) = css();
    assert!(entered > 0 && left > 0, "entered {entered} times, left again {left} times");
}
