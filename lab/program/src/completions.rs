// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What can be typed where help has one of these values: arms, kernels, claims, cases, and what both programs have.

use onramp_lab::evaluate::CASES;
use onramp_lab::experiment::{AFTER_EXIT, BASE, START};
use onramp_lab::guest::Series;
use onramp_loader::Base;
use onramp_loader::algorithm::{self, AfterExit, StartPolicy};
use onramp_profiles::completions::{algorithms, candidate, sets, settings, values as of_both};
use onramp_reproduce::{CLAIMS, SIMULATED};
use onramp_terminal::completions::Candidate;

use crate::arm;

/// What can be given for the value `name` of help, of which `typed` is the beginning, the last of these words.
pub(crate) fn values(name: &str, words: &[String], typed: &str) -> Vec<Candidate> {
    let simulates = words.first().is_some_and(|verb| verb == "sim");
    match name {
        "ARM" => arms(simulates, typed),
        "CONTROL" => names(simulates),
        "KERNEL" | "SERIES" => {
            Series::all().iter().map(|one| candidate(&one.series, format!("Debian {}", one.suite))).collect()
        }
        "CLAIM" => {
            let claims = if simulates { &SIMULATED[..] } else { &CLAIMS };
            claims.iter().map(|claim| candidate(claim.id, claim.statement)).collect()
        }
        "CASE" => CASES.iter().map(|case| candidate(case.id, case.statement)).collect(),
        _ => of_both(name, words, typed),
    }
}

/// Controls of the kernel or the simulator, and algorithms.
fn names(simulates: bool) -> Vec<Candidate> {
    let controls = arm::controls(simulates);
    controls.into_iter().map(Candidate::new).chain(algorithms()).collect()
}

/// A name, and after each colon a setting of it.
fn arms(simulates: bool, typed: &str) -> Vec<Candidate> {
    let Some((before, setting)) = typed.rsplit_once(':') else { return names(simulates) };
    let name = before.split(':').next().unwrap_or_default();
    let Some(algorithm) = algorithm::find(name) else { return Vec::new() };
    let all = match setting.split_once('=') {
        None => {
            let options = [
                (BASE, "Control that does congestion avoidance, loss reaction and undo"),
                (AFTER_EXIT, "Options of the base after slow start"),
                (START, "How connections start"),
            ];
            let options = options.map(|(key, help)| candidate(format!("{key}="), help));
            options.into_iter().chain(settings(algorithm, setting)).collect()
        }
        Some((BASE, _)) => prefixed(BASE, Base::ALL.map(|base| Candidate::new(base.name())).into()),
        Some((AFTER_EXIT, options)) => prefixed(AFTER_EXIT, sets::<AfterExit>(options, '+')),
        Some((START, policies)) => prefixed(START, sets::<StartPolicy>(policies, '+')),
        Some(_) => settings(algorithm, setting),
    };
    all.into_iter().map(|one| one.add_prefix(format!("{before}:"))).collect()
}

fn prefixed(key: &str, values: Vec<Candidate>) -> Vec<Candidate> {
    values.into_iter().map(|one| one.add_prefix(format!("{key}="))).collect()
}
