// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A tuning as Markdown, for people and for pages.

use std::fmt;

use super::{HeldOut, Tuning};

impl fmt::Display for Tuning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rungs: Vec<_> =
            self.rungs.iter().map(|rung| format!("{} on {}", rung.candidates, rung.paths)).collect();
        writeln!(
            out,
            "{} over {}, seed {}, a segment retransmitted costs {} of its time; candidates on paths: {}",
            self.algorithm,
            self.population,
            self.seed,
            self.loss_weight,
            rungs.join(", "),
        )?;
        writeln!(out, "\nbest: `{}`\n\n{}", self.best, self.held_out)?;
        writeln!(
            out,
            "\n| parameter | start | best | cost where it is moved alone |\n| --- | ---: | ---: | --- |"
        )?;
        for of in &self.sensitivity {
            let moved: Vec<_> =
                of.moved.iter().map(|moved| format!("{}: {:.3}", moved.value, moved.cost)).collect();
            let unit = if of.unit.is_empty() { String::new() } else { format!(", {}", of.unit) };
            writeln!(
                out,
                "| `{}`{unit} | {} | {} | {} |",
                of.parameter,
                of.start,
                of.best,
                moved.join("; ")
            )?;
        }
        write!(out, "\nThe last candidates on the paths that were held out:\n\n{}", self.last)
    }
}

impl fmt::Display for HeldOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "on {} paths that the search has not seen (from number {} on): cost {:.3} of the start's",
            self.paths, self.first_path, self.cost
        )?;
        if let Some((low, high)) = self.cost_ci95 {
            write!(out, " (95 %: {low:.3} to {high:.3})")?;
        }
        write!(
            out,
            ", less by 1 % or more on {:.0} % of them, more on {:.0} %",
            self.better * 100.0,
            self.worse * 100.0
        )
    }
}
