//! Queues too small for slow start's bursts: plain overflows them, what spaces and what holds the window does not.
//! Counts, over the emulator, with the kernel's TCP.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use onramp_lab::host::{Hosts, RECEIVER};
use onramp_loader::{AttachOptions, Flow};
use onramp_profiles::Profile;
use onramp_tests::Attachments;

/// 20 Mb/s and 200 ms: half a megabyte on the way.
const BDP: u64 = 500_000;

fn profile(queue_pct: u64) -> Profile {
    let text = format!(
        "version = 1\nname = \"queue\"\nabout = \"a path with a small queue\"\nalgorithm = \"plain\"\n\
         [link.forward]\nrate_bps = 20_000_000\ndelay_us = 100_000\nqueue_bytes = {}\n\
         [link.return]\nrate_bps = 10_000_000\ndelay_us = 100_000\nqueue_bytes = 1_000_000\n\
         [host]\ntcp_rmem = [4_096, 131_072, 16_777_216]\ntcp_wmem = [4_096, 131_072, 16_777_216]\n",
        BDP * queue_pct / 100
    );
    Profile::parse(&text, "queue.toml").unwrap()
}

/// What a download did.
struct Download {
    /// Packets that found the queue full.
    drops: u64,
    /// Looks at the flow, one in twenty milliseconds.
    looks: Vec<Flow>,
}

/// Downloads so many bytes over a queue of this size.
fn download(algorithm: &str, settings: &[&str], queue_pct: u64, bytes: usize) -> Download {
    let mut parameters = onramp_loader::find(algorithm).unwrap().parameters();
    parameters.assign(settings).unwrap();
    let control = parameters.algorithm().congestion_control();
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(parameters));
    let profile = profile(queue_pct);
    let hosts = Hosts::set_up(&profile.host, &profile.link, 1, 0).unwrap();
    hosts.use_congestion_control(&control).unwrap();
    let listener = hosts.receiver().run(|| TcpListener::bind((RECEIVER, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut stream = hosts.sender().run(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let local = stream.local_addr().unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let reader = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while let Ok(bytes @ 1..) = far.read(&mut buffer) {
            received += bytes;
        }
        received
    });
    let writer = thread::spawn(move || {
        stream.write_all(&vec![0; bytes]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream
    });
    let mut looks = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !reader.is_finished() && Instant::now() < deadline {
        let flows = hosts.sender().run(|| onramp_loader::flows(|socket| socket.local == local));
        looks.extend(flows.unwrap().unwrap());
        thread::sleep(Duration::from_millis(20));
    }
    drop(writer.join().unwrap());
    assert_eq!(reader.join().unwrap(), bytes);
    let report = hosts.stop().unwrap();
    let drops = report.forward.counters.dropped_queue_full.packets;
    println!("{algorithm} {settings:?}, queue of {queue_pct} %: {drops} drops, {} looks", looks.len());
    Download { drops, looks }
}

/// Less than four paths: it ends before congestion avoidance, which grows by a twentieth per RTT, fills a quarter of
/// one.
const START: usize = 1_900_000;

#[test]
#[ignore = "in a guest: make test"]
fn a_quarter_path_of_queue_overflows_by_bursts_and_not_when_they_are_spaced() {
    assert!(download("plain", &[], 25, START).drops > 0);
    for (algorithm, settings) in [
        ("spacing", &[][..]),
        ("best", &["pacing=on"]),
        ("search", &["pacing=on"]),
        ("inflight", &["pacing=on"]),
    ] {
        let spaced = download(algorithm, settings, 25, START);
        assert_eq!(spaced.drops, 0, "{algorithm}");
        let widest = spaced.looks.iter().map(|flow| flow.info.snd_cwnd).max().unwrap();
        assert!(u64::from(widest) * 1500 > BDP * 8 / 10, "{algorithm} reaches the path: {widest} segments");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_window_held_to_the_path_does_not_overflow_a_queue_of_one_path() {
    const BYTES: usize = 6_000_000;
    assert!(download("plain", &[], 100, BYTES).drops > 0);
    let held = download("inflight", &[], 100, BYTES);
    assert_eq!(held.drops, 0);
    // A look may fall between the writing of a bound and that of the window.
    let bound = |flow: &Flow| flow.export("bound").unwrap_or(0);
    let bounded: Vec<_> = held.looks.iter().filter(|flow| flow.header.is_some() && bound(flow) > 0).collect();
    let above = bounded.iter().filter(|flow| flow.info.snd_cwnd > bound(flow)).count();
    println!("{above} of {} looks above the bound", bounded.len());
    assert!(bounded.len() > 50 && above * 50 <= bounded.len(), "{above} of {}", bounded.len());
}
