//! Pushes metrics and the ends of flows to an OTLP receiver over HTTP, as JSON. What it does not take waits, but not
//! without bound.

mod encode;
mod outbox;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::uri::{Authority, Scheme, Uri};
use axum::http::{Request, StatusCode};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::hub::Hub;
use super::metrics;
pub(super) use outbox::Outbox;

/// Between two looks for flows that have ended.
const EVERY: Duration = Duration::from_secs(1);
/// Between two pushes of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// Between two tries, after many that failed.
const PAUSE_MAX: Duration = Duration::from_secs(64);
/// How long a push may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Flows in one push.
const BATCH: usize = 512;

/// A receiver: `http://HOST:PORT`, and a path that is put before `/v1/metrics` and `/v1/logs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receiver {
    authority: Authority,
    base: String,
}

/// Reads a receiver's address.
pub(crate) fn receiver(text: &str) -> Result<Receiver, String> {
    let wrong =
        |why: &str| format!("{text:?} is no receiver: {why}; write for instance http://127.0.0.1:4318");
    let uri: Uri = text.parse().map_err(|_| wrong("it is no address"))?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(scheme) if *scheme == Scheme::HTTPS => {
            return Err(wrong("onramp speaks no TLS there, so give a collector on this host, which may"));
        }
        _ => return Err(wrong("it does not begin with http://")),
    }
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(|| wrong("it names no host"))?.clone();
    if uri.query().is_some() {
        return Err(wrong("it has a query"));
    }
    Ok(Receiver { authority, base: uri.path().trim_end_matches('/').to_owned() })
}

impl fmt::Display for Receiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.base)
    }
}

impl Receiver {
    /// The port of OTLP over HTTP is 4318.
    pub async fn connect(&self) -> io::Result<tokio::net::TcpStream> {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        tokio::net::TcpStream::connect((host, self.authority.port_u16().unwrap_or(4318))).await
    }
}

/// What has become of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pushed {
    Taken,
    /// It is not understood, and will not be.
    Refused,
    /// To be tried again.
    Failed,
}

/// Pushes for as long as it is polled, over connections that are made by `connect`.
pub(super) async fn push<S>(hub: &Hub, to: &Receiver, connect: impl AsyncFn() -> io::Result<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    hub.knowledge().exits.outbox = Some(Outbox::default());
    let resource = encode::resource(&host());
    let mut metrics_at = Instant::now();
    let mut failures = 0;
    loop {
        tokio::time::sleep((EVERY * (1 << failures)).min(PAUSE_MAX)).await;
        let mut pushed = push_flows(hub, to, &resource, &connect).await;
        if pushed != Pushed::Failed && metrics_at <= Instant::now() {
            let families = metrics::families(&hub.knowledge());
            let body = encode::metrics(&resource, &families, hub.epoch, now_ns());
            pushed = post(to, "/v1/metrics", &body, &connect).await;
            metrics_at = Instant::now() + METRICS_EVERY;
        }
        failures = if pushed == Pushed::Failed { (failures + 1).min(6) } else { 0 };
    }
}

/// Everything that waits, in batches.
async fn push_flows<S>(
    hub: &Hub,
    to: &Receiver,
    resource: &Value,
    connect: &impl AsyncFn() -> io::Result<S>,
) -> Pushed
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let rows = match &mut hub.knowledge().exits.outbox {
            Some(outbox) => outbox.take(BATCH),
            None => return Pushed::Taken,
        };
        if rows.is_empty() {
            return Pushed::Taken;
        }
        let now = now_ns();
        let body = encode::flows(resource, &rows, now, now.saturating_sub(monotonic_ns()));
        let pushed = post(to, "/v1/logs", &body, connect).await;
        if let Some(outbox) = &mut hub.knowledge().exits.outbox {
            match pushed {
                Pushed::Taken => outbox.taken(rows.len()),
                Pushed::Refused => outbox.dropped(rows.len()),
                Pushed::Failed => outbox.put_back(rows),
            }
        }
        if pushed == Pushed::Failed {
            return pushed;
        }
    }
}

async fn post<S>(to: &Receiver, path: &str, body: &Value, connect: &impl AsyncFn() -> io::Result<S>) -> Pushed
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match tokio::time::timeout(PATIENCE, answer(to, path, body, connect)).await {
        Ok(Ok(status)) if status.is_success() => Pushed::Taken,
        Ok(Ok(StatusCode::TOO_MANY_REQUESTS)) => Pushed::Failed,
        Ok(Ok(status)) if status.is_client_error() => {
            tracing::debug!("the OTLP receiver answers {status} to {path}");
            Pushed::Refused
        }
        Ok(Ok(_)) | Err(_) => Pushed::Failed,
        Ok(Err(error)) => {
            tracing::debug!("cannot push to {}: {error}", to.authority);
            Pushed::Failed
        }
    }
}

async fn answer<S>(
    to: &Receiver,
    path: &str,
    body: &Value,
    connect: &impl AsyncFn() -> io::Result<S>,
) -> anyhow::Result<StatusCode>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(connect().await?)).await?;
    let request = Request::post(format!("{}{path}", to.base))
        .header(header::HOST, to.authority.as_str())
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Body::from(body.to_string()))?;
    let mut answered = pin!(sender.send_request(request));
    tokio::select! {
        answer = &mut answered => Ok(answer?.status()),
        // The answer may have been the last that it said.
        ended = connection => {
            ended?;
            Ok(answered.await?.status())
        }
    }
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The clock of flows' times.
fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}
