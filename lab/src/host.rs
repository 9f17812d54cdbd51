// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Two hosts, each a network namespace with one TUN device, and between them the emulator.
//!
//! ```text
//!   sender 192.0.2.1 ── onramp0 ══ emulator ══ onramp0 ── 192.0.2.2 receiver
//! ```
//!
//! The addresses are of TEST-NET-1 (RFC 5737) and exist only in the two namespaces. Everything ends with the value:
//! the namespaces have no name, the devices are descriptors of this process.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::Stdio;

use onramp_net::{Namespace, NamespaceError};
use thiserror::Error;

pub(crate) use onramp_profiles::host::{HEADER_BYTES, HostSpec};

use crate::emulator::{Emulator, EmulatorError, Report, Tun, TunError, Way, Wiring};
use crate::link::Change;
use crate::link::spec::RangeError;

/// Address of the sender of data.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of the receiver of data.
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Name of the TUN device in both namespaces.
pub const DEVICE: &str = "onramp0";

/// Packets that a device holds for the emulator to read. A burst of a whole window arrives faster than it can be
/// read, because nothing slows a sender down that writes to a TUN device; a full queue would lose packets without
/// the model's knowledge. This is the most that Linux 7.2 takes for any device; earlier kernels take more.
const TX_QUEUE_PACKETS: u32 = 32_767;

/// Entries of a host's table of connections, a power of two. It may hold more than it has entries.
const CONNECTIONS: &str = "1024";

/// What can go wrong with the hosts.
#[derive(Debug, Error)]
pub enum HostError {
    /// A namespace could not be made or entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A TUN device could not be made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The emulator could not be started or ended early.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// A setting is out of range.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The sender may not use this congestion control.
    #[error(
        "congestion control {name:?} is not available in the sender's namespace, which has: {available}; is it attached?"
    )]
    UnknownControl {
        /// Its name.
        name: String,
        /// What there is.
        available: String,
    },
    /// `ip` could not be run.
    #[error("cannot run `ip`: {0}; install iproute2")]
    IpMissing(#[source] std::io::Error),
    /// `ip` refused.
    #[error("`ip` cannot configure the {side}'s namespace: {message}")]
    Ip {
        /// `sender` or `receiver`.
        side: &'static str,
        /// What it printed.
        message: String,
    },
    /// The sender's device cannot have the queueing discipline.
    #[error(
        "host.fq: `tc` cannot have the sender's device use fq: {reason}; it needs iproute2 and the module sch_fq"
    )]
    Fq {
        /// What it printed, or why it did not run.
        reason: String,
    },
    /// The devices' counters could not be read.
    #[error("cannot read the {side}'s device counters from /proc/thread-self/net/dev: {reason}")]
    Counters {
        /// `sender` or `receiver`.
        side: &'static str,
        /// Reason.
        reason: String,
    },
}

/// Two hosts and the link between them, running.
pub struct Hosts {
    sender: Host,
    receiver: Host,
    emulator: Emulator,
    initial_window: Option<u32>,
}

