//! A bottleneck on a wire: one FIFO queue in front of a fixed rate, for packets of full size.

use std::time::{Duration, Instant};

use crate::wire::{Data, Fate, Wire};

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

/// A long wire of 3 MB/s on which HyStart leaves early: its third round arrives late, and later ones do not. No segment passes
/// another.
///
/// # Panics
/// As [`Wire::lay`].
pub fn long_wire_that_misleads_hystart() -> Wire {
    let mut at_rate = bottleneck(3_000_000, 200);
    Wire::lay(Duration::from_millis(100), move |data: Data| {
        if (30..70).contains(&data.number) {
            Fate::HoldBack(Duration::from_millis(25))
        } else {
            at_rate(data)
        }
    })
}

/// A wire of 50 ms each way that loses one segment.
///
/// # Panics
/// As [`Wire::lay`].
pub fn wire_that_loses_one() -> Wire {
    Wire::lay(
        Duration::from_millis(50),
        |data: Data| if data.number == 300 { Fate::Drop } else { Fate::Deliver },
    )
}
