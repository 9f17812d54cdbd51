// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Watches the sender's connections over sock_diag, a look every few milliseconds, without touching them.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, SockDiagError, Socket, States, TcpInfo};

use super::arm::{Arm, Exit, ExitSource, FlowStorage};
use super::iperf3::PORT;
use super::{Sight, Watch};
use crate::clock;
use crate::link::Nanos;

/// One look at a connection.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// When, CLOCK_MONOTONIC.
    pub at_ns: Nanos,
    /// What the kernel said.
    pub info: TcpInfo,
}

/// All that was seen of one connection.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Name of its congestion control, as seen last.
    pub congestion_control: String,
    /// The looks, in order of time.
    pub samples: Vec<FlowSample>,
    /// The exit that its socket storage showed last.
    pub recorded: Option<Exit>,
}

impl Flow {
    fn add(&mut self, at_ns: Nanos, socket: Socket, storage: Option<&FlowStorage>) {
        let Some(info) = socket.info else { return };
        self.samples.push(FlowSample { at_ns, info });
        if let Some(name) = socket.congestion_control {
            self.congestion_control = name;
        }
        if let Some(storage) = storage {
            let decoded = socket.storages.iter().find_map(|found| (storage.decode)(&found.value));
            if let Some(exit) = decoded {
                self.recorded = Some(Exit { source: ExitSource::Record, ..exit });
            }
        }
    }

    /// When the first data was seen sent: late by up to the sampling period.
    pub fn began_ns(&self) -> Option<Nanos> {
        self.samples.iter().find(|sample| sample.info.bytes_sent > 0).map(|sample| sample.at_ns)
    }

    /// Largest smoothed round-trip time, microseconds.
    pub fn max_rtt_us(&self) -> u32 {
        self.samples.iter().map(|sample| sample.info.rtt_us).max().unwrap_or(0)
    }

    /// How slow start ended as far as looking from outside shows: the first look with a finite threshold before `bytes`
    /// were acknowledged (later the kernel sets one because the connection is idle). `None` for flows that never left.
    ///
    /// BBR sets the threshold when it believes the pipe is full and begins to drain, losses or not: always a heuristic.
    pub fn sampled_exit(&self, bytes: u64) -> Option<Exit> {
        let began = self.began_ns()?;
        let at = self.samples.iter().position(|sample| sample.info.snd_ssthresh.is_some())?;
        if self.samples[at].info.bytes_acked >= bytes {
            return None;
        }
        let sample = self.samples[at];
        let before = self.samples[..at].last().unwrap_or(&sample);
        let bbr = self.congestion_control.starts_with("bbr");
        // Recovery states are 2 (ECN), 3 (loss) and 4 (timeout).
        let losing = sample.info.retrans_total > 0 || sample.info.lost > 0 || sample.info.ca_state >= 2;
        let loss = losing && !bbr;
        let mss = u64::from(sample.info.snd_mss);
        Some(Exit {
            reason: if loss { "loss" } else { "heuristic" }.into(),
            seconds: sample.at_ns.saturating_sub(began) as f64 / 1e9,
            // HyStart's threshold is its window; a loss has reduced both, and BBR's is an estimate of the BDP, so take
            // the window seen before.
            window_bytes: match sample.info.snd_ssthresh {
                Some(segments) if !loss && !bbr => u64::from(segments) * mss,
                _ => before.info.cwnd_bytes(),
            },
            source: ExitSource::Sampled,
        })
    }
}

/// A running sampler. Dropping it stops it.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<HashMap<u64, Flow>, SockDiagError>>>,
}