impl Hosts {
    /// Makes two namespaces, configures them, and starts the emulator between them.
    ///
    /// # Errors
    /// [`HostError`] without root, TUN or iproute2, or for values out of range.
    pub fn set_up<'a>(
        host: &HostSpec,
        wiring: impl Into<Wiring<'a>>,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<Self, HostError> {
        host.validate("host")?;
        let (sender, receiver) = (Host(one(host)?), Host(one(host)?));
        Self::wire(sender, receiver, host, wiring, seed, sample_period_us)
    }

    /// Starts an emulator between two hosts that have none.
    fn wire<'a>(
        sender: Host,
        receiver: Host,
        host: &HostSpec,
        wiring: impl Into<Wiring<'a>>,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<Self, HostError> {
        let sender_tun = device("sender", &sender.0, host, SENDER)?;
        let receiver_tun = device("receiver", &receiver.0, host, RECEIVER)?;
        let emulator = Emulator::start(sender_tun, receiver_tun, wiring, seed, sample_period_us)?;
        let hosts = Self { sender, receiver, emulator, initial_window: host.initial_window_segments };
        if host.quickack {
            hosts.route("receiver", &hosts.receiver.0, RECEIVER, " quickack 1")?;
        }
        if host.fq {
            use_fq(hosts.sender())?;
        }
        Ok(hosts)
    }

    /// The same two hosts, with what they remember, over a new link in place of the one that there was; and what that one did.
    /// Devices and routes are new.
    ///
    /// # Errors
    /// As [`Hosts::set_up`] and [`Hosts::stop`].
    pub fn over_another_link<'a>(
        self,
        host: &HostSpec,
        wiring: impl Into<Wiring<'a>>,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<(Self, Report), HostError> {
        let (sender, receiver, report) = self.unwire()?;
        // What is still open would go on over the new link.
        for host in [&sender, &receiver] {
            abort_connections(&host.0);
        }
        let hosts = Self::wire(sender, receiver, host, wiring, seed, sample_period_us)?;
        Ok((hosts, report))
    }

    /// The namespace that data come from.
    pub fn sender(&self) -> &Namespace {
        &self.sender.0
    }

    /// The namespace that data go to.
    pub fn receiver(&self) -> &Namespace {
        &self.receiver.0
    }

    /// Whether the emulator has ended early; [`Hosts::stop`] returns why.
    pub fn has_failed(&self) -> bool {
        self.emulator.has_failed()
    }

    /// Makes the sender's connections use a congestion control from their first packet on, by the route to the
    /// receiver (`ip route … congctl NAME`), also one that the namespace could not have as its default.
    ///
    /// # Errors
    /// [`HostError::UnknownControl`] when the kernel does not know the name.
    pub fn use_congestion_control(&self, name: &str) -> Result<(), HostError> {
        let available = self.sender.0.sysctl_get("net.ipv4.tcp_available_congestion_control")?;
        if !available.split_whitespace().any(|known| known == name) {
            return Err(HostError::UnknownControl { name: name.into(), available });
        }
        let window = self.initial_window.map_or_else(String::new, |segments| format!(" initcwnd {segments}"));
        self.route("sender", &self.sender.0, SENDER, &format!(" congctl {name}{window}"))
    }

    /// Gives the route to the other host these attributes.
    fn route(
        &self,
        side: &'static str,
        namespace: &Namespace,
        source: Ipv4Addr,
        attributes: &str,
    ) -> Result<(), HostError> {
        ip(side, namespace, &format!("route replace 192.0.2.0/24 dev {DEVICE} src {source}{attributes}\n"))
    }

    /// Changes one direction of the link while packets flow.
    ///
    /// # Errors
    /// As [`Emulator::set`].
    pub fn change(&self, way: Way, change: Change) -> Result<(), HostError> {
        Ok(self.emulator.set(way, change)?)
    }

    /// Lets packets take the next path from now on.
    ///
    /// # Errors
    /// As [`Emulator::next_path`].
    pub fn next_path(&self) -> Result<(), HostError> {
        Ok(self.emulator.next_path()?)
    }

    /// Stops the emulator and says what it did, drops in the TUN devices included.
    ///
    /// # Errors
    /// What made the emulator end early.
    pub fn stop(self) -> Result<Report, HostError> {
        self.unwire().map(|(_, _, report)| report)
    }

    fn unwire(self) -> Result<(Host, Host, Report), HostError> {
        // Before the devices end with the emulator.
        let drops = [("sender", &self.sender.0), ("receiver", &self.receiver.0)]
            .map(|(side, namespace)| tx_dropped(side, namespace));
        let mut report = self.emulator.stop()?;
        for dropped in drops {
            report.health.tun_drops += dropped?;
        }
        Ok((self.sender, self.receiver, report))
    }
}

