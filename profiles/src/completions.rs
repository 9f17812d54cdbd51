// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What can be typed where help has one of these values, for the completion of both programs.

use onramp_algorithm::{self as algorithm, AfterExit, Algorithm, Named, Options, Parameter, StartPolicy};
use onramp_terminal::completions::Candidate;

use crate::lookup;

/// What can be given for the value `name` of help, of which `typed` is the beginning, the last of these words.
pub fn values(name: &str, words: &[String], typed: &str) -> Vec<Candidate> {
    match name {
        "ALG" => algorithms(),
        "PROFILE" => profiles(),
        "OPTIONS" => sets::<AfterExit>(typed, AfterExit::BETWEEN),
        "POLICY" => sets::<StartPolicy>(typed, StartPolicy::BETWEEN),
        "NAME=VALUE" => settings(chosen(words), typed),
        "ALG.NAME=VALUE" => of_one(typed),
        "[ALG.]NAME=VALUE" | "[ALG.]NAME=VALUES" => {
            let mut all = if typed.contains('.') { of_one(typed) } else { settings(chosen(words), typed) };
            all.extend(of_one("").into_iter().filter(|_| !typed.contains('.')));
            all
        }
        _ => Vec::new(),
    }
}

/// A value with what it means.
pub fn candidate(value: impl Into<String>, help: impl Into<String>) -> Candidate {
    Candidate::new(value.into()).help(Some(help.into().into()))
}

/// The algorithms.
pub fn algorithms() -> Vec<Candidate> {
    algorithm::all().map(|one| candidate(one.name(), one.about())).collect()
}

fn profiles() -> Vec<Candidate> {
    let about = |name: &str| lookup::load(name).map(|profile| profile.about).unwrap_or_default();
    lookup::names().into_iter().map(|name| candidate(name.as_str(), about(&name))).collect()
}

/// The sets that begin with what is typed: each option that can stand after those before, or the name of none.
pub fn sets<T: Named>(typed: &str, between: char) -> Vec<Candidate> {
    let before = typed.rfind(between).map_or("", |at| &typed[..=at]);
    let with = T::EVERY.iter().map(|one| format!("{before}{}", one.name()));
    let mut all: Vec<_> =
        with.filter(|text| text.parse::<Options<T>>().is_ok()).map(Candidate::new).collect();
    if before.is_empty() {
        all.push(Candidate::new(T::NONE));
    }
    all
}

/// The algorithm that words name, or their profile does; else the one that is taken without a name.
fn chosen(words: &[String]) -> Algorithm {
    let names = || words.iter().flat_map(|word| word.split(','));
    names()
        .find_map(algorithm::find)
        .or_else(|| names().find_map(|name| lookup::algorithm(&lookup::load(name).ok()?).ok()))
        .unwrap_or_else(algorithm::default)
}

/// Settings of an algorithm: `name=`, and once that is typed, its values.
pub fn settings(algorithm: Algorithm, typed: &str) -> Vec<Candidate> {
    match typed.split_once('=') {
        None => algorithm.declarations().map(|one| candidate(format!("{}=", one.name), one.help)).collect(),
        Some((name, _)) => algorithm
            .declarations()
            .find(|one| one.name == name)
            .map(|one| values_of(&one))
            .unwrap_or_default(),
    }
}

/// The choices of a parameter, or a number's default with its range.
fn values_of(parameter: &Parameter) -> Vec<Candidate> {
    let setting = |value: &str| format!("{}={value}", parameter.name);
    if parameter.choices.is_empty() {
        let default = parameter.default.to_string();
        return vec![candidate(setting(&default), format!("default; {}", parameter.allowed()))];
    }
    parameter.choices.iter().map(|choice| candidate(setting(choice), parameter.help)).collect()
}

/// `algorithm.name=value`.
fn of_one(typed: &str) -> Vec<Candidate> {
    let Some((name, setting)) = typed.split_once('.') else {
        return algorithm::all().map(|one| candidate(format!("{}.", one.name()), one.about())).collect();
    };
    let Some(algorithm) = algorithm::find(name) else { return Vec::new() };
    let all = settings(algorithm, setting).into_iter();
    all.map(|one| one.add_prefix(format!("{name}."))).collect()
}
