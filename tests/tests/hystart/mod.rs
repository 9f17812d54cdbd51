//! What the kernel tests of hystart and hystartpp share: a slow start over an emulated link, watched to its end.

#![allow(dead_code, reason = "every test file is a crate of its own and uses a part of this")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use onramp_lab::host::{Hosts, RECEIVER};
use onramp_loader::{AttachOptions, Base, Flow};
use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, States, TcpInfo};
use onramp_profiles::Profile;
use onramp_tests::Attachments;

/// A link without limit in its queue, and buffers that limit nothing.
pub fn profile(rate_mbps: u64, one_way_us: u64, return_jitter_us: u64) -> Profile {
    let jitter = match return_jitter_us {
        0 => String::new(),
        max_us => format!("[[link.return.jitter]]\nkind = \"uniform\"\nmax_us = {max_us}\n"),
    };
    let text = format!(
        "version = 1\nname = \"test\"\nabout = \"a link of a test\"\nalgorithm = \"plain\"\n\
         [link.forward]\nrate_bps = {rate_mbps}_000_000\ndelay_us = {one_way_us}\nqueue_bytes = 1_000_000_000\n\
         [link.return]\nrate_bps = 1_000_000_000\ndelay_us = {one_way_us}\nqueue_bytes = 1_000_000_000\n{jitter}\
         [host]\ntcp_rmem = [4_096, 131_072, 268_435_456]\ntcp_wmem = [4_096, 131_072, 268_435_456]\n"
    );
    Profile::parse(&text, "test.toml").expect("a profile")
}

/// The GEO profile that comes with onramp.
pub fn geo() -> Profile {
    Profile::parse(include_str!("../../../profiles/geo.toml"), "geo.toml").expect("a profile")
}

/// Attaches an algorithm over CUBIC.
pub fn attach(attachments: &Attachments, algorithm: &str, settings: &[&str]) {
    let mut parameters = onramp_loader::find(algorithm).expect("an algorithm").parameters();
    parameters.assign(settings).expect("settings");
    attachments.attach(&AttachOptions { base: Some(Base::Cubic), ..AttachOptions::new(parameters) });
}

/// How a slow start ended.
#[derive(Clone, Debug)]
pub struct Start {
    /// Threshold when it was first seen, segments; `None`: still in slow start at the end.
    pub ssthresh: Option<u32>,
    /// The connection then.
    pub info: TcpInfo,
    /// Our record of it, for our own controls.
    pub flow: Option<Flow>,
    /// HyStart's counters of the sender's namespace.
    pub kernel: [u64; 4],
}

/// Sends over the link with this control until slow start is over, `bytes` are sent, or a minute has passed.
pub fn slow_start(profile: &Profile, seed: u64, control: &str, bytes: u64) -> Start {
    let hosts = Hosts::set_up(&profile.host, &profile.link, seed, 0).expect("hosts");
    hosts.use_congestion_control(control).expect("the control");
    let listener =
        hosts.receiver().run(|| TcpListener::bind((RECEIVER, 0)).expect("bind")).expect("namespace");
    let port = listener.local_addr().expect("address").port();
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        let mut buffer = vec![0; 1 << 18];
        while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
    });
    let mut stream =
        hosts.sender().run(|| TcpStream::connect((RECEIVER, port)).expect("connect")).expect("namespace");
    let local = stream.local_addr().expect("address");
    stream.set_nonblocking(true).expect("nonblocking");
    let mut diag = hosts.sender().run(SockDiag::open).expect("namespace").expect("sock_diag");
    let deadline = Instant::now() + Duration::from_secs(60);
    let data = vec![0; 1 << 18];
    let mut sent = 0;
    let (mut info, mut ssthresh) = (TcpInfo::default(), None);
    while ssthresh.is_none() && info.bytes_acked < bytes && Instant::now() < deadline {
        while sent < bytes {
            let chunk = data.len().min((bytes - sent) as usize);
            let Ok(taken) = stream.write(&data[..chunk]) else { break };
            sent += taken as u64;
        }
        thread::sleep(Duration::from_millis(3));
        let look = |socket: onramp_net::sock_diag::Socket| {
            if let (true, Some(seen)) = (socket.local == local, socket.info) {
                (info, ssthresh) = (seen, seen.snd_ssthresh);
            }
        };
        diag.dump(States::CONNECTED, &[], look).expect("the connections");
    }
    let flows = hosts.sender().run(|| onramp_loader::flows(|socket| socket.local == local));
    let flow = flows.expect("namespace").expect("flows").into_iter().next();
    let kernel = kernels_counters(hosts.sender());
    drop(stream);
    drop(hosts);
    let _ = reader.join();
    Start { ssthresh, info, flow, kernel }
}

/// HyStart's counters of a namespace: detections by ACK train and by delay, and the windows at them, summed.
///
/// # Panics
/// If the kernel does not have them.
pub fn kernels_counters(namespace: &Namespace) -> [u64; 4] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").expect("netstat");
    let text = namespace.run(read).expect("namespace");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    ["TrainDetect", "DelayDetect", "TrainCwnd", "DelayCwnd"].map(|counter| {
        let of = format!("TCPHystart{counter}");
        let at = names.split_whitespace().position(|name| name == of).expect("a counter");
        values.split_whitespace().nth(at).expect("its value").parse().expect("a number")
    })
}

/// The value in the middle.
pub fn median(mut values: Vec<u32>) -> u32 {
    values.sort_unstable();
    values[values.len() / 2]
}
