//! What an idle connection takes of the kernel's memory, by the figures of its slab allocator.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use nix::libc::linger;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};
use onramp_lab::experiment::Clock;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm;
use onramp_net::Namespace;
use onramp_profiles::Profile;
use serde::Serialize;

use super::slab::{allow_files, slab_bytes};
use crate::arm::Arms;
use crate::output::Output;
use crate::table::Table;
use crate::units;

/// What the others are measured against.
const REFERENCE: &str = "cubic";
/// Sent by a connection that stays in its initial window of ten segments, and by one that has sent more.
const IN_INITIAL_WINDOW: usize = 5_000;
const BEYOND_INITIAL_WINDOW: usize = 20_000;
/// Of a port: its own end of each takes one of 28,232, of which `connect` looks through half before the other half, and the
/// longer the more are taken.
const FLOWS_PER_PORT: u32 = 5_000;
/// After which what an arm has left is free again.
const PAUSE: Duration = Duration::from_secs(2);

/// What idle connections take of the kernel's memory, compared with those of the kernel's own CUBIC
///
/// Connections over loopback, both ends of which are idle once some bytes have gone one way: fewer than an initial window
/// holds, or more. Memory is what the slab allocator counts (/proc/slabinfo), of both ends together.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab guest --memory 8000 --program ip -- onramp-lab bench memory --flows 100000"
)]
pub(super) struct MemoryOptions {
    /// Arms in addition to cubic: algorithms, also with parameters [default: all algorithms]
    #[arg(value_name = "ARM")]
    arms: Vec<String>,
    /// Connections at once, 100 to 200000; each takes two files
    #[arg(long, default_value_t = 10_000, value_parser = units::number(100..=200_000_u32))]
    flows: u32,
}

#[derive(Serialize)]
struct Memory {
    flows: u32,
    header_bytes: usize,
    arms: Vec<MemoryRow>,
}

#[derive(Serialize)]
struct MemoryRow {
    arm: String,
    /// Of a connection that stays in its initial window, both ends.
    initial_window_bytes_per_flow: f64,
    /// Of one that has sent more.
    established_bytes_per_flow: f64,
}

impl MemoryOptions {
    pub fn run(self, profile: &Profile, output: &Output) -> anyhow::Result<u8> {
        let mut names = vec![REFERENCE.to_owned()];
        if self.arms.is_empty() {
            names.extend(algorithm::all().map(|one| one.name().to_owned()));
        } else {
            names.extend(self.arms);
        }
        let arms = Arms::prepare(&names, profile, &[], &Clock::Machine)?;
        let mut rows = Vec::new();
        for arm in &arms.arms {
            output.step(&format!("memory: {} …", arm.name));
            if let Some(ready) = &arm.ready {
                (ready.0)().map_err(anyhow::Error::from_boxed)?;
            }
            let of = |bytes| taken(&arm.congestion_control, self.flows, bytes);
            rows.push(MemoryRow {
                arm: arm.name.clone(),
                initial_window_bytes_per_flow: of(IN_INITIAL_WINDOW)?,
                established_bytes_per_flow: of(BEYOND_INITIAL_WINDOW)?,
            });
        }
        let report = Memory { flows: self.flows, header_bytes: size_of::<FlowHeader>(), arms: rows };
        output.data(&report, || text(&report, output))?;
        Ok(0)
    }
}

fn text(report: &Memory, output: &Output) -> String {
    let mut table = Table::new(["ARM", ">INITIAL WINDOW", ">TO CUBIC", ">BEYOND", ">TO CUBIC"]);
    let reference = &report.arms[0];
    for row in &report.arms {
        let (first, beyond) = (row.initial_window_bytes_per_flow, row.established_bytes_per_flow);
        table.push([
            row.arm.clone(),
            format!("{first:.0} B"),
            format!("{:+.0} B", first - reference.initial_window_bytes_per_flow),
            format!("{beyond:.0} B"),
            format!("{:+.0} B", beyond - reference.established_bytes_per_flow),
        ]);
    }
    format!("{} connections at once\n\n{}", report.flows, table.render(output))
}

/// Bytes of memory that each of so many idle connections takes, after so many bytes have been sent over it.
fn taken(control: &str, flows: u32, bytes: usize) -> anyhow::Result<f64> {
    let place = Namespace::create()?;
    let up = place.command("ip").args(["link", "set", "lo", "mtu", "1500", "up"]).status()?;
    ensure!(up.success(), "`ip link set lo mtu 1500 up` failed");
    thread::sleep(PAUSE);
    place.run(|| {
        allow_files(u64::from(flows) * 2)?;
        let before = slab_bytes()?;
        let held = connections(control, flows, bytes)?;
        let after = slab_bytes()?;
        drop(held);
        Ok((after as f64 - before as f64) / f64::from(flows))
    })?
}

/// Both ends of each connection, the sender's with the control.
fn connections(control: &str, flows: u32, bytes: usize) -> anyhow::Result<Vec<(TcpStream, TcpStream)>> {
    let mut held = Vec::with_capacity(flows as usize);
    let (sent, mut read) = (vec![0; bytes], vec![0; bytes]);
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    for number in 0..flows {
        if number > 0 && number.is_multiple_of(FLOWS_PER_PORT) {
            listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        }
        let mut sender = sender(control, listener.local_addr()?.port())?;
        let (mut receiver, _) = listener.accept()?;
        sender.write_all(&sent)?;
        receiver.read_exact(&mut read)?;
        held.push((sender, receiver));
    }
    Ok(held)
}

/// A connection to the port, which leaves nothing behind when it is closed.
fn sender(control: &str, port: u16) -> anyhow::Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &control.into())
        .with_context(|| format!("congestion control {control}"))?;
    setsockopt(&socket, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 })?;
    connect(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port))?;
    Ok(TcpStream::from(socket))
}
