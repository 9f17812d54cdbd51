// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is wrong with a file in TOML, in words of those who write one: the parser speaks of types of Rust.

use onramp_algorithm::did_you_mean;
use toml::de::Error;

/// Where in its text an error is, and what is wrong: `line 3, column 8: rate_bps = 1.5: …`.
pub fn toml_error(text: &str, error: &Error) -> String {
    if let Some(what) = not_toml(text) {
        return format!("it is {what}");
    }
    let Some(span) = error.span() else { return toml_reason(error) };
    let before = text.get(..span.start).unwrap_or_default();
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[begin..].chars().count() + 1);
    let rest = text[begin..].lines().next().unwrap_or_default().trim();
    // The whole line, where the error is that of a value in it.
    let quoted = if rest.contains('=') && column > 1 && rest.len() <= QUOTED {
        format!("{rest}: ")
    } else {
        String::new()
    };
    format!("line {line}, column {column}: {quoted}{}", toml_reason(error))
}

/// What a text is that has nothing of TOML, and what to do; continues "it is".
pub fn not_toml(text: &str) -> Option<&'static str> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Some("empty: write version = 1 and what belongs to it");
    }
    text.trim_start()
        .starts_with('{')
        .then_some("JSON, not TOML: write lines of KEY = VALUE, version = 1 first")
}

/// The longest line that is quoted, bytes.
const QUOTED: usize = 80;

/// What is wrong, without its place, in one line.
pub fn toml_reason(error: &Error) -> String {
    words(&error.message().replace('\n', " "))
}

fn words(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("{rest} is missing");
    }
    if let Some((name, known)) = unknown(message, "unknown field ") {
        return format!("unknown key `{name}`{}", choice(name, &known, ": known are "));
    }
    if let Some((name, known)) = unknown(message, "unknown variant ") {
        return format!("`{name}` is not known{}", choice(name, &known, ": give one of "));
    }
    for kind in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            message.strip_prefix(kind).and_then(|rest| rest.split_once(", expected "))
        {
            let belongs = expected_in_words(expected, found.starts_with("integer "));
            let is_number = ["a number", "a whole number"].iter().any(|number| belongs.starts_with(number));
            let quotes = if is_number && is_quoted_number(found) { ": leave out the quotes" } else { "" };
            return format!("{} stands where {belongs} belongs{quotes}", found_in_words(found));
        }
    }
    message.to_owned()
}

/// The name that is not known, and those that are.
fn unknown<'a>(message: &'a str, kind: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let mut quoted = message.strip_prefix(kind)?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}

fn choice(name: &str, known: &[&str], before: &str) -> String {
    if known.is_empty() {
        return String::new();
    }
    format!("{}{before}{}", did_you_mean(name, known.iter().copied()), known.join(", "))
}

fn found_in_words(found: &str) -> String {
    let value = |kind: &str| found.strip_prefix(kind).and_then(|rest| rest.split('`').nth(1));
    if let Some(number) = value("integer ") {
        return number.to_owned();
    }
    if let Some(number) = value("floating point ") {
        return format!("{number}, a number with a point,");
    }
    if let Some(truth) = value("boolean ") {
        return truth.to_owned();
    }
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => {
            found.strip_prefix("string ").map_or_else(|| found.to_owned(), |text| format!("the text {text}"))
        }
    }
}

/// A number in quotes.
fn is_quoted_number(found: &str) -> bool {
    let text = found.strip_prefix("string ").map(|text| text.trim_matches('"'));
    text.is_some_and(|text| text.parse::<f64>().is_ok())
}

/// `number`: what was found is one, so that the range is wrong, be it as wide as it may.
fn expected_in_words(expected: &str, number: bool) -> String {
    let range = |least: &str, most: &str| format!("a whole number from {least} to {most}");
    match expected {
        "u64" | "usize" | "u128" | "i64" | "i128" if !number => "a whole number".to_owned(),
        "u8" => range("0", "255"),
        "u16" => range("0", "65535"),
        "u32" => range("0", "4294967295"),
        // What TOML can hold.
        "u64" | "usize" | "u128" => range("0", "9223372036854775807"),
        "i32" => range("-2147483648", "2147483647"),
        "i64" | "i128" => range("-9223372036854775808", "9223372036854775807"),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "str" => "text in quotes".to_owned(),
        "any valid TOML value" => "a number, text in quotes, true or false, a list or a table".to_owned(),
        "a map" => "a table".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other if other.starts_with("enum ") || other.contains(" enum ") => {
            "one of its kinds by name".to_owned()
        }
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(rename = "version")]
        _version: u64,
        #[serde(default, rename = "share")]
        _share: f64,
        #[serde(default, rename = "on")]
        _on: bool,
        #[serde(default, rename = "count")]
        _count: u32,
        #[serde(default, rename = "table")]
        _table: BTreeMap<String, i64>,
    }

    #[test]
    fn what_is_wrong_has_its_place_its_value_and_what_belongs_there() {
        for (text, place, said) in [
            ("", "it is empty", ""),
            ("# nothing yet\n\n", "it is empty", ""),
            ("{\n  \"version\": 1\n}\n", "it is JSON", "KEY = VALUE"),
            ("share = 1\n", "", "`version` is missing"),
            ("version = 1\ncuont = 1\n", "line 2, column 1", "unknown key `cuont` (did you mean \"count\"?)"),
            (
                "version = 1.0\n",
                "line 1, column 11",
                "1.0, a number with a point, stands where a whole number",
            ),
            (
                "version = 1\ncount = -1\n",
                "line 2, column 9",
                "-1 stands where a whole number from 0 to 4294967295",
            ),
            (
                "version = 99999999999999999999\n",
                "line 1, column 11",
                "99999999999999999999 stands where a whole number from 0 to 9223372036854775807",
            ),
            (
                "version = \"1\"\n",
                "line 1, column 11",
                "the text \"1\" stands where a whole number belongs: leave out the quotes",
            ),
            ("version = 1\non = 1\n", "line 2, column 6", "1 stands where true or false belongs"),
            (
                "version = 1\non = \"1\"\n",
                "line 2, column 6",
                "the text \"1\" stands where true or false belongs",
            ),
            ("version = 1\ntable = 7\n", "line 2, column 9", "7 stands where a table belongs"),
            ("version = 1\ncount = [1]\n", "line 2, column 9", "a list stands where a whole number"),
            ("version = 1\nversion = 2\n", "line 2", ""),
            ("version = \n", "line 1", ""),
        ] {
            let error = toml::from_str::<File>(text).err().unwrap();
            let words = toml_error(text, &error);
            assert!(words.contains(place) && words.contains(said), "{text:?}: {words}");
            for kind in ["i64", "u64", "u32", "i128", "f64", "struct"] {
                assert!(!words.contains(kind), "{text:?}: {words}");
            }
            assert_eq!(words.lines().count(), 1, "{words}");
        }
    }
}
