// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Quantities as people write and read them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `30s`, `10m`, `2h`, `1d`, `1h30m`, `600ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let refuse = || format!("{text:?} is not a duration: write for instance 30s, 10m, 2h or 600ms");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(refuse());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refuse)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(refuse()),
        };
        let number: f64 = number.parse().map_err(|_| refuse())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| refuse())?;
        total = total.checked_add(part).ok_or_else(refuse)?;
        rest = tail;
    }
    Ok(total)
}

/// The longest limit of time: a hundred years.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// A duration after which something ends: 1us to 36500d.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = duration(text)?;
    if limit.is_zero() || limit > LONGEST {
        return Err(format!(
            "{text:?} is not a time limit: write one of 1us to 36500d, for instance 30s, 10m or 2h"
        ));
    }
    Ok(limit)
}

/// `10M`, `80MB`, `1.5G`, `64Ki`, `8MiB` or a number: bytes. K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is not a size: write for instance 80000000, 80M, 80MB or 64Ki");
    let (number, unit) = quantity(text).ok_or_else(refuse)?;
    let factor = multiple(unit.strip_suffix(['b', 'B']).unwrap_or(unit)).ok_or_else(refuse)?;
    let bytes = number * factor;
    if !((1.0..=1e18).contains(&bytes) && bytes.fract() == 0.0) {
        return Err(format!("{text:?} is out of range: give a whole number of bytes, 1 to 10^18"));
    }
    Ok(bytes as u64)
}

/// A size of packets, bytes: 1 to 65535, the largest IPv4 packet.
pub fn packet_bytes(text: &str) -> Result<u64, String> {
    match bytes(text) {
        Ok(size) if size > u16::MAX.into() => {
            Err(format!("{text:?} is out of range: give a packet of 1 to 65535 bytes"))
        }
        parsed => parsed,
    }
}

/// `150mbit`, `150M`, `2.5Gbit/s`: bits per second. K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
pub fn rate(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is not a rate: write for instance 150mbit, 150M or 1gbit");
    let (number, unit) = quantity(text).ok_or_else(refuse)?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    let prefix = unit.strip_suffix("bit");
    // A number alone might be meant in any unit.
    if unit.is_empty() {
        return Err(refuse());
    }
    let bits = number * multiple(prefix.unwrap_or(unit)).ok_or_else(refuse)?;
    if !(1.0..1e15).contains(&bits) {
        return Err(format!("{text:?} is out of range: give 1bit to 999tbit"));
    }
    Ok(bits as u64)
}

/// A number of seconds, or a duration of whole seconds: `90`, `90s`, `1m30s`.
pub fn seconds(text: &str) -> Result<u32, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let duration = duration(text)?;
    match u32::try_from(duration.as_secs()) {
        Ok(seconds) if duration.subsec_nanos() == 0 => Ok(seconds),
        _ => Err(format!("{text:?} is out of range: give whole seconds, up to 4294967295")),
    }
}

/// Reads a whole number within a range, for an option.
pub fn number<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: Copy + Display + FromStr + PartialOrd + Send + Sync + 'static,
{
    move |text| {
        let value = text.parse().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| format!("give a whole number, {} to {}", range.start(), range.end()))
    }
}

/// A number and the letters after it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    Some((number.parse().ok()?, unit))
}

/// What a prefix multiplies with.
fn multiple(prefix: &str) -> Option<f64> {
    let (base, letter): (f64, _) = match prefix.strip_suffix(['i', 'I']) {
        Some(letter) if !letter.is_empty() => (1024.0, letter),
        Some(_) => return None,
        None => (1000.0, prefix),
    };
    let power = match letter {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    Some(base.powi(power))
}

/// Three significant digits and the unit that fits: `3.21 s`, `45.0 ms`.
pub fn show_us(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => significant(us as f64 / 1e3, "ms"),
        1_000_000..120_000_000 => significant(us as f64 / 1e6, "s"),
        120_000_000..7_200_000_000 => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
        7_200_000_000..172_800_000_000 => {
            format!("{} h {} min", us / 3_600_000_000, us / 60_000_000 % 60)
        }
        _ => format!("{} d {} h", us / 86_400_000_000, us / 3_600_000_000 % 24),
    }
}

/// `9.10 MB`: decimal units.
pub fn show_bytes(bytes: u64) -> String {
    decimal(bytes, ["B", "kB", "MB", "GB"])
}

