//! What one measurement comes to.

use std::time::Duration;

use serde::Serialize;

use super::consumer::Kind;
use super::load::Measured;

/// One consumer at one rate. All but the goodput is of the measured time alone.
#[derive(Serialize)]
pub(super) struct ConsumerRow {
    /// What each flow was allowed to send at; none: as fast as it goes.
    pub flow_rate_bps: Option<u64>,
    pub consumer: &'static str,
    /// Level of its subscription.
    pub level: &'static str,
    /// Of all flows together, over the whole transfer.
    pub goodput_bps: f64,
    pub duration_us: u64,
    /// Written into the consumer's ring.
    pub events_per_second: f64,
    /// There was no room for them.
    pub lost_events: u64,
    /// Losses over all events, 0 to 1.
    pub lost_ratio: f64,
    /// Time in which nothing was written for it at all, because its lease process had no processor time.
    pub unobserved_us: u64,
    /// Processor time of its process over the time.
    pub consumer_processors: f64,
    /// Of everything over the time: flows, consumer, kernel and whatever else ran.
    pub machine_processors: f64,
}

impl ConsumerRow {
    pub fn new(kind: Kind, flow_rate_bps: Option<u64>, measured: &Measured) -> Self {
        let (first, last) = (&measured.first, &measured.last);
        let time = last.at.saturating_duration_since(first.at);
        let reported = last.numbered.saturating_sub(first.numbered);
        let lost_events = last.lost.saturating_sub(first.lost);
        let seconds = time.as_secs_f64();
        Self {
            flow_rate_bps,
            consumer: kind.name(),
            level: kind.level().name(),
            goodput_bps: measured.goodput_bps,
            duration_us: time.as_micros() as u64,
            events_per_second: reported.saturating_sub(lost_events) as f64 / seconds,
            lost_events,
            lost_ratio: if reported == 0 { 0.0 } else { lost_events as f64 / reported as f64 },
            unobserved_us: micros(last.unobserved.saturating_sub(first.unobserved)),
            consumer_processors: (last.consumer_seconds - first.consumer_seconds) / seconds,
            machine_processors: (last.machine_seconds - first.machine_seconds) / seconds,
        }
    }

    /// Nothing is missing.
    fn complete(&self) -> bool {
        self.lost_events == 0 && self.unobserved_us == 0
    }

    /// Events that there were, lost ones too.
    fn offered_per_second(&self) -> f64 {
        self.events_per_second + self.lost_events as f64 * 1e6 / self.duration_us as f64
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Where the losses of a consumer begin.
pub(super) fn summary<'a>(consumer: &str, rows: impl Iterator<Item = &'a ConsumerRow>) -> String {
    let (complete, broken): (Vec<&ConsumerRow>, Vec<&ConsumerRow>) = rows.partition(|row| row.complete());
    let most = complete.iter().map(|row| row.events_per_second).max_by(f64::total_cmp);
    let least = broken.iter().map(|row| row.offered_per_second()).min_by(f64::total_cmp);
    let most = most.map_or_else(
        || "lost events at every rate".into(),
        |most| format!("nothing lost at {most:.0} events/s"),
    );
    let least = least.map_or_else(|| "no losses".into(), |least| format!("losses from {least:.0} on"));
    let unobserved: u64 = broken.iter().map(|row| row.unobserved_us).sum();
    let mut line = format!("{consumer}: {most}, {least}");
    if unobserved > 0 {
        line += &format!("; for {} nothing was written at all", crate::units::show_us(unobserved));
    }
    line + "\n"
}
