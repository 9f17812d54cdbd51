//! The JSON API; `openapi.json` has the paths and fields.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query as Parameters, State};
use axum::http::header::HeaderMap;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use onramp_loader::algorithm;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Problem, json, raw_json};
use super::guard::bearer;
use super::hub::{ClientCursor, Hub, Open};
use super::query::{Count, Query, Wanted};
use crate::live::{Bucket, Change, Incident};
use crate::output::Output;
use crate::verb::list::Listing;
use crate::verb::serve::privileges::{Confinement, confinement};
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::{Histories, Lost, Refusal, Tuning};

/// The parameters of a request, or what is wrong with them.
pub(super) fn wanted(
    hub: &Hub,
    query: Result<Parameters<Query>, QueryRejection>,
) -> Result<(Hub, Wanted, Option<u64>), Problem> {
    let refuse = |text: String| Problem::new(StatusCode::BAD_REQUEST, text);
    let Parameters(query) = query.map_err(|rejection| refuse(rejection.body_text()))?;
    let flow = query.flow;
    let hub = hub.recordings.find(query.recording.as_deref(), hub)?;
    Ok((hub, query.wanted().map_err(refuse)?, flow))
}

/// What a server is, for its page.
#[derive(Serialize)]
struct About {
    version: &'static str,
    epoch: u64,
    writable: bool,
    /// Of the web part.
    confinement: Confinement,
    offline: bool,
}

/// `GET /api/about`
pub(super) async fn about(State(hub): State<Hub>) -> Response {
    let Hub { epoch, writable, offline, .. } = hub;
    json(&About { version: env!("CARGO_PKG_VERSION"), epoch, writable, confinement: confinement(), offline })
}

#[derive(Serialize)]
struct Listed<'a> {
    total: usize,
    matched: usize,
    #[serde(flatten)]
    lost: Lost,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Count>,
    flows: Vec<&'a FlowSummary>,
}

/// `GET /api/flows`
pub(super) async fn flows(
    State(hub): State<Hub>,
    query: Result<Parameters<Query>, QueryRejection>,
) -> Result<Response, Problem> {
    let (hub, wanted, _) = wanted(&hub, query)?;
    let state = hub.state();
    let found = wanted.find(&state);
    let total = state.flows.len();
    Ok(json(&Listed {
        total,
        matched: found.matched,
        lost: state.lost,
        groups: found.groups,
        flows: found.rows,
    }))
}

/// A flow in detail, or what is new of it.
#[derive(Serialize)]
pub(super) struct Detailed<'a> {
    #[serde(flatten)]
    row: &'a FlowSummary,
    /// Why rounds only are reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds_only: Option<&'a str>,
    evidence: &'a RawValue,
    beginning: Past,
    life: Past,
    recent: Option<Past>,
    /// Those from this number on are new.
    incidents_from: usize,
    incidents: &'a [Incident],
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<&'a RawValue>,
}

/// Buckets by columns, from number `first` on; what was sent of another generation is void.
#[derive(Serialize)]
struct Past {
    generation: u32,
    first: u64,
    oldest: u64,
    at_us: Vec<u64>,
    until_us: Vec<u64>,
    cwnd_segments: Vec<u32>,
    cwnd_min_segments: Vec<u32>,
    cwnd_max_segments: Vec<u32>,
    ssthresh_segments: Vec<Option<u32>>,
    in_flight_segments: Vec<u32>,
    in_flight_min_segments: Vec<u32>,
    in_flight_max_segments: Vec<u32>,
    rtt_us: Vec<Option<u32>>,
    rtt_min_us: Vec<Option<u32>>,
    rtt_max_us: Vec<Option<u32>>,
    rate_bps: Vec<Option<u64>>,
    acknowledged_bytes: Vec<u64>,
    sent_bytes: Vec<u64>,
    window_end_bytes: Vec<Option<u64>>,
    pacing_rate_bps: Vec<Option<u64>>,
    watched: Vec<Option<u32>>,
    limit: Vec<Option<u32>>,
}

impl Past {
    fn new(change: &Change) -> Self {
        fn column<T>(change: &Change, value: impl Fn(&Bucket) -> T) -> Vec<T> {
            change.buckets.iter().map(value).collect()
        }
        Self {
            generation: change.generation,
            first: change.first,
            oldest: change.oldest,
            at_us: column(change, |bucket| bucket.first_us),
            until_us: column(change, |bucket| bucket.last.at_us),
            cwnd_segments: column(change, |bucket| bucket.last.cwnd),
            cwnd_min_segments: column(change, |bucket| bucket.cwnd.min),
            cwnd_max_segments: column(change, |bucket| bucket.cwnd.max),
            ssthresh_segments: column(change, |bucket| bucket.last.ssthresh),
            in_flight_segments: column(change, |bucket| bucket.last.in_flight),
            in_flight_min_segments: column(change, |bucket| bucket.in_flight.min),
            in_flight_max_segments: column(change, |bucket| bucket.in_flight.max),
            rtt_us: column(change, |bucket| bucket.last.rtt_us),
            rtt_min_us: column(change, |bucket| bucket.rtt_us.map(|span| span.min)),
            rtt_max_us: column(change, |bucket| bucket.rtt_us.map(|span| span.max)),
            rate_bps: column(change, |bucket| bucket.last.rate_bps),
            acknowledged_bytes: column(change, |bucket| bucket.last.acknowledged_bytes),
            sent_bytes: column(change, |bucket| bucket.last.sent_bytes),
            window_end_bytes: column(change, |bucket| bucket.last.window_end_bytes),
            pacing_rate_bps: column(change, |bucket| bucket.last.pacing_bps),
            watched: column(change, |bucket| bucket.last.watched),
            limit: column(change, |bucket| bucket.last.limit),
        }
    }
}

