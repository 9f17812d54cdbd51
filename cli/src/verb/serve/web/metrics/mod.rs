//! `GET /metrics`: as text, or with native histograms to whoever takes those. Nothing is told by connection, address
//! or port.

mod exits;
mod family;
mod histogram;
mod protobuf;
mod text;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::header::{self, HeaderMap};
use axum::response::{IntoResponse, Response};
use onramp_loader::algorithm;
use serde_json::Value;

use super::hub::{Hub, Knowledge};
pub(super) use exits::Exits;
use family::Unit;
pub(super) use family::{Family, Kind, Sample};
pub(super) use histogram::Histogram;
use text::Format;

/// Name of an algorithm's congestion control.
fn control(name: &str) -> String {
    algorithm::find(name).map_or_else(|| name.to_owned(), |algorithm| algorithm.congestion_control())
}

/// `GET /metrics`
pub(super) async fn metrics(State(hub): State<Hub>, headers: HeaderMap) -> Response {
    let families = families(&hub.knowledge());
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    match wanted(accepted.unwrap_or_default()) {
        None => ([(header::CONTENT_TYPE, protobuf::TYPE)], protobuf::encode(&families)).into_response(),
        Some(format) => {
            ([(header::CONTENT_TYPE, format.content_type())], text::encode(&families, format)).into_response()
        }
    }
}

/// Which text is wanted; `None`: Prometheus' messages. Of what is wanted as much, those, then OpenMetrics.
fn wanted(accepted: &str) -> Option<Format> {
    let (mut messages, mut open, mut plain) = (0.0, 0.0, 0.0);
    for kind in accepted.split(',') {
        let mut parts = kind.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
        let weight = parameters.get("q").map_or(Ok(1.0), |weight| weight.parse()).unwrap_or(0.0);
        let is = |name: &str, value: &str| parameters.get(name) == Some(&value);
        match name {
            "application/vnd.google.protobuf"
                if is("proto", "io.prometheus.client.MetricFamily") && is("encoding", "delimited") =>
            {
                messages = weight;
            }
            "application/openmetrics-text" => open = weight,
            "text/plain" => plain = weight,
            _ => {}
        }
    }
    match () {
        () if messages > 0.0 && messages >= open && messages >= plain => None,
        () if plain > open => Some(Format::Plain),
        () => Some(Format::OpenMetrics),
    }
}

/// Everything that is told.
pub(super) fn families(knowledge: &Knowledge) -> Vec<Family> {
    let build = vec![("version", env!("CARGO_PKG_VERSION").into()), ("arch", std::env::consts::ARCH.into())];
    let mut families = vec![
        Family::new("build", Unit::None, Kind::Info, "This program").with(build, 1.0),
        flows(knowledge),
        Family::new(
            "ringbuf_dropped",
            Unit::None,
            Kind::Counter,
            "Events of telemetry for which this server's ring had no room",
        )
        .with(Vec::new(), knowledge.lost.lost_events as f64),
        Family::new("unobserved", Unit::Seconds, Kind::Counter, "Time of which telemetry told nothing")
            .with(Vec::new(), knowledge.lost.unobserved_us as f64 / 1e6),
    ];
    families.extend(attached(knowledge));
    families.extend(knowledge.exits.families());
    // A name without a sample says nothing.
    families.retain(|family| !family.samples.is_empty());
    families
}

fn flows(knowledge: &Knowledge) -> Family {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    for known in knowledge.flows.values() {
        *counts.entry((&known.row.algorithm, &known.row.state)).or_default() += 1;
    }
    let help = "Flows that are known, by where they stand";
    let mut family = Family::new("flows", Unit::None, Kind::Gauge, help);
    for ((algorithm, state), flows) in counts {
        family.add(vec![("cc", control(algorithm)), ("state", state.into())], flows as f64);
    }
    family
}

/// What the kernel counts for each attachment.
fn attached(knowledge: &Knowledge) -> Vec<Family> {
    let counter = |name, help| Family::new(name, Unit::None, Kind::Counter, help);
    let mut info = Family::new("attached", Unit::None, Kind::Info, "What is attached");
    let mut exits = counter(
        "slow_start_exits",
        "Ended flows that had state by why their first slow start ended; closed: it did not",
    );
    let mut verdicts = counter("verdicts", "What the algorithm has said, each time that it was asked");
    let mut counters = [
        ("exits_undone", counter("slow_start_exits_undone", "Exits that proved spurious, of ended flows")),
        ("flows_started", counter("flows_started", "Connections that came to the control")),
        (
            "flows_without_state",
            counter(
                "flows_without_state",
                "Ended connections that had no state: they sent no more than a first window, or the base ran alone",
            ),
        ),
        (
            "state_failures",
            counter(
                "state_failures",
                "Acknowledgements at which there was no memory for a flow's state: the base runs alone",
            ),
        ),
    ];
    let mut guards = Guards::new();
    let status = serde_json::from_str::<Value>(&knowledge.attached).unwrap_or_default();
    for row in status["algorithms"].as_array().into_iter().flatten() {
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

/// What guards compare: whether they have found harm, and by arm how many flows, and how these do.
struct Guards([Family; 6]);

impl Guards {
    fn new() -> Self {
        let gauge = |name, unit, help| Family::new(name, unit, Kind::Gauge, help);
        Self([
            gauge("guard_tripped", Unit::None, "1: the guard has found harm, and the base runs alone"),
            Family::new("guard_flows", Unit::None, Kind::Counter, "Ended flows that the guard compares"),
            gauge(
                "guard_retransmit",
                Unit::Ratio,
                "Mean share of a compared flow's bytes that was sent again",
            ),
            gauge("guard_goodput", Unit::BytesPerSecond, "Geometric mean of the goodput of compared flows"),
            gauge(
                "guard_difference",
                Unit::Ratio,
                "Treated flows less those of the control: of retransmissions the difference of shares, of goodput the part; with the bounds of its interval",
            ),
            gauge("guard_margin", Unit::Ratio, "The difference at which the guard acts"),
        ])
    }

    fn add(&mut self, cc: &str, guard: &Value) {
        if !guard.is_object() {
            return;
        }
        let Self([tripped, flows, retransmit, goodput, difference, margin]) = self;
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
    fn everybody_gets_what_he_asks_for() {
        let messages =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let text =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.7,*/*;q=0.1";
        for accepted in
            [messages, &format!("{messages},{text}"), &format!("{text},{}", messages.replace(';', "; "))]
        {
            assert_eq!(wanted(accepted), None, "{accepted}");
        }
        for accepted in [
            "",
            "*/*",
            text,
            &format!("{messages};q=0.5,{text}"),
            &format!("{messages};q=0"),
            &format!("{messages};q=x"),
            "application/vnd.google.protobuf",
            &messages.replace("delimited", "text"),
        ] {
            assert_eq!(wanted(accepted), Some(Format::OpenMetrics), "{accepted}");
        }
        for accepted in ["text/plain", "text/plain;version=0.0.4, application/openmetrics-text;q=0.1"] {
            assert_eq!(wanted(accepted), Some(Format::Plain), "{accepted}");
        }
    }
}
