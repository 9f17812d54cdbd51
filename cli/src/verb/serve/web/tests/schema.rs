//! The API against its own document, `openapi.json`: generated requests, good and bad, to every path, and every answer
//! compared with what the document says.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use axum::body::{Body, to_bytes};
use axum::http::{Request as HttpRequest, header};
use futures_util::StreamExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use jsonschema::Validator;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{TOKEN, left, listed, row};
use crate::live::{Cursor, History, Incident, Point};
use crate::verb::others::OtherFlow;
use crate::verb::serve::others::Others;
use crate::verb::serve::web::api::DOCUMENT;
use crate::verb::serve::web::guard::Policy;
use crate::verb::serve::web::hub::Hub;
use crate::verb::serve::web::server;
use crate::verb::serve::wire::{
    BrokerMessage, Detail, Histories, LENGTH, Refusal, Request, Tuning, decode, encode,
};

/// What a body is made of when it is not made of a valid one.
const BODIES: [&str; 3] = [
    r#"{"algorithm":"search","settings":["threshold_pct=30"]}"#,
    r#"{"algorithm":"fixed","profile":"geo","settings":["exit_window_bytes=1","a=b"],"dry_run":true}"#,
    r#"{"algorithm":"best","profile":null,"settings":[],"dry_run":false}"#,
];

/// The document, and validators of its schemas, which here know all fields that there are.
struct Document {
    all: Value,
    validators: RefCell<BTreeMap<String, Validator>>,
}

impl Document {
    fn read() -> Self {
        let mut all: Value = serde_json::from_str(DOCUMENT).unwrap();
        let schemas = all["components"]["schemas"].as_object_mut().unwrap();
        schemas.values_mut().for_each(close);
        Self { all, validators: RefCell::default() }
    }

    fn operations(&self) -> Vec<Operation> {
        let paths = self.all["paths"].as_object().unwrap().iter();
        let methods = |(path, methods): (&String, &Value)| -> Vec<Operation> {
            let one = |(method, said): (&String, &Value)| Operation {
                path: path.clone(),
                method: method.to_ascii_uppercase(),
                parameters: said["parameters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|one| self.follow(one))
                    .collect(),
                said: said.clone(),
            };
            methods.as_object().unwrap().iter().map(one).collect()
        };
        paths.flat_map(methods).collect()
    }

    fn follow(&self, one: &Value) -> Value {
        let pointer = one["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer
            .map_or(one, |pointer| self.all.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")))
            .clone()
    }

    /// What does not agree with a schema, which may be a reference.
    fn errors(&self, schema: &Value, instance: &Value) -> Vec<String> {
        let mut validators = self.validators.borrow_mut();
        let validator = validators.entry(schema.to_string()).or_insert_with(|| {
            let whole = json!({"allOf": [schema], "components": self.all["components"]});
            jsonschema::draft202012::new(&whole).unwrap()
        });
        validator.iter_errors(instance).map(|error| format!("{error} at {}", error.instance_path())).collect()
    }
}

/// No field but the documented ones.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("unevaluatedProperties".into(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}

#[derive(Clone, Debug)]
struct Operation {
    path: String,
    method: String,
    parameters: Vec<Value>,
    said: Value,
}

/// What must come of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    Refusal,
    Either,
}

impl Expected {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Refusal, _) | (_, Self::Refusal) => Self::Refusal,
            (Self::Success, Self::Success) => Self::Success,
            _ => Self::Either,
        }
    }
}

/// A value for a parameter, made of a number and of a text, and what must come of it.
fn value(schema: &Value, number: u16, text: &str) -> (String, Expected) {
    let pick = |all: &Vec<Value>| all[usize::from(number / 2) % all.len()].as_str().unwrap().to_owned();
    let good = number.is_multiple_of(2);
    if let Some(names) = schema["enum"].as_array() {
        let there = names.iter().any(|name| name == text);
        return match good {
            true => (pick(names), Expected::Success),
            false => (text.into(), if there { Expected::Success } else { Expected::Refusal }),
        };
    }
    match schema["type"].as_str().unwrap() {
        "boolean" if good => (number.is_multiple_of(4).to_string(), Expected::Success),
        "boolean" if matches!(text, "true" | "false") => (text.into(), Expected::Success),
        "boolean" => (text.into(), Expected::Refusal),
        "integer" => {
            let (least, most) =
                (schema["minimum"].as_u64().unwrap(), schema["maximum"].as_u64().unwrap_or(u64::MAX));
            let within = |number: &u64| (least..=most).contains(number);
            match text.parse::<u64>() {
                _ if good => (least.max(u64::from(number) % (most - 1)).to_string(), Expected::Success),
                // Rust reads +7 and 007 too.
                Ok(number) if within(&number) => (text.into(), Expected::Either),
                _ => (text.into(), Expected::Refusal),
            }
        }
        "string" if good => (pick(schema["examples"].as_array().unwrap()), Expected::Success),
        "string" => (text.into(), Expected::Either),
        other => panic!("{other}"),
    }
}

