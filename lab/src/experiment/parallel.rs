// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Many flows at once over a veth pair, each at a rate: what follows every acknowledgment meets here as many as the
//! machine makes.

use std::path::Path;
use std::time::Duration;

use onramp_net::Namespace;

use super::iperf3;
use super::transfer::Request;
use super::{Amount, Arm, ExperimentError, veth};
use crate::host::{self, Host};

/// What a write of the sender takes, bytes: small, so that a slow flow sends several times a second.
const BLOCK_BYTES: u32 = 16 * 1024;
/// How much later than planned a transfer may end; more means that it hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Flows that begin and end together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// How many, 1 to 128, as many as iperf3 has in one process.
    pub flows: u16,
    /// Rate that each sends at, bit/s; `None`: as fast as it goes.
    pub rate_bps: Option<u64>,
    /// How long, seconds.
    pub seconds: u32,
}

/// Lets flows run between two namespaces of their own, joined by a veth pair, in packets of one segment each, so that
/// there are as many acknowledgments as on a device without segmentation offload. `meanwhile` is called every few
/// milliseconds with the sender's namespace and the time since the beginning, and says whether to go on. Returns the
/// bytes received over the receiver's time, bit/s.
///
/// # Errors
/// [`ExperimentError`]: no root, no veth, no iperf3, a transfer that failed, or
/// [`super::Iperf3Error::Interrupted`] by `meanwhile`.
pub fn parallel_over_veth(
    arm: &Arm,
    load: Parallel,
    program: &Path,
    mut meanwhile: impl FnMut(&Namespace, Duration) -> bool,
) -> Result<f64, ExperimentError> {
    let (sender, receiver) = veth::veth_pair()?;
    let (sender, receiver) = (Host(sender), Host(receiver));
    host::ip("sender", &sender.0, "link set veth0 gso_max_segs 1\n")?;
    let amount = Amount::Seconds(load.seconds);
    let (request, options) = (Request::new(&arm.congestion_control, amount), options(load));
    let timeout = Duration::from_secs(load.seconds.into()) + TIMEOUT;
    let meanwhile = |elapsed| meanwhile(&sender.0, elapsed);
    let (sender, receiver) = (&sender.0, &receiver.0);
    let downloads = iperf3::download(program, sender, receiver, &[request], &options, timeout, meanwhile)?;
    let download = downloads.first().ok_or(ExperimentError::NoFlow)?;
    Ok(download.bytes as f64 * 8.0 / download.seconds)
}

/// iperf3's. Its rate is that of each stream, 0 for none.
fn options(load: Parallel) -> Vec<String> {
    let options = [("-P", load.flows.into()), ("-b", load.rate_bps.unwrap_or(0)), ("-l", BLOCK_BYTES.into())];
    options
        .into_iter()
        .flat_map(|(option, value): (&str, u64)| [option.to_owned(), value.to_string()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_each_flows_and_none_is_none() {
        let load = Parallel { flows: 64, rate_bps: Some(2_000_000), seconds: 3 };
        assert_eq!(options(load).join(" "), "-P 64 -b 2000000 -l 16384");
        assert_eq!(options(Parallel { rate_bps: None, ..load }).join(" "), "-P 64 -b 0 -l 16384");
    }
}
