//! `onramp watch`.

mod row;
mod starts;
mod text;

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use onramp_loader::telemetry::{Item, Level, Lost, Options, Stream, What};
use onramp_recording::replay::Regret;
use serde::Serialize;

use crate::consumer::{self, Selection, Signals, Wanted, level_from};
use crate::limits::Limit;
use crate::live::FlowTable;
use crate::output::{Output, printable};
use crate::units;
use row::EventRow;
use starts::Starts;

/// Kernel memory between the flows and the watcher: about 80,000 acknowledgments.
const RING_BYTES: u32 = 16 << 20;
/// How long to wait for events before looking at the clock, at signals and at the reader.
const LOOK: Duration = Duration::from_millis(200);
/// Events after which to look even if more are waiting.
const BATCH: u32 = 4_096;
/// Flows whose rounds are followed at once, to say at the end what the exit cost.
const FLOWS: usize = 10_000;
/// Of the past of each, which is not shown.
const BUCKETS: usize = 2;

/// Print events of flows, one line per event
///
/// With --json one object per line, with "schema": 1, units in the names of its fields; docs/watch.md has them all.
/// Flows of all network namespaces, on algorithms attached now or later; an established flow is reported at its next
/// ACK. Events that arrive faster than they are read are dropped; a `lost` event has their number. Times are of the
/// monotonic clock, in text output seconds since the watch began. FILTER as for ss(8): `src` or `dst` with PREFIX,
/// PREFIX:PORT or :PORT; `sport` or `dport` with a comparison, such as `= :443`, `!= :22`, `>= :1024`; `and`, `or`,
/// `not` and parentheses, read from left to right. Ends at Ctrl-C, SIGTERM or when its reader goes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp watch
  onramp watch --level round dst 198.51.100.0/24 and dport = :443
  onramp watch --level ack --sample 100 --for 30s --json > events.ndjson
  onramp watch --json | jq 'select(.event == \"exit\") | .exit.reason'")]
pub(crate) struct Watch {
    /// How much
    #[arg(long, value_name = "LEVEL", default_value = "exit", value_parser = level_from(Level::Exit))]
    level: Level,
    /// End after this time: 30s, 10m, 2h
    #[arg(long = "for", value_name = "TIME", value_parser = units::time_limit)]
    duration: Option<Duration>,
    /// End after this many events; reports of losses do not count
    #[arg(long, value_name = "N", value_parser = units::number(1..=1_000_000_000_000_u64))]
    count: Option<u64>,
    #[command(flatten)]
    selection: Selection,
}

/// Where events go, and how many have gone.
/// What the exit of a flow that has ended has cost.
#[derive(Clone, Copy, Serialize)]
struct Cost {
    #[serde(flatten)]
    regret: Regret,
    /// Its bandwidth-delay product is a lower bound.
    bdp_at_least: bool,
}

/// What came of a flow that has ended.
#[derive(Clone, Copy, Default)]
struct Summary {
    regret: Option<Cost>,
    limited: Option<Limit>,
}

struct Printer<'a> {
    output: &'a Output,
    out: BufWriter<StdoutLock<'static>>,
    start_us: u64,
    last_us: u64,
    events: u64,
    flows: FlowTable,
    starts: Starts,
}

impl Watch {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let wanted = self.selection.wanted()?;
        let mut options = Options::new("watch", self.level);
        options.ring_bytes = RING_BYTES;
        options.subscription = wanted.subscription(self.level);
        // From here on a signal ends the watch instead of the process.
        let signals = Signals::take()?;
        let Some(stream) = consumer::open(&signals, |wait| Stream::open_while(&options, wait))? else {
            return Ok(0);
        };
        match self.follow(stream, wanted, &signals, Printer::new(output)?) {
            // A reader that has gone away has seen what it wanted.
            Err(error) if broken_pipe(&error) => Ok(0),
            other => other.map(|()| 0),
        }
    }

    fn follow(
        &self,
        mut stream: Stream,
        mut wanted: Wanted,
        signals: &Signals,
        mut printer: Printer<'_>,
    ) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let left = self.duration.map(|duration| duration.saturating_sub(begin.elapsed()));
            let mut item = stream.next_within(left.map_or(LOOK, |left| left.min(LOOK)));
            for _ in 0..BATCH {
                match item {
                    Ok(Some(Item::Event(event))) if !wanted.has(&event) => {}
                    Ok(Some(item)) => printer.print(&item)?,
                    Ok(None) => break,
                    // One broken event does not end the watch, but it is missing.
                    Err(onramp_loader::Error::Event { .. }) => printer.print(&missing())?,
                    Err(error) => return Err(error.into()),
                }
                if self.count.is_some_and(|count| printer.events >= count) {
                    return printer.flush();
                }
                item = stream.try_next();
            }
            printer.flush()?;
            if signals.came() || left.is_some_and(|left| left.is_zero()) || printer.unread() {
                return Ok(());
            }
        }
    }
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output) -> anyhow::Result<Self> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
        let now_us = now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1_000;
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Ok(Self {
            output,
            out,
            start_us: now_us,
            last_us: now_us,
            events: 0,
            flows: FlowTable::new(FLOWS, BUCKETS),
            starts: Starts::default(),
        })
    }

    fn print(&mut self, item: &Item) -> anyhow::Result<()> {
        let summary = self.summary(item);
        if let Item::Event(event) = item {
            self.last_us = event.time_ns / 1_000;
            self.events += 1;
        }
        let written = if self.output.json() {
            self.output.line(&mut self.out, &EventRow::new(item, self.last_us, summary))
        } else {
            let seconds = self.last_us.saturating_sub(self.start_us) as f64 / 1e6;
            if let Item::Event(event) = item
                && let Some(line) = self.starts.changed(event)
            {
                writeln!(self.out, "{seconds:10.6}  {line}").context("cannot write to stdout")?;
            }
            writeln!(self.out, "{seconds:10.6}  {}", printable(&text::line(item, summary)))
        };
        written.context("cannot write to stdout")
    }

    /// Of a flow that ends.
    fn summary(&mut self, item: &Item) -> Summary {
        let Item::Event(event) = item else { return Summary::default() };
        if matches!(event.what, What::Ack(_)) {
            return Summary::default();
        }
        self.flows.add(item);
        let ended = if matches!(event.what, What::End(_)) { self.flows.remove(event.flow) } else { None };
        let Some(flow) = ended else { return Summary::default() };
        let bdp_at_least = flow.given().is_some_and(|given| given.at_least);
        let regret = flow.regret().map(|regret| Cost { regret, bdp_at_least });
        Summary { regret, limited: flow.limited.now() }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().context("cannot write to stdout")
    }

    /// Whether stdout is a pipe without a reader.
    fn unread(&self) -> bool {
        let mut fds = [PollFd::new(self.out.get_ref().as_fd(), PollFlags::empty())];
        let asked = poll(&mut fds, PollTimeout::ZERO).is_ok();
        asked && fds[0].revents().is_some_and(|revents| revents.contains(PollFlags::POLLERR))
    }
}

fn missing() -> Item {
    Item::Lost(Lost { events: 1, ..Lost::default() })
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
