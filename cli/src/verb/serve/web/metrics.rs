//! `GET /metrics` in OpenMetrics, and what is counted for it: never by connection, address or port.

use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use onramp_loader::algorithm;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use serde_json::Value;

use super::hub::{Hub, Knowledge};
use crate::verb::serve::row::Row;

type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, Buckets>;

/// Upper bounds of a histogram's buckets.
#[derive(Clone, Debug)]
struct Buckets(Vec<f64>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// What exits and ends of flows have come to since the server began.
pub(super) struct Exits {
    cwnd: Histograms,
    duration: Histograms,
    ratio: Histograms,
    inflation: Histograms,
    accuracy: Histograms,
    retransmitted: Histograms,
    regret: Histograms,
}

impl Default for Exits {
    fn default() -> Self {
        let of = |buckets: Vec<f64>| Histograms::new_with_constructor(Buckets(buckets));
        // Around one: what is twice or half as much as it should be is as far from it.
        let around_one = || exponential_buckets(1.0 / 64.0, 2.0_f64.sqrt(), 25).collect();
        Self {
            cwnd: of(exponential_buckets(16_384.0, 2.0, 16).collect()),
            duration: of(exponential_buckets(0.001, 2.0, 18).collect()),
            ratio: of(around_one()),
            inflation: of(exponential_buckets(1.0, 1.25, 16).collect()),
            accuracy: of(around_one()),
            retransmitted: of(iter::once(0.0).chain(exponential_buckets(0.0005, 2.0, 11)).collect()),
            regret: of(iter::once(0.0).chain(exponential_buckets(0.01, 2.0, 13)).collect()),
        }
    }
}

impl Exits {
    /// A flow as it is told now, and as it was told before.
    pub fn observe(&self, before: Option<&Row>, now: &Row) {
        let cc = control(&now.algorithm);
        let add = |histograms: &Histograms, value: f64| {
            histograms.get_or_create(&vec![("cc", cc.clone())]).observe(value);
        };
        if let Some(exit) = &now.exit
            && before.is_none_or(|before| before.exit.is_none())
        {
            add(&self.cwnd, exit.window_bytes as f64);
            add(&self.duration, exit.since_start_us as f64 / 1e6);
            if exit.min_rtt_us > 0 && exit.rtt_us > 0 {
                add(&self.inflation, f64::from(exit.rtt_us) / f64::from(exit.min_rtt_us));
            }
        }
        if let Some(loss) = now.loss_cwnd_segments.filter(|segments| *segments > 0)
            && before.is_none_or(|before| before.loss_cwnd_segments.is_none())
            && let Some(after) = now.exit.as_ref().and_then(|exit| exit.cwnd_after_segments)
        {
            add(&self.accuracy, f64::from(after) / f64::from(loss));
        }
        if now.ended() && before.is_none_or(|before| !before.ended()) {
            if let Some(permille) = now.exit_permille_of_bdp() {
                add(&self.ratio, permille as f64 / 1000.0);
            }
            if let Some(sent) = now.sent_bytes.filter(|bytes| *bytes > 0) {
                add(&self.retransmitted, now.retransmitted_bytes as f64 / sent as f64);
            }
            if let Some(regret) = now.regret {
                add(&self.regret, regret.early_us as f64 / 1e6);
            }
        }
    }
}

/// Name of an algorithm's congestion control.
fn control(name: &str) -> String {
    algorithm::find(name).map_or_else(|| name.to_owned(), |algorithm| algorithm.congestion_control())
}

/// `GET /metrics`
pub(super) async fn metrics(State(hub): State<Hub>) -> Response {
    let mut text = String::new();
    let registry = registry(&hub.knowledge());
    if encode(&mut text, &registry).is_err() {
        return (axum::http::StatusCode::INTERNAL_SERVER_ERROR, "cannot encode").into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn registry(knowledge: &Knowledge) -> Registry {
    let mut registry = Registry::with_prefix("onramp");
    registry.register(
        "build",
        "This program",
        Info::new(vec![("version", env!("CARGO_PKG_VERSION")), ("arch", std::env::consts::ARCH)]),
    );
    registry.register("flows", "Flows that are known, by where they stand", flows(knowledge));
    let dropped = Counter::<u64>::default();
    dropped.inc_by(knowledge.lost.lost_events);
    registry.register(
        "ringbuf_dropped",
        "Events of telemetry for which this server's ring had no room",
        dropped,
    );
    let unobserved = Counter::<f64, AtomicU64>::default();
    unobserved.inc_by(knowledge.lost.unobserved_us as f64 / 1e6);
    registry.register_with_unit(
        "unobserved",
        "Time of which telemetry told nothing",
        Unit::Seconds,
        unobserved,
    );
    attached(&mut registry, knowledge);

    let exits = &knowledge.exits;
    let mut add = |name: &str, help: &str, unit: Option<Unit>, histograms: &Histograms| {
        registry_add(&mut registry, name, help, unit, histograms.clone());
    };
    add("slow_start_exit_cwnd", "Window at the end of the first slow start", Some(Unit::Bytes), &exits.cwnd);
    add(
        "slow_start_duration",
        "From the first data to the end of the first slow start",
        Some(Unit::Seconds),
        &exits.duration,
    );
    add(
        "slow_start_exit",
        "Window at the end of slow start over the bandwidth-delay product: highest rate of a round times minimum RTT, when the flow ends",
        Some(Unit::Ratios),
        &exits.ratio,
    );
    add(
        "slow_start_exit_accuracy",
        "Threshold at the end of slow start over the window before the first loss after it",
        Some(Unit::Ratios),
        &exits.accuracy,
    );
    add(
        "rtt_inflation",
        "RTT over minimum RTT at the end of slow start",
        Some(Unit::Ratios),
        &exits.inflation,
    );
    add(
        "retransmit",
        "Bytes sent again over bytes sent, when the flow ends",
        Some(Unit::Ratios),
        &exits.retransmitted,
    );
    add(
        "slow_start_exit_regret",
        "Time lost by leaving slow start before the window carried what the path gave, when the flow ends",
        Some(Unit::Seconds),
        &exits.regret,
    );
    registry
}

fn registry_add(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>, metric: impl Metric) {
    match unit {
        // OpenMetrics calls it ratio, the crate ratios.
        Some(Unit::Ratios) => registry.register_with_unit(name, help, Unit::Other("ratio".into()), metric),
        Some(unit) => registry.register_with_unit(name, help, unit, metric),
        None => registry.register(name, help, metric),
    }
}

fn flows(knowledge: &Knowledge) -> Family<Labels, Gauge> {
    let mut counts = BTreeMap::<(&str, &str), i64>::new();
    for known in knowledge.flows.values() {
        *counts.entry((&known.row.algorithm, &known.row.state)).or_default() += 1;
    }
    let family = Family::<Labels, Gauge>::default();
    for ((algorithm, state), flows) in counts {
        family.get_or_create(&vec![("cc", control(algorithm)), ("state", state.into())]).set(flows);
    }
    family
}

/// What the kernel counts for each attachment.
fn attached(registry: &mut Registry, knowledge: &Knowledge) {
    let info = Family::<Labels, Gauge>::default();
    let exits = Family::<Labels, Counter>::default();
    let undone = Family::<Labels, Counter>::default();
    let started = Family::<Labels, Counter>::default();
    let stateless = Family::<Labels, Counter>::default();
    let failures = Family::<Labels, Counter>::default();
    let guards = Family::<Labels, Gauge>::default();
    let compared = Family::<Labels, Counter>::default();
    let again = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    let goodput = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    let report: Value = serde_json::from_str(&knowledge.attached).unwrap_or_default();
    for row in report["algorithms"].as_array().into_iter().flatten() {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| row[name].as_u64().unwrap_or_default();
        let cc = text("congestion_control");
        let of = |name: &'static str, value: String| vec![("cc", cc.clone()), (name, value)];
        let labels =
            vec![("cc", cc.clone()), ("version", text("version")), ("generation", text("generation"))];
        info.get_or_create(&labels).set(1);
        exits.get_or_create(&of("reason", "closed".into())).inc_by(number("ended_in_slow_start"));
        for (reason, flows) in row["exits"].as_object().into_iter().flatten() {
            exits.get_or_create(&of("reason", reason.clone())).inc_by(flows.as_u64().unwrap_or_default());
        }
        undone.get_or_create(&vec![("cc", cc.clone())]).inc_by(number("exits_undone"));
        started.get_or_create(&vec![("cc", cc.clone())]).inc_by(number("flows_started"));
        stateless.get_or_create(&vec![("cc", cc.clone())]).inc_by(number("flows_without_state"));
        failures.get_or_create(&vec![("cc", cc.clone())]).inc_by(number("state_failures"));
        let guard = &row["guard"];
        if guard.is_object() {
            let tripped = !guard["tripped"].is_null();
            guards.get_or_create(&vec![("cc", cc.clone())]).set(tripped.into());
            for arm in ["treated", "control"] {
                let labels = of("arm", arm.into());
                compared.get_or_create(&labels).inc_by(guard[arm]["flows"].as_u64().unwrap_or_default());
                if let Some(percent) = guard[arm]["retransmit_ratio_pct"].as_f64() {
                    again.get_or_create(&labels).set(percent / 100.0);
                }
                if let Some(rate) = guard[arm]["goodput_bps"].as_f64() {
                    goodput.get_or_create(&labels).set(rate / 8.0);
                }
            }
        }
    }
    registry.register("attached_info", "What is attached", info);
    registry.register(
        "slow_start_exits",
        "Ended flows that had state by why their first slow start ended; closed: it did not",
        exits,
    );
    registry.register("slow_start_exits_undone", "Exits that proved spurious, of ended flows", undone);
    registry.register("flows_started", "Connections that came to the control", started);
    registry.register(
        "flows_without_state",
        "Ended connections that had no state: they sent no more than a first window, or the base ran alone",
        stateless,
    );
    registry.register(
        "state_failures",
        "Acknowledgements at which there was no memory for a flow's state: the base runs alone",
        failures,
    );
    registry.register("guard_tripped", "1: the guard has found harm, and the base runs alone", guards);
    registry.register("guard_flows", "Ended flows that the guard compares", compared);
    registry.register(
        "guard_retransmit_ratio",
        "Mean share of a compared flow's bytes that was sent again",
        again,
    );
    registry.register(
        "guard_goodput_bytes_per_second",
        "Geometric mean of the goodput of compared flows",
        goodput,
    );
}
