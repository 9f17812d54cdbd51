// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a claim comes to.

use serde::Serialize;

use crate::figure::Figure;

/// A predicate on a measured figure, with its margin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is measured.
    pub what: String,
    /// The figure.
    pub measured: f64,
    /// What it has to be.
    pub expected: String,
    /// Whether it is.
    pub holds: bool,
}

impl Check {
    /// The figure must be this or more.
    pub fn at_least(what: impl Into<String>, measured: f64, least: f64) -> Self {
        Self { what: what.into(), measured, expected: format!("at least {least}"), holds: measured >= least }
    }

    /// The figure must be this or less.
    pub fn at_most(what: impl Into<String>, measured: f64, most: f64) -> Self {
        Self { what: what.into(), measured, expected: format!("at most {most}"), holds: measured <= most }
    }

    /// The figure must lie between these, both included.
    pub fn between(what: impl Into<String>, measured: f64, least: f64, most: f64) -> Self {
        let holds = (least..=most).contains(&measured);
        Self { what: what.into(), measured, expected: format!("{least} to {most}"), holds }
    }
}

/// A figure of the source compared with ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparand {
    /// What it is, with the unit.
    pub what: String,
    /// What the source says.
    pub source: String,
    /// What was measured.
    pub ours: String,
}

impl Comparand {
    /// With a number of ours.
    pub fn new(what: impl Into<String>, source: impl Into<String>, ours: f64, digits: usize) -> Self {
        Self { what: what.into(), source: source.into(), ours: format!("{ours:.digits$}") }
    }
}

/// Everything about a claim.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Figures compared with the source's.
    pub comparands: Vec<Comparand>,
    /// The claim, as predicates.
    pub checks: Vec<Check>,
    /// Drawn.
    pub figure: Figure,
}

impl Evaluation {
    /// Whether every predicate holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_included_and_nan_never_holds() {
        assert!(Check::at_least("x", 1.5, 1.5).holds && !Check::at_least("x", 1.499, 1.5).holds);
        assert!(Check::at_most("x", 1.5, 1.5).holds && !Check::at_most("x", 1.501, 1.5).holds);
        assert!(Check::between("x", 1.0, 1.0, 2.0).holds && !Check::between("x", 2.1, 1.0, 2.0).holds);
        for check in [
            Check::at_least("x", f64::NAN, 0.0),
            Check::at_most("x", f64::NAN, 0.0),
            Check::between("x", f64::NAN, 0.0, 1.0),
        ] {
            assert!(!check.holds);
        }
    }
}
