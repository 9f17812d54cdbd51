//! OTLP's messages as JSON: numbers of 64 bits are text there.

use serde_json::{Value, json};

use crate::verb::serve::row::Row;
use crate::verb::serve::web::metrics::{Family, Histogram, Kind, Sample};

/// Sums since the beginning.
const CUMULATIVE: u8 = 2;
/// A severity: that of what is to be known.
const INFO: u8 = 9;

/// Whose numbers these are.
pub(super) fn resource(host: &str) -> Value {
    json!({"attributes": [
        attribute("service.name", &"onramp".into()),
        attribute("service.version", &env!("CARGO_PKG_VERSION").into()),
        attribute("host.name", &host.into()),
    ]})
}

fn scope() -> Value {
    json!({"name": "onramp", "version": env!("CARGO_PKG_VERSION")})
}

/// What metrics are at a time, those that count since the server began from this time on, in microseconds.
pub(super) fn metrics(resource: &Value, families: &[Family], began_us: u64, now_ns: u64) -> Value {
    let metric = |family: &Family| {
        let points: Vec<Value> =
            family.samples.iter().map(|sample| point(sample, began_us * 1_000, now_ns)).collect();
        let (kind, data) = match family.kind {
            Kind::Info | Kind::Gauge => ("gauge", json!({"dataPoints": points})),
            Kind::Counter => {
                let sum =
                    json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true});
                ("sum", sum)
            }
            Kind::Histogram => {
                let counts = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE});
                ("exponentialHistogram", counts)
            }
        };
        let name = if family.kind == Kind::Info { family.sample_name() } else { family.bare_name() };
        json!({"name": name, "description": family.help, "unit": family.unit.code(), kind: data})
    };
    let metrics: Vec<Value> = families.iter().map(metric).collect();
    json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope(), "metrics": metrics}]}]})
}

fn point((labels, value): &(Vec<(&'static str, String)>, Sample), began_ns: u64, now_ns: u64) -> Value {
    let labels: Vec<Value> =
        labels.iter().map(|(name, value)| attribute(name, &value.as_str().into())).collect();
    let now = now_ns.to_string();
    match value {
        Sample::Number(number) => json!({"attributes": labels, "timeUnixNano": now, "asDouble": number}),
        Sample::Histogram(Histogram { count, sum, scale, zeros, native, .. }) => {
            let first = native.keys().next().copied().unwrap_or(0);
            let last = native.keys().next_back().copied().unwrap_or(first - 1);
            let counts: Vec<String> =
                (first..=last).map(|number| native.get(&number).copied().unwrap_or(0).to_string()).collect();
            json!({
                "attributes": labels, "startTimeUnixNano": began_ns.to_string(), "timeUnixNano": now,
                "count": count.to_string(), "sum": sum, "scale": scale, "zeroCount": zeros.to_string(),
                // Number 0 is here the bucket that begins at 1, and in Prometheus the one that ends there.
                "positive": {"offset": first - 1, "bucketCounts": counts},
            })
        }
    }
}

/// The ends of flows, of which times on the monotonic clock are this much earlier than those since 1970.
pub(super) fn flows(resource: &Value, rows: &[Row], now_ns: u64, offset_ns: u64) -> Value {
    let record = |row: &Row| {
        let mut attributes = vec![attribute("network.transport", &"tcp".into())];
        flatten("onramp", &serde_json::to_value(row).unwrap_or_default(), &mut attributes);
        json!({
            "timeUnixNano": (row.at_us * 1_000).saturating_add(offset_ns).to_string(),
            "observedTimeUnixNano": now_ns.to_string(),
            "severityNumber": INFO,
            "eventName": "onramp.flow.end",
            "body": {"stringValue": format!("a flow of {} has ended: {}", row.algorithm, row.reason())},
            "attributes": attributes,
        })
    };
    let records: Vec<Value> = rows.iter().map(record).collect();
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope(), "logRecords": records}]}]})
}

/// The fields of an object, those of objects in it after a dot. What is not known is left out.
fn flatten(name: &str, value: &Value, to: &mut Vec<Value>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&format!("{name}.{field}"), value, to));
        }
        value => to.push(attribute(conventional(name), value)),
    }
}

/// The ends of a connection have names of their own in OpenTelemetry.
fn conventional(name: &str) -> &str {
    match name {
        "onramp.local_address" => "network.local.address",
        "onramp.local_port" => "network.local.port",
        "onramp.remote_address" => "network.peer.address",
        "onramp.remote_port" => "network.peer.port",
        other => other,
    }
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": name, "value": value})
}
