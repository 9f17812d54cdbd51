//! `onramp record`.

mod facts;
mod rows;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use onramp_loader::telemetry::{Item, Level, Options, Stream};
use onramp_recording::{Limits, Manifest, Writer};
use serde::Serialize;

use crate::consumer::{self, Selection, Signals, Wanted, level_from};
use crate::output::Output;
use crate::target::directory;
use crate::units;
use rows::Rows;

/// Kernel memory between the flows and the recorder: about 160,000 acknowledgments.
const RING_BYTES: u32 = 32 << 20;
/// How long to wait for events before looking at the clock and at signals.
const LOOK: Duration = Duration::from_millis(200);
/// Events after which to look even if more are waiting.
const BATCH: u32 = 4_096;

/// Record what flows do into a directory, for replay and DuckDB
///
/// Tables of flows, acknowledgments, rounds, exits, congestion states and parameters as Parquet files, and a
/// manifest. What is older than five seconds is safe in a file, whatever happens to the recorder or the machine;
/// Ctrl-C ends a recording properly. FILTER as for ss(8): `src` or `dst` with PREFIX, PREFIX:PORT or :PORT; `sport`
/// or `dport` with a comparison, such as `= :443`, `!= :22`, `>= :1024`; `and`, `or`, `not` and parentheses, read
/// from left to right. Flows of all network namespaces are recorded.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp record -o recording --for 30s\n  onramp record -o recording --sample 100 dst 198.51.100.0/24\n  onramp record -o recording --level round\n  onramp replay recording --algorithm search"
)]
pub(crate) struct Record {
    /// Directory to make, or an empty one
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: PathBuf,
    /// How much: replay needs every acknowledgment
    #[arg(long, value_name = "LEVEL", default_value = "ack", value_parser = level_from(Level::Exit))]
    level: Level,
    /// End after this time: 30s, 10m, 2h [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = units::time_limit)]
    duration: Option<Duration>,
    #[command(flatten)]
    selection: Selection,
}

#[derive(Serialize)]
struct RecordReport {
    directory: PathBuf,
    duration_us: u64,
    rows: u64,
    files: usize,
    bytes: u64,
    dropped_events: u64,
}

impl Record {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let wanted = self.selection.wanted()?;
        let mut options = Options::new("record", self.level);
        options.ring_bytes = RING_BYTES;
        options.subscription = wanted.subscription(self.level);
        // From here on a signal ends the recording instead of the process. One that comes while other commands are waited for
        // leaves an empty recording.
        let signals = Signals::take()?;
        let stream = consumer::open(&signals, |wait| Stream::open_while(&options, wait))?;
        let manifest = facts::manifest(self.level, &signals)?;
        let writer = Writer::create(&self.output, manifest, Limits::default())?;
        output.progress(&format!("recording into {} …", self.output.display()));
        let begin = Instant::now();
        let rows = Rows::new(writer);
        let written = match stream {
            Some(stream) => self.follow(stream, wanted, rows, &signals, begin)?,
            None => self.finish(rows)?,
        };
        let report = RecordReport {
            directory: self.output,
            duration_us: begin.elapsed().as_micros() as u64,
            rows: written.files.iter().map(|file| file.rows).sum(),
            files: written.files.len(),
            bytes: written.files.iter().map(|file| file.bytes).sum(),
            dropped_events: written.dropped_events,
        };
        output.report(&report, || text(&report));
        Ok(0)
    }

    fn follow(
        &self,
        mut stream: Stream,
        mut wanted: Wanted,
        mut rows: Rows,
        signals: &Signals,
        begin: Instant,
    ) -> anyhow::Result<Manifest> {
        loop {
            let mut item = stream.next_within(LOOK);
            for _ in 0..BATCH {
                match item {
                    Ok(Some(Item::Event(event))) if !wanted.has(&event) => {}
                    Ok(Some(item)) => rows.add(&item).with_context(|| self.so_far(&rows))?,
                    Ok(None) => break,
                    // One broken event does not end a recording, but it is missing.
                    Err(onramp_loader::Error::Event { .. }) => {
                        rows.add(&missing(1)).with_context(|| self.so_far(&rows))?
                    }
                    Err(error) => return Err(anyhow::Error::from(error).context(self.so_far(&rows))),
                }
                item = stream.try_next();
            }
            rows.writer.tick().with_context(|| self.so_far(&rows))?;
            if signals.came() || self.duration.is_some_and(|duration| begin.elapsed() >= duration) {
                break;
            }
        }
        self.finish(rows)
    }

    fn finish(&self, rows: Rows) -> anyhow::Result<Manifest> {
        let so_far = self.so_far(&rows);
        rows.writer.finish(units::now_us()).context(so_far)
    }

    fn so_far(&self, rows: &Rows) -> String {
        format!(
            "the recording ends here; the {} rows written until now are readable in {}",
            rows.writer.rows_written(),
            self.output.display()
        )
    }
}

fn missing(events: u64) -> Item {
    Item::Lost(onramp_loader::telemetry::Lost { events, ..Default::default() })
}

fn text(report: &RecordReport) -> String {
    let mut text = format!(
        "recorded {} into {} in {}: {}, {}\n",
        units::count(report.rows as usize, "row"),
        report.directory.display(),
        units::count(report.files, "file"),
        units::show_us(report.duration_us),
        units::show_bytes(report.bytes)
    );
    if report.dropped_events > 0 {
        text += &format!("{} events came too fast and are missing\n", report.dropped_events);
    }
    text
}
