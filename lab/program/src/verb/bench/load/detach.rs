//! Detaching the default under load.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;

use super::super::attached::Attached;
use super::clients::{Load, Stop};
use super::latency::Quantiles;

/// Load before and after.
const AROUND: Duration = Duration::from_secs(2);

#[derive(Serialize)]
pub(super) struct Detach {
    /// Sockets moved to the previous default.
    pub sockets: usize,
    pub seconds: f64,
    /// Of the short connections from two seconds before to two seconds after.
    pub latency: Quantiles,
}

/// Detaches what the held connections run, while others come and go. All go on, on the previous default.
pub(super) fn measure(
    attached: Attached,
    load: Load<'_>,
    previous: &str,
    stop: &Stop,
) -> anyhow::Result<Detach> {
    let ((detached, seconds), stretch) = load.run_beside(stop, || {
        thread::sleep(AROUND);
        let begin = Instant::now();
        let detached = attached.detach()?;
        let seconds = begin.elapsed().as_secs_f64();
        thread::sleep(AROUND);
        Ok((detached, seconds))
    })?;
    ensure!(
        detached.stragglers.is_empty() && detached.held.copies == 0,
        "{} sockets are left on {}, which is still loaded",
        detached.stragglers.iter().map(|users| users.sockets).sum::<usize>(),
        detached.algorithm.name()
    );
    for (number, control) in load.place.controls()?.into_iter().enumerate() {
        ensure!(control == previous, "a held connection is on {control}, not on {previous}");
        load.place.goes_on(number)?;
    }
    Ok(Detach { sockets: detached.moved, seconds, latency: stretch.latency.quantiles() })
}