/// As in an address.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() { char::from(byte).into() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

/// What a request is made of.
#[derive(Clone, Debug)]
struct Draw {
    operation: u16,
    /// Which parameter, and what its value is made of.
    parameters: Vec<(u16, u16, String)>,
    body: String,
    method: u8,
    headers: u8,
}

fn draws() -> impl Strategy<Value = Draw> {
    // Longer addresses are none for hyper.
    let text = onramp_mutation::fragment().prop_map(|text| text.chars().take(3_000).collect());
    let parameter = (any::<u16>(), any::<u16>(), text);
    (any::<u16>(), vec(parameter, 0..4), onramp_mutation::text(&BODIES), any::<u8>(), any::<u8>()).prop_map(
        |(operation, parameters, body, method, headers)| Draw {
            operation,
            parameters,
            body,
            method,
            headers,
        },
    )
}

impl Draw {
    fn request(&self, document: &Document, operation: &Operation) -> (HttpRequest<Body>, Expected) {
        let mut expected = Expected::Success;
        let mut path = operation.path.clone();
        let mut query = BTreeMap::new();
        let mut request = HttpRequest::builder().header(header::HOST, "localhost");
        for (which, number, text) in &self.parameters {
            let known = operation.parameters.get(usize::from(*which) % (operation.parameters.len() + 1));
            let Some(parameter) = known else {
                // Only those who take a query look at it.
                let unknown = !operation.parameters.is_empty();
                query.insert(format!("x{text}"), text.clone());
                expected = expected.and(if unknown { Expected::Refusal } else { Expected::Success });
                continue;
            };
            let (text, so) = value(&parameter["schema"], *number, text);
            let name = parameter["name"].as_str().unwrap();
            // None was opened.
            let so = if name == "recording" { Expected::Refusal } else { so };
            match parameter["in"].as_str().unwrap() {
                "query" if query.contains_key(name) => {}
                "path" if !path.contains('{') => {}
                "query" => {
                    query.insert(name.to_owned(), text);
                    expected = expected.and(so);
                }
                "path" => {
                    path = path.replace(&format!("{{{name}}}"), &encoded(&text));
                    // There are two flows.
                    let there = matches!(text.parse::<u64>(), Ok(1 | 2));
                    expected = expected.and(if there { so } else { Expected::Refusal });
                }
                _ if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
                    request = request.header(name, text);
                }
                _ => {}
            }
        }
        path = path.replace("{flow}", "1");
        let pairs: Vec<String> =
            query.iter().map(|(name, text)| format!("{}={}", encoded(name), encoded(text))).collect();
        if !pairs.is_empty() {
            path = format!("{path}?{}", pairs.join("&"));
        }
        if path.len() > 4096 {
            expected = Expected::Refusal;
        }
        let mut method = operation.method.as_str();
        if self.method < 16 {
            method = ["PUT", "DELETE", "PATCH", "OPTIONS"][usize::from(self.method % 4)];
            expected = Expected::Refusal;
        }
        let mut body = Body::empty();
        let wanted = &operation.said["requestBody"]["content"];
        if wanted["multipart/form-data"].is_object() {
            let part = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"acks.csv\"\r\n\r\n";
            body = Body::from(format!("{part}{}\r\n--x--\r\n", self.body));
            request = request.header(header::CONTENT_TYPE, "multipart/form-data; boundary=x");
            expected = Expected::Refusal;
        }
        if wanted["application/json"].is_object() {
            let schema = &wanted["application/json"]["schema"];
            let good = serde_json::from_str::<Value>(&self.body)
                .is_ok_and(|body| document.errors(schema, &body).is_empty());
            // Of a name that is there twice the validator sees one, and of a struct serde reads a list.
            let strict = serde_json::from_str::<Tuning>(&self.body).is_ok();
            let small = self.body.len() <= 16 << 10;
            expected = expected.and(match good && small {
                true if strict => Expected::Success,
                true => Expected::Either,
                false => Expected::Refusal,
            });
            body = Body::from(self.body.clone());
            let kind = if self.headers & 7 == 1 { "text/plain" } else { "application/json" };
            let token = if self.headers & 7 == 2 { "wrong" } else { TOKEN };
            request = request.header(header::CONTENT_TYPE, kind);
            if self.headers & 7 != 3 {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            if matches!(self.headers & 7, 1..=3) {
                expected = Expected::Refusal;
            }
        }
        (request.method(method).uri(path).body(body).unwrap(), expected)
    }
}

