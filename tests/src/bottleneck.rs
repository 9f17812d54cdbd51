//! A bottleneck on a wire: one FIFO queue in front of a fixed rate, for packets of full size.

use std::time::{Duration, Instant};

use crate::wire::{Data, Fate};

/// Bytes of payload in a packet of full size.
pub const SEGMENT: u32 = 1448;

/// Fates of the data packets that share a bottleneck of `rate` bytes of payload per second, whose queue holds `queue`
/// of them.
pub fn bottleneck(rate: u32, queue: u32) -> impl FnMut(Data) -> Fate + Send + 'static {
    let each = Duration::from_secs(1) * SEGMENT / rate;
    let mut free = Instant::now();
    move |_| {
        let now = Instant::now();
        let wait = free.saturating_duration_since(now);
        if wait > each * queue {
            return Fate::Drop;
        }
        free = free.max(now) + each;
        Fate::HoldBack(wait + each)
    }
}
