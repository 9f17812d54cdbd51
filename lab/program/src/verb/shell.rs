//! `onramp-lab shell`.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread;

use anyhow::Context;
use clap::Args;
use onramp_lab::host::{Hosts, RECEIVER, SENDER};
use onramp_profiles::Profile;

use super::require_root;
use crate::failure;
use crate::output::say;
use crate::profile;
use crate::units;

/// Port of the sink at the receiver: discard (RFC 863).
const SINK: u16 = 9;
/// Port of the iperf3 server.
const IPERF3: u16 = 5201;
/// What the shell calls a process that could not be started.
const NOT_FOUND: u8 = 127;

/// Run a shell, or a command, in the sender's network namespace, with the emulated link in front of it
///
/// At the receiver run an iperf3 server (if iperf3 is installed) and a sink that reads and forgets. Namespaces
/// have no names; the shell has process numbers of its own, so that whatever it has started ends with it, also when
/// onramp is killed. Attach and detach from outside: processes out there cannot be seen from inside.
///
/// The exit code is the command's.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab shell
  onramp lab shell --profile leo -- iperf3 -c 192.0.2.2 -C onramp_search
  onramp lab shell --profile geo --seed 7 -- ping -c 3 192.0.2.2")]
pub(crate) struct Shell {
    /// Link and hosts: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    /// Seed of the link's randomness
    #[arg(long, default_value_t = 1, value_parser = units::number(0..=u64::MAX))]
    seed: u64,
    /// Command with its arguments [default: $SHELL]
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

impl Shell {
    pub fn run(self) -> anyhow::Result<u8> {
        let profile = profile::load(&self.profile)?;
        require_root("lab shell")?;
        let hosts = Hosts::set_up(&profile.host, &profile.link, self.seed, 0)?;
        sink(&hosts)?;
        let server = iperf3(&hosts);
        say(&explain(&profile, server.is_ok()));
        let code = self.inside(&hosts);
        if let Ok(server) = server {
            end(server);
        }
        hosts.stop()?;
        code
    }

    fn inside(&self, hosts: &Hosts) -> anyhow::Result<u8> {
        let shell = || vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
        let words = if self.command.is_empty() { shell() } else { self.command.clone() };
        // Process 1 of a process namespace takes all others with it.
        let mut command = hosts.sender().command("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]).args(&words);
        match command.status() {
            Ok(status) => Ok(failure::of_command(status)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                say("error: cannot find `unshare`; install util-linux");
                Ok(NOT_FOUND)
            }
            Err(error) => Err(error).context("cannot run the command in the sender's namespace"),
        }
    }
}

fn explain(profile: &Profile, iperf3: bool) -> String {
    let link = &profile.link;
    let server = if iperf3 { format!("iperf3 on port {IPERF3}, ") } else { String::new() };
    format!(
        "{}: {:.1} Mb/s, {:.0} ms; this host is {SENDER}, the receiver {RECEIVER} ({server}a sink on port {SINK})",
        profile.name,
        link.forward.rate_bps as f64 / 1e6,
        link.base_rtt_us() as f64 / 1e3,
    )
}

/// Reads and forgets whatever comes, until this process ends.
fn sink(hosts: &Hosts) -> anyhow::Result<()> {
    let listener = hosts.receiver().run(|| TcpListener::bind((RECEIVER, SINK)))?;
    let listener = listener.context("cannot listen for the sink")?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut stream, mut buffer) = (stream, vec![0; 1 << 16]);
                while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
    Ok(())
}

fn iperf3(hosts: &Hosts) -> std::io::Result<Child> {
    let mut server = hosts.receiver().command("iperf3");
    server.args(["-s", "-p", &IPERF3.to_string(), "-B", &RECEIVER.to_string()]);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn end(mut server: Child) {
    // Fails only where it has ended already.
    let _ = server.kill();
    let _ = server.wait();
}
