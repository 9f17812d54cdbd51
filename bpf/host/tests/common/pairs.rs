//! Rounds of ACK pairs with given rates, for the algorithms that measure them.

use onramp_algorithm::{Ack, Flow, Verdict, find};

/// Bytes in flight at the start of a round unless set.
const WINDOW: u32 = 1 << 31;

/// The median as sorting tells it: of an even number the lower one of the two; `None` of none.
pub fn sorted_median(rates: &[u64]) -> Option<u64> {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable();
    sorted.get(rates.len().checked_sub(1)? / 2).copied()
}

/// Lowest and highest rate that the sketch tells apart.
pub const ENDS: (u64, u64) = (1 << 10, (1 << 34) - 1);

/// Largest relative error of the sketch's median, in hundredths of a percent, and what rounding adds.
pub fn bounds(exact: u64) -> (u64, u64) {
    let exact = exact.clamp(ENDS.0, ENDS.1);
    let error = exact * 271 / 10_000 + 2;
    (exact - error, exact + error)
}

/// One flow and the ACK that it is given next; what a test does not touch stays as it was.
pub struct Rounds {
    pub flow: Flow,
    pub ack: Ack,
    /// Bytes in flight at the ACK that ends a round.
    pub window: u32,
    /// Bytes acknowledged at which the round ends, once they are passed.
    end: u64,
}

impl Rounds {
    /// A flow that has had no ACK yet: RTT 100 ms, window of 100 segments, connection counters in mid-flight.
    pub fn new(algorithm: &str, settings: &[&str]) -> Self {
        let mut parameters = find(algorithm).unwrap().parameters();
        parameters.assign(settings).unwrap();
        let ack = Ack {
            now_us: super::START,
            bytes_acked: 7_000_000,
            rtt_us: 100_000,
            min_rtt_us: 100_000,
            cwnd: 100,
            ssthresh: u32::MAX,
            mss: 1_000,
            ..Ack::default()
        };
        Self { flow: Flow::new(parameters), ack, window: WINDOW, end: 0 }
    }

    /// A flow that has had its first ACK, which begins a round.
    pub fn begun(algorithm: &str, settings: &[&str]) -> Self {
        let mut rounds = Self::new(algorithm, settings);
        rounds.begin();
        rounds
    }

    /// The first ACK of a slow start.
    pub fn begin(&mut self) {
        self.ack.bytes_outstanding = self.window;
        self.end = self.ack.bytes_acked + u64::from(self.window);
        assert_eq!(self.acknowledge(), "warming_up");
    }

    /// The next ACK as it is; the name of its outcome.
    pub fn acknowledge(&mut self) -> &'static str {
        let verdict = self.flow.on_ack(&self.ack);
        self.name(&verdict)
    }

    /// The next ACK, so much later and with so many bytes more.
    pub fn pair(&mut self, us: u64, bytes: u64) -> Verdict {
        self.ack.now_us += us;
        self.ack.bytes_acked += bytes;
        let end = self.ack.bytes_acked > self.end;
        if end {
            self.end = self.ack.bytes_acked + u64::from(self.window);
        }
        self.ack.bytes_outstanding = if end { self.window } else { (self.end - self.ack.bytes_acked) as u32 };
        // A round's last byte but one: something is in flight, sent since the round began.
        self.ack.bytes_outstanding = self.ack.bytes_outstanding.max(1);
        self.flow.on_ack(&self.ack)
    }

    /// The rest of the round in pairs of about these rates; its last verdict, and the rates as they were.
    pub fn round(&mut self, rates: &[u64]) -> (Verdict, Vec<u64>) {
        let (last, others) = rates.split_last().expect("a rate");
        let mut exact = Vec::with_capacity(rates.len());
        for rate in others {
            let us = (2_000_000_000 / rate).max(1);
            let bytes = (rate * us / 1_000_000).max(1);
            let verdict = self.pair(us, bytes);
            assert!(self.is_open(&verdict), "the round ended early: {}", self.name(&verdict));
            exact.push(bytes * 1_000_000 / us);
        }
        let bytes = self.end + 1 - self.ack.bytes_acked;
        let us = (bytes * 1_000_000 / last).max(1);
        let verdict = self.pair(us, bytes);
        assert!(!self.is_open(&verdict), "the round did not end");
        exact.push(bytes * 1_000_000 / us);
        (verdict, exact)
    }

    fn is_open(&self, verdict: &Verdict) -> bool {
        self.name(verdict) == "round_open"
    }

    /// Name of a verdict's outcome.
    pub fn name(&self, verdict: &Verdict) -> &'static str {
        self.flow.algorithm().outcome_name(verdict.outcome)
    }

    /// The first value of an export.
    pub fn read(&self, export: &str) -> u32 {
        self.flow.export(export)[0]
    }

    /// The counts of the histogram's bins, lowest rate first.
    pub fn histogram(&self) -> Vec<u32> {
        self.flow.export("histogram").iter().flat_map(|two| [two & 0xffff, two >> 16]).collect()
    }
}
