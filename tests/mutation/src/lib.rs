//! Property tests with a fixed seed, and inputs for those of parsers: valid ones that were changed at random.
#![deny(unsafe_code)]

pub mod commands;
pub mod memory;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// What numbers, names and the syntax of formats end in.
const FRAGMENTS: [&str; 56] = [
    "",
    "0",
    "-1",
    "1",
    "-0",
    "+1",
    "007",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "1e-320",
    "0.1",
    "nan",
    "inf",
    "-inf",
    "true",
    "null",
    "\"",
    "'",
    "\"\"\"",
    "\\",
    "\\u0000",
    "=",
    ".",
    ",",
    ":",
    "::",
    "/",
    "/33",
    "/129",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "#",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[2J",
    "\u{7}",
    "\u{202e}",
    "\u{feff}",
    "\u{fffd}",
    "漢",
    "../",
];

/// `ONRAMP_TEST_SEED`, or this seed if that is not set.
pub fn seed_or(seed: u64) -> u64 {
    std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed)
}

/// Runs a property on `cases` inputs drawn from `seed`, or from `ONRAMP_TEST_SEED` if that is set.
///
/// # Panics
/// With the smallest input found that does not have it.
pub fn check<S: Strategy>(
    seed: u64,
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed = seed_or(seed);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    if let Err(error) = TestRunner::new_with_rng(config, random).run(&strategy, property) {
        panic!("seed {seed} (set ONRAMP_TEST_SEED={seed} to repeat): {error}");
    }
}

/// One of these texts with one to six changes, and now and then none.
pub fn text<T: AsRef<str>>(valid: &[T]) -> impl Strategy<Value = String> + use<T> {
    let valid: Vec<String> = valid.iter().map(|text| text.as_ref().to_owned()).collect();
    let edit = (0..9_u8, any::<u16>(), 0..24_usize, fragment());
    (select(valid), vec(edit, 0..6)).prop_map(|(mut text, edits)| {
        for (kind, at, span, fragment) in edits {
            text = edited(&text, kind, at, span, &fragment);
        }
        text
    })
}

/// The same of bytes.
pub fn bytes(valid: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (0..6_u8, any::<u16>(), 0..24_usize, any::<u64>());
    (select(valid), vec(edit, 0..6)).prop_map(|(mut bytes, edits)| {
        for (kind, at, span, value) in edits {
            let from = usize::from(at) * bytes.len() / 65_536;
            let to = (from + span).min(bytes.len());
            match kind {
                0 if from < bytes.len() => bytes[from] ^= 1 << (value % 8),
                1 if from < bytes.len() => bytes[from] = [0, 0x7f, 0x80, 0xff][value as usize % 4],
                2 => drop(bytes.drain(from..to)),
                3 => drop(bytes.splice(from..from, value.to_le_bytes())),
                4 => bytes.truncate(from),
                _ => drop(bytes.splice(from..to, vec![[0, 0xff][value as usize % 2]; to - from])),
            }
        }
        bytes
    })
}

/// Pieces that parsers stumble over, numbers and signs.
pub fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(&FRAGMENTS[..]).prop_map(str::to_owned),
        2 => any::<u64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => vec(any::<char>(), 0..6).prop_map(|signs| signs.into_iter().collect::<String>()),
        1 => (select(&FRAGMENTS[..]), 2..4_000_usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn edited(text: &str, kind: u8, at: u16, span: usize, fragment: &str) -> String {
    let signs: Vec<char> = text.chars().collect();
    let from = usize::from(at) * (signs.len() + 1) / 65_536;
    let to = (from + span).min(signs.len());
    // From here on, the next run of signs of a kind.
    let run = |of: fn(&char) -> bool| {
        let begin = signs[from..].iter().position(of).map_or(from, |offset| from + offset);
        let length = signs[begin..].iter().take_while(|sign| of(sign)).count();
        (begin, begin + length)
    };
    let replaced = |(from, to): (usize, usize), with: &str| {
        let before: String = signs[..from].iter().collect();
        before + with + &signs[to..].iter().collect::<String>()
    };
    let between: String = signs[from..to].iter().collect();
    match kind {
        0 => replaced((from, to), ""),
        1 => replaced((from, from), fragment),
        2 => replaced((from, to), fragment),
        3 => replaced((from, from), &between),
        4 => replaced((from, signs.len()), ""),
        5 => replaced(run(char::is_ascii_digit), fragment),
        6 => replaced(run(|sign| sign.is_ascii_alphanumeric() || *sign == '_'), fragment),
        7 => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let word = words.get(span * words.len() / 24).copied().unwrap_or_default();
            replaced(run(|sign| !sign.is_whitespace()), word)
        }
        _ => {
            let mut lines: Vec<&str> = text.lines().collect();
            let count = lines.len();
            if count > 0 {
                lines.swap(usize::from(at) % count, span % count);
            }
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn most_inputs_are_changed_and_some_are_not() {
        let (same, other) = (Cell::new(0), Cell::new(0));
        let count =
            |changed: bool| if changed { other.set(other.get() + 1) } else { same.set(same.get() + 1) };
        let valid = ["rate = 10\nname = 'one'\n"];
        check(1, 300, text(&valid), |text| {
            count(text != valid[0]);
            Ok(())
        });
        check(1, 300, bytes(vec![vec![7; 40]]), |bytes| {
            count(bytes != vec![7; 40]);
            Ok(())
        });
        assert!(same.get() > 60 && other.get() > 400, "{} {}", same.get(), other.get());
    }

    #[test]
    #[should_panic(expected = "set ONRAMP_TEST_SEED")]
    fn what_has_not_the_property_is_reported_with_the_seed() {
        check(1, 300, text(&["10"]), |text| {
            prop_assert!(text.parse::<u8>().is_ok());
            Ok(())
        });
    }
}
