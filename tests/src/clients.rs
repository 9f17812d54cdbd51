//! A web server's host and its clients, by satellite and by fibre, with an emulated link between them.

use std::process::{Child, Stdio};

use onramp_lab::host::Hosts;
use onramp_net::Namespace;
use onramp_profiles::Profile;

use crate::cli::{self, Ran, onramp};
use crate::servers::OBJECT;
use crate::traffic::eventually;

/// Slow enough that a transfer can be looked at.
const LINK: &str = "version = 1
name = 'web'
about = 'web'
algorithm = 'search'
[link.forward]
rate_bps = 20_000_000
delay_us = 20_000
queue_bytes = 200_000
[link.return]
rate_bps = 20_000_000
delay_us = 20_000
queue_bytes = 200_000
[host]
tcp_rmem = [4_096, 131_072, 6_291_456]
tcp_wmem = [4_096, 16_384, 4_194_304]
";

/// Clients by satellite, of either family.
pub const SATELLITE: [&str; 2] = ["203.0.113.9", "2001:db8:5::9"];
/// Clients by fibre.
pub const FIBRE: [&str; 2] = ["198.51.100.9", "2001:db8:f::9"];
/// The server, for clients of either family.
const SERVER: [&str; 2] = ["192.0.2.1", "[2001:db8::1]"];

/// The server's side and that of all clients, with the link between them; the server's default is `plain`.
///
/// # Panics
/// If they cannot be made.
pub fn hosts() -> Hosts {
    let profile = Profile::parse(LINK, "web.toml").unwrap();
    let hosts = Hosts::set_up(&profile.host, &profile.link, 1, 1_000_000).unwrap();
    for (place, words) in [
        (hosts.sender(), "address add 2001:db8::1/64 nodad"),
        (hosts.sender(), "route add 203.0.113.0/24"),
        (hosts.sender(), "route add 198.51.100.0/24"),
        (hosts.sender(), "route add 2001:db8:5::/48"),
        (hosts.sender(), "route add 2001:db8:f::/48"),
        (hosts.receiver(), "address add 203.0.113.9/32"),
        (hosts.receiver(), "address add 198.51.100.9/32"),
        (hosts.receiver(), "address add 2001:db8:5::9/128 nodad"),
        (hosts.receiver(), "address add 2001:db8:f::9/128 nodad"),
        (hosts.receiver(), "route add 2001:db8::/64"),
    ] {
        for scope in ["all", "default", "onramp0"] {
            place.sysctl_set(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "0").unwrap();
        }
        let ip = place.command("ip").args(words.split(' ')).args(["dev", "onramp0"]).status().unwrap();
        assert!(ip.success(), "{words}");
    }
    cli::inside(hosts.sender(), "attach plain --default").ok();
    onramp("attach search --profile geo").ok();
    hosts
}

/// curl from an address, for one URL after the other over one connection where the server keeps it. It prints a line for
/// each: bytes and new connections.
fn curl(namespace: &Namespace, from: &str, urls: &[&str]) -> Child {
    let mut command = namespace.command("curl");
    command.args(["--silent", "--show-error", "--fail", "--max-time", "100", "--interface", from]);
    command.args(["--write-out", "%{size_download} %{num_connects}\\n"]);
    for url in urls {
        command.args(["--output", "/dev/null", url]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("curl starts")
}

/// Two objects from the server to each client, over a connection each.
///
/// # Panics
/// If curl does not start.
pub fn downloads(hosts: &Hosts, clients: &[&str], port: u16) -> Vec<Child> {
    let client = |from: &&str| {
        let url = format!("http://{}:{port}/object", SERVER[usize::from(from.contains(':'))]);
        curl(hosts.receiver(), from, &[&url, &url])
    };
    clients.iter().map(client).collect()
}

/// Waits until every object has arrived whole, and the second one over the connection of the first.
///
/// # Panics
/// If not.
pub fn arrive(downloads: Vec<Child>) {
    for download in downloads {
        let ran = Ran::from(download.wait_with_output().unwrap());
        assert_eq!(ran.ok(), format!("{OBJECT} 1\n{OBJECT} 0\n"));
    }
}

/// The control of the connections from or to a port and with this peer, as ss(8) has it; `side`: `sport` or `dport`.
///
/// # Panics
/// If ss cannot be run.
pub fn control(place: &Namespace, side: &str, port: u16, peer: &str) -> Option<String> {
    let peer = if peer.contains(':') { format!("[{peer}]") } else { peer.to_owned() };
    let filter = format!("{side} = :{port} and dst {peer}");
    let ss = place.command("ss").args(["-tinHO", "state", "established", &filter]).output().unwrap();
    let text = String::from_utf8(ss.stdout).unwrap();
    let mut words = text.lines().next()?.split_whitespace();
    let known = ["reno", "cubic", "bbr", "onramp_plain", "onramp_search", "onramp_fixed"];
    words.find(|word| known.contains(word)).map(str::to_owned)
}

/// Waits for connections with these peers, and looks for their controls.
///
/// # Panics
/// If they have others, or do not come.
pub fn have(place: &Namespace, side: &str, port: u16, expected: &[(&str, &str)]) {
    for (peer, name) in expected {
        let mut last = None;
        let found = eventually(|| {
            last = control(place, side, port, peer);
            last.is_some()
        });
        assert!(found && last.as_deref() == Some(*name), "{peer} at {port} has {last:?}, not {name}");
    }
}