impl Sampler {
    /// Begins to look at the connections of the sender's server port every `period`.
    pub fn start(
        sender: &Namespace,
        arm: Arm,
        watch: Option<Watch>,
        period: Duration,
    ) -> Result<Self, super::ExperimentError> {
        let mut diag = sender.run(SockDiag::open)??;
        let stop = Arc::new(AtomicBool::new(false));
        let signal = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                let mut flows = HashMap::<u64, Flow>::new();
                while !signal.load(Ordering::Relaxed) {
                    look(&mut diag, &arm, watch.as_ref(), &mut flows)?;
                    std::thread::sleep(period);
                }
                Ok(flows)
            })
            .map_err(super::ExperimentError::Sampler)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// The connection that carried the data: the one that sent most.
    pub fn stop(mut self) -> Result<Option<Flow>, SockDiagError> {
        let flows = self.join().unwrap_or_else(|| Ok(HashMap::new()))?;
        let sent = |flow: &Flow| flow.samples.last().map_or(0, |sample| sample.info.bytes_sent);
        Ok(flows.into_values().max_by_key(sent).filter(|flow| sent(flow) > 0))
    }

    fn join(&mut self) -> Option<Result<HashMap<u64, Flow>, SockDiagError>> {
        self.stop.store(true, Ordering::Relaxed);
        // The thread does not panic; if it ever does, there is nothing to report.
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn look(
    diag: &mut SockDiag,
    arm: &Arm,
    watch: Option<&Watch>,
    flows: &mut HashMap<u64, Flow>,
) -> Result<(), SockDiagError> {
    let storage = arm.storage.as_ref();
    let maps: Vec<_> = storage.iter().map(|storage| storage.map.as_fd()).collect();
    let at = clock::now();
    diag.dump(States::CONNECTED, &maps, |socket| {
        if socket.local.port() == PORT {
            let flow = flows.entry(socket.cookie).or_default();
            if let (Some(watch), Some(began), Some(info)) = (watch, flow.began_ns(), &socket.info) {
                watch.0(&Sight {
                    arm: &arm.name,
                    seconds: at.saturating_sub(began) as f64 / 1e9,
                    info,
                    storage: socket.storages.first().map(|storage| storage.value.as_slice()),
                });
            }
            flow.add(at, socket, storage);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(infos: impl IntoIterator<Item = TcpInfo>) -> Flow {
        let samples = (1..).zip(infos).map(|(at, info)| FlowSample {
            at_ns: at * 1_000_000_000,
            info: TcpInfo { snd_mss: 1_448, ..info },
        });
        Flow { samples: samples.collect(), ..Flow::default() }
    }

    fn info(bytes_sent: u64, cwnd: u32, ssthresh: Option<u32>, retrans: u32) -> TcpInfo {
        TcpInfo {
            bytes_sent,
            snd_cwnd: cwnd,
            snd_ssthresh: ssthresh,
            retrans_total: retrans,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn a_heuristic_exit_shows_its_threshold() {
        let flow = flow([
            info(0, 10, None, 0),
            info(9, 10, None, 0),
            info(9, 40, None, 0),
            info(9, 45, Some(44), 0),
        ]);
        let exit = flow.sampled_exit(100).unwrap();
        assert_eq!((exit.reason.as_str(), exit.seconds, exit.window_bytes), ("heuristic", 2.0, 44 * 1_448));
    }

    #[test]
    fn an_exit_by_loss_shows_the_window_before() {
        let flow = flow([info(9, 10, None, 0), info(9, 400, None, 0), info(9, 210, Some(200), 5)]);
        let exit = flow.sampled_exit(100).unwrap();
        assert_eq!((exit.reason.as_str(), exit.seconds, exit.window_bytes), ("loss", 2.0, 400 * 1_448));
    }

    #[test]
    fn bbr_leaves_by_its_own_estimate_also_while_packets_are_lost() {
        let infos = [info(9, 10, None, 0), info(9, 400, None, 7), info(9, 390, Some(150), 9)];
        let exit = Flow { congestion_control: "bbr".into(), ..flow(infos) }.sampled_exit(100).unwrap();
        assert_eq!((exit.reason.as_str(), exit.window_bytes), ("heuristic", 400 * 1_448));
    }

    #[test]
    fn no_threshold_no_exit() {
        assert_eq!(flow([info(9, 10, None, 0), info(9, 400, None, 5)]).sampled_exit(100), None);
        assert_eq!(flow([]).sampled_exit(100), None);
        let idle = TcpInfo { bytes_acked: 100, ..info(100, 400, Some(300), 0) };
        assert_eq!(flow([info(9, 10, None, 0), idle]).sampled_exit(100), None);
    }
}
