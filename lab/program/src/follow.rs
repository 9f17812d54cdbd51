//! What a flow of an experiment does, once a second, on stderr.

use std::sync::{Arc, Mutex, PoisonError};

use onramp_lab::experiment::{LiveSample, Watch};
use onramp_loader::Phase;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, Ack};

use crate::output::say;
use crate::units::show_value;

/// Connections that have sent less are not the download's.
const DOWNLOAD_BYTES: u64 = 50_000;
/// Between two lines, seconds.
const PERIOD_SECONDS: f64 = 1.0;

/// Prints a line a second.
pub(crate) fn follow() -> Watch {
    // When the next line is due; a time before the last look is a new run.
    let due = Mutex::new((0.0, 0.0));
    Watch(Arc::new(move |sample| {
        if sample.info.bytes_sent < DOWNLOAD_BYTES {
            return;
        }
        let mut times = due.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, next) = *times;
        let shown = sample.seconds < last || sample.seconds >= next;
        *times = (sample.seconds, if shown { sample.seconds.floor() + PERIOD_SECONDS } else { next });
        drop(times);
        if shown {
            say(&line(sample));
        }
    }))
}

fn line(sample: &LiveSample<'_>) -> String {
    let window = sample.info.cwnd_bytes() as f64 / 1e6;
    let mut line = format!(
        "      {:5.1} s  window {window:6.2} MB  RTT {:4.0} ms  acknowledged {:5.1} MB  retransmitted {}",
        sample.seconds,
        f64::from(sample.info.rtt_us) / 1e3,
        sample.info.bytes_acked as f64 / 1e6,
        sample.info.retrans_total
    );
    if let Some(storage) = sample.storage {
        line += &recorded(sample, storage);
    } else if let Some(threshold) = sample.info.snd_ssthresh {
        line += &format!("  threshold {:.2} MB", f64::from(threshold) * f64::from(sample.info.snd_mss) / 1e6);
    }
    line
}

/// State of our own flows.
fn recorded(sample: &LiveSample<'_>, storage: &[u8]) -> String {
    let Some(header) = FlowHeader::read(storage) else { return String::new() };
    let evidence = evidence(sample, storage).unwrap_or_default();
    let phase = match onramp_loader::phase(&header) {
        Phase::Unknown => "",
        Phase::SlowStart => "  slow start",
        Phase::Exiting(..) => "  draining",
        Phase::Left(..) => "  left",
        Phase::Adopted => "  adopted",
    };
    format!("{evidence}{phase}")
}

/// The value that the algorithm shows over time.
fn evidence(sample: &LiveSample<'_>, storage: &[u8]) -> Option<String> {
    let algorithm = algorithm::find(sample.arm)?;
    let (track, state) = (algorithm.track()?, onramp_loader::state(storage)?);
    let ack = Ack { cwnd: sample.info.snd_cwnd, mss: sample.info.snd_mss, ..Ack::default() };
    let value = algorithm.parameters().read_track(state, &ack).value?;
    Some(format!("  {} {}", track.title, show_value(track.unit, value)))
}
