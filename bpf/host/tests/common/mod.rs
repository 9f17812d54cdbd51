//! What the tests of the algorithms share: a driver for one flow, a clean ramp, an ideal link, an independent model.

#![allow(dead_code, reason = "every test file is a crate of its own and uses a part of this")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod arbitrary;
pub mod differential;
pub mod hystart_model;
pub mod hystartpp_model;
pub mod inflight_model;
pub mod link;
pub mod model;
pub mod paced_link;
pub mod pair_model;
pub mod pair_traffic;
pub mod pairs;
pub mod ramp;
pub mod ramp_model;
pub mod random;
pub mod rounds;
pub mod sender;
pub mod settings;
pub mod spacing_model;
pub mod traffic;
pub mod wants;
pub mod ways_back;

use onramp_algorithm::{Ack, Flow, Parameters, Verdict, find};

/// One millisecond.
pub const MS: u64 = 1_000;
/// When the first ACK of a driven flow arrives; any value would do.
pub const START: u64 = 5_000_000;
/// Segment size of a driven flow, bytes.
pub const MSS: u64 = 1_200;

/// Parameters of search with these `name=value` settings.
pub fn parameters(settings: &[&str]) -> Parameters {
    let mut parameters = find("search").unwrap().parameters();
    // One check decides, as published; tests that are about confirmation set it again.
    parameters.assign(["confirm_bins=1"]).unwrap();
    parameters.assign(settings).unwrap();
    parameters
}

/// One flow under search and the ACK that it is given next.
pub struct Driver {
    pub flow: Flow,
    /// The next ACK; what a test does not touch stays as it was.
    pub ack: Ack,
    /// End of the open bin, as long as the test keeps to [`Driver::begin`] and [`Driver::bin`].
    pub end_us: u64,
}

impl Driver {
    /// A flow that has had no ACK yet: RTT 100 ms, window of 100 segments, connection counters in mid-flight.
    pub fn new(set: &[&str]) -> Self {
        let ack = Ack {
            now_us: START,
            bytes_acked: 7_000_000,
            bytes_sent: 7_500_000,
            rtt_us: 100_000,
            cwnd: 100,
            ssthresh: u32::MAX,
            in_flight: 100,
            mss: MSS as u32,
            ..Ack::default()
        };
        Self { flow: Flow::new(parameters(set)), ack, end_us: 0 }
    }

    /// A flow that has had its first ACK, which opens bin 0.
    pub fn begun(set: &[&str]) -> Self {
        let mut driver = Self::new(set);
        driver.begin();
        driver
    }

    /// The ACK that opens bin 0, now.
    pub fn begin(&mut self) {
        assert_eq!(self.at(self.ack.now_us), "warming_up");
        self.end_us = self.ack.now_us + u64::from(self.read("bin_us"));
    }

    /// The next ACK, at this time.
    pub fn verdict_at(&mut self, now_us: u64) -> Verdict {
        self.ack.now_us = now_us;
        self.flow.on_ack(&self.ack)
    }

    /// The name of the outcome of the next ACK, at this time.
    pub fn at(&mut self, now_us: u64) -> &'static str {
        let verdict = self.verdict_at(now_us);
        self.name(&verdict)
    }

    /// Closes the open bin, just after its end, with this many bytes in it.
    pub fn bin(&mut self, sent: u64, acked: u64) -> Verdict {
        self.ack.bytes_sent += sent;
        self.ack.bytes_acked += acked;
        let verdict = self.verdict_at(self.end_us + 1);
        self.end_us += u64::from(self.read("bin_us"));
        verdict
    }

    /// As [`Driver::bin`], the outcome's name only.
    pub fn bin_outcome(&mut self, sent: u64, acked: u64) -> &'static str {
        let verdict = self.bin(sent, acked);
        self.name(&verdict)
    }

    /// Bins of a constant rate until the newest is `index`.
    pub fn steady_until(&mut self, index: u32, bytes: u64) {
        self.bins_until(index, bytes, bytes);
    }

    /// Bins with so many bytes each until the newest is `index`.
    pub fn bins_until(&mut self, index: u32, sent: u64, acked: u64) {
        for _ in 0..1_000 {
            if self.read("index") >= index {
                return;
            }
            self.bin(sent, acked);
        }
        panic!("bin {index} is never reached");
    }

    /// Name of a verdict's outcome.
    pub fn name(&self, verdict: &Verdict) -> &'static str {
        self.flow.algorithm().outcome_name(verdict.outcome)
    }

    /// The first value of an export.
    pub fn read(&self, export: &str) -> u32 {
        self.flow.export(export)[0]
    }

    /// Bytes that a ring holds for bin `to` beyond those for bin `from`.
    pub fn between(&self, ring: &str, from: u32, to: u32) -> u32 {
        let ring = self.flow.export(ring);
        ring[to as usize % ring.len()].wrapping_sub(ring[from as usize % ring.len()])
    }
}

/// Every form with every look-back.
pub const READINGS: [[&str; 2]; 6] = [
    ["form=sent", "look_back=latest"],
    ["form=sent", "look_back=smoothed"],
    ["form=sent", "look_back=min"],
    ["form=delivered", "look_back=latest"],
    ["form=delivered", "look_back=smoothed"],
    ["form=delivered", "look_back=min"],
];
