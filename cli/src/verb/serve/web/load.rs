//! Ten thousand flows in a real browser: telemetry that is made up goes through the model and the web part as that of the
//! kernel does, and `web/tests/load.mjs` looks at what it costs the page. What is asserted are counts, never times; with
//! ONRAMP_LOAD=SECONDS it runs in real time instead, and prints what processors, frames and memory did.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use onramp_loader::ExitReason;
use onramp_loader::abi::{ExitRecord, FlowHeader, flow_flag};
use onramp_loader::algorithm::{self, Algorithm, RoundPayload};
use onramp_loader::telemetry::{Event, ExitEvent, FlowEvent, Item, RoundEvent, What};

use super::guard::Policy;
use super::hub::Hub;
use super::server;
use crate::consumer::Signals;
use crate::live::FlowTable;
use crate::verb::serve::broker::Reporter;
use crate::verb::serve::channel::Channel;

const FLOWS: u64 = 10_000;
/// As the broker has it.
const BUCKETS: usize = 160;
const PERIOD: Duration = Duration::from_millis(500);

/// Flows that never rest: each has a round in every period, and some end and others begin.
struct Fleet {
    model: FlowTable,
    reporter: Reporter,
    algorithms: Vec<Algorithm>,
    periods: u64,
    newest: u64,
}

impl Fleet {
    fn new() -> Self {
        let algorithms = ["search", "hystartpp", "ramp"].map(|name| algorithm::find(name).unwrap()).to_vec();
        let model = FlowTable::new(FLOWS as usize, BUCKETS);
        let mut fleet = Self { model, reporter: Reporter::default(), algorithms, periods: 0, newest: 0 };
        for flow in 0..FLOWS {
            fleet.begin(flow);
        }
        fleet
    }

    fn rtt_us(flow: u64) -> u32 {
        // 2 to 600 ms, as of short and long paths.
        2_000 + (flow * 7_919 % 1_000) as u32 * (flow * 31 % 599) as u32
    }

    fn report(&mut self, flow: u64, what: What) {
        let algorithm = self.algorithms[flow as usize % self.algorithms.len()];
        let time_ns = 1_000_000_000 + self.periods * PERIOD.as_nanos() as u64;
        self.model.add(&Item::Event(Event { time_ns, flow, sequence: 0, netns: 1, algorithm, what }));
    }

    fn begin(&mut self, flow: u64) {
        self.newest = self.newest.max(flow);
        let algorithm = self.algorithms[flow as usize % self.algorithms.len()];
        let remote = Ipv4Addr::from_bits(0xc633_0000 + (flow * 6_007 % 65_000) as u32);
        let what = What::Flow(Box::new(FlowEvent {
            local: SocketAddr::from(([192, 0, 2, 1], 443)),
            remote: SocketAddr::new(IpAddr::V4(remote), 1_024 + (flow % 60_000) as u16),
            again: false,
            cookie: None,
            netns_cookie: 1,
            parameters: algorithm.parameters(),
            profile: 0,
            generation: 1,
            header: FlowHeader { flags: flow_flag::SLOW_START as u16, ..FlowHeader::default() },
            state: vec![0; algorithm.state_size()],
        }));
        self.report(flow, what);
    }

    /// Half a second of all flows.
    fn period(&mut self) {
        self.periods += 1;
        let flows: Vec<u64> = self.model.flows.keys().copied().collect();
        for flow in flows {
            let rtt_us = Self::rtt_us(flow);
            let cwnd = 10 + (flow * 17 + self.periods * 5) as u32 % 2_000;
            let algorithm = self.algorithms[flow as usize % self.algorithms.len()];
            let payload = RoundPayload {
                number: self.periods as u32,
                duration_us: rtt_us.into(),
                bytes: u64::from(cwnd) * 1_448,
                delivered: cwnd,
                acks: cwnd / 2,
                cwnd_limited_us: rtt_us,
                min_rtt_us: rtt_us,
                smoothed_rtt_us: rtt_us + rtt_us / 8,
                cwnd,
                ssthresh: 1_000,
                in_flight: cwnd - 1,
                mss: 1_448,
                ..RoundPayload::default()
            };
            self.report(
                flow,
                What::Round(Box::new(RoundEvent { payload, state: vec![0; algorithm.state_size()] })),
            );
            if (flow + self.periods).is_multiple_of(40) && self.periods > 4 {
                self.leave(flow, cwnd, rtt_us);
            }
        }
        // The oldest go.
        for flow in self.newest + 1..self.newest + 51 {
            self.begin(flow);
        }
    }