/// Ends every TCP connection of a namespace at once. Connections whose processes have gone would go on for minutes
/// otherwise, and keep their namespace and their congestion control in the kernel.
pub fn abort_connections(namespace: &Namespace) {
    let mut command = namespace.command("ss");
    // Where `ss` or the kernel cannot, they end by themselves, later.
    let _ = command.args(["--tcp", "--all", "--kill"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A namespace whose connections end with it.
pub(crate) struct Host(pub Namespace);

impl Drop for Host {
    fn drop(&mut self) {
        abort_connections(&self.0);
    }
}

fn one(host: &HostSpec) -> Result<Namespace, HostError> {
    let namespace = with_own_connections()?;
    for (name, value) in host.sysctls() {
        match namespace.sysctl_set(name, &value) {
            // A kernel without IPv6 has nothing to switch off.
            Err(NamespaceError::Sysctl { .. }) if name.starts_with("net.ipv6.") => {}
            other => other?,
        }
    }
    Ok(namespace)
}

/// Its device, which has the address.
fn device(
    side: &'static str,
    namespace: &Namespace,
    host: &HostSpec,
    address: Ipv4Addr,
) -> Result<Tun, HostError> {
    let tun = Tun::create(namespace, DEVICE)?;
    let mtu = host.mtu_bytes;
    let lines = format!(
        "link set lo up\n\
         link set {DEVICE} mtu {mtu} txqueuelen {TX_QUEUE_PACKETS} up\n\
         address add {address}/24 dev {DEVICE}\n"
    );
    ip(side, namespace, &lines)?;
    Ok(tun)
}

/// A namespace with a small table of its own for TCP connections, which its maker's setting gives it (Linux 6.1), where
/// there is one for the whole machine otherwise: a process that looks at the connections a hundred times a second walks it
/// each time.
fn with_own_connections() -> Result<Namespace, NamespaceError> {
    let maker = Namespace::create()?;
    maker.sysctl_set("net.ipv4.tcp_child_ehash_entries", CONNECTIONS)?;
    maker.run(Namespace::create)?
}

/// Runs `ip` on these lines, inside the namespace.
pub(crate) fn ip(side: &'static str, namespace: &Namespace, lines: &str) -> Result<(), HostError> {
    let mut child = namespace
        .command("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(HostError::IpMissing)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(lines.as_bytes()).map_err(HostError::IpMissing)?;
    }
    let output = child.wait_with_output().map_err(HostError::IpMissing)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(HostError::Ip { side, message })
}

/// Has the namespace's device pace what it sends.
fn use_fq(namespace: &Namespace) -> Result<(), HostError> {
    let words = ["qdisc", "replace", "dev", DEVICE, "root", "fq"];
    let output = namespace.command("tc").args(words).output();
    let reason = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "),
        Err(error) => error.to_string(),
    };
    Err(HostError::Fq { reason })
}

/// Packets the device could not queue for the emulator.
fn tx_dropped(side: &'static str, namespace: &Namespace) -> Result<u64, HostError> {
    let failed = |reason: String| HostError::Counters { side, reason };
    let text = namespace
        .run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?
        .map_err(|error| failed(error.to_string()))?;
    dropped_of(&text).ok_or_else(|| failed(format!("no counters of {DEVICE} in {text:?}")))
}

/// The transmit side's `drop` column.
fn dropped_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "in a guest: make test"]
    fn a_host_has_a_table_of_connections_of_its_own() {
        let namespace = with_own_connections().unwrap();
        // A shared table is reported as a negative number.
        assert_eq!(namespace.sysctl_get("net.ipv4.tcp_ehash_entries").unwrap(), CONNECTIONS);
        assert_eq!(namespace.sysctl_get("net.ipv4.tcp_child_ehash_entries").unwrap(), "0");
    }

    #[test]
    fn drops_are_found_in_proc_net_dev() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo\n    \
            lo:       0       0    0    1    0     0          0         0        2       0    0    3    0\n\
            onramp0: 100 10 0 0 0 0 0 0 200 20 1 42 0 0 0 0\n";
        assert_eq!(dropped_of(text), Some(42));
        assert_eq!(dropped_of("onramp0: 1 2"), None);
        assert_eq!(dropped_of(""), None);
    }
}
