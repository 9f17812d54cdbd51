// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the paths of one kind have in common: a distribution of each of their properties.

use serde::Deserialize;

use super::Distribution;
use crate::link::RangeError;
use crate::link::spec::within;

/// Kinds of paths, as a population writes them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// How many paths are of this class, relative to the other classes' weights, 0.001 to 1000.
    #[serde(default = "super::distribution::one")]
    pub weight: f64,
    /// Rate of the bottleneck, bit/s, counting IP packets, 1000 to 10 000 000 000. That of the policer where there is one.
    pub rate_bps: Distribution,
    /// Round-trip time of the empty path, microseconds, 10 to 10 000 000, half of it on each way.
    pub rtt_us: Distribution,
    /// Size of the bottleneck's queue, or of the policer's bucket, in bandwidth-delay products, 0.01 to 100; ten packets at
    /// least.
    pub queue_bdp: Distribution,
    /// What drops packets at the bottleneck.
    #[serde(default = "AqmWeights::alone")]
    pub aqm: AqmWeights,
    /// Largest variation of the round-trip time, microseconds, 0 to 1 000 000: uniform for each packet, half on each way.
    #[serde(default = "zero")]
    pub jitter_us: Distribution,
    /// Longest time between the opportunities in which acknowledgments return, all that wait at once, microseconds, 0 to
    /// 1 000 000; the shortest is half of it.
    #[serde(default = "zero")]
    pub aggregation_us: Distribution,
    /// Rate of the bottleneck over that of the way back, 0.1 to 1000. The way back has 50 kb/s at least.
    #[serde(default = "constant_one")]
    pub return_ratio: Distribution,
    /// Share of the rate that packets of others take, 0 to 0.95.
    #[serde(default = "zero")]
    pub cross_share: Distribution,
    /// Share of packets that is lost at random beyond the bottleneck, 0 to 0.5.
    #[serde(default = "zero")]
    pub loss: Distribution,
    /// Bytes of a transfer, of an object or of a block, 1 to 4 000 000 000.
    pub object_bytes: Distribution,
    /// The same for transfers in bandwidth-delay products, 0 to 1000; the larger of the two holds.
    #[serde(default = "zero")]
    pub object_bdp: Distribution,
    /// When the application has something to send.
    #[serde(default = "SourceWeights::alone")]
    pub source: SourceWeights,
    /// Objects or blocks, 1 to 1000.
    #[serde(default = "constant_ten")]
    pub objects: Distribution,
    /// From one object to the request of the next, in round-trip times, 0 to 1000.
    #[serde(default = "constant_one")]
    pub think_rtt: Distribution,
    /// Share of the available rate that blocks need, 0.01 to 2.
    #[serde(default = "constant_half")]
    pub block_load: Distribution,
    /// Share of the paths whose sender's device paces (`fq`), 0 to 1.
    #[serde(default)]
    pub fq_share: f64,
}

fn zero() -> Distribution {
    Distribution::constant(0.0)
}

fn constant_one() -> Distribution {
    Distribution::constant(1.0)
}

fn constant_half() -> Distribution {
    Distribution::constant(0.5)
}

fn constant_ten() -> Distribution {
    Distribution::constant(10.0)
}

/// How many of the paths drop packets in which way: tail drop alone if nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AqmWeights {
    /// Where the queue is full.
    pub tail_drop: f64,
    /// CoDel with the target of 5 ms and the interval of 100 ms of RFC 8289, section 4.3.
    pub codel: f64,
    /// A quarter of what comes while the queue is above half, as the gateway of Ataei Kachooei et al. 2022.
    pub random_drop: f64,
    /// A token bucket in front of a line of ten times the rate.
    pub policer: f64,
    /// A queue for each flow, with CoDel as above (RFC 8290).
    pub fq_codel: f64,
}

/// How many of the applications send in which way: in bulk alone if nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SourceWeights {
    /// All of it is there from the begin on.
    pub bulk: f64,
    /// Objects, each asked for some time after the one before was received.
    pub requests: f64,
    /// Blocks at fixed times: video.
    pub blocks: f64,
}

impl AqmWeights {
    fn alone() -> Self {
        Self { tail_drop: 1.0, ..Self::default() }
    }

    /// By the order of the fields.
    pub(super) fn all(self) -> [(&'static str, f64); 5] {
        [
            ("tail-drop", self.tail_drop),
            ("codel", self.codel),
            ("random-drop", self.random_drop),
            ("policer", self.policer),
            ("fq-codel", self.fq_codel),
        ]
    }
}

impl SourceWeights {
    fn alone() -> Self {
        Self { bulk: 1.0, ..Self::default() }
    }

    /// By the order of the fields.
    pub(super) fn all(self) -> [(&'static str, f64); 3] {
        [("bulk", self.bulk), ("requests", self.requests), ("blocks", self.blocks)]
    }
}

impl Class {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        within(of("weight"), self.weight, 0.001..=1_000.0)?;
        self.rate_bps.validate(&of("rate_bps"), 1e3..=1e10)?;
        self.rtt_us.validate(&of("rtt_us"), 10.0..=1e7)?;
        self.queue_bdp.validate(&of("queue_bdp"), 0.01..=100.0)?;
        self.jitter_us.validate(&of("jitter_us"), 0.0..=1e6)?;
        self.aggregation_us.validate(&of("aggregation_us"), 0.0..=1e6)?;
        self.return_ratio.validate(&of("return_ratio"), 0.1..=1e3)?;
        self.cross_share.validate(&of("cross_share"), 0.0..=0.95)?;
        self.loss.validate(&of("loss"), 0.0..=0.5)?;
        self.object_bytes.validate(&of("object_bytes"), 1.0..=4e9)?;
        self.object_bdp.validate(&of("object_bdp"), 0.0..=1e3)?;
        self.objects.validate(&of("objects"), 1.0..=1e3)?;
        self.think_rtt.validate(&of("think_rtt"), 0.0..=1e3)?;
        self.block_load.validate(&of("block_load"), 0.01..=2.0)?;
        within(of("fq_share"), self.fq_share, 0.0..=1.0)?;
        weights(&of("aqm"), &self.aqm.all())?;
        weights(&of("source"), &self.source.all())
    }
}

fn weights(key: &str, weights: &[(&str, f64)]) -> Result<(), RangeError> {
    for (name, weight) in weights {
        within(format!("{key}.{name}"), *weight, 0.0..=1_000.0)?;
    }
    if weights.iter().all(|(_, weight)| *weight == 0.0) {
        return Err(RangeError::new(key, "0 in all", "expected a weight above 0"));
    }
    Ok(())
}
