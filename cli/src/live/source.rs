//! Where the events come from: rounds of all flows, acknowledgments of those that are open.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use onramp_loader::WaitWhile;
use onramp_loader::telemetry::{Filter, Item, Level, Options, Stream, What};

use super::flow::Flow;
use super::flow_table::FlowTable;
use crate::consumer::Wanted;

/// Kernel memory for what happens between two looks: rounds of all flows, about 20,000 of SEARCH's, which are the
/// largest.
const ROUNDS_BYTES: u32 = 16 << 20;
/// Acknowledgments of one flow, about 40,000.
const ACKS_BYTES: u32 = 8 << 20;
/// Events that are taken before keys and signals are looked at again.
const BATCH: u32 = 100_000;

/// Wait for one more event.
const HARDLY: Duration = Duration::from_millis(1);

pub(crate) struct Source {
    name: &'static str,
    rounds: Stream,
    /// By flow.
    acks: BTreeMap<u64, Stream>,
    wanted: Wanted,
}

impl Source {
    /// Becomes a consumer of telemetry with this name.
    pub fn open(
        name: &'static str,
        wanted: Wanted,
        wait: WaitWhile<'_>,
    ) -> Result<Self, onramp_loader::Error> {
        let mut options = Options::new(name, Level::Round);
        options.ring_bytes = ROUNDS_BYTES;
        options.subscription = wanted.subscription(Level::Round);
        Ok(Self { name, rounds: Stream::open_while(&options, wait)?, acks: BTreeMap::new(), wanted })
    }

    /// To be called once this process has given up privileges.
    pub fn restricted(&mut self) -> Result<(), onramp_loader::Error> {
        self.rounds.keep_anew()
    }

    /// Also every acknowledgment of this flow, by a consumer of its own.
    pub fn follow(&mut self, flow: &Flow, wait: WaitWhile<'_>) -> Result<(), onramp_loader::Error> {
        let mut options = Options::new(self.name, Level::Ack);
        options.ring_bytes = ACKS_BYTES;
        options.subscription.filter = only(flow.local, flow.remote);
        self.acks.insert(flow.id, Stream::open_while(&options, wait)?);
        Ok(())
    }

    /// No acknowledgments of this flow any more.
    pub fn leave(&mut self, flow: u64) {
        self.acks.remove(&flow);
    }

    /// Takes what there is.
    pub fn drain(&mut self, model: &mut FlowTable) -> Result<(), onramp_loader::Error> {
        let wanted = &mut self.wanted;
        take(&mut self.rounds, |item| match &item {
            Item::Event(event) if !wanted.has(event) => {}
            _ => model.add(&item),
        })?;
        for acks in self.acks.values_mut() {
            // All else comes by the other stream too.
            take(acks, |item| match &item {
                Item::Event(event) if !matches!(event.what, What::Ack(_)) => {}
                _ => model.add(&item),
            })?;
        }
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        model.rest(now.map_or(0, |now| Duration::from(now).as_micros() as u64));
        Ok(())
    }
}

fn take(stream: &mut Stream, mut give: impl FnMut(Item)) -> Result<(), onramp_loader::Error> {
    for _ in 0..BATCH {
        // Hardly waiting; unlike try_next it notices that its lease process is gone.
        match stream.next_within(HARDLY) {
            Ok(Some(item)) => give(item),
            Ok(None) => return Ok(()),
            // One broken event does not end it, but it is missing.
            Err(onramp_loader::Error::Event { .. }) => {
                give(Item::Lost(onramp_loader::telemetry::Lost { events: 1, ..Default::default() }))
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A filter that passes hardly any other flow.
fn only(local: SocketAddr, remote: SocketAddr) -> Filter {
    let bits = if remote.is_ipv4() { 32 } else { 128 };
    Filter {
        remote: Some((remote.ip(), bits)),
        remote_port: Some(remote.port()),
        local_port: Some(local.port()),
    }
}
