//! `onramp-lab model`.

mod bod;
mod buffers;
mod threshold;

use clap::{Args, Subcommand};
use onramp_profiles::link::RangeError;

use crate::failure::Usage;
use crate::output::Output;
use crate::units;

/// Evaluate the papers' closed forms: no kernel, no link, no privilege
///
/// Without options each gives its paper's own scenario.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab model threshold
  onramp lab model buffers --rate 150mbit --rtt 600ms
  onramp lab model bod -o bod.svg")]
pub(crate) struct Model {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Threshold(threshold::Threshold),
    Buffers(buffers::Buffers),
    Bod(bod::Bod),
}

impl Model {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::Threshold(verb) => verb.run(output),
            Verb::Buffers(verb) => verb.run(output),
            Verb::Bod(verb) => verb.run(output),
        }
    }
}

/// A rate of packets, or of bits in packets of a size given elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    PacketsPerSecond(f64),
    BitsPerSecond(u64),
}

impl Load {
    /// Packets of this size per second.
    fn in_packets(self, packet_bytes: u64) -> f64 {
        match self {
            Self::PacketsPerSecond(packets) => packets,
            Self::BitsPerSecond(bits) => bits as f64 / (packet_bytes * 8) as f64,
        }
    }
}

/// `100pps`, `0pps`, `1.5kpps`, or a rate as [`units::rate`] reads it.
fn load(text: &str) -> Result<Load, String> {
    let number = |digits: &str, factor: f64| {
        let plain = digits.starts_with(|first: char| first.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let packets = digits.parse::<f64>().ok().filter(|packets| plain && *packets < 1e15);
        packets.map(|packets| Load::PacketsPerSecond(packets * factor))
    };
    let lower = text.to_ascii_lowercase();
    let packets = lower.strip_suffix("pps").and_then(|rest| match rest.strip_suffix(['k', 'm']) {
        Some(digits) => number(digits, if rest.ends_with('k') { 1e3 } else { 1e6 }),
        None => number(rest, 1.0),
    });
    packets
        .or_else(|| units::rate(text).ok().map(Load::BitsPerSecond))
        .ok_or_else(|| format!("{text:?} is not a rate: write for instance 100pps, 1.5kpps or 400kbit"))
}

/// What is out of a closed form's range is wrong with what was asked for.
fn usage(error: &RangeError) -> anyhow::Error {
    Usage::error(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_packets_or_bits() {
        assert_eq!(load("100pps"), Ok(Load::PacketsPerSecond(100.0)));
        assert_eq!(load("0pps"), Ok(Load::PacketsPerSecond(0.0)));
        assert_eq!(load("1.5kpps"), Ok(Load::PacketsPerSecond(1_500.0)));
        assert_eq!(load("2Mpps"), Ok(Load::PacketsPerSecond(2e6)));
        assert_eq!(load("400kbit"), Ok(Load::BitsPerSecond(400_000)));
        assert_eq!(load("4096bit").unwrap().in_packets(512), 1.0);
        for bad in
            ["", "pps", "100", "-1pps", "+1pps", "nanpps", "infpps", "1e3pps", "1..2pps", "1kkpps", "1gpps"]
        {
            assert!(load(bad).unwrap_err().contains("100pps"), "{bad}");
        }
    }
}
