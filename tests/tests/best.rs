//! best in the kernel, on a wire with a bottleneck.

use std::time::Duration;

use onramp_loader::algorithm::Algorithm;
use onramp_loader::{AttachOptions, Changes, ExitReason, Phase};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::{SEGMENT, bottleneck};
use onramp_tests::cli::verdicts;
use onramp_tests::sender::Sender;
use onramp_tests::wire::Wire;

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(200);
/// Bytes per second: an ACK of two segments every six milliseconds, several times what the wire delivers at once.
const RATE: u32 = 500_000;
/// Bandwidth-delay product, segments.
const PRODUCT: u32 = RATE * 2 / 5 / SEGMENT;
/// Room for all that a test sends.
const QUEUE: u32 = 10_000;

/// A minimum that no median exceeds.
const NEVER: &str = "min_rate_bytes_per_s=17179869184";

/// Attaches best and connects over the bottleneck.
fn connected(settings: &[&str]) -> (Attachments, Sender) {
    let attachments = Attachments::lock();
    let mut parameters = best().parameters();
    parameters.assign(settings).expect("settings");
    attachments.attach(&AttachOptions::new(parameters));
    (attachments, connect())
}

fn connect() -> Sender {
    Sender::connect(Wire::lay(DELAY, bottleneck(RATE, QUEUE)), "onramp_best")
}

fn best() -> Algorithm {
    onramp_loader::find("best").expect("registered")
}

/// Slow start ends near the bandwidth-delay product although nothing is lost. The median of three flows: a machine that
/// stalls the wire bunches ACKs.
#[test]
#[ignore = "in a guest: make test"]
fn best_leaves_near_the_bandwidth_delay_product_without_loss() {
    let (_attached, sender) = connected(&["min_rate_bytes_per_s=100000"]);
    let mut windows = Vec::new();
    for mut sender in [sender].into_iter().chain((0..2).map(|_| connect())) {
        sender.send(900_000);
        let flow = sender.flow_when(|flow| matches!(flow.phase(), Phase::Left(..)));
        let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
        assert_eq!(reason, ExitReason::Algorithm);
        assert_eq!(flow.info.retrans_total, 0);
        assert!(record.window_after >= record.window, "the window is not cut: {record:?}");
        let read = |name: &str| flow.export(name).expect("exported");
        assert!(read("target") <= record.window_after, "{record:?}");
        assert!((1..20).contains(&read("rounds")), "{}", read("rounds"));
        println!("left at {} of {PRODUCT} segments, {} kB/s", record.window, read("estimate"));
        windows.push(f64::from(record.window) / f64::from(PRODUCT));
    }
    windows.sort_by(f64::total_cmp);
    assert!((0.6..1.7).contains(&windows[1]), "{windows:?}");
}

/// With the rate below the minimum the same flow stays in slow start, as plain would.
#[test]
#[ignore = "in a guest: make test"]
fn below_the_minimum_rate_slow_start_goes_on() {
    let (_attached, mut sender) = connected(&[NEVER]);
    sender.send(900_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 900_000);
    assert!(matches!(flow.phase(), Phase::SlowStart), "{:?}", flow.phase());
    assert!(flow.info.snd_cwnd > 2 * PRODUCT, "{:?}", flow.info);
    assert_eq!(flow.info.snd_ssthresh, None);
    let dropped = verdicts("best")["rate_too_low"];
    assert!(dropped > 2, "{dropped} rounds");
}

/// With cut_to_bdp the window is the threshold where slow start ends above it.
#[test]
#[ignore = "in a guest: make test"]
fn cut_to_bdp_reduces_a_window_beyond_the_threshold() {
    let (attached, mut sender) = connected(&[NEVER, "cut_to_bdp=on"]);
    sender.send(700_000);
    sender.flow_when(|flow| flow.info.snd_cwnd > 2 * PRODUCT);
    let changes = Changes { settings: &["min_rate_bytes_per_s=100000".to_owned()], ..Changes::default() };
    onramp_loader::tune(best(), None, &changes, false).expect("tuned");
    sender.send(700_000);
    let flow = sender.flow_when(|flow| matches!(flow.phase(), Phase::Left(..)));
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    drop(attached);
    assert_eq!(reason, ExitReason::Algorithm);
    assert!(record.window > 2 * PRODUCT && record.window_after < record.window * 3 / 4, "{record:?}");
    assert_eq!(Some(record.window_after), flow.export("target"));
}
