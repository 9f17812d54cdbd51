//! Connections: how slow, how large.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::socket::{AddressFamily, SockaddrLike, SockaddrStorage, getsockname, setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

use super::answer::Problem;
use super::connections::{Connections, Place};
use super::hub::Hub;
use super::{api, assets, guard, live, metrics, recordings};

/// Until a request's head is there, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Until an answer begins, the request's body included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long sent data may stay unacknowledged, or a full window closed.
const UNREAD_TIMEOUT_MS: u32 = 30_000;
/// A request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// A request's body.
const BODY_BYTES_MAX: usize = 16 << 10;
/// After connections could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Everything that is served.
pub(super) fn router(hub: Hub) -> Router {
    Router::new()
        .route("/api/about", get(api::about))
        .route("/api/flows", get(api::flows))
        .route("/api/flows/{flow}", get(api::flow))
        .route("/api/status", get(api::status))
        .route("/api/list", get(api::list))
        .route("/api/live", get(live::live))
        .route("/api/openapi.json", get(api::document))
        .route("/api/tune", post(api::tune))
        .route("/api/recordings", post(recordings::open).layer(DefaultBodyLimit::disable()))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(api::healthy))
        .route("/", get(assets::index))
        .route("/{file}", get(assets::file))
        .fallback(api::nothing)
        .method_not_allowed_fallback(api::no_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(in_time))
        .layer(middleware::from_fn_with_state(hub.policy.clone(), guard::guard))
        .with_state(hub)
}

async fn in_time(request: axum::extract::Request, next: Next) -> Response {
    match tokio::time::timeout(ANSWER_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(StatusCode::REQUEST_TIMEOUT, "it took too long").into_response(),
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Serves on a listening socket.
pub(super) async fn run(socket: OwnedFd, tls: Option<TlsAcceptor>, hub: Hub) -> anyhow::Result<()> {
    let address: SockaddrStorage = getsockname(socket.as_raw_fd())?;
    let listener = if address.family() == Some(AddressFamily::Unix) {
        let listener = std::os::unix::net::UnixListener::from(socket);
        listener.set_nonblocking(true)?;
        Listener::Unix(UnixListener::from_std(listener)?)
    } else {
        let listener = std::net::TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        Listener::Tcp(TcpListener::from_std(listener)?)
    };
    let router = router(hub);
    let connections = Connections::default();
    loop {
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, peer)| {
                let Some(place) = connections.take(Some(peer.ip())) else { return };
                // Without it a reader who does not read would stay for good.
                let _ = setsockopt(&stream, sockopt::TcpUserTimeout, &UNREAD_TIMEOUT_MS);
                let _ = stream.set_nodelay(true);
                tokio::spawn(secured(stream, tls.clone(), router.clone(), place));
            }),
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                let Some(place) = connections.take(None) else { return };
                tokio::spawn(secured(stream, None, router.clone(), place));
            }),
        };
        if let Err(error) = accepted {
            tracing::debug!("cannot take a connection: {error}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Serves a connection, by TLS if there is a certificate, for as long as it has its place.
pub(super) async fn secured<S>(stream: S, tls: Option<TlsAcceptor>, router: Router, place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let served = async {
        let Some(tls) = tls else { return connection(stream, router, &place).await };
        match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => connection(stream, router, &place).await,
            Ok(Err(error)) => tracing::debug!("a handshake has failed: {error}"),
            Err(_) => tracing::debug!("a handshake takes too long"),
        }
    };
    tokio::select! {
        () = served => {}
        () = place.evicted() => tracing::debug!("a connection is closed for another one"),
    }
}

async fn connection<S>(stream: S, router: Router, place: &Place)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .half_close(false);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request| {
        let busy = place.asks();
        let answered = router.call(request);
        async move { answered.await.map(|response| busy.answers(response)) }
    });
    let served = http.serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!("a connection has ended: {error}");
    }
}
