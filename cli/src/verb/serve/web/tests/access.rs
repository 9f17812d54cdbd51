//! Who may read, over TLS and without, and those who are slow. Time is tokio's own: it passes where nothing else happens,
//! and no client waits for it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{Answer, Server, left, listed};
use crate::verb::serve::setup;
use crate::verb::serve::token::Token;
use crate::verb::serve::web::connections::Connections;
use crate::verb::serve::web::guard::Policy;
use crate::verb::serve::web::hub::Hub;
use crate::verb::serve::web::{load, server};
use crate::verb::serve::wire::{BrokerMessage, Refusal, encode};

const READ: &str = "reading-0123456789";
const WRITE: &str = "writing-0123456789";

fn hub(read: Option<&str>, tls: bool) -> Hub {
    let read = read.map(|token| Token::new(token).unwrap());
    let hub = Hub::new(Policy { read, tls, ..Policy::default() }, true);
    hub.receive(listed(vec![left()]));
    hub.receive(BrokerMessage::Attached(json!({"schema": 1, "algorithms": [], "consumers": []}).to_string()));
    hub
}

/// A connection to a server that knows a flow.
fn connect(hub: &Hub, tls: Option<TlsAcceptor>) -> DuplexStream {
    let (ours, theirs) = duplex(64 << 10);
    let place = Connections::default().take(None).unwrap();
    tokio::spawn(server::secured(theirs, tls, server::router(hub.clone()), place));
    ours
}

/// What comes until the connection is closed.
async fn rest(mut from: impl AsyncReadExt + Unpin) -> Answer {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes).await;
    Answer(String::from_utf8_lossy(&bytes).into_owned())
}

async fn ask(hub: &Hub, line: &str, headers: &str) -> Answer {
    let mut stream = connect(hub, None);
    let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test(start_paused = true)]
