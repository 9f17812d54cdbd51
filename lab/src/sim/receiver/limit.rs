// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What no sender can beat that obeys the receiver's window.

use std::time::Duration;

use super::ReceiverSpec;
use super::window::Window;
use crate::host::HostSpec;
use crate::link::Nanos;

/// Time from the first byte's arrival until `segments` have arrived if the sender fills the receiver's window at once, however
/// large, over a path of this RTT whose line needs `per_segment` for each, headers included. It is the line of the receiver
/// beside the [doubling limit](crate::population::doubling_limit), and counted as that is: a window takes a round trip until
/// the line is never idle.
pub fn receiver_limit(host: &HostSpec, segments: u64, rtt: Duration, per_segment: Duration) -> Duration {
    let spec = ReceiverSpec::new(host);
    let mss = u64::from(spec.mss);
    let mut window = Window::new(&spec, 0);
    window.expect(segments * mss);
    let (mut left, mut arrived, mut rounds) = (segments, 0, 0);
    loop {
        let offered = ((window.offered_end() - arrived) / mss).max(1);
        if left <= offered || per_segment.as_secs_f64() * offered as f64 >= rtt.as_secs_f64() {
            return rtt * rounds + per_segment.mul_f64(left as f64);
        }
        let begin = rtt * rounds;
        for number in 0..offered {
            let now = (begin + rtt + per_segment.mul_f64(number as f64)).as_nanos() as Nanos;
            window.sample(now, begin.as_micros() as u64);
            window.arrive(spec.mss, 0);
            window.read(now);
        }
        arrived += offered * mss;
        window.offer(arrived);
        left -= offered;
        rounds += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(600);
    const SEGMENT: Duration = Duration::from_micros(80);

    fn host(initial: u64) -> HostSpec {
        HostSpec::new([4_096, initial, 268_435_456], [4_096, 131_072, 268_435_456])
    }

    #[test]
    fn a_receiver_that_is_open_from_the_begin_leaves_the_line_alone() {
        assert_eq!(receiver_limit(&host(33_554_432), 3_661, RTT, SEGMENT), SEGMENT * 3_661);
    }

    #[test]
    fn a_stock_receiver_takes_64_kb_at_first_and_opens_by_what_arrives() {
        let rounds = |segments| receiver_limit(&host(131_072), segments, RTT, SEGMENT).as_millis() / 600;
        // 65,536 bytes, then what autotuning gives: 1 MB and 5.3 MB.
        assert_eq!([45, 46, 691, 3_661].map(rounds), [0, 1, 3, 5]);
    }
}
