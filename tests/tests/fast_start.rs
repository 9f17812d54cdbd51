//! Starts that are faster than doubling (`--start fast` and `suss`) in the kernel.

use std::time::Duration;

use onramp_tests::Attachments;
use onramp_tests::cli::onramp;
use onramp_tests::sender::Sender;
use onramp_tests::wire::{Fate, Wire};

/// One way.
const DELAY: Duration = Duration::from_millis(30);

/// The window after this many bytes, over a wire that loses nothing.
fn window(algorithm: &str, start: &str, bytes: usize) -> u32 {
    onramp(&format!("attach {algorithm} --base cubic --start {start}")).ok();
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, &format!("onramp_{algorithm}"));
    sender.deliver(bytes);
    let window = sender.info().snd_cwnd;
    drop(sender);
    onramp(&format!("detach {algorithm}")).ok();
    window
}

#[test]
#[ignore = "in a guest: make test"]
fn a_first_visit_grows_faster_than_by_doubling() {
    let _attachments = Attachments::lock();
    for algorithm in ["plain", "ramp"] {
        let (doubled, faster) = (window(algorithm, "double", 60_000), window(algorithm, "fast", 60_000));
        assert!(faster >= doubled + doubled / 4, "{algorithm}: {faster} for {doubled} segments");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn every_algorithm_can_start_so_over_cubic_and_reno_and_none_over_bbr() {
    let _attachments = Attachments::lock();
    for algorithm in onramp_loader::algorithm::all().map(|algorithm| algorithm.name()) {
        for (base, start) in [("cubic", "fast"), ("reno", "fast"), ("cubic", "suss")] {
            onramp(&format!("attach {algorithm} --base {base} --start resume+{start}")).ok();
            onramp(&format!("detach {algorithm}")).ok();
        }
    }
    for start in ["fast", "suss"] {
        onramp(&format!("attach plain --base bbr --start {start}")).refused(2);
    }
    let both = onramp("attach plain --start fast+suss");
    assert!(both.code == Some(2) && both.stderr.contains("\"fast\""), "{both:?}");
}
