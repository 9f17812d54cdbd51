//! Metrics, independent of their format.

use super::histogram::Histogram;

pub(super) type Labels = Vec<(&'static str, String)>;

/// What all samples of a name have in common.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// Without prefix, unit and `_total`.
    name: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    pub help: &'static str,
    pub samples: Vec<(Labels, Sample)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Seconds,
    Bytes,
    BytesPerSecond,
    Ratio,
}

impl Unit {
    /// As in names of Prometheus.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::Ratio => "ratio",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 1, and what there is to know in the labels.
    Info,
    Gauge,
    Counter,
    Histogram,
}

#[derive(Clone, Debug)]
pub(super) enum Sample {
    Number(f64),
    Histogram(Histogram),
}

impl Family {
    pub fn new(name: &'static str, unit: Unit, kind: Kind, help: &'static str) -> Self {
        Self { name, unit, kind, help, samples: Vec::new() }
    }

    pub fn add(&mut self, labels: Labels, value: f64) {
        self.samples.push((labels, Sample::Number(value)));
    }

    /// With this one sample.
    pub fn with(mut self, labels: Labels, value: f64) -> Self {
        self.add(labels, value);
        self
    }

    /// With prefix and unit: that of the family.
    pub fn name(&self) -> String {
        match self.unit {
            Unit::None => format!("onramp_{}", self.name),
            unit => format!("onramp_{}_{}", self.name, unit.name()),
        }
    }

    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Info => self.name() + "_info",
            Kind::Counter => self.name() + "_total",
            Kind::Gauge | Kind::Histogram => self.name(),
        }
    }
}
