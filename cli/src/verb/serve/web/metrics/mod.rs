//! `GET /metrics`: Prometheus' text, or OpenMetrics to clients that name it. No label names a connection, address or
//! port.

mod exits;
mod family;
mod histogram;
mod text;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::header::{self, HeaderMap};
use axum::response::{IntoResponse, Response};
use onramp_loader::algorithm;
use onramp_recording::rows::FlowCountRow;
use onramp_recording::{Row, Spec};
use serde_json::Value;

use super::hub::{Hub, HubState};
pub(super) use exits::Exits;
use family::{Family, Kind, Unit};
use text::Format;

/// Name of an algorithm's congestion control.
fn control(name: &str) -> String {
    algorithm::find(name).map_or_else(|| name.to_owned(), |algorithm| algorithm.congestion_control())
}

/// `GET /metrics`
pub(super) async fn metrics(State(hub): State<Hub>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accepted| accepted.to_str().ok());
    let format = format(accepted);
    let text = text::encode(&families(&hub.state()), format);
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

/// OpenMetrics only if it is named, as Prometheus' clients do: whatever else is accepted, also `*/*`, is the older text,
/// which all scrapers read.
fn format<'a>(accepted: impl IntoIterator<Item = &'a str>) -> Format {
    let (mut open, mut plain) = (0.0_f32, 0.0_f32);
    for kind in accepted.into_iter().flat_map(|accepted| accepted.split(',')) {
        let mut parts = kind.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameter = |name: &str| {
            let mut pairs = parts.clone().filter_map(|part| part.split_once('='));
            pairs.find(|(given, _)| given.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let weight: f32 = parameter("q").map_or(Ok(1.0), str::parse).unwrap_or(0.0);
        let version = parameter("version").map(|version| version.trim_matches('"'));
        if name.eq_ignore_ascii_case(text::OPEN_METRICS)
            && version.is_none_or(|one| text::VERSIONS.contains(&one))
        {
            open = weight.max(open);
        } else if name.eq_ignore_ascii_case("text/plain") {
            plain = weight.max(plain);
        }
    }
    if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Plain }
}

/// All metrics.
fn families(state: &HubState) -> Vec<Family> {
    let build = vec![("version", env!("CARGO_PKG_VERSION").into()), ("arch", std::env::consts::ARCH.into())];
    let mut families = vec![
        Family::new("build", Unit::None, Kind::Info, "This program").with(build, 1.0),
        flows(state),
        limited(state),
        Family::new(
            "ringbuf_dropped",
            Unit::None,
            Kind::Counter,
            "Events of telemetry for which this server's ring had no room",
        )
        .with(Vec::new(), state.lost.lost_events as f64),
        Family::new("unobserved", Unit::Seconds, Kind::Counter, "Time of which telemetry reported nothing")
            .with(Vec::new(), state.lost.unobserved_us as f64 / 1e6),
    ];
    let status = serde_json::from_str::<Value>(&state.attached).unwrap_or_default();
    families.extend(status_families(state, &status));
    families.extend(attached(&status));
    families.extend(state.exits.families());
    // A name without a sample says nothing.
    families.retain(|family| !family.samples.is_empty());
    families
}

fn flows(state: &HubState) -> Family {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    for known in state.flows.values() {
        *counts.entry((&known.row.algorithm, &known.row.state)).or_default() += 1;
    }
    let help = "Flows that are known, by where they stand";
    let mut family = Family::new("flows", Unit::None, Kind::Gauge, help);
    for ((algorithm, state), flows) in counts {
        family.add(vec![("cc", control(algorithm)), ("state", state.into())], flows as f64);
    }
    family
}

fn limited(state: &HubState) -> Family {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    for row in state.flows.values().map(|known| &known.row).filter(|row| !row.ended()) {
        if let Some(limited) = &row.limited {
            *counts.entry((&row.algorithm, limited)).or_default() += 1;
        }
    }
    let help = "Open flows by what limited their newest round";
    let mut family = Family::new("flows_limited", Unit::None, Kind::Gauge, help);
    for ((algorithm, limited), flows) in counts {
        family.add(vec![("cc", control(algorithm)), ("limited", limited.into())], flows as f64);
    }
    family
}

/// Whether what `onramp status` says is known, and as of when. A server of recordings never reads it.
fn status_families(state: &HubState, status: &Value) -> Vec<Family> {
    let gauge = |name, unit, help| Family::new(name, unit, Kind::Gauge, help);
    let mut readable = gauge(
        "status_readable",
        Unit::None,
        "0: the status cannot be read, and metrics of what is attached are old; /api/status says why",
    );
    let mut last =
        gauge("status_last_success_timestamp", Unit::Seconds, "When the status was last read, since 1970");
    let mut whole = gauge("attached_readable", Unit::None, "0: the pins of what is attached cannot be read");
    let unreadable = status["unreadable"].is_object();
    if unreadable || state.status_read_us.is_some() {
        readable.add(Vec::new(), f64::from(u8::from(!unreadable)));
    }
    if let Some(at_us) = state.status_read_us {
        last.add(Vec::new(), at_us as f64 / 1e6);
    }
    for row in rows(status).filter(|row| row["state"] == "attached" || row["state"] == "unreadable") {
        let cc = row["congestion_control"].as_str().unwrap_or_default().to_owned();
        whole.add(vec![("cc", cc)], f64::from(u8::from(row["state"] == "attached")));
    }
    vec![readable, last, whole]
}

fn rows(status: &Value) -> impl Iterator<Item = &Value> {
    status["algorithms"].as_array().into_iter().flatten()
}

/// What the kernel counts for each attachment.
fn attached(status: &Value) -> Vec<Family> {
    let counter = |name, help| Family::new(name, Unit::None, Kind::Counter, help);
    let mut info = Family::new("attached", Unit::None, Kind::Info, "What is attached");
    let mut exits = counter(
        "slow_start_exits",
        "Ended flows that had state by why their first slow start ended; closed: it did not",
    );
    let mut verdicts = counter("verdicts", "What the algorithm has said, each time that it was asked");
    let mut counters: Vec<_> = FlowCountRow::COLUMNS.iter().map(counted).collect();
    let mut guards = Guards::new();
    for row in rows(status).filter(|row| row["state"] == "attached") {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        let cc = text("congestion_control");
        let of = |name: &'static str, value: &str| vec![("cc", cc.clone()), (name, value.to_owned())];
        info.add(
            vec![("cc", cc.clone()), ("version", text("version")), ("generation", text("generation"))],
            1.0,
        );
        exits.add(of("reason", "closed"), number("ended_in_slow_start"));
        for (reason, flows) in row["exits"].as_object().into_iter().flatten() {
            exits.add(of("reason", reason), flows.as_f64().unwrap_or_default());
        }
        for (outcome, number) in row["outcomes"].as_object().into_iter().flatten() {
            verdicts.add(of("outcome", outcome), number.as_f64().unwrap_or_default());
        }
        for (name, family) in &mut counters {
            family.add(vec![("cc", cc.clone())], number(name));
        }
        guards.add(&cc, &row["guard"]);
    }
    let mut calls =
        counter("callback_calls", "Calls of an algorithm's operation since it was loaded, timed ones");
    let mut seconds = Family::new("callback", Unit::Seconds, Kind::Counter, "What these calls took");
    for cost in status["costs"].as_array().into_iter().flatten() {
        let text = |name: &str| cost[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| cost[name].as_f64().unwrap_or_default();
        let labels = vec![("cc", text("congestion_control")), ("callback", text("callback"))];
        calls.add(labels.clone(), number("calls"));
        seconds.add(labels, number("nanoseconds") / 1e9);
    }
    let counters = counters.into_iter().map(|(_, family)| family).chain([calls, seconds]);
    [info, exits, verdicts].into_iter().chain(counters).chain(guards.0).collect()
}

/// What the kernel counts of connections, by the name of its column.
fn counted(column: &Spec) -> (&'static str, Family) {
    let name = if column.name == "exits_undone" { "slow_start_exits_undone" } else { column.name };
    (column.name, Family::new(name, Unit::None, Kind::Counter, column.help))
}

/// What guards compare: whether they have found harm, and by arm how many flows, and how these do.
struct Guards([Family; 7]);

impl Guards {
    fn new() -> Self {
        let gauge = |name, unit, help| Family::new(name, unit, Kind::Gauge, help);
        Self([
            gauge("guard_tripped", Unit::None, "1: the guard has found harm, and the base runs alone"),
            Family::new("guard_flows", Unit::None, Kind::Counter, "Ended flows that the guard compares"),
            gauge(
                "guard_retransmit",
                Unit::Ratio,
                "Mean share of a compared flow's bytes that was retransmitted",
            ),
            gauge("guard_goodput", Unit::BytesPerSecond, "Geometric mean of the goodput of compared flows"),
            gauge(
                "guard_first_64kb",
                Unit::Seconds,
                "Geometric mean of the time with data to send until the first 64 kB of a flow were acknowledged",
            ),
            gauge(
                "guard_difference",
                Unit::Ratio,
                "Treated flows less those of the control: of retransmissions the difference of shares, of goodput and time the part; with the bounds of its interval",
            ),
            gauge("guard_margin", Unit::Ratio, "The difference at which the guard acts"),
        ])
    }

    fn add(&mut self, cc: &str, guard: &Value) {
        if !guard.is_object() {
            return;
        }
        let Self([tripped, flows, retransmit, goodput, first, difference, margin]) = self;
        let cc = || ("cc", cc.to_owned());
        tripped.add(vec![cc()], f64::from(u8::from(!guard["tripped"].is_null())));
        for arm in ["treated", "control"] {
            let labels = || vec![cc(), ("arm", arm.to_owned())];
            flows.add(labels(), guard[arm]["flows"].as_f64().unwrap_or_default());
            if let Some(percent) = guard[arm]["retransmit_ratio_pct"].as_f64() {
                retransmit.add(labels(), percent / 100.0);
            }
            if let Some(rate) = guard[arm]["goodput_bps"].as_f64() {
                goodput.add(labels(), rate / 8.0);
            }
            if let Some(us) = guard[arm]["first_64kb_us"].as_f64() {
                first.add(labels(), us / 1e6);
            }
        }
        for one in guard["comparisons"].as_array().into_iter().flatten() {
            let metric = || ("metric", one["metric"].as_str().unwrap_or_default().to_owned());
            let bounds = [
                ("estimate", &one["difference_pct"]),
                ("low", &one["interval_pct"][0]),
                ("high", &one["interval_pct"][1]),
            ];
            for (bound, value) in bounds {
                if let Some(percent) = value.as_f64() {
                    difference.add(vec![cc(), metric(), ("bound", bound.to_owned())], percent / 100.0);
                }
            }
            if let Some(percent) = one["margin_pct"].as_f64() {
                margin.add(vec![cc(), metric()], percent / 100.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_clients_that_name_it() {
        let protobuf =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        for accepted in [
            // Prometheus 2.42, 2.49 and 3 with and without native histograms.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            &format!(
                "{protobuf};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
            ),
            "application/openmetrics-text",
            "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
            "Application/OpenMetrics-Text;Q=0.001",
            "application/openmetrics-text;q=0.5,*/*",
        ] {
            assert_eq!(format([accepted]), Format::OpenMetrics, "{accepted}");
        }
        for accepted in [
            "",
            "*/*",
            "*/*;q=0.1",
            "text/*",
            "application/*",
            "text/plain",
            "text/plain;version=0.0.4",
            "text/plain; version=0.0.4; charset=utf-8, */*;q=0.5",
            "text/plain, application/openmetrics-text;q=0.1",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.0, */*",
            "application/openmetrics-text;q=often",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text-too",
            protobuf,
            // Telegraf, and a collector of before OpenMetrics.
            &format!("{protobuf};q=0.7,text/plain;version=0.0.4;q=0.3"),
            &format!("{protobuf};q=0.7,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"),
        ] {
            assert_eq!(format([accepted]), Format::Plain, "{accepted}");
        }
        assert_eq!(format([]), Format::Plain, "no header");
        assert_eq!(
            format(["*/*", "application/openmetrics-text"]),
            Format::OpenMetrics,
            "in a second header"
        );
    }
}
