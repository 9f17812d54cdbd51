// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Watches the sender's connections over sock_diag, a look every few milliseconds, without touching them.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, SockDiagError, States};

use super::arm::FlowStorage;
use super::flow::Flow;
use super::{LiveSample, Watch};
use crate::clock;

/// Connections by cookie, with their port.
type Flows = HashMap<u64, (u16, Flow)>;

/// What to look at, and for whom.
pub(super) struct Watched {
    /// Ports of the servers, those of the competitor included.
    pub ports: Range<u16>,
    /// Name of the arm.
    pub arm: String,
    /// Where its flows record their exit.
    pub storage: Option<FlowStorage>,
    /// Shown the flow of the first port.
    pub watch: Option<Watch>,
}

/// A running sampler. Dropping it stops it.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Flows, SockDiagError>>>,
}

impl Sampler {
    /// Begins to look at the connections of the sender's server `ports` every `period`.
    pub fn start(
        sender: &Namespace,
        watched: Watched,
        period: Duration,
    ) -> Result<Self, super::ExperimentError> {
        let mut diag = sender.run(SockDiag::open)??;
        let stop = Arc::new(AtomicBool::new(false));
        let signal = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                let mut flows = HashMap::new();
                while !signal.load(Ordering::Relaxed) {
                    look(&mut diag, &watched, &mut flows)?;
                    std::thread::sleep(period);
                }
                Ok(flows)
            })
            .map_err(super::ExperimentError::Sampler)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// By port the connection that carried the data: the one that sent most.
    pub fn stop(mut self) -> Result<HashMap<u16, Flow>, SockDiagError> {
        let flows = self.join().unwrap_or_else(|| Ok(HashMap::new()))?;
        let sent = |flow: &Flow| flow.samples.last().map_or(0, |sample| sample.info.bytes_sent);
        let mut carriers = HashMap::<u16, Flow>::new();
        for (port, flow) in flows.into_values().filter(|(_, flow)| sent(flow) > 0) {
            match carriers.get(&port) {
                Some(other) if sent(other) >= sent(&flow) => {}
                _ => {
                    carriers.insert(port, flow);
                }
            }
        }
        Ok(carriers)
    }

    fn join(&mut self) -> Option<Result<Flows, SockDiagError>> {
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

fn look(diag: &mut SockDiag, watched: &Watched, flows: &mut Flows) -> Result<(), SockDiagError> {
    let storage = watched.storage.as_ref();
    let maps: Vec<_> = storage.iter().map(|storage| storage.map.as_fd()).collect();
    let at = clock::now();
    diag.dump(States::CONNECTED, &maps, |socket| {
        let port = socket.local.port();
        if !watched.ports.contains(&port) {
            return;
        }
        let (_, flow) = flows.entry(socket.cookie).or_insert_with(|| (port, Flow::default()));
        let first = port == watched.ports.start;
        let watch = watched.watch.as_ref().filter(|_| first);
        if let (Some(watch), Some(began), Some(info)) = (watch, flow.began_ns(), &socket.info) {
            watch.0(&LiveSample {
                arm: &watched.arm,
                seconds: at.saturating_sub(began) as f64 / 1e9,
                info,
                storage: socket.storages.first().map(|storage| storage.value.as_slice()),
            });
        }
        flow.add(at, socket, storage);
    })?;
    Ok(())
}
