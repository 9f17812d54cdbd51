// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Pareto dominance.

/// Whether one is better in something and worse in nothing.
pub(in crate::sim) fn beats(one: &[f64; 3], other: &[f64; 3]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other) && one != other
}