async fn reading_takes_the_token_of_reading_at_every_path_but_the_page() {
    let hub = hub(Some(READ), false);
    let paths = [
        "/api/about",
        "/api/flows",
        "/api/flows/1",
        "/api/status",
        "/api/list",
        "/api/live",
        "/metrics",
        "/api/none",
    ];
    let wrong = [
        String::new(),
        bearer(""),
        bearer(WRITE),
        bearer(&READ[1..]),
        bearer(&format!("{READ}x")),
        format!("Authorization: Basic {READ}\r\n"),
        format!("Cookie: token={READ}\r\n"),
        // Which of the two would be meant?
        bearer(READ).repeat(2),
    ];
    for path in paths {
        for headers in &wrong {
            let answer = ask(&hub, &format!("GET {path}"), headers).await;
            assert!(answer.refused(401).contains("--read-token-file"), "{path} {headers}");
            assert!(answer.head().contains("www-authenticate: bearer"), "{path} {headers}");
        }
        assert_eq!(ask(&hub, &format!("GET {path}?token={READ}"), "").await.status(), 401, "{path}");
    }
    for path in ["/api/about", "/api/flows", "/api/status", "/metrics"] {
        let answer = ask(&hub, &format!("GET {path}"), &bearer(READ)).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    for path in ["/", "/app.js", "/api/openapi.json"] {
        assert_ne!(ask(&hub, &format!("GET {path}"), "").await.status(), 401, "{path}");
    }
    // Probes know neither token nor name, and learn nothing.
    let mut probe = connect(&hub, None);
    probe
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: probe.example\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let healthy = rest(probe).await;
    assert_eq!((healthy.status(), healthy.body()), (200, "ok\n"));
    ask(&hub, "POST /healthz", "").await.refused(405);
    // Another site's page is refused before it could try tokens.
    let site = "Sec-Fetch-Site: cross-site\r\n";
    ask(&hub, "GET /api/flows", site).await.refused(403);
    // That of a server that was started again with another one.
    let again = self::hub(Some(&READ.replace('0', "9")), false);
    ask(&again, "GET /api/flows", &bearer(READ)).await.refused(401);
}

#[test]
fn a_page_whose_token_is_refused_says_so_when_it_asks_again() {
    let read = Some(Token::new(READ).unwrap());
    let server = Server::guarded(Policy { read, ..Policy::default() }, false);
    let Some(mut script) = load::script("token.mjs", server.address) else { return };
    assert!(script.arg(READ).status().unwrap().success(), "web/tests/token.mjs says what was wrong");
}

#[tokio::test(start_paused = true)]
async fn the_right_to_read_is_none_to_write() {
    let hub = hub(Some(READ), false);
    let (broker, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let follows = tokio::spawn({
        let hub = hub.clone();
        async move { hub.follow_broker(theirs).await }
    });
    let body = "{\"algorithm\":\"search\",\"settings\":[\"threshold_pct=30\"]}";
    let headers = |token: &str| {
        format!("{token}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let answer = ask(&hub, "POST /api/tune", &headers("")).await;
    assert!(answer.refused(401).contains("--write-token-file"));
    // The web part does not know the token of writing: it hands on what it is given, and the broker compares.
    let given = headers(&bearer(READ));
    let asked = ask(&hub, "POST /api/tune", &given);
    let compared = async {
        let mut broker = tokio::net::UnixStream::from_std({
            broker.set_nonblocking(true).unwrap();
            broker
        })
        .unwrap();
        let mut received = Vec::new();
        while !received.windows(READ.len()).any(|bytes| bytes == READ.as_bytes()) {
            broker.read_buf(&mut received).await.unwrap();
        }
        let answer = BrokerMessage::Answer(1, Err(Refusal::Token));
        broker.write_all(&encode(&answer).unwrap()).await.unwrap();
        broker
    };
    let (answer, _broker) = tokio::join!(asked, compared);
    assert!(answer.refused(401).contains("--write-token-file"));
    follows.abort();
}

/// A client that trusts this certificate alone.
fn connector(certificate: CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()).into()
}

#[tokio::test(start_paused = true)]
async fn by_tls_it_is_as_without_and_plain_requests_get_nothing() {
    let (certificate, tls) = setup::tests::own();
    let acceptor = TlsAcceptor::from(tls.config().unwrap());
    let hub = hub(Some(READ), true);
    let get = async |headers: &str| {
        let stream = connect(&hub, Some(acceptor.clone()));
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector(certificate.clone()).connect(name, stream).await.unwrap();
        let request =
            format!("GET /api/flows HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(stream).await
    };
    assert_eq!(get(&bearer(READ)).await.json()["total"], 1);
    get("").await.refused(401);
    assert_eq!(get(&format!("{}Origin: https://localhost\r\n", bearer(READ))).await.status(), 200);
    // Who stands in between can put anything into a page that comes unencrypted.
    get(&format!("{}Origin: http://localhost\r\n", bearer(READ))).await.refused(403);

    // A client cannot take another server for this one.
    let (other, _) = setup::tests::own();
    let stream = connect(&hub, Some(acceptor.clone()));
    let name = ServerName::try_from("localhost").unwrap();
    assert!(connector(other).connect(name, stream).await.is_err());

    let begun = Instant::now();
    let mut plain = connect(&hub, Some(acceptor.clone()));
    plain
        .write_all(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer(READ)).as_bytes())
        .await
        .unwrap();
    let answer = rest(plain).await;
    assert!(!answer.0.contains("HTTP/"), "{answer:?}");
    assert_eq!(begun.elapsed(), Duration::ZERO, "at once");
    // A handshake that does not go on.
    for beginning in [&b""[..], b"\x16\x03\x01\x02"] {
        let begun = Instant::now();
        let mut silent = connect(&hub, Some(acceptor.clone()));
        silent.write_all(beginning).await.unwrap();
        assert_eq!(rest(silent).await.0, "");
        assert_eq!(begun.elapsed().as_secs(), 10, "{beginning:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_process_is_waited_for_without_end() {
    let hub = hub(None, false);
    // Nothing, half of a head, and heads of which a byte comes now and then.
    for beginning in ["", "GET /api/flows HTTP/1.1\r\nHost: loc", "GET / HTTP/1.1\r\nHost: localhost\r\n"] {
        for every in [Duration::from_secs(60), Duration::from_millis(900)] {
            let begun = Instant::now();
            let (from, mut to) = tokio::io::split(connect(&hub, None));
            to.write_all(beginning.as_bytes()).await.unwrap();
            let dripping = async {
                loop {
                    tokio::time::sleep(every).await;
                    if to.write_all(b"x").await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            let answer = tokio::select! {
                answer = rest(from) => answer,
                () = dripping => unreachable!(),
            };
            assert!([0, 408].contains(&answer.status()), "{beginning:?}: {answer:?}");
            assert_eq!(begun.elapsed().as_secs(), 10, "{beginning:?} {every:?}");
        }
    }
    // A second request that does not come, and a body that comes to half.
    for (request, after, statuses) in [
        ("GET /api/about HTTP/1.1\r\nHost: localhost\r\n\r\n", 10, [200, 200]),
        (
            "POST /api/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\nAuthorization: Bearer x\r\n\r\n{",
            15,
            [400, 408],
        ),
    ] {
        let begun = Instant::now();
        let mut slow = connect(&hub, None);
        slow.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(slow).await;
        assert!(statuses.contains(&answer.status()), "{answer:?}");
        assert!(
            (after..=after + 10).contains(&begun.elapsed().as_secs()),
            "{request}: {:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_looks_like_a_script_comes_back_as_what_no_browser_runs() {
    let hub = hub(None, false);
    let script = "</script><img src=x onerror=alert(1)>";
    let status = json!({"schema": 1, "algorithms": [{"parameter_sets": [{"profile": script}]}], "consumers": [{"name": script}]});
    hub.receive(BrokerMessage::Attached(status.to_string()));
    let encoded = "%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    for path in [
        "/api/status".to_owned(),
        format!("/api/{encoded}"),
        format!("/{encoded}"),
        format!("/api/flows/{encoded}"),
        format!("/api/flows?sort={encoded}"),
        format!("/api/flows?filter={encoded}"),
        format!("/api/live?{encoded}=1"),
    ] {
        let answer = ask(&hub, &format!("GET {path}"), "").await;
        let head = answer.head();
        assert!(head.contains("content-type: application/json\r\n"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        let policy =
            head.lines().find(|line| line.starts_with(header::CONTENT_SECURITY_POLICY.as_str())).unwrap();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }
}