/// What is new of a flow to a client that knows its past up to here; it knows it then. `None`: the broker has sent
/// nothing yet.
pub(super) fn detailed(row: &FlowSummary, open: &Open, known: &mut ClientCursor) -> Option<String> {
    let evidence: &RawValue = serde_json::from_str(&open.evidence).ok()?;
    let Histories { beginning, life, recent } = &open.histories;
    let new = known.histories.advance(beginning, life, recent.as_ref());
    let incidents_from = std::mem::replace(&mut known.incidents, open.incidents.len());
    let changed = std::mem::replace(&mut known.shadow_version, open.shadow_version) != open.shadow_version;
    let shadow = open.shadow.as_deref().filter(|_| changed);
    Output::document_text(&Detailed {
        row,
        rounds_only: open.rounds_only.as_deref(),
        evidence,
        beginning: Past::new(&new.beginning),
        life: Past::new(&new.life),
        recent: new.recent.as_ref().map(Past::new),
        incidents_from,
        incidents: open.incidents.get(incidents_from..).unwrap_or_default(),
        shadow: shadow.and_then(|shadow| serde_json::from_str(shadow).ok()),
    })
    .ok()
}

/// Whose flow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    recording: Option<String>,
}

/// `GET /api/flows/{flow}`
pub(super) async fn flow(
    State(hub): State<Hub>,
    Path(flow): Path<String>,
    of: Result<Parameters<Of>, QueryRejection>,
) -> Result<Response, Problem> {
    let Parameters(of) =
        of.map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let hub = hub.recordings.find(of.recording.as_deref(), &hub)?;
    let none = || Problem::new(StatusCode::NOT_FOUND, format!("there is no flow {flow:?}"));
    let id = flow.parse().map_err(|_| none())?;
    // Changes are looked for before the flow is asked about, so that none is missed.
    let mut changes = hub.changes();
    let look = hub.look_at(id, false).ok_or_else(none)?;
    loop {
        {
            let state = hub.state();
            let known = state.flows.get(&look.flow).ok_or_else(none)?;
            let open = state.open.get(&look.flow).ok_or_else(none)?;
            if open.version > 0
                && let Some(text) = detailed(&known.row, open, &mut ClientCursor::default())
            {
                return Ok(raw_json(text));
            }
        }
        changes.changed().await.map_err(|_| none())?;
    }
}

/// `GET /api/status`
pub(super) async fn status(State(hub): State<Hub>) -> Result<Response, Problem> {
    let mut changes = hub.changes();
    loop {
        let attached = hub.state().attached.clone();
        if !attached.is_empty() {
            return Ok(raw_json(attached));
        }
        // The server has only begun.
        let ending = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending");
        changes.changed().await.map_err(ending)?;
    }
}

/// `GET /healthz`: this process answers, and nothing else.
pub(super) async fn healthy() -> &'static str {
    "ok\n"
}

/// `GET /api/list`
pub(super) async fn list(State(hub): State<Hub>) -> Response {
    // What is registered is known from the broker: this process opens no file.
    let status = serde_json::from_str::<Value>(&hub.state().attached).unwrap_or_default();
    let rows = status["algorithms"].as_array();
    let registered =
        |control: &str| rows.is_some_and(|rows| rows.iter().any(|row| row["congestion_control"] == control));
    json(&Listing::new(algorithm::all(), registered, |_| None))
}

/// What this API is, for programs that read that.
pub(super) const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// `GET /api/openapi.json`
pub(super) async fn document() -> Response {
    raw_json(DOCUMENT.to_owned())
}

/// `POST /api/tune`
pub(super) async fn tune(
    State(hub): State<Hub>,
    headers: HeaderMap,
    body: Result<Json<Tuning>, JsonRejection>,
) -> Result<Response, Problem> {
    if !hub.writable {
        return Err(Refusal::ReadOnly.into());
    }
    let token = bearer(&headers).ok_or(Refusal::Token)?.to_owned();
    let Json(tuning) = body.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
    Ok(raw_json(hub.tune(token, tuning).await?))
}

/// Every other path.
pub(super) async fn nothing(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

/// Paths that are there, with another method.
pub(super) async fn no_method(uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} is not asked for in this way", uri.path()))
}