    fn leave(&mut self, flow: u64, window: u32, rtt_us: u32) {
        let reason = if flow.is_multiple_of(3) { ExitReason::Loss } else { ExitReason::Algorithm };
        let record = ExitRecord {
            at_us: u64::from(rtt_us) * 8,
            bytes_acked: u64::from(window) * 3_000,
            window: window / 2 + (flow % 90) as u32 * 12,
            window_after: window,
            in_flight: window,
            rtt_us: rtt_us * 5 / 4,
            min_rtt_us: rtt_us,
            mss: 1_448,
            reason: reason as u8,
            ..ExitRecord::default()
        };
        self.report(flow, What::Exit(ExitEvent { reason, record, observed: None }));
    }

    /// What a broker would say now.
    fn say(&mut self, to: &mut Channel<'_>) {
        if let Some(message) = self.reporter.message(&mut self.model) {
            to.say(&message).unwrap();
        }
    }
}

/// A web part in a thread; the broker's end of its socket, where it listens, and its thread's number.
fn serve(signals: &Signals) -> (Channel<'_>, SocketAddr, i32) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (broker, theirs) = UnixStream::pair().unwrap();
    let (sender, thread) = mpsc::channel();
    thread::spawn(move || {
        sender.send(nix::unistd::gettid().as_raw()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = Hub::new(Policy::default(), false);
            let served = tokio::spawn(server::run(listener.into(), None, hub.clone()));
            // The test ends in the middle of something.
            let _ = hub.follow_broker(theirs).await;
            served.abort();
        });
    });
    (Channel::new(broker, signals).unwrap(), address, thread.recv().unwrap())
}

/// Processor time of a thread of this process, seconds.
fn spent(thread: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Memory of this process, MB.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

/// A script of `web/tests` with Chromium and this server; `None`, and why is said: there is none, or no page.
pub(super) fn script(name: &str, address: SocketAddr) -> Option<Command> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web");
    let built = web.join("node_modules/playwright-core").exists() && web.join("dist/index.html").exists();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let places = std::env::split_paths(&path).flat_map(|place| names.map(|name| place.join(name)));
    let Some(chromium) = places.into_iter().find(|place| place.is_file()).filter(|_| built) else {
        println!(
            "SKIP: there is no Chromium, or the page was not built: `apt-get install chromium`, `make web`"
        );
        return None;
    };
    let mut command = Command::new("node");
    command.arg(format!("tests/{name}")).arg(&chromium).arg(format!("http://{address}/")).current_dir(web);
    Some(command)
}

#[test]
fn ten_thousand_flows_take_a_page_no_more_rows_and_bytes_than_it_shows() {
    let seconds: Option<u64> = std::env::var("ONRAMP_LOAD").ok().map(|text| text.parse().unwrap());
    let signals = Signals::take().unwrap();
    let (mut broker, address, thread) = serve(&signals);
    let Some(mut script) = script("load.mjs", address) else { return };
    let mut fleet = Fleet::new();
    (0..8).for_each(|_| fleet.period());
    fleet.say(&mut broker);
    let mut page = script
        .arg(seconds.unwrap_or(0).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = page.stdin.take().unwrap();
    let lines = BufReader::new(page.stdout.take().unwrap()).lines();
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut next = Instant::now();
    let mut before = (Instant::now(), spent(thread), spent(nix::unistd::gettid().as_raw()));
    loop {
        // In real time the fleet goes on by itself; else when the page has asked for it.
        let wait = if seconds.is_some() {
            next.saturating_duration_since(Instant::now())
        } else {
            Duration::from_secs(120)
        };
        match asked.recv_timeout(wait) {
            Ok(line) if line == "period" => {
                fleet.period();
                fleet.say(&mut broker);
                writeln!(answers, "period").unwrap();
            }
            Ok(line) if line == "spent" => {
                let now = (Instant::now(), spent(thread), spent(nix::unistd::gettid().as_raw()));
                let time = (now.0 - before.0).as_secs_f64();
                let percent = |one: f64, other: f64| 100.0 * (other - one) / time;
                let said = format!(
                    "web part {:.1} % of a core, broker {:.1} %, memory of both and the test {} MB",
                    percent(before.1, now.1),
                    percent(before.2, now.2),
                    resident_mb()
                );
                before = now;
                writeln!(answers, "{said}").unwrap();
            }
            Ok(line) => println!("{line}"),
            Err(mpsc::RecvTimeoutError::Timeout) if seconds.is_some() => {
                next += PERIOD;
                fleet.period();
                fleet.say(&mut broker);
            }
            Err(_) => break,
        }
    }
    assert!(page.wait().unwrap().success(), "web/tests/load.mjs says what was wrong");
}
