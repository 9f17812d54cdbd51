//! The web part over real sockets, with a broker that knows what a test says. Nothing here needs a privilege, and nothing
//! that is asserted depends on how long something takes.

mod access;
mod flows;
mod metrics;
mod schema;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use onramp_loader::ExitReason;
use onramp_loader::abi::ExitRecord;
use onramp_recording::rows::ExitRecordRow;
use serde_json::Value;

use super::guard::Policy;
use super::hub::Hub;
use super::server;
use crate::verb::serve::confine;
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::{BrokerMessage, LENGTH, Lost, Refusal, Request, decode, encode};

/// Of a server whose broker accepts it.
pub(super) const TOKEN: &str = "0123456789abcdef";
/// No answer may keep a test waiting for longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server in a thread, which ends with this.
pub(super) struct Server {
    pub address: SocketAddr,
    broker: UnixStream,
    /// What the web part has asked for.
    asked: mpsc::Receiver<Request>,
}

pub(super) fn row(flow: u64, remote: &str, algorithm: &'static str) -> FlowSummary {
    let remote: SocketAddr = remote.parse().unwrap();
    FlowSummary {
        flow,
        netns: 1,
        local_address: "192.0.2.1".parse().unwrap(),
        local_port: 40_000,
        remote_address: remote.ip(),
        remote_port: remote.port(),
        algorithm: algorithm.into(),
        parameter_set: 0,
        parameters_generation: 0,
        state: "slow_start".into(),
        idle: false,
        started_us: 1_000_000,
        at_us: 2_000_000,
        cwnd_segments: 10,
        ssthresh_segments: None,
        in_flight_segments: 5,
        mss_bytes: 1448,
        rtt_us: Some(50_000),
        min_rtt_us: Some(50_000),
        rate_bps: Some(1_000_000),
        rate_max_bps: Some(1_000_000),
        bdp_bytes: Some(6_250),
        bdp_at_least: false,
        acknowledged_bytes: 1_000 * flow,
        sent_bytes: None,
        retransmitted_bytes: 0,
        loss_cwnd_segments: None,
        exit: None,
        regret: None,
        limited: Some("slow_start".into()),
    }
}

/// One that has exited slow start.
pub(super) fn left() -> FlowSummary {
    let mut left = row(1, "198.51.100.7:443", "search");
    let record = ExitRecord {
        at_us: 350_000,
        bytes_acked: 1_840_000,
        window: 640,
        window_after: 640,
        in_flight: 600,
        mss: 1_448,
        rtt_us: 75_000,
        min_rtt_us: 50_000,
        reason: ExitReason::Algorithm as u8,
        ..ExitRecord::default()
    };
    left.exit = Some(ExitRecordRow::new(&record));
    left
}

pub(super) fn listed(rows: Vec<FlowSummary>) -> BrokerMessage {
    BrokerMessage::Flows { rows, gone: Vec::new(), lost: Lost { lost_events: 3, unobserved_us: 0 } }
}

impl Server {
    pub fn start(writable: bool) -> Self {
        let policy = Policy { allowed: vec!["onramp.example.net".into()], ..Policy::default() };
        Self::guarded(policy, writable)
    }

    /// One that shows recordings alone.
    pub fn offline() -> Self {
        Self::new(Policy::default(), false, true, true)
    }

    /// One that is not confined, as on a kernel that confines nothing.
    pub fn unconfined() -> Self {
        Self::new(Policy::default(), true, false, false)
    }

    fn guarded(policy: Policy, writable: bool) -> Self {
        Self::new(policy, writable, false, true)
    }

