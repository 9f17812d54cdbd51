//! inflight, case by case.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::pair_traffic::paired_acks;
use common::random::Random;
use onramp_algorithm::{Ack, Flow, Verdict, ack_flag, find, growth};

/// A path of 10 MB/s and 100 ms holds a thousand of these.
const MSS: u32 = 1_000;

struct Driver {
    flow: Flow,
    ack: Ack,
}

impl Driver {
    fn new(settings: &[&str]) -> Self {
        let mut parameters = find("inflight").unwrap().parameters();
        parameters.assign(settings).unwrap();
        let ack = Ack {
            now_us: common::START,
            rtt_us: 100_000,
            min_rtt_us: 100_000,
            cwnd: 10,
            ssthresh: u32::MAX,
            mss: MSS,
            ..Ack::default()
        };
        let mut driver = Self { flow: Flow::new(parameters), ack };
        assert_eq!(driver.next(0, 0), "warming_up");
        driver
    }

    fn verdict(&mut self, us: u64, bytes: u64) -> Verdict {
        self.ack.now_us += us;
        self.ack.bytes_acked += bytes;
        self.flow.on_ack(&self.ack)
    }

    fn next(&mut self, us: u64, bytes: u64) -> &'static str {
        let verdict = self.verdict(us, bytes);
        self.flow.algorithm().outcome_name(verdict.outcome)
    }

    /// A train of ACKs at 10 MB/s, 0.2 ms apart.
    fn train(&mut self, acks: u64) {
        for _ in 0..acks {
            self.verdict(200, 2_000);
        }
    }

    fn read(&self, export: &str) -> u32 {
        self.flow.export(export)[0]
    }
}

#[test]
fn the_bound_is_bandwidth_times_minimum_rtt_and_stab() {
    for (setting, beyond) in
        [("headroom_segments=2", 2), ("headroom_segments=0", 0), ("headroom_segments=100", 100)]
    {
        let mut driver = Driver::new(&[setting]);
        driver.train(50);
        assert_eq!((driver.read("estimate"), driver.read("bound")), (10_000, 1_000 + beyond));
    }
}

#[test]
fn trains_show_the_bottleneck_and_the_pauses_between_them_nothing() {
    let mut driver = Driver::new(&[]);
    for _ in 0..5 {
        driver.train(10);
        driver.verdict(80_000, 2_000);
    }
    assert_eq!((driver.read("estimate"), driver.read("samples")), (10_000, 10));
    // What counts as a pause is more than an eighth of the minimum RTT.
    driver.verdict(12_500, 2_000);
    assert_eq!(driver.read("samples"), 11);
    assert!(driver.read("estimate") < 10_000);
}

#[test]
fn bandwidth_is_an_even_average_of_sixteen_samples_and_then_keeps_fifteen_sixteenths() {
    let mut driver = Driver::new(&[]);
    driver.verdict(1_000, 16_000);
    assert_eq!(driver.read("estimate"), 16_000);
    for _ in 0..15 {
        driver.verdict(1_000, 8_000);
    }
    assert!((8_490..=8_500).contains(&driver.read("estimate")), "{}", driver.read("estimate"));
    let before = driver.read("estimate");
    driver.verdict(1_000, 24_000);
    let expected = (before * 15 + 24_000) / 16;
    assert!(driver.read("estimate").abs_diff(expected) <= 1);
}

#[test]
fn a_sample_lasts_sample_min_us_at_least() {
    let mut driver = Driver::new(&["sample_min_us=5000"]);
    driver.train(24);
    assert_eq!(driver.read("samples"), 0);
    driver.train(1);
    assert_eq!((driver.read("samples"), driver.read("estimate")), (1, 10_000));
}

#[test]
fn an_application_limit_is_not_measured() {
    let mut driver = Driver::new(&[]);
    driver.train(50);
    let samples = driver.read("samples");
    driver.ack.flags = ack_flag::APP_LIMITED;
    for _ in 0..50 {
        driver.verdict(5_000, 10);
    }
    assert_eq!((driver.read("samples"), driver.read("estimate")), (samples, 10_000));
}

#[test]
fn growth_ends_at_the_bound_and_a_window_above_it_is_cut() {
    let mut driver = Driver::new(&[]);
    driver.train(50);
    for (cwnd, name, limit, cut) in [
        (10, "below_bound", 992, 0),
        (1_001, "below_bound", 1, 0),
        (1_002, "held", 0, 0),
        (2_000, "cut", 0, 1_002),
    ] {
        driver.ack.cwnd = cwnd;
        let verdict = driver.verdict(0, 0);
        assert_eq!(driver.flow.algorithm().outcome_name(verdict.outcome), name);
        assert_eq!((verdict.growth, verdict.growth_limit, verdict.cwnd), (growth::LIMITED, limit, cut));
        assert_eq!(verdict.ssthresh, 0, "it never ends slow start");
    }
}

#[test]
fn the_floor_holds_on_a_path_that_carries_nothing() {
    let mut driver = Driver::new(&[]);
    for _ in 0..20 {
        driver.verdict(10_000, 1);
    }
    assert_eq!((driver.read("bound"), driver.read("samples")), (6, 20));
    let mut driver = Driver::new(&["floor_bytes=0", "headroom_segments=0"]);
    driver.verdict(10_000, 1);
    assert_eq!(driver.read("bound"), 2, "the smallest window");
}

#[test]
fn a_loss_and_a_restart_end_the_current_sample_and_keep_the_bandwidth() {
    let mut driver = Driver::new(&[]);
    driver.train(50);
    let samples = driver.read("samples");
    for restart in [false, true] {
        driver.train(4);
        if restart {
            driver.flow.restart();
        } else {
            assert_eq!(driver.flow.on_loss(&driver.ack, 31), 31);
        }
        driver.verdict(200, 500_000);
        assert_eq!((driver.read("samples"), driver.read("estimate")), (samples, 10_000));
        driver.ack.now_us += 20_000;
        driver.verdict(0, 0);
    }
}

/// Whatever the ACKs: a window that obeys is never above the bound.
#[test]
fn a_window_that_obeys_is_never_above_its_bound() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut flow = Flow::new(find("inflight").unwrap().parameters());
        let mut cwnd = 10_u32;
        for mut ack in paired_acks(&mut random, 60) {
            ack.cwnd = cwnd;
            let verdict = flow.on_ack(&ack);
            let grown = u64::from(cwnd) + random.below(1_000);
            if verdict.growth == growth::LIMITED {
                if verdict.cwnd != 0 {
                    cwnd = verdict.cwnd;
                }
                cwnd = grown.min(u64::from(cwnd) + u64::from(verdict.growth_limit)) as u32;
                assert!(cwnd <= flow.export("bound")[0], "seed {seed}: {ack:?} {verdict:?}");
            } else {
                cwnd = grown as u32;
            }
        }
    }
}