/// A hub with two flows and an attachment, and a broker that answers and does all requests.
fn hub() -> (Hub, UnixStream) {
    let hub = Hub::new(Policy::default(), true);
    hub.receive(listed(vec![left(), row(2, "[2001:db8::7]:443", "best")]));
    let other = OtherFlow::example("192.0.2.1:443", "198.51.100.7:50000", "cubic", 2_000_000);
    hub.receive(BrokerMessage::Attached(
        json!({"schema": 1, "algorithms": [{
            "algorithm": "search", "congestion_control": "onramp_search", "state": "unreadable", "explanation": "why",
        }], "unreadable": {"reason": "locked", "error": "why", "last_read_us": null},
        "confinement": {"seccomp": true, "landlock": "none"}, "consumers": [{
            "name": "serve", "pid": 7, "level": "round", "sampling": 1, "ring_bytes": 16, "lost_events": 3, "unobserved_us": 0,
        }], "selection": {"active": true, "rules": 1, "first": ["dst 198.51.100.0/24"]},
        "others": Others::new(vec![other], false)})
        .to_string(),
    ));
    let (mut broker, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let mut head = [0; LENGTH];
        while broker.read_exact(&mut head).is_ok() {
            let mut frame = vec![0; u32::from_le_bytes(head) as usize];
            broker.read_exact(&mut frame).unwrap();
            let message = match decode(&frame).unwrap() {
                Request::Follow { flow, acks } => BrokerMessage::Detail(Box::new(detail(flow, acks))),
                Request::Tune { number, token, tuning } => {
                    BrokerMessage::Answer(number, tuned(&token, tuning))
                }
                Request::Leave(_) => continue,
            };
            if broker.write_all(&encode(&message).unwrap()).is_err() {
                return;
            }
        }
    });
    (hub, theirs)
}

fn detail(flow: u64, acks: bool) -> Detail {
    let mut history = History::whole(16);
    for at_us in [10_000, 30_000, 50_000] {
        history.add(Point { at_us, rtt_us: (at_us > 10_000).then_some(7), ..Point::default() });
    }
    let (life, _) = history.since(Cursor::default());
    let evidence = json!({"schema": 1, "parameters": {"threshold_pct": 26, "exit_action": "hold"},
        "exports": {"norm_pct": 3, "acked": [1, 2]}, "units": {"norm_pct": "%"},
        "picture": {"title": "norm", "gauge": {"value_pct": 3, "threshold_pct": 26, "highest_below_pct": 9}, "lines": [], "bars": [1], "bars_unit": "bytes"},
        "track": {"title": "norm", "unit": "percent", "limit_title": "threshold"}});
    let incidents =
        Incident { at_us: 7, what: "recovery".into(), acknowledged_bytes: 1, retransmitted_bytes: 2 };
    let shadow = json!({"given": null, "findings": [{"algorithm": "best", "exit": {"ack": 3,
        "reason": "algorithm", "at_us": 9, "since_start_us": 2, "acknowledged_bytes": 1, "cwnd_segments": 10, "window_bytes": 10_000,
        "in_flight_segments": 9, "rtt_us": 7, "min_rtt_us": 7, "ssthresh_segments": null, "target_segments": null},
        "regret": null, "continuation": [[2, 10_000], [9, 20_000]], "last_outcome": "grow"}]});
    Detail {
        flow,
        rounds_only: (!acks).then(|| "it has ended".into()),
        evidence: evidence.to_string(),
        histories: Histories { beginning: life.clone(), recent: acks.then(|| life.clone()), life },
        incidents: vec![incidents],
        shadow: Some(shadow.to_string()),
    }
}

fn tuned(token: &str, tuning: Tuning) -> Result<String, Refusal> {
    if token != TOKEN {
        return Err(Refusal::Token);
    }
    if tuning.settings.is_empty() {
        return Err(Refusal::Usage("give settings".into()));
    }
    let report = json!({"schema": 1, "algorithm": tuning.algorithm, "profile": "standard", "parameters_generation": 1,
        "dry_run": tuning.dry_run, "changed": [{"name": "threshold_pct", "unit": "%", "before": 26, "after": 30}],
        "parameters": {"threshold_pct": 30}, "telemetry_max": "ack", "undo": "onramp tune search threshold_pct=26"});
    Ok(report.to_string())
}