    /// `confined`: its thread, and those that it starts, as the web part is.
    fn new(policy: Policy, writable: bool, offline: bool, confined: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (broker, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            if confined {
                confine::web();
            }
            runtime.block_on(async {
                let mut hub = Hub::new(policy, writable);
                hub.offline = offline;
                let served = tokio::spawn(server::run(listener.into(), None, hub.clone()));
                hub.follow_broker(theirs).await.unwrap();
                served.abort();
            });
        });
        let (sender, asked) = mpsc::channel();
        let mut requests = broker.try_clone().unwrap();
        let mut answers = broker.try_clone().unwrap();
        thread::spawn(move || {
            let mut head = [0; LENGTH];
            while requests.read_exact(&mut head).is_ok() {
                let mut frame = vec![0; u32::from_le_bytes(head) as usize];
                requests.read_exact(&mut frame).unwrap();
                let request: Request = decode(&frame).unwrap();
                if let Request::Tune { number, token, .. } = &request {
                    let answer = if token == TOKEN { Ok("{\"done\":1}".into()) } else { Err(Refusal::Token) };
                    answers.write_all(&encode(&BrokerMessage::Answer(*number, answer)).unwrap()).unwrap();
                }
                let _ = sender.send(request);
            }
        });
        let mut server = Self { address, broker, asked };
        assert!(matches!(server.asked.recv_timeout(TIMEOUT), Ok(Request::Leave(0))), "it listens");
        server.say(&BrokerMessage::Attached(r#"{"schema": 1, "algorithms": [], "consumers": []}"#.into()));
        server
    }

    /// A server that knows these flows.
    fn with(rows: Vec<FlowSummary>, writable: bool) -> Self {
        let mut server = Self::start(writable);
        let flows = rows.len();
        server.say(&listed(rows));
        while server.get("/api/flows").json()["total"] != flows {}
        server
    }

    fn say(&mut self, message: &BrokerMessage) {
        self.broker.write_all(&encode(message).unwrap()).unwrap();
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends this and reads all that comes until the connection is closed.
    pub fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn ask(&self, line: &str, headers: &str, body: &str) -> Answer {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        self.raw(format!("{line} HTTP/1.1\r\n{headers}{length}Connection: close\r\n\r\n{body}").as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "Host: localhost\r\n", "")
    }

    fn tune(&self, headers: &str, body: &str) -> Answer {
        let headers = format!("Host: localhost\r\nContent-Type: application/json\r\n{headers}");
        self.ask("POST /api/tune", &headers, body)
    }

    /// Events, from the first on, and what follows them.
    pub fn live(&self, path: &str, headers: &str) -> Events {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").unwrap();
        Events(BufReader::new(stream))
    }
}

#[derive(Debug)]
pub(super) struct Answer(String);

impl Answer {
    /// 0: it was closed without an answer.
    pub fn status(&self) -> u16 {
        self.0.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
    }

    fn head(&self) -> String {
        self.0.split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
    }

    pub fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().1
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(self.body()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It says why, in the schema of everything else.
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.status(), status, "{self:?}");
        assert_eq!(self.json()["schema"], 1);
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

pub(super) struct Events(BufReader<TcpStream>);

/// Name, id, data.
pub(super) type ServerEvent = (String, String, Value);

impl Events {
    fn next(&mut self) -> ServerEvent {
        let (mut name, mut id) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the answer ended");
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                // The id comes after the data.
                let data = serde_json::from_str(data).unwrap();
                let mut after = String::new();
                self.0.read_line(&mut after).unwrap();
                if let Some(event) = after.strip_prefix("id: ") {
                    event.trim().clone_into(&mut id);
                }
                return (name, id, data);
            }
        }
    }

    pub fn named(&mut self, name: &str) -> ServerEvent {
        loop {
            let event = self.next();
            if event.0 == name {
                return event;
            }
        }
    }
}

#[test]
fn a_name_of_another_site_that_leads_here_is_refused() {
    let server = Server::start(true);
    for host in
        ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", "192.0.2.1", "a@localhost", ""]
    {
        for line in ["GET /", "GET /api/flows", "GET /metrics", "GET /api/live", "POST /api/tune"] {
            let answer = server.ask(line, &format!("Host: {host}\r\n"), "");
            assert_eq!(answer.status(), 421, "{host} {line}: {answer:?}");
        }
    }
    assert_eq!(server.ask("GET /api/flows", "", "").status(), 421, "no name at all");
    assert_eq!(server.ask("GET /api/flows", "Host: localhost\r\nHost: localhost\r\n", "").status(), 421);
    assert_eq!(server.ask("GET http://evil.example/api/flows", "Host: localhost\r\n", "").status(), 421);
    for host in ["localhost", "127.0.0.1:1", "[::1]:99", "onramp.example.net"] {
        assert_eq!(server.ask("GET /api/flows", &format!("Host: {host}\r\n"), "").status(), 200, "{host}");
    }
}

#[test]
fn pages_of_other_sites_can_neither_read_nor_write() {
    let server = Server::start(true);
    let body = r#"{"algorithm":"fixed","settings":["exit_window_bytes=1"]}"#;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for origin in
        ["http://evil.example", "http://localhost.evil.example", "null", "http://localhost:81", "file://"]
    {
        let origin = format!("Origin: {origin}\r\n");
        server.tune(&format!("{origin}{token}"), body).refused(403);
        server.ask("GET /api/flows", &format!("Host: localhost\r\n{origin}"), "").refused(403);
    }
    for site in ["cross-site", "same-site"] {
        let site = format!("Sec-Fetch-Site: {site}\r\n");
        server.tune(&format!("{site}{token}"), body).refused(403);
        server.ask("GET /api/flows", &format!("Host: localhost\r\n{site}"), "").refused(403);
    }
    assert!(server.asked.try_recv().is_err(), "the broker was asked for nothing");
    // A form of another site cannot send this type; no request is allowed beforehand.
    let plain = server.ask(
        "POST /api/tune",
        &format!("Host: localhost\r\nContent-Type: text/plain\r\n{token}"),
        body,
    );
    assert_eq!(plain.status(), 415, "{plain:?}");
    let before = "Host: localhost\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
    assert_eq!(server.ask("OPTIONS /api/tune", before, "").status(), 403);
    let own = "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(server.tune(&format!("{own}{token}"), body).status(), 200);
    // A link may open the page, and nothing but the page.
    let link = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_ne!(server.ask("GET /", link, "").status(), 403);
    assert_eq!(server.ask("GET /api/flows", link, "").status(), 403);
}

#[test]
fn every_answer_forbids_browsers_what_it_can() {
    let server = Server::start(false);
    for path in ["/", "/api/flows", "/api/tune", "/nothing", "/api/flows?sort=no", "/metrics"] {
        let answer = server.get(path);
        let head = answer.head();
        for wanted in [
            "content-security-policy: default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(wanted), "{path}: {head}");
        }
        assert!(!head.contains("access-control-"), "{path}: {head}");
        assert!(!head.contains("content-type: text/html") || path == "/", "{path}: {head}");
    }
}

#[test]
fn nothing_is_changed_without_the_token() {
    let body = r#"{"algorithm":"fixed","settings":["exit_window_bytes=1"]}"#;
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    let server = Server::start(true);
    for wrong in [
        String::new(),
        "Authorization: Bearer \r\n".into(),
        format!("Authorization: Bearer {TOKEN}x\r\n"),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Authorization: {TOKEN}\r\n"),
        format!("X-Token: {TOKEN}\r\n"),
        format!("Cookie: token={TOKEN}\r\n"),
    ] {
        let answer = server.tune(&wrong, body);
        assert!(answer.refused(401).contains("--write-token-file"), "{wrong}");
        assert!(answer.head().contains("www-authenticate: bearer"), "{wrong}");
    }
    assert_eq!(
        server.ask(&format!("POST /api/tune?token={TOKEN}"), "Host: localhost\r\n", body).status(),
        401
    );
    assert_eq!(server.get("/api/tune").refused(405), "/api/tune is not asked for in this way");
    assert_eq!(server.tune(&right, body).json()["done"], 1);

    let read_only = Server::start(false);
    assert!(read_only.tune(&right, body).refused(403).contains("changes nothing"));
    assert!(read_only.asked.try_recv().is_err(), "the broker was asked for nothing");
}

#[test]
fn what_is_too_large_or_broken_is_refused_and_the_server_lives() {
    let server = Server::with(vec![row(1, "198.51.100.7:443", "fixed")], true);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let long = "x".repeat(20_000);
    assert_eq!(server.get(&format!("/api/flows?filter={}", "x".repeat(5_000))).status(), 414);
    assert!([414, 431].contains(&server.get(&format!("/{long}")).status()));
    let header = server.ask("GET /api/flows", &format!("Host: localhost\r\nX-Long: {long}\r\n"), "");
    assert_eq!(header.status(), 431, "{header:?}");
    let many: String = (0..100).map(|number| format!("X-{number}: 1\r\n")).collect();
    assert_eq!(server.ask("GET /api/flows", &format!("Host: localhost\r\n{many}"), "").status(), 431);
    let body = format!(r#"{{"algorithm":"fixed","settings":["{long}"]}}"#);
    assert_eq!(
        server.tune(&token, &body).refused(413),
        "Failed to buffer the request body: length limit exceeded"
    );
    for body in ["{", "[]", "{}", "null", r#"{"algorithm":"fixed"}"#, r#"{"algorithm":1,"settings":[]}"#] {
        assert!([400, 422].contains(&server.tune(&token, body).status()), "{body}");
    }
    let unknown = r#"{"algorithm":"fixed","settings":[],"colour":"red"}"#;
    assert!(server.tune(&token, unknown).refused(422).contains("`colour`"));
    for broken in [
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\0\0\0\0\0\0\0\0\r\n\r\n",
        "GET /api/flows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "POST /api/tune HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        "GET /api/flows HTTP/1.1\r\nHost: local\0host\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ] {
        let answer = server.raw(broken.as_bytes());
        assert!(answer.status() == 0 || answer.status() >= 400, "{broken:?}: {answer:?}");
    }
    for (query, said) in [
        ("filter=dst+10.0.0.0/33", "0 to 32"),
        ("filter=colour+red", "not understood"),
        ("sort=colour", "unknown variant `colour`"),
        ("colour=red", "unknown field `colour`"),
        ("limit=0", "1 to 10000"),
        ("limit=10001", "1 to 10000"),
        ("limit=-1", "1 to 10000"),
    ] {
        assert!(server.get(&format!("/api/flows?{query}")).refused(400).contains(said), "{query}");
        assert!(server.get(&format!("/api/live?{query}")).refused(400).contains(said), "{query}");
    }
    for path in ["/../etc/passwd", "/%2e%2e%2fetc%2fpasswd", "/api/flows/9", "/api/flows/x", "/api/nothing"] {
        server.get(path).refused(404);
    }
    assert_eq!(server.get("/api/flows").json()["total"], 1);
}

#[test]
fn the_slow_and_the_idle_keep_no_client_out() {
    let server = Server::start(false);
    // More than there is room for: half say nothing, half begin a request that they never end.
    let idle: Vec<TcpStream> = (0..500).map(|_| server.connect()).collect();
    for (mut stream, number) in idle.iter().zip(0..) {
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /api/flows HTTP/1.1\r\nHost: loc");
        }
    }
    assert_eq!(server.get("/api/flows").status(), 200);
    // The first of them were given up.
    let mut first = &idle[0];
    let mut bytes = Vec::new();
    let _ = first.read_to_end(&mut bytes);
    let answer = Answer(String::from_utf8_lossy(&bytes).into_owned());
    assert!([0, 408].contains(&answer.status()), "{answer:?}");
}

#[test]
fn connections_that_ask_now_and_then_keep_no_client_out() {
    let server = Server::start(false);
    let ask = |stream: &mut BufReader<TcpStream>| {
        write!(stream.get_mut(), "GET /api/about HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            length = line
                .to_ascii_lowercase()
                .strip_prefix("content-length: ")
                .map_or(length, |length| length.trim().parse().unwrap());
        }
        stream.read_exact(&mut vec![0; length]).ok()
    };
    let mut asking: Vec<_> = (0..256).map(|_| BufReader::new(server.connect())).collect();
    assert!(asking.iter_mut().all(|stream| ask(stream).is_some()));
    // All places are taken, and the first asks again.
    assert!(ask(&mut asking[0]).is_some());
    for closed in 1..=3 {
        let mut new = BufReader::new(server.connect());
        assert!(ask(&mut new).is_some());
        assert!(ask(&mut asking[closed]).is_none(), "it was idle for longest");
        asking.push(new);
    }
    assert_eq!(server.get("/metrics").status(), 200);
    assert!(ask(&mut asking[0]).is_some() && ask(&mut asking[255]).is_some());
    // Requests that are never whole are no better.
    let mut unfinished: Vec<TcpStream> = (0..600).map(|_| server.connect()).collect();
    for stream in &mut unfinished {
        let head = "POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\nx";
        let _ = stream.write_all(head.as_bytes());
    }
    assert_eq!(server.get("/metrics").status(), 200);
}

#[test]
fn who_is_refused_keeps_no_connection() {
    let server = Server::start(true);
    for (request, status) in [
        ("GET /api/flows HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("GET /api/flows HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403),
        (
            "POST /api/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer x\r\nContent-Length: 34\r\n\r\n{\"algorithm\":\"best\",\"settings\":[]}",
            401,
        ),
    ] {
        // Though it would be kept, it is read to its end.
        let answer = server.raw(request.as_bytes());
        assert_eq!(answer.status(), status, "{answer:?}");
        assert!(answer.head().contains("\r\nconnection: close"), "{answer:?}");
    }
}

#[test]
fn no_more_browsers_are_reported_live_than_there_is_room_for() {
    let mut server = Server::start(false);
    server.say(&listed(vec![row(1, "198.51.100.7:443", "fixed")]));
    let mut live: Vec<Events> = (0..super::hub::LIVE_MAX).map(|_| server.live("/api/live", "")).collect();
    for events in &mut live {
        events.named("flows");
    }
    assert!(server.get("/api/live").refused(503).contains("64 browsers"));
    assert_eq!(server.get("/api/flows").status(), 200);
}
