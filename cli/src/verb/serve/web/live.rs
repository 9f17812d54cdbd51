//! `GET /api/live`: server-sent events. What a slow reader has missed comes together when it reads again: nothing waits
//! for it but what it does not know yet.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query as Parameters, State};
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::answer::Problem;
use super::api::{detailed, wanted};
use super::hub::{ClientCursor, Hub, LIVE_MAX, Look};
use super::population::population;
use super::query::{Count, Query, Wanted};
use crate::output::Output;
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::Lost;

/// After which a browser asks again.
const RETRY: Duration = Duration::from_secs(1);
/// Silence after which a sign of life is sent.
const SILENCE: Duration = Duration::from_secs(10);

/// What has changed in the list.
#[derive(Serialize)]
struct Listed<'a> {
    /// Everything: what was known before is void.
    full: bool,
    total: usize,
    matched: usize,
    #[serde(flatten)]
    lost: Lost,
    /// Unless they are as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a [Count]>,
    /// The list's flows in order, unless it is as before: their ids as text, as in addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<String>>,
    /// Those of the list that are new or have changed.
    flows: Vec<&'a FlowSummary>,
}

/// What one browser knows.
struct Reader {
    hub: Hub,
    changes: watch::Receiver<u64>,
    wanted: Wanted,
    /// A flow to be reported in detail, and whether it is known not to be there.
    flow: Option<u64>,
    look: Option<Look>,
    missed: bool,
    ready: VecDeque<Event>,
    flows_version: u64,
    attached_version: u64,
    detail_version: u64,
    order: Vec<u64>,
    groups: Vec<Count>,
    known: HashSet<u64>,
    cursor: ClientCursor,
    begun: bool,
    _permit: OwnedSemaphorePermit,
}

/// `GET /api/live`
pub(super) async fn live(
    State(hub): State<Hub>,
    headers: HeaderMap,
    query: Result<Parameters<Query>, QueryRejection>,
) -> Result<Response, Problem> {
    let main = hub;
    let (hub, wanted, flow) = wanted(&main, query)?;
    let permit = main.live.clone().try_acquire_owned().map_err(|_| {
        let text = format!("{LIVE_MAX} browsers get live events already, which is the maximum");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
    })?;
    let changes = hub.changes();
    let mut reader = Reader {
        changes,
        flow,
        look: None,
        missed: false,
        ready: VecDeque::new(),
        flows_version: 0,
        attached_version: 0,
        detail_version: 0,
        order: Vec::new(),
        groups: Vec::new(),
        known: HashSet::new(),
        cursor: ClientCursor::default(),
        begun: false,
        wanted,
        hub,
        _permit: permit,
    };
    reader.resume(headers.get("last-event-id").and_then(|id| id.to_str().ok()));
    let events = stream::unfold(reader, async |mut reader| {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    Ok(Sse::new(events).into_response())
}

impl Reader {
    /// Goes on where an interrupted answer ended: `EPOCH-VERSION`. Only if the whole list had been sent: which of a
    /// longer one the browser has is not known.
    fn resume(&mut self, last: Option<&str>) {
        let Some((epoch, version)) = last.and_then(|last| last.split_once('-')) else { return };
        let (Ok(epoch), Ok(version)) = (epoch.parse::<u64>(), version.parse::<u64>()) else { return };
        let state = self.hub.state();
        let found = self.wanted.find(&state);
        if epoch != self.hub.epoch || version > state.version || found.matched > found.rows.len() {
            return;
        }
        self.known =
            state.flows.iter().filter(|(_, one)| one.version <= version).map(|(id, _)| *id).collect();
        self.flows_version = version;
        self.begun = true;
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.changes.mark_unchanged();
            self.find();
            self.collect();
            if self.ready.is_empty() {
                match tokio::time::timeout(SILENCE, self.changes.changed()).await {
                    Ok(changed) => changed.ok()?,
                    Err(_) => return Some(Event::default().comment("")),
                }
            }
        }
    }

    /// Everything that the browser does not know yet.
    fn collect(&mut self) {
        let hub = self.hub.clone();
        let state = hub.state();
        if !self.begun || state.flows_version > self.flows_version {
            let found = self.wanted.find(&state);
            let order: Vec<u64> = found.rows.iter().map(|row| row.flow).collect();
            let since = self.flows_version;
            let new = |row: &&&FlowSummary| {
                !self.known.contains(&row.flow)
                    || state.flows.get(&row.flow).is_some_and(|one| one.version > since)
            };
            let flows: Vec<&FlowSummary> = found.rows.iter().filter(new).copied().collect();
            let text = |order: &Vec<u64>| order.iter().map(u64::to_string).collect();
            let listed = Listed {
                full: !self.begun,
                total: state.flows.len(),
                matched: found.matched,
                lost: state.lost,
                groups: (!self.begun || found.groups != self.groups).then_some(&found.groups),
                order: (!self.begun || order != self.order).then(|| text(&order)),
                flows,
            };
            let update = event("flows", Output::document_text(&listed).ok());
            let id = format!("{}-{}", hub.epoch, state.version);
            self.ready.extend(update.map(|update| update.id(id).retry(RETRY)));
            if self.wanted.query.population {
                let population = population(&self.wanted, &state);
                self.ready.extend(event("population", Output::document_text(&population).ok()));
            }
            self.known = order.iter().copied().collect();
            self.order = order;
            self.groups = found.groups;
            self.flows_version = state.version;
            self.begun = true;
        }
        if state.attached_version > self.attached_version {
            self.attached_version = state.attached_version;
            self.ready.extend(event("attached", Some(state.attached.clone())));
        }
        let Some(flow) = self.flow else { return };
        if let Some(open) = state.open.get(&flow).filter(|open| open.version > self.detail_version)
            && let Some(known) = state.flows.get(&flow)
        {
            self.detail_version = open.version;
            self.ready.extend(event("flow", detailed(&known.row, open, &mut self.cursor)));
        }
    }

    /// Looks at the flow as soon as it is known; after the server has begun anew that takes its next acknowledgment.
    fn find(&mut self) {
        let Some(flow) = self.flow else { return };
        if self.look.is_some() && !self.hub.state().flows.contains_key(&flow) {
            self.look = None;
        }
        if self.look.is_none() {
            self.look = self.hub.look_at(flow, true);
            self.cursor = ClientCursor::default();
            let missed = self.look.is_none();
            if missed && !self.missed {
                self.ready.extend(event("gone", Some("{}".into())));
            }
            self.missed = missed;
        }
    }
}

fn event(name: &str, text: Option<String>) -> Option<Event> {
    Some(Event::default().event(name).data(text?))
}
