// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Questions that experiments answer: a paper's claim, or a case of an evaluation.
//!
//! A [`Question`] names the experiments it needs ([`Trial`]) and evaluates their results ([`Evidence`]) by predicates
//! with stated margins ([`Check`]). Evaluating is a pure function. A trial that several questions need is run once. The
//! runner of trials has to know more than the lab does (how algorithms are attached).

mod evaluation;
mod evidence;
pub mod plots;
pub mod report;
pub mod testing;
mod trial;

pub use evaluation::{Check, Comparand, Evaluation};
pub use evidence::{Evidence, Footprint, NoEvidence, RoundRates, Valid};
pub use trial::{Adapt, Trial};

/// What trials are to answer: a claim of a document, or a case of an evaluation.
pub struct Question<'a> {
    /// Its name on the command line.
    pub id: &'a str,
    /// Document and place.
    pub source: &'a str,
    /// What the document says or asks for, in one sentence.
    pub statement: &'a str,
    /// The experiments it needs; may be none.
    pub trials: Vec<Trial>,
    /// What they show.
    pub evaluate: Evaluate<'a>,
}

/// What evidence shows.
pub type Evaluate<'a> = Box<dyn Fn(&Evidence) -> Result<Evaluation, NoEvidence> + 'a>;
