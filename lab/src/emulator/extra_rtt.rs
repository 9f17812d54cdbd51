// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which flow a packet is of, and what that adds to its delay.

use super::Way;
use crate::link::Nanos;

const VERSION_4: u8 = 4;

/// What flows have of RTT besides that of the link, half of it each way, behind the queue. A flow is known by the port that
/// its data come from; what others send has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraRtts {
    first_port: u16,
    /// Each way, of the flows from ports that follow each other.
    one_way: Vec<Nanos>,
}

impl ExtraRtts {
    /// Microseconds, of the flows whose data come from `first_port` and those that follow it.
    pub fn new(first_port: u16, extra_rtt_us: &[u64]) -> Self {
        Self { first_port, one_way: extra_rtt_us.iter().map(|rtt_us| one_way(*rtt_us)).collect() }
    }

    /// Of the flow that an IP packet is of.
    pub(super) fn delay(&self, way: Way, ip: &[u8]) -> Nanos {
        if self.one_way.is_empty() {
            return 0;
        }
        let number = port(way, ip).and_then(|port| port.checked_sub(self.first_port));
        number.and_then(|number| self.one_way.get(usize::from(number))).copied().unwrap_or(0)
    }
}

/// What an RTT adds to the delay each way.
pub(crate) fn one_way(extra_rtt_us: u64) -> Nanos {
    extra_rtt_us.saturating_mul(1_000) / 2
}

/// Of the sender of data. The ports of TCP come first in its header, that of who sends the packet before the other.
pub(super) fn port(way: Way, ip: &[u8]) -> Option<u16> {
    let header =
        ip.first().filter(|first| **first >> 4 == VERSION_4).map(|first| usize::from(first & 0xf) * 4)?;
    let at = match way {
        Way::Forward => header,
        Way::Return => header + 2,
    };
    Some(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(options: u8, from: u16, to: u16) -> Vec<u8> {
        let mut ip = vec![0; 20 + 4 * usize::from(options)];
        ip[0] = 0x45 + options;
        ip.extend(from.to_be_bytes());
        ip.extend(to.to_be_bytes());
        ip
    }

    #[test]
    fn a_flow_is_known_by_the_port_of_its_sender() {
        let extra = ExtraRtts::new(5_201, &[0, 120_000, 7]);
        for options in [0, 3] {
            let forward = |port| extra.delay(Way::Forward, &packet(options, port, 5_202));
            assert_eq!([5_200, 5_201, 5_202, 5_203, 5_204].map(forward), [0, 0, 60_000_000, 3_500, 0]);
            let back = |port| extra.delay(Way::Return, &packet(options, 5_202, port));
            assert_eq!([5_200, 5_201, 5_202, 5_203, 5_204].map(back), [0, 0, 60_000_000, 3_500, 0]);
        }
        for other in [vec![], vec![0x45; 20], vec![0x45; 21], vec![0x60; 60]] {
            assert_eq!(extra.delay(Way::Forward, &other), 0);
        }
        assert_eq!(ExtraRtts::default().delay(Way::Forward, &packet(0, 0, 0)), 0);
    }
}
