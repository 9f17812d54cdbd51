// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the documents claim of real TCP ([`CLAIMS`]) and show by simulations ([`SIMULATED`]), and whether it shows here. One
//! file for each claim: the experiments it needs, and the predicates by which their results are evaluated.

mod bod_startup;
mod buffers_map;
mod buffers_matrix;
mod early_loss;
mod geo_download;
mod geo_exit_sweep;
mod geo_objects;
mod geo_pairs;
mod hystart_ceiling;
mod hystart_parts;
mod leo_exit;
mod memory;
mod search_geo;
mod search_wifi;
mod simulated;
mod small_buffer;
#[cfg(test)]
mod testing;

use onramp_lab::question::{Evaluation, Evidence, NoEvidence, Question, Trial};

/// A claim of a document.
#[derive(Debug)]
pub struct Claim {
    /// Its name on the command line.
    pub id: &'static str,
    /// Document and place.
    pub source: &'static str,
    /// What the document says, in one sentence.
    pub statement: &'static str,
    /// The experiments it needs; may be none.
    pub trials: fn() -> Vec<Trial>,
    /// What they show.
    pub evaluate: fn(&Evidence) -> Result<Evaluation, NoEvidence>,
}

impl Claim {
    /// As a question.
    pub fn question(&self) -> Question<'_> {
        let Self { id, source, statement, trials, evaluate } = self;
        Question { id, source, statement, trials: trials(), evaluate: Box::new(evaluate) }
    }
}

/// All claims that are about real TCP or need no link, in the order of the documents.
pub static CLAIMS: [Claim; 14] = [
    geo_download::CLAIM,
    geo_objects::CLAIM,
    geo_pairs::CLAIM,
    geo_exit_sweep::CLAIM,
    leo_exit::CLAIM,
    buffers_map::CLAIM,
    buffers_matrix::CLAIM,
    hystart_parts::CLAIM,
    hystart_ceiling::CLAIM,
    early_loss::CLAIM,
    search_geo::CLAIM,
    search_wifi::CLAIM,
    memory::CLAIM,
    bod_startup::CLAIM,
];

/// All claims that their sources show by simulations or closed forms, for the simulator, in the order of the documents.
pub static SIMULATED: [Claim; 5] = [
    simulated::early_loss::CLAIM,
    simulated::gamma_sweep::CLAIM,
    simulated::rate_sweep::CLAIM,
    simulated::bod_model::CLAIM,
    simulated::bod_k::CLAIM,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_trials_of_one_name_are_the_same() {
        let mut trials = Vec::<Trial>::new();
        for claims in [&CLAIMS[..], &SIMULATED] {
            for (at, claim) in claims.iter().enumerate() {
                assert!(claims[..at].iter().all(|other| other.id != claim.id), "{}", claim.id);
            }
        }
        for claim in CLAIMS.iter().chain(&SIMULATED) {
            for trial in (claim.trials)() {
                assert!(trial.quick <= trial.repetitions && trial.quick > 0, "{}", trial.name);
                if let Some(same) = trials.iter().find(|other| other.name == trial.name) {
                    assert_eq!(
                        (&same.arms, same.amount, &same.objects),
                        (&trial.arms, trial.amount, &trial.objects)
                    );
                    assert_eq!(
                        (same.profile, same.repetitions, same.quick),
                        (trial.profile, trial.repetitions, trial.quick)
                    );
                } else {
                    trials.push(trial);
                }
            }
        }
    }

    #[test]
    fn a_claim_without_its_evidence_is_an_error_that_says_what_is_missing() {
        for claim in CLAIMS.iter().chain(&SIMULATED) {
            let evaluated = (claim.evaluate)(&Evidence::default());
            match evaluated {
                Ok(_) => assert_eq!(claim.id, "buffers-map", "{} needs nothing", claim.id),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
