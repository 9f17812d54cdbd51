//! Quantities as people write and read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `30s`, `10m`, `2h`, `1d`, `1h30m`, `600ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
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

/// `150mbit`, `1gbit`, `800kbit`: bits per second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is not a rate: write for instance 150mbit or 1gbit");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refuse)?;
    let (number, unit) = text.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(refuse()),
    };
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let bits = number * factor;
    if !(bits.is_finite() && (1.0..1e15).contains(&bits)) {
        return Err(refuse());
    }
    Ok(bits as u64)
}

/// Three significant digits and the unit that fits: `3.21 s`, `45.0 ms`.
pub(crate) fn show_us(us: u64) -> String {
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
pub(crate) fn show_bytes(bytes: u64) -> String {
    decimal(bytes, ["B", "kB", "MB", "GB"])
}

/// `150 Mbit/s`: decimal units.
pub(crate) fn show_rate(bits_per_second: u64) -> String {
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

/// `1 socket`, `2 sockets`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Wall clock, microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn rates_are_read() {
        assert_eq!(rate("150mbit"), Ok(150_000_000));
        assert_eq!(rate("1Gbit"), Ok(1_000_000_000));
        assert_eq!(rate("2.5kbit"), Ok(2_500));
        for bad in ["", "150", "mbit", "-1mbit", "1mb", "0bit", "1tbit"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
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
