//! `onramp serve` on a kernel: a real transfer's flow and exit in the API, tuning that reaches it, what the web part may
//! do, and its ends.

#[path = "cli_serve/others.rs"]
mod others;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_loader::AttachOptions;
use onramp_loader::algorithm::find;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, json, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::traces;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Fate, Wire};
use serde_json::Value;

/// One way.
const DELAY: Duration = Duration::from_millis(10);
const BPFFS: &str = "/sys/fs/bpf";
const TOKEN: &str = "0123456789abcdef0123";

/// `onramp serve` at a UNIX socket, which takes no network of the guest's; killed when dropped.
struct Server {
    child: Option<Child>,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::start_by(cli::command([""; 0]), arguments)
    }

    /// By a command to which the arguments are added.
    fn start_by(mut command: Command, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let token = directory.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        command.args(["serve", "--listen"]).arg(format!("unix:{}", socket.display()));
        for argument in arguments {
            command.arg(if *argument == "TOKEN" { token.to_str().unwrap() } else { argument });
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let server = Self { child: Some(child), socket, _directory: directory };
        assert_eq!(line.trim(), format!("unix:{}", server.socket.display()), "it prints its address");
        server
    }

    fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn tune(&self, body: &str) -> (u16, Value) {
        let headers = format!("Content-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n");
        let (status, body) = self.ask("POST /api/tune", &headers, body);
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Why its status is an old one; `None`: it is not.
    fn unreadable(&self) -> Option<String> {
        Some(self.get("/api/status")["unreadable"]["reason"].as_str()?.to_owned())
    }

    /// Whether its status comes to be old for this reason; `None`: to be read again.
    fn comes_to(&self, reason: Option<&str>) -> bool {
        let readable = format!("onramp_status_readable {}\n", u8::from(reason.is_none()));
        eventually(|| self.unreadable().as_deref() == reason)
            && self.ask("GET /metrics", "", "").1.contains(&readable)
    }

    /// The flow of this algorithm that has got furthest.
    fn flow(&self, algorithm: &str) -> Option<Value> {
        let flows = self.get(&format!("/api/flows?algorithm={algorithm}&sort=delivered"));
        flows["flows"].get(0).cloned()
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The part that talks to browsers.
    fn web(&self) -> u32 {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn end(mut self, signal: Signal) -> cli::Ran {
        let child = self.child.take().unwrap();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let ran = child.wait_with_output().unwrap().into();
        assert!(!self.socket.exists() || signal == Signal::SIGKILL);
        ran
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn attach(attachments: &Attachments, exit_window_bytes: &str) {
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", exit_window_bytes).unwrap();
    attachments.attach(&AttachOptions::new(parameters));
}

/// An answer is as the API's document says; so is what the command line says by the same name.
fn agrees(document: &Value, name: &str, answer: &Value) {
    let schema = serde_json::json!({
        "$ref": format!("#/components/schemas/{name}"), "components": document["components"],
    });
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> =
        schema.iter_errors(answer).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}: {answer}");
}

fn status_of(pid: u32) -> String {
    fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap()
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_transfer_shows_with_its_exit_and_its_end() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    let server = Server::start(&["--cost"]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    let port = sender.stream.local_addr().unwrap().port();
    sender.deliver(300_000);
    assert!(eventually(|| server.flow("fixed").is_some_and(|flow| flow["state"] == "left")));
    let flow = server.flow("fixed").unwrap();
    assert_eq!((&flow["local_port"], &flow["remote_address"]), (&port.into(), &"192.0.2.2".into()));
    assert_eq!(flow["exit"]["reason"], "algorithm");
    assert!(flow["exit"]["window_bytes"].as_u64().unwrap() >= 60_000, "{flow}");
    assert!((20_000..30_000).contains(&flow["min_rtt_us"].as_u64().unwrap()), "{flow}");
    // The same as the command line says, in the same words.
    let listed = sender.wire.near.run(|| json("flows")).unwrap();
    let listed = &listed["flows"][0];
    for name in ["exit", "algorithm", "local_port", "remote_port", "state", "parameters_generation"] {
        assert_eq!(flow[name], listed[name], "{name}");
    }
    let id = flow["flow"].as_u64().unwrap();
    let detail = server.get(&format!("/api/flows/{id}"));
    let life = &detail["life"];
    let windows = life["cwnd_max_segments"].as_array().unwrap();
    assert!(
        windows.len() > 3 && windows.windows(2).all(|pair| pair[0].as_u64() <= pair[1].as_u64()),
        "{life}"
    );
    assert_eq!(detail["evidence"]["parameters"]["exit_window_bytes"], 60_000);
    let document = server.get("/api/openapi.json");
    agrees(&document, "FlowDetail", &detail);
    for (name, path) in
        [("Flows", "flows?group=prefix"), ("Status", "status"), ("List", "list"), ("About", "about")]
    {
        agrees(&document, name, &server.get(&format!("/api/{path}")));
    }
    // The command line's is without what the server says of itself.
    let mut alone = document.clone();
    let required = alone["components"]["schemas"]["Status"]["required"].as_array_mut().unwrap();
    required.retain(|name| !["unreadable", "confinement", "others"].map(Value::from).contains(name));
    agrees(&alone, "Status", &json("status"));
    agrees(&document, "List", &json("list"));
    // The command line has more of a flow, and what both have is of one kind.
    for (name, schema) in document["components"]["schemas"]["Flow"]["properties"].as_object().unwrap() {
        if let Some(reported) = listed.get(name).filter(|_| name != "state") {
            let one = serde_json::json!({"schemas": {"One": schema, "Exit": document["components"]["schemas"]["Exit"]}});
            agrees(&serde_json::json!({"components": one}), "One", reported);
        }
    }
    assert_eq!(server.get(&format!("/api/flows?filter=dport+%3D+:{port}"))["matched"], 0);
    assert_eq!(server.get(&format!("/api/flows?filter=sport+%3D+:{port}"))["matched"], 1);

    // The wire stays, so that both ends see it.
    let Sender { wire, stream, .. } = sender;
    drop(stream);
    assert!(eventually(|| server.flow("fixed").is_some_and(|flow| flow["state"] == "ended")));
    let (_, metrics) = server.ask("GET /metrics", "", "");
    assert!(metrics.contains("onramp_slow_start_exit_cwnd_bytes_count{cc=\"onramp_fixed\"} 1"), "{metrics}");
    assert!(eventually(|| {
        let (_, metrics) = server.ask("GET /metrics", "", "");
        metrics.contains("onramp_slow_start_exits_total{cc=\"onramp_fixed\",reason=\"algorithm\"} 1")
    }));
    // The broker has opened the programs before it gave up the right to.
    assert!(eventually(|| {
        let (_, metrics) = server.ask("GET /metrics", "", "");
        let calls = "onramp_callback_calls_total{cc=\"onramp_fixed\",callback=\"pkts_acked\"} ";
        metrics
            .lines()
            .filter_map(|line| line.strip_prefix(calls))
            .any(|calls| calls.parse::<u64>().unwrap() > 10)
    }));
    drop(wire);
    let ran = server.end(Signal::SIGTERM);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn tuning_reaches_the_open_flows_with_the_checks_of_the_command_line() {
    let attachments = Attachments::lock();
    // It never exits slow start by itself.
    attach(&attachments, "0");
    let server = Server::start(&["--write-token-file", "TOKEN"]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.deliver(100_000);
    let (status, refused) = server.tune(r#"{"algorithm":"fixed","settings":["exit_window_bytes=-1"]}"#);
    let said = onramp("tune fixed exit_window_bytes=-1").refused(2);
    assert_eq!((status, format!("error: {}\n", refused["error"].as_str().unwrap())), (400, said));
    assert_eq!(server.tune(r#"{"algorithm":"best","settings":["pacing=on"]}"#).0, 409, "not attached");
    assert_eq!(server.tune(r#"{"algorithm":"none","settings":["a=b"]}"#).0, 400);
    let (_, dry) =
        server.tune(r#"{"algorithm":"fixed","settings":["exit_window_bytes=60000"],"dry_run":true}"#);
    assert_eq!((&dry["dry_run"], &dry["changed"][0]["after"]), (&true.into(), &60_000.into()));
    assert_eq!(json("tune fixed")["parameters"]["exit_window_bytes"], 0);

    let document = server.get("/api/openapi.json");
    agrees(&document, "Tuned", &dry);
    agrees(&document, "Tuned", &json("tune fixed"));
    let (status, report) = server.tune(r#"{"algorithm":"fixed","settings":["exit_window_bytes=60000"]}"#);
    assert_eq!((status, &report["undo"]), (200, &"onramp tune fixed exit_window_bytes=0".into()), "{report}");
    assert_eq!(json("tune fixed")["parameters"]["exit_window_bytes"], 60_000);
    sender.deliver(400_000);
    assert!(eventually(|| {
        server
            .flow("fixed")
            .is_some_and(|flow| flow["exit"]["reason"] == "algorithm" && flow["parameters_generation"] == 1)
    }));
    assert!(eventually(|| {
        let sets = &server.get("/api/status")["algorithms"][0]["parameter_sets"];
        sets[0]["parameters"]["exit_window_bytes"] == 60_000
    }));
}

#[test]
#[ignore = "in a guest: make test"]
fn the_part_that_talks_to_browsers_may_do_nothing() {
    let _attachments = Attachments::lock();
    let server = Server::start(&["--write-token-file", "TOKEN"]);
    let web = status_of(server.web());
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(&web, set), "0000000000000000", "{set}");
    }
    assert_eq!(field(&web, "Uid:"), "65534\t65534\t65534\t65534");
    assert_eq!(field(&web, "Gid:"), "65534\t65534\t65534\t65534");
    assert_eq!((field(&web, "Groups:"), field(&web, "NoNewPrivs:")), ("", "1"));
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.web())).unwrap();
    for descriptor in descriptors {
        let target = fs::read_link(descriptor.unwrap().path()).unwrap().display().to_string();
        assert!(!target.contains("bpf") && !target.contains("token"), "{target}");
    }
    // System calls are filtered, and so are those of the broker and of the process that frees its place in telemetry.
    let broker = status_of(server.pid());
    assert_eq!((field(&web, "Seccomp:"), field(&broker, "Seccomp:")), ("2", "2"));
    assert!(eventually(|| lease_processes().len() == 1));
    let lease_process = status_of(lease_processes()[0] as u32);
    for name in ["Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"] {
        assert_eq!(field(&lease_process, name), field(&broker, name), "{name}");
    }
    assert_eq!(server.get("/api/about")["confinement"]["seccomp"], true);
    let confined = &server.get("/api/status")["confinement"];
    // The kernels of guests are without Landlock: unit tests of the program show what it does.
    assert_eq!(confined["seccomp"], true, "{confined}");
    // What reads keeps two capabilities: CAP_PERFMON and CAP_BPF, and what it would start none.
    for (set, kept) in [
        ("CapInh:", 0),
        ("CapPrm:", 0xc0_0000_0000_u64),
        ("CapEff:", 0xc0_0000_0000_u64),
        ("CapBnd:", 0),
        ("CapAmb:", 0),
    ] {
        assert_eq!(field(&broker, set), format!("{kept:016x}"), "{set}");
    }
    // It opens files as root, whose the pins are; no program does that inherits from it.
    assert_eq!(field(&broker, "Uid:"), "65534\t65534\t65534\t0");
    assert_eq!(field(&broker, "Gid:"), "65534\t65534\t65534\t65534");
    assert_eq!((field(&broker, "Groups:"), field(&broker, "NoNewPrivs:")), ("", "1"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.web())).unwrap();
    let memory = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    assert!(!memory.contains("unlimited"), "{memory}");
    let mode = fs::metadata(&server.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}

#[test]
#[ignore = "in a guest: make test"]
fn addresses_are_masked_before_they_leave_the_broker() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    let server = Server::start(&["--mask-addresses"]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.deliver(100_000);
    assert!(eventually(|| server.flow("fixed").is_some()));
    let flow = server.flow("fixed").unwrap();
    assert_eq!((&flow["local_address"], &flow["remote_address"]), (&"192.0.2.0".into(), &"192.0.2.0".into()));
    assert_eq!(server.get("/api/flows?filter=dst+192.0.2.2")["matched"], 0, "nor can it be searched for");
}

#[test]
#[ignore = "in a guest: make test"]
fn every_end_is_clean() {
    let attachments = Attachments::lock();
    let before = traces();
    // The lease process notices the end by itself, a moment later.
    let nothing_left = || eventually(|| traces() == before);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let ran = Server::start(&[]).end(signal);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{signal}");
        assert!(nothing_left(), "{signal}: {:?}, before {before:?}", traces());
    }
    // Each part ends with the other one, however that ends.
    let server = Server::start(&[]);
    let web = server.web();
    server.end(Signal::SIGKILL);
    assert!(eventually(|| !Path::new("/proc").join(web.to_string()).exists()), "the web part lives");
    assert!(nothing_left(), "killed: {:?}, before {before:?}", traces());
    let mut server = Server::start(&[]);
    kill(Pid::from_raw(server.web() as i32), Signal::SIGKILL).unwrap();
    let ran: cli::Ran = server.child.take().unwrap().wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("signal: 9"), "{ran:?}");
    assert!(nothing_left(), "web part killed: {:?}, before {before:?}", traces());
    // A web part that stands still is killed.
    let server = Server::start(&[]);
    kill(Pid::from_raw(server.web() as i32), Signal::SIGSTOP).unwrap();
    assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
    assert!(nothing_left(), "stopped: {:?}, before {before:?}", traces());
    // The socket file of a killed server is in no other's way.
    attach(&attachments, "0");
}

/// The lock that onramp's commands take, until it is dropped.
fn hold_the_lock() -> Flock<fs::File> {
    let directory = fs::File::open(BPFFS).unwrap();
    Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap()
}

fn mount(arguments: &[&str]) {
    let done = Command::new(arguments[0]).args(&arguments[1..]).status().unwrap();
    assert!(done.success(), "{arguments:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn under_the_lock_of_another_telemetry_is_read_and_a_signal_ends_the_server() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    let server = Server::start(&["--write-token-file", "TOKEN"]);
    assert!(server.comes_to(None));
    let held = hold_the_lock();
    assert!(server.comes_to(Some("locked")));
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.deliver(300_000);
    assert!(eventually(|| server.flow("fixed").is_some_and(|flow| flow["state"] == "left")));
    // What is reported of the attachment is what was known last.
    assert_eq!(server.get("/api/status")["algorithms"][0]["flows_started"], 0);
    // More than the minute for which commands wait.
    thread::sleep(Duration::from_secs(70));
    let (status, refused) = server.tune(r#"{"algorithm":"fixed","settings":["exit_window_bytes=70000"]}"#);
    assert_eq!(status, 409, "{refused}");
    drop(held);
    assert!(server.comes_to(None));
    assert!(eventually(|| server.get("/api/status")["algorithms"][0]["flows_started"] == 1));

    // A command that takes a moment is waited for.
    let held = hold_the_lock();
    let tuned = thread::scope(|scope| {
        let tuning =
            scope.spawn(|| server.tune(r#"{"algorithm":"fixed","settings":["exit_window_bytes=70000"]}"#));
        thread::sleep(Duration::from_secs(1));
        drop(held);
        tuning.join().unwrap()
    });
    assert_eq!(tuned.0, 200, "{tuned:?}");
    let _held = hold_the_lock();
    assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
}

/// Processes that free the places of consumers, of servers that have given up their privileges.
fn lease_processes() -> Vec<i32> {
    let is_lease_process = |pid: &i32| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        read("comm").trim() == "onramp-lease" && read("status").contains("Uid:\t65534")
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_lease_process).collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn telemetry_begins_anew_where_the_lease_process_was_killed() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    let server = Server::start(&[]);
    assert!(eventually(|| lease_processes().len() == 1), "{:?}", lease_processes());
    kill(Pid::from_raw(lease_processes()[0]), Signal::SIGKILL).unwrap();
    let unobserved = || server.get("/api/flows")["unobserved_us"].as_u64().unwrap();
    assert!(eventually(|| unobserved() > 0));
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.deliver(300_000);
    assert!(eventually(|| server.flow("fixed").is_some_and(|flow| flow["state"] == "left")));
    assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
}

/// The server is another user by then, who may not enter that file system where only root does.
#[test]
#[ignore = "in a guest: make test"]
fn a_server_that_ends_leaves_the_telemetry_of_what_is_attached_to_the_next_one() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    let mode = fs::metadata(BPFFS).unwrap().permissions();
    fs::set_permissions(BPFFS, fs::Permissions::from_mode(0o700)).unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let server = Server::start(&[]);
        let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
        sender.deliver(30_000);
        assert!(eventually(|| server.flow("fixed").is_some()));
        // What follows it is a consumer that begins after privileges were dropped.
        let id = server.flow("fixed").unwrap()["flow"].as_u64().unwrap();
        let mut follower = UnixStream::connect(&server.socket).unwrap();
        write!(follower, "GET /api/live?flow={id} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let consumers = || onramp_loader::consumers().unwrap().len();
        assert!(eventually(|| consumers() == 2), "{signal}");
        server.end(signal);
        assert!(eventually(|| consumers() == 0), "{signal}");
    }
    let server = Server::start(&[]);
    assert!(server.comes_to(None));
    assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
    fs::set_permissions(BPFFS, mode).unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn whatever_becomes_of_the_bpf_file_system_the_server_says_so_and_recovers() {
    let attachments = Attachments::lock();
    attach(&attachments, "60000");
    onramp("attach plain").ok();
    let server = Server::start(&[]);
    let states = || {
        let rows = server.get("/api/status")["algorithms"].take();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["algorithm"], row["state"]).replace('"', "")).collect::<Vec<_>>()
    };
    let whole = ["plain attached", "fixed attached"];
    assert!(server.comes_to(None));
    mount(&["mount", "-o", "remount,ro", BPFFS]);
    assert!(server.comes_to(Some("read_only")));
    assert_eq!(states(), whole, "as they were");
    mount(&["mount", "-o", "remount,rw", BPFFS]);
    assert!(server.comes_to(None));

    // A pin of another kind hides nothing but its own algorithm.
    let pin = |name: &str| Path::new(onramp_loader::ROOT).join("plain").join(name);
    fs::rename(pin("counters"), pin("aside")).unwrap();
    fs::hard_link(pin("defaults"), pin("counters")).unwrap();
    assert!(eventually(|| states() == ["plain unreadable", "fixed attached"]));
    let (_, metrics) = server.ask("GET /metrics", "", "");
    for line in [
        "onramp_attached_readable{cc=\"onramp_plain\"} 0",
        "onramp_attached_readable{cc=\"onramp_fixed\"} 1",
        "onramp_status_readable 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    agrees(&server.get("/api/openapi.json"), "Status", &server.get("/api/status"));
    fs::remove_file(pin("counters")).unwrap();
    fs::rename(pin("aside"), pin("counters")).unwrap();
    assert!(eventually(|| states() == whole));

    // Another place keeps it while it is out of sight.
    let place = tempfile::tempdir().unwrap();
    let other = place.path().to_str().unwrap();
    mount(&["mount", "--bind", BPFFS, other]);
    mount(&["umount", "-l", BPFFS]);
    assert!(server.comes_to(Some("not_mounted")));
    mount(&["mount", "--bind", other, BPFFS]);
    mount(&["umount", other]);
    assert!(server.comes_to(None));
    assert_eq!(states(), whole);
    assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_user_is_given_by_number_where_there_is_no_file_of_users() {
    let _attachments = Attachments::lock();
    for (arguments, (uid, gid)) in [
        (&[][..], ("65534", "65534")),
        (&["--user", "65534"], ("65534", "65534")),
        (&["--user", "1000:33", "--socket-group", "33"], ("1000", "33")),
    ] {
        let mut command = Command::new("unshare");
        let empty = "mount -t tmpfs none /etc && exec \"$@\"";
        command.args(["--mount", "sh", "-c", empty, "sh"]).arg(cli::binary());
        let server = Server::start_by(command, arguments);
        let web = status_of(server.web());
        assert_eq!(field(&web, "Uid:"), [uid; 4].join("\t"));
        assert_eq!(field(&web, "Gid:"), [gid; 4].join("\t"));
        assert_eq!(field(&status_of(server.pid()), "Uid:"), [uid, uid, uid, "0"].join("\t"));
        assert_eq!(server.end(Signal::SIGTERM).code, Some(0));
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (arguments, code, said) in [
        ("--listen 0.0.0.0:8090", 2, "ssh -L"),
        ("--listen 0.0.0.0:8090 --read-token-file /nonexistent", 2, "--tls-cert"),
        ("--tls-cert /nonexistent", 2, "--tls-key"),
        ("--tls-cert /nonexistent --tls-key /nonexistent", 1, "cannot look at the key /nonexistent"),
        ("--listen unix:/nonexistent/s --tls-cert a --tls-key b", 2, "the web server in front speaks TLS"),
        ("--read-token-file /nonexistent", 1, "/nonexistent"),
        ("--listen 8090", 2, "no address with a port"),
        ("--listen unix:here", 2, "absolute path"),
        ("--allow-host http://a", 2, "no name of a host"),
        ("--write-token-file /nonexistent", 1, "/nonexistent"),
        ("--user 0", 2, "is root"),
        ("--user 1000:0", 2, "is root"),
        ("--user 1000:x", 2, "UID:GID"),
        ("--user none-such", 2, "/etc/passwd"),
        ("--offline --listen unix:/tmp/s --socket-group none-such", 2, "/etc/group"),
    ] {
        let ran = onramp(&format!("serve {arguments}"));
        assert!(ran.code == Some(code) && ran.stderr.contains(said), "{arguments}: {ran:?}");
    }
}