/// `150 Mbit/s`: decimal units.
pub fn show_rate(bits_per_second: u64) -> String {
    decimal(bits_per_second, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// In the unit that fits, of those for 1, 10^3, 10^6 and 10^9.
fn decimal(value: u64, [one, kilo, mega, giga]: [&str; 4]) -> String {
    match value {
        0..1_000 => format!("{value} {one}"),
        1_000..1_000_000 => significant(value as f64 / 1e3, kilo),
        1_000_000..1_000_000_000 => significant(value as f64 / 1e6, mega),
        _ => significant(value as f64 / 1e9, giga),
    }
}

fn significant(value: f64, unit: &str) -> String {
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$} {unit}")
}

/// A value of a track as text.
pub fn show_value(unit: &str, value: u32) -> String {
    match unit {
        "percent" => format!("{value} %"),
        "us" => show_us(value.into()),
        _ => value.to_string(),
    }
}

/// `1 socket`, `2 sockets`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Wall clock, microseconds since 1970.
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_whole_and_within_its_range() {
        let read = number(1..=16_u16);
        assert_eq!((read("1"), read("16")), (Ok(1), Ok(16)));
        for bad in ["0", "17", "1.5", "x", "", "99999999999999999999"] {
            assert_eq!(read(bad), Err("give a whole number, 1 to 16".into()), "{bad}");
        }
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("600ms"), Ok(Duration::from_millis(600)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for bad in ["", "10", "m", "-3s", "10 m", "3w", "1e9h", "9999999999999999999999d", "1..2s"] {
            assert!(duration(bad).unwrap_err().contains("10m"), "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1", 1),
            ("80000000", 80_000_000),
            ("10M", 10_000_000),
            ("80MB", 80_000_000),
            ("1.5g", 1_500_000_000),
            ("64Ki", 65_536),
            ("8MiB", 8_388_608),
            ("2t", 2_000_000_000_000),
            ("12b", 12),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for bad in ["", "M", "-1", "10 M", "10X", "10i", "10MBB", "10Mbit", "1..5k", "inf", "1e9"] {
            assert!(bytes(bad).unwrap_err().contains("is not a size"), "{bad}");
        }
        for bad in ["0", "0.5", "1.0001K", "2000000T"] {
            assert!(bytes(bad).unwrap_err().contains("1 to 10^18"), "{bad}");
        }
    }

    #[test]
    fn rates_are_read() {
        assert_eq!(rate("150mbit"), Ok(150_000_000));
        assert_eq!(rate("1Gbit"), Ok(1_000_000_000));
        assert_eq!(rate("2.5kbit"), Ok(2_500));
        assert_eq!(rate("50M"), Ok(50_000_000));
        assert_eq!(rate("9600bit/s"), Ok(9_600));
        assert_eq!(rate("1Mibit"), Ok(1_048_576));
        for bad in ["", "150", "mbit", "-1mbit", "1mb", "1MB/s", "1xbit"] {
            assert!(rate(bad).unwrap_err().contains("is not a rate"), "{bad}");
        }
        for bad in ["0bit", "0.1bit", "1000tbit"] {
            assert!(rate(bad).unwrap_err().contains("out of range"), "{bad}");
        }
    }

    #[test]
    fn quantities_changed_anywhere_are_within_their_range_or_refused_with_the_text() {
        let valid = ["1h30m", "600ms", "1.5s", "80MB", "64Ki", "2.5Gbit/s", "150mbit", "90"];
        onramp_mutation::check(1, 20_000, onramp_mutation::text(&valid), |text| {
            let quoted = format!("{text:?}");
            let refused = [
                duration(&text).err(),
                bytes(&text).map(|bytes| assert!((1..=10_u64.pow(18)).contains(&bytes))).err(),
                packet_bytes(&text).map(|bytes| assert!((1..=65_535).contains(&bytes))).err(),
                rate(&text).map(|rate| assert!((1..10_u64.pow(15)).contains(&rate))).err(),
                seconds(&text).err(),
            ];
            for error in refused.into_iter().flatten() {
                assert!(error.contains(&quoted), "{text:?}: {error}");
            }
            Ok(())
        });
    }

    #[test]
    fn seconds_are_whole() {
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("1m30s"), Ok(90));
        assert!(seconds("1500ms").unwrap_err().contains("whole seconds"));
        assert!(seconds("100000d").unwrap_err().contains("out of range"));
        assert!(seconds("soon").unwrap_err().contains("is not a duration"));
    }

    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(show_us(3_214_000), "3.21 s");
        assert_eq!(show_us(999), "999 us");
        assert_eq!(show_us(45_040), "45.0 ms");
        assert_eq!(show_us(600_000_000), "10 min 0 s");
        assert_eq!(show_bytes(9_104_000), "9.10 MB");
        assert_eq!(show_bytes(9_999_000), "10.0 MB");
        assert_eq!(show_bytes(12), "12 B");
        assert_eq!(show_rate(149_600_000), "150 Mbit/s");
        assert_eq!(show_rate(2_500_000_000), "2.50 Gbit/s");
    }
}
