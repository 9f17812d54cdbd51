//! Where the events come from: rounds of all flows, acknowledgements of the one that is open.

use std::net::SocketAddr;
use std::time::Duration;

use onramp_loader::telemetry::{Filter, Item, Level, Options, Stream, What};

use super::model::{Flow, Model};
use crate::consumer::Wanted;

/// Kernel memory for what happens between two looks: rounds of all flows, about 20,000 of SEARCH's, which are the
/// largest.
const ROUNDS_BYTES: u32 = 16 << 20;
/// Acknowledgements of one flow, about 40,000.
const ACKS_BYTES: u32 = 8 << 20;
/// Events that are taken before keys and signals are looked at again.
const BATCH: u32 = 100_000;

/// Wait for one more event.
const HARDLY: Duration = Duration::from_millis(1);

pub(super) struct Source {
    rounds: Stream,
    acks: Option<Stream>,
    wanted: Wanted,
}

impl Source {
    pub fn open(wanted: Wanted) -> Result<Self, onramp_loader::Error> {
        let mut options = Options::new("top", Level::Round);
        options.ring_bytes = ROUNDS_BYTES;
        options.wish = wanted.wish(Level::Round);
        Ok(Self { rounds: Stream::open(&options)?, acks: None, wanted })
    }

    /// Also every acknowledgement of this flow; of none.
    pub fn follow(&mut self, flow: Option<&Flow>) -> Result<(), onramp_loader::Error> {
        self.acks = None;
        let Some(flow) = flow else { return Ok(()) };
        let mut options = Options::new("top", Level::Ack);
        options.ring_bytes = ACKS_BYTES;
        options.wish.filter = only(flow.local, flow.remote);
        self.acks = Some(Stream::open(&options)?);
        Ok(())
    }

    /// Takes what there is.
    pub fn drain(&mut self, model: &mut Model) -> Result<(), onramp_loader::Error> {
        let wanted = &mut self.wanted;
        take(&mut self.rounds, |item| match &item {
            Item::Event(event) if !wanted.has(event) => {}
            _ => model.add(&item),
        })?;
        if let Some(acks) = &mut self.acks {
            // All else comes by the other stream too.
            take(acks, |item| match &item {
                Item::Event(event) if !matches!(event.what, What::Ack(_)) => {}
                _ => model.add(&item),
            })?;
        }
        Ok(())
    }
}

fn take(stream: &mut Stream, mut give: impl FnMut(Item)) -> Result<(), onramp_loader::Error> {
    for _ in 0..BATCH {
        // Hardly waiting; unlike try_next it notices that its keeper is gone.
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
