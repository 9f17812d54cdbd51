//! plain and fixed: the policies that decide nothing, and nothing but a window.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use onramp_algorithm::{Ack, Flow, Verdict, find, outcome};

fn fixed(bytes: &str) -> Flow {
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", bytes).unwrap();
    Flow::new(parameters)
}

fn ack(cwnd: u32, mss: u32) -> Ack {
    Ack { cwnd, mss, ssthresh: u32::MAX, ..Ack::default() }
}

#[test]
fn plain_never_asks_for_anything() {
    let mut flow = Flow::new(find("plain").unwrap().parameters());
    let mut random = common::random::Random(1);
    for _ in 0..1_000 {
        let ack = Ack {
            now_us: random.bits(),
            bytes_acked: random.bits(),
            rtt_us: random.bits() as i32,
            cwnd: random.bits() as u32,
            flags: random.bits() as u32,
            mss: 1 + random.below(65_535) as u32,
            ..Ack::default()
        };
        assert_eq!(flow.on_ack(&ack), Verdict::default());
        assert_eq!(flow.on_loss(&ack, 123), 123);
    }
}

#[test]
fn fixed_leaves_at_the_first_window_that_holds_so_many_bytes() {
    let mut flow = fixed("100000");
    let below = flow.on_ack(&ack(99, 1_000));
    assert_eq!(below, Verdict { outcome: outcome::BELOW_THRESHOLD, ..Verdict::default() });
    let at = flow.on_ack(&ack(100, 1_000));
    assert_eq!(at, Verdict { outcome: outcome::EXIT, ssthresh: 100, ..Verdict::default() });
    assert_eq!(flow.on_ack(&ack(69, 1_448)).outcome, outcome::BELOW_THRESHOLD);
    assert_eq!(flow.on_ack(&ack(70, 1_448)).outcome, outcome::EXIT);
}

#[test]
fn fixed_at_0_never_leaves() {
    for cwnd in [0, 1, 10, u32::MAX] {
        assert_eq!(fixed("0").on_ack(&ack(cwnd, u32::MAX)), Verdict::default());
    }
}

#[test]
fn fixed_counts_bytes_beyond_32_bits() {
    assert_eq!(fixed("4294967295").on_ack(&ack(65_536, 65_535)).outcome, outcome::BELOW_THRESHOLD);
    assert_eq!(fixed("4294967295").on_ack(&ack(65_537, 65_535)).outcome, outcome::EXIT);
    assert_eq!(fixed("4294967295").on_ack(&ack(u32::MAX, u32::MAX)).outcome, outcome::EXIT);
}

#[test]
fn fixed_feels_a_new_window_at_once_and_leaves_loss_to_the_base() {
    let mut flow = fixed("0");
    assert_eq!(flow.on_ack(&ack(100, 1_000)).outcome, outcome::GROW);
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", "50000").unwrap();
    flow.tune(parameters);
    assert_eq!(flow.on_ack(&ack(100, 1_000)).outcome, outcome::EXIT);
    assert_eq!(flow.on_loss(&ack(100, 1_000), 31), 31);
}