/// What comes back, as far as it is to be compared: of events the first ones.
async fn answer(hub: &Hub, request: HttpRequest<Body>) -> (u16, String, String) {
    let response = TowerToHyperService::new(server::router(hub.clone())).call(request).await.unwrap();
    let status = response.status().as_u16();
    let kind = response.headers().get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
    let kind = kind.split(';').next().unwrap().to_owned();
    let body = response.into_body();
    let body = if kind == "text/event-stream" {
        let mut pieces = body.into_data_stream();
        pieces.next().await.unwrap().unwrap().to_vec()
    } else {
        to_bytes(body, usize::MAX).await.unwrap().to_vec()
    };
    (status, kind, String::from_utf8(body).unwrap())
}

#[test]
fn generated_requests_are_answered_as_the_document_says() {
    let document = Document::read();
    let operations = document.operations();
    let (hub, broker) = hub();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.spawn({
        let hub = hub.clone();
        async move { hub.follow_broker(broker).await }
    });
    let seen: RefCell<BTreeSet<(String, u16)>> = RefCell::default();
    onramp_mutation::check(1, 6_000, draws(), |draw| {
        let operation = &operations[usize::from(draw.operation) % operations.len()];
        let (request, expected) = draw.request(&document, operation);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (status, kind, body) = runtime.block_on(answer(&hub, request));
        let case = format!("{method} {uri} {expected:?}: {status} {kind} {body:.500}");
        match expected {
            Expected::Success => prop_assert!(status == 200, "{case}"),
            Expected::Refusal => prop_assert!((400..500).contains(&status), "{case}"),
            Expected::Either => {}
        }
        seen.borrow_mut().insert((operation.path.clone(), status));
        if method.as_str() != operation.method {
            // An empty part of a path is another path.
            prop_assert!(matches!(status, 404 | 405 | 414), "{case}");
        }
        let said = match status {
            405 => {
                json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}})
            }
            _ => document.follow(&operation.said["responses"][status.to_string()]),
        };
        prop_assert!(said.is_object(), "not in the document: {}", case);
        let schema = &said["content"][&kind]["schema"];
        prop_assert!(schema.is_object(), "of another type: {}", case);
        if kind == "application/json" {
            let body: Value = serde_json::from_str(&body).unwrap();
            let errors = document.errors(schema, &body);
            prop_assert!(errors.is_empty(), "{}: {:?}", case, errors);
        }
        if kind == "text/event-stream" {
            let event = |name: &str| body.lines().find_map(|line| line.strip_prefix(name));
            let name = match event("event: ").unwrap() {
                "flows" => "LiveFlows",
                "flow" => "FlowDetail",
                "attached" => "Status",
                "population" => "Population",
                "gone" => "Gone",
                other => panic!("{other}"),
            };
            let data: Value = serde_json::from_str(event("data: ").unwrap()).unwrap();
            let errors = document.errors(&json!({"$ref": format!("#/components/schemas/{name}")}), &data);
            prop_assert!(errors.is_empty(), "{}: {:?}", case, errors);
        }
        Ok(())
    });
    let seen = seen.into_inner();
    for operation in &operations {
        // What is no recording is refused; `recordings.rs` has tests of those that are.
        let status = if operation.path == "/api/recordings" { 400 } else { 200 };
        assert!(seen.contains(&(operation.path.clone(), status)), "never answered: {operation:?}");
    }
    for status in [400, 401, 404, 405, 414, 415, 422] {
        assert!(seen.iter().any(|(_, one)| *one == status), "never seen: {status}: {seen:?}");
    }
}

#[test]
fn the_document_has_every_path_and_its_references_lead_somewhere() {
    let document = Document::read();
    let served: BTreeSet<&str> = include_str!("../server.rs")
        .split(".route(\"")
        .skip(1)
        .filter_map(|text| text.split('"').next())
        .filter(|path| path.starts_with("/api/") || ["/metrics", "/healthz"].contains(path))
        .collect();
    let documented: BTreeSet<&str> =
        document.all["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(documented, served);
    for operation in document.operations() {
        for response in operation.said["responses"].as_object().unwrap().values() {
            assert!(document.follow(response)["description"].is_string(), "{response}");
        }
    }
}
