//! Consumers of telemetry, in this process and in one that can be killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use libbpf_rs::query::MapInfoIter;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_loader::AttachOptions;
use onramp_loader::telemetry::{Event, Item, Level, Options, Stream, What};
use onramp_net::Namespace;

use crate::Attachments;
use crate::cli::{DEFAULT, host_state};
use crate::traffic::{TIMEOUT, namespace};

/// `plain` attached, and a namespace whose flows use it.
///
/// # Panics
/// If either cannot be made.
pub fn attached() -> (Attachments, Namespace) {
    let attachments = Attachments::lock();
    let plain = onramp_loader::find("plain").expect("an algorithm");
    attachments.attach(&AttachOptions::new(plain.parameters()));
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_plain").expect("sysctl");
    (attachments, inside)
}

/// Opens a stream of this level with the usual ring.
///
/// # Panics
/// If it cannot be opened.
pub fn stream(level: Level) -> Stream {
    Stream::open(&Options::new("test", level)).unwrap_or_else(|error| panic!("stream: {error}"))
}

/// Everything up to the end of `flows` flows.
///
/// # Panics
/// If that does not come, or an event cannot be read.
pub fn until_ended(stream: &mut Stream, flows: usize) -> Vec<Item> {
    let deadline = Instant::now() + TIMEOUT;
    let mut items = Vec::new();
    let mut ended = 0;
    while ended < flows {
        let left = deadline.saturating_duration_since(Instant::now());
        let item = stream.next_within(left).expect("stream").expect("the flow ends");
        ended += usize::from(matches!(&item, Item::Event(Event { what: What::End(_), .. })));
        items.push(item);
    }
    items
}

/// Everything that is there now.
///
/// # Panics
/// If it cannot be read.
pub fn rest(stream: &mut Stream) -> Vec<Item> {
    std::iter::from_fn(|| stream.try_next().expect("stream")).collect()
}

/// The events among items.
pub fn events(items: &[Item]) -> Vec<&Event> {
    items.iter().filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None }).collect()
}

/// The number of events that items report as lost.
pub fn lost(items: &[Item]) -> u64 {
    items.iter().map(|item| if let Item::Lost(lost) = item { lost.events } else { 0 }).sum()
}

/// Ids of the rings that consumers have on this host.
pub fn rings() -> Vec<u32> {
    MapInfoIter::default().filter(|map| map.name == "onramp_ring").map(|map| map.id).collect()
}

/// Processes called `onramp-lease`.
///
/// # Panics
/// If /proc cannot be listed.
pub fn lease_processes() -> Vec<i32> {
    let lease_process = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with("Name:\tonramp-lease\n") && !status.contains("State:\tZ")
    };
    let processes = std::fs::read_dir("/proc").expect("/proc");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(lease_process)
        .collect()
}

/// What a consumer could leave on this host, as it is now.
///
/// # Panics
/// As [`host_state`] and [`lease_processes`].
pub fn traces() -> (Vec<String>, Vec<u32>, Vec<i32>) {
    (host_state(&[]), rings(), lease_processes())
}

/// A consumer of level `ack` in a process of its own: the running test binary again, in its ignored test
/// `child::consumer_process`, which calls [`Consumer::serve`].
pub struct Consumer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Consumer {
    /// Starts it and waits until it has subscribed.
    ///
    /// # Panics
    /// If it does not.
    pub fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("path"))
            .args(["--exact", "child::consumer_process", "--ignored", "--nocapture", "--test-threads=1"])
            .env("ONRAMP_TEST_CONSUMER", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary runs");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut consumer = Self { child, output };
        consumer.line("listening");
        consumer
    }

    /// What that process does: subscribes with a ring of one page, and says what it loses and what error ends it.
    ///
    /// # Panics
    /// If it cannot subscribe.
    pub fn serve() {
        if std::env::var_os("ONRAMP_TEST_CONSUMER").is_none() {
            return;
        }
        let options = Options { ring_bytes: 4096, ..Options::new("test", Level::Ack) };
        let mut stream = Stream::open(&options).expect("stream");
        println!("\nlistening");
        loop {
            match stream.next_within(TIMEOUT) {
                Ok(Some(Item::Lost(lost))) => {
                    println!("\nlost {} {}", lost.events, lost.unobserved.as_micros());
                }
                Ok(Some(Item::Event(_))) => {}
                Ok(None) => return,
                Err(error) => {
                    println!("\nended {error}");
                    return;
                }
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If that fails.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("kill");
    }

    /// Waits for a line with this beginning; returns the rest of it.
    ///
    /// # Panics
    /// If the output ends before.
    pub fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("read"), 0, "no line {beginning:?}");
            if let Some(rest) = line.trim().strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
