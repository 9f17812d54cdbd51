//! Prometheus' messages (`io.prometheus.client.MetricFamily`, each behind its length): the only ones that it takes native
//! histograms from.

use prost::{Enumeration, Message};

use super::family::{Family, Kind, Sample};
use super::histogram::Histogram;

pub(super) const TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Up to which a value is zero.
const ZERO: f64 = f64::MIN_POSITIVE;

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Counts>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Number {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Counts {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    /// Each count less the one before.
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
}

/// Buckets that follow one another, so far behind those before.
#[derive(Clone, Copy, PartialEq, Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

pub(super) fn encode(families: &[Family]) -> Vec<u8> {
    families.iter().flat_map(|family| message(family).encode_length_delimited_to_vec()).collect()
}

fn message(family: &Family) -> MetricFamily {
    let kind = match family.kind {
        Kind::Info | Kind::Gauge => MetricType::Gauge,
        Kind::Counter => MetricType::Counter,
        Kind::Histogram => MetricType::Histogram,
    };
    let metric = |(labels, value): &(_, _)| {
        let labels: &Vec<(&str, String)> = labels;
        let pair = |(name, value): &(&str, String)| LabelPair { name: (*name).into(), value: value.clone() };
        let mut metric = Metric { label: labels.iter().map(pair).collect(), ..Metric::default() };
        match value {
            Sample::Histogram(histogram) => metric.histogram = Some(counts(histogram)),
            Sample::Number(value) if kind == MetricType::Counter => {
                metric.counter = Some(Number { value: *value })
            }
            Sample::Number(value) => metric.gauge = Some(Number { value: *value }),
        }
        metric
    };
    MetricFamily {
        name: family.sample_name(),
        help: family.help.into(),
        kind: Some(kind as i32),
        metric: family.samples.iter().map(metric).collect(),
        unit: family.unit.name().into(),
    }
}

fn counts(histogram: &Histogram) -> Counts {
    let mut spans: Vec<Span> = Vec::new();
    let mut deltas = Vec::new();
    let (mut next, mut before) = (0, 0);
    for (number, count) in &histogram.native {
        match spans.last_mut().filter(|_| *number == next) {
            Some(span) => span.length += 1,
            None => spans.push(Span { offset: number - next, length: 1 }),
        }
        deltas.push(*count as i64 - before);
        (next, before) = (number + 1, *count as i64);
    }
    // One without values is native all the same.
    if spans.is_empty() {
        spans.push(Span { offset: 0, length: 0 });
    }
    let bucket = |(upper_bound, cumulative_count)| Bucket { cumulative_count, upper_bound };
    Counts {
        sample_count: histogram.count,
        sample_sum: histogram.sum,
        bucket: histogram.cumulative().map(bucket).collect(),
        schema: histogram.scale,
        zero_threshold: ZERO,
        zero_count: histogram.zeros,
        positive_span: spans,
        positive_delta: deltas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::serve::web::metrics::family::Unit;

    #[test]
    fn what_is_encoded_is_read_again_as_it_was_counted() {
        let mut histogram = Histogram::new(&[1.0, 4.0]);
        for value in [0.0, 0.5, 0.5, 0.52, 3.0, 9.0] {
            histogram.observe(value);
        }
        let mut family = Family::new("duration", Unit::Seconds, Kind::Histogram, "Time");
        family.samples.push((vec![("cc", "onramp_search".into())], Sample::Histogram(histogram.clone())));
        let number = Family::new("dropped", Unit::None, Kind::Counter, "Lost").with(Vec::new(), 3.0);
        let bytes = encode(&[family, number]);
        let mut rest = bytes.as_slice();
        let first = MetricFamily::decode_length_delimited(&mut rest).unwrap();
        let second = MetricFamily::decode_length_delimited(&mut rest).unwrap();
        assert!(rest.is_empty());
        assert_eq!((first.name.as_str(), first.kind), ("onramp_duration_seconds", Some(4)));
        assert_eq!((second.name.as_str(), second.kind), ("onramp_dropped_total", Some(0)));
        assert_eq!(second.metric[0].counter, Some(Number { value: 3.0 }));
        let counts = first.metric[0].histogram.clone().unwrap();
        assert_eq!((counts.sample_count, counts.sample_sum, counts.zero_count), (6, 13.52, 1));
        let classic: Vec<_> =
            counts.bucket.iter().map(|one| (one.upper_bound, one.cumulative_count)).collect();
        assert_eq!(classic, [(1.0, 4), (4.0, 5)]);
        // Spans and deltas, read as Prometheus does.
        let (mut number, mut count) = (0, 0);
        let mut native = std::collections::BTreeMap::new();
        let mut deltas = counts.positive_delta.iter();
        for span in &counts.positive_span {
            number += span.offset;
            for _ in 0..span.length {
                count += deltas.next().unwrap();
                native.insert(number, count as u64);
                number += 1;
            }
        }
        assert_eq!((native, counts.schema), (histogram.native, histogram.scale));
    }
}
