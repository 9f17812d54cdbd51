//! Who may ask: names of this server, pages of this server; and what browsers are asked to forbid.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::Problem;
use crate::verb::serve::token::Token;

/// Longest path with its query.
const PATH_MAX: usize = 4096;

/// Liveness, for probes: they know neither a name of this server nor a token, and learn nothing but that it answers.
const HEALTH: &str = "/healthz";

/// What answers carry: nothing from elsewhere is loaded, no other page frames or reads them.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Answers after which the connection is closed: a client that gets them is no reader of this server.
const CLOSED: [StatusCode; 4] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::MISDIRECTED_REQUEST,
];

/// A host name or address for --allow-host, without a port.
pub(crate) fn host_name(text: &str) -> Result<String, String> {
    match text.parse::<Authority>() {
        Ok(authority) if authority.port().is_none() && authority.host() == text && !text.is_empty() => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(format!(
            "{text:?} is no name of a host: write for instance onramp.example.net, without a port"
        )),
    }
}

/// The names that this server goes by, and who may read.
#[derive(Default)]
pub(super) struct Policy {
    /// Next to `localhost` and loopback addresses, which it may be forwarded to.
    pub allowed: Vec<String>,
    /// Its address, unless it is a UNIX socket.
    pub address: Option<SocketAddr>,
    /// Browsers reach it by TLS alone.
    pub tls: bool,
    /// What reading takes.
    pub read: Option<Token>,
}

impl Policy {
    fn cursor(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let user = authority.as_str().contains('@');
        let own = address.is_ok_and(|address| address.to_canonical().is_loopback() || self.listens(address));
        !user && (own || host == "localhost" || self.allowed.contains(&host))
    }

    /// No name of another site is an address.
    fn listens(&self, address: IpAddr) -> bool {
        let own = self.address.map(|own| own.ip()).filter(|_| !address.is_unspecified());
        own.is_some_and(|own| own.is_unspecified() || own == address)
    }

    /// Whether a request is for this server, from one of its own pages or from none, and may read.
    fn check(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let refuse = |status, text: &str| Err(Problem::new(status, text));
        if request.uri().path_and_query().is_some_and(|path| path.as_str().len() > PATH_MAX) {
            return refuse(StatusCode::URI_TOO_LONG, "the address is too long");
        }
        if request.uri().path() == HEALTH {
            return Ok(());
        }
        // Another site's name that leads here (DNS rebinding) is still another site's.
        let host = only(headers, header::HOST).and_then(|host| host.parse::<Authority>().ok());
        let Some(host) = host.filter(|host| self.cursor(host)) else {
            return refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "this server does not go by that name: ask for localhost, or start it with --allow-host NAME",
            );
        };
        if request.uri().authority().is_some_and(|other| *other != host) {
            return refuse(StatusCode::MISDIRECTED_REQUEST, "the request names two hosts");
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, header::ORIGIN).and_then(|origin| origin.split_once("://"));
            let same = origin.is_some_and(|(scheme, authority)| {
                (scheme == "https" || scheme == "http" && !self.tls)
                    && authority.eq_ignore_ascii_case(host.as_str())
            });
            if !same {
                return refuse(StatusCode::FORBIDDEN, "pages of other sites may not ask this server");
            }
        }
        // A link from elsewhere may open the page; nothing of elsewhere may read or write.
        let opens = request.method() == Method::GET
            && request.uri().path() == "/"
            && only(headers, HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
        match only(headers, HeaderName::from_static("sec-fetch-site")) {
            None | Some("same-origin" | "none") => {}
            Some(_) if opens => {}
            Some(_) => return refuse(StatusCode::FORBIDDEN, "pages of other sites may not ask this server"),
        }
        if let Some(token) = self.read.as_ref().filter(|_| reads(request.uri().path()))
            && !bearer(headers).is_some_and(|given| token.is(given))
        {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: send `Authorization: Bearer TOKEN` with what is in the file of --read-token-file",
            );
        }
        Ok(())
    }
}

/// Whether a request needs the token of reading: everything but the page, which is no secret, the API's document, and
/// what takes that of writing.
fn reads(path: &str) -> bool {
    let api = path.starts_with("/api/") && path != "/api/openapi.json" && path != "/api/tune";
    api || path == "/metrics"
}

/// The token that a request gives.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    only(headers, header::AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// The value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Around every answer.
pub(super) async fn guard(State(policy): State<Arc<Policy>>, request: Request, next: Next) -> Response {
    let mut response = match policy.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if CLOSED.contains(&response.status()) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_known() {
        let policy = Policy { allowed: vec!["onramp.example.net".into()], ..Policy::default() };
        let cursor = |text: &str| text.parse().is_ok_and(|authority| policy.cursor(&authority));
        for own in
            ["localhost", "LOCALHOST:9000", "127.0.0.1:8090", "127.3.2.1", "[::1]:1", "onramp.example.net"]
        {
            assert!(cursor(own), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "user@localhost",
            "192.0.2.1",
            "[::]:8090",
            "0.0.0.0",
            "example.net",
        ] {
            assert!(!cursor(other), "{other}");
        }
    }

    #[test]
    fn the_address_that_is_listened_at_is_known_and_of_all_of_them_each() {
        let cursor = |own: &str, host: &str| {
            let policy = Policy { address: own.parse().ok(), ..Policy::default() };
            policy.cursor(&host.parse().unwrap())
        };
        assert!(cursor("192.0.2.1:8443", "192.0.2.1:8443") && cursor("[2001:db8::1]:1", "[2001:db8::1]"));
        assert!(cursor("0.0.0.0:8443", "192.0.2.1:8443") && cursor("[::]:8443", "[2001:db8::1]:8443"));
        for (own, other) in [
            ("192.0.2.1:8443", "192.0.2.2:8443"),
            ("192.0.2.1:8443", "evil.example:8443"),
            ("0.0.0.0:8443", "0.0.0.0:8443"),
            ("0.0.0.0:8443", "evil.example"),
            ("[::]:8443", "192.0.2.1.evil.example"),
        ] {
            assert!(!cursor(own, other), "{own} {other}");
        }
    }

    #[test]
    fn a_name_to_allow_is_a_name() {
        assert_eq!(host_name("Onramp.Example.net").as_deref(), Ok("onramp.example.net"));
        for wrong in ["", "a:80", "http://a", "a/b", "user@a"] {
            assert!(host_name(wrong).is_err(), "{wrong}");
        }
    }
}
