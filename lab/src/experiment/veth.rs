// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A transfer over a veth pair, as fast as the machine goes: what a congestion control costs where the network is not
//! the limit.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use onramp_net::Namespace;

use super::iperf3;
use super::transfer::Request;
use super::{Amount, Arm, ExperimentError, cpu};
use crate::host::{self, RECEIVER, SENDER};

/// A transfer at memory speed takes seconds; more than this means that it hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What a transfer took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VethRun {
    /// Receiver's time, seconds.
    pub seconds: f64,
    /// Bytes received over that time, bit/s.
    pub goodput_bps: f64,
    /// Processor time of the whole machine meanwhile, seconds: sender, receiver and kernel.
    pub cpu_seconds: f64,
    /// Bytes received.
    pub bytes: u64,
}

/// Transfers `bytes` between two namespaces of its own, joined by a veth pair.
///
/// # Errors
/// [`ExperimentError`]: no root, no veth, no iperf3, or a transfer that failed.
pub fn over_veth(arm: &Arm, bytes: u64, program: &Path) -> Result<VethRun, ExperimentError> {
    let (sender, receiver) = veth_pair()?;
    let before = cpu::busy_seconds()?;
    let request = Request::new(&arm.congestion_control, Amount::Bytes(bytes));
    let downloads = iperf3::download(program, &sender, &receiver, &[request], &[], TIMEOUT, |_| true)?;
    let download = downloads.first().ok_or(ExperimentError::NoFlow)?;
    let cpu_seconds = cpu::busy_seconds()? - before;
    let goodput_bps = download.bytes as f64 * 8.0 / download.seconds;
    Ok(VethRun { seconds: download.seconds, goodput_bps, cpu_seconds, bytes: download.bytes })
}

/// Two namespaces, with the addresses [`SENDER`] and [`RECEIVER`], and the pair between them, which ends with them.
///
/// # Errors
/// [`ExperimentError`]: no root or no veth.
pub fn veth_pair() -> Result<(Namespace, Namespace), ExperimentError> {
    let (sender, receiver) = (Namespace::create()?, Namespace::create()?);
    let there = format!("/proc/{}/fd/{}", std::process::id(), receiver.as_fd().as_raw_fd());
    let join = format!("link add veth0 type veth peer name veth0 netns {there}\n");
    host::ip("sender", &sender, &(join + &settings(SENDER)))?;
    host::ip("receiver", &receiver, &settings(RECEIVER))?;
    Ok((sender, receiver))
}

fn settings(address: Ipv4Addr) -> String {
    format!("link set lo up\nlink set veth0 up\naddress add {address}/24 dev veth0\n")
}
