//! Two consumers of every ACK; the second subscribes while the first reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use onramp_loader::telemetry::{Event, Item, Level, Options, Stream, What};
use serde::Serialize;

use super::clients::{Load, Stop};

/// Every held connection has its turn once in ten seconds.
const ALONE: Duration = Duration::from_secs(11);
const TOGETHER: Duration = Duration::from_secs(11);
/// How long a consumer waits for an event before it looks whether to end.
const LOOK: Duration = Duration::from_millis(200);
/// How long it reads what is left once it is to end, at most.
const REST: Duration = Duration::from_secs(2);

/// What both came to.
#[derive(Serialize)]
pub(super) struct Consumers {
    pub first: Received,
    pub second: Received,
}

/// What one consumer came to.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Received {
    pub events: u64,
    /// Flows that were reported to it.
    pub flows: u64,
    /// Events that the kernel says were lost.
    pub lost: u64,
    /// Events that are missing between two of the same flow.
    pub missing: u64,
    /// Events of flows that were not reported to it.
    pub unannounced: u64,
}

impl Received {
    /// Losses that were not counted: the most of what is missing, or was about a flow unheard of, without a loss that
    /// explains it.
    pub fn uncounted(&self) -> u64 {
        let unexplained = if self.lost == 0 { self.unannounced } else { 0 };
        self.missing.saturating_sub(self.lost) + unexplained
    }
}

/// A consumer and the last number of each flow that it knows.
#[derive(Default)]
struct Count {
    received: Received,
    last: HashMap<u64, u32>,
}

impl Count {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Lost(lost) => self.received.lost += lost.events,
            Item::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) {
        self.received.events += 1;
        let before = if matches!(event.what, What::End(_)) {
            self.last.remove(&event.flow)
        } else {
            self.last.insert(event.flow, event.sequence)
        };
        match before {
            Some(before) => {
                let step = event.sequence.wrapping_sub(before);
                self.received.missing += u64::from(step.saturating_sub(1));
            }
            None if matches!(event.what, What::Flow(_)) => self.received.flows += 1,
            None => self.received.unannounced += 1,
        }
    }
}

/// Reads until asked to end, and then what was emitted until then.
fn listen(mut stream: Stream, over: &AtomicBool) -> anyhow::Result<Received> {
    let mut count = Count::default();
    let mut ended = None;
    loop {
        let next = stream.next_within(LOOK)?;
        if ended.is_none() && over.load(Ordering::Relaxed) {
            ended = Some(Instant::now());
        }
        if let Some(item) = &next {
            count.item(item);
        }
        // With connections of others there may always be a next one.
        if ended.is_some_and(|ended| next.is_none() || ended.elapsed() > REST) {
            count.received.lost += stream.lost().saturating_sub(count.received.lost);
            return Ok(count.received);
        }
    }
}

pub(super) fn measure(load: Load<'_>, stop: &Stop) -> anyhow::Result<Consumers> {
    let over = AtomicBool::new(false);
    let open = |name| Stream::open(&Options::new(name, Level::Ack));
    let received = |thread: thread::ScopedJoinHandle<'_, _>| {
        thread.join().map_err(|_| anyhow!("a consumer has panicked"))
    };
    let first = open("bench-first")?;
    thread::scope(|scope| {
        let first = scope.spawn(|| listen(first, &over));
        let both = load.run(ALONE, stop).and_then(|_| {
            let second = open("bench-second")?;
            let second = scope.spawn(|| listen(second, &over));
            Ok((second, load.run(TOGETHER, stop)))
        });
        over.store(true, Ordering::Relaxed);
        let first = received(first)??;
        let (second, together) = both?;
        let second = received(second)??;
        together?;
        Ok(Consumers { first, second })
    })
}
