// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A sweep as Markdown, for people and for pages.

use std::fmt;

use super::{ArmSummary, Sweep};
use crate::stats::Quantiles;

impl fmt::Display for Sweep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} paths of population {}, seed {}; doubling limit on {}; digest `{}`",
            self.paths,
            self.population,
            self.seed,
            self.paths_with_limit,
            self.digest.get(..19).unwrap_or(&self.digest),
        )?;
        writeln!(
            out,
            "\n| arm | won | time / best: median, p95, p99, worst | time / limit | time / receiver's | bound by receiver | losses above best: p95, p99 | retransmitted | of 1000 | queueing delay | given up | left early |"
        )?;
        writeln!(out, "| --- | ---: | --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")?;
        for arm in &self.arms {
            writeln!(
                out,
                "| `{}`{} | {:.1} % | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} ms | {} | {} of {} |",
                arm.arm,
                if arm.front { " *" } else { "" },
                arm.won * 100.0,
                at_least(arm, ratios(arm.time)),
                at_least(arm, ratios(arm.time_over_limit)),
                at_least(arm, ratios(arm.time_over_receiver_limit)),
                arm.bound_by_receiver,
                arm.losses.map_or("-".into(), |losses| format!("{:.0}, {:.0}", losses.p95, losses.p99)),
                arm.retransmitted_segments,
                arm.retransmitted_per_mille,
                arm.queueing_delay_us / 1e3,
                arm.given_up,
                arm.early_exits,
                arm.exits,
            )?;
        }
        writeln!(
            out,
            "\nLimit: doubling from the initial window. Receiver's: a sender that fills the receiver's window. Bound by receiver: runs in which its window was the limit for half of the time or more.\n\n\\* No other arm is better in one of mean time, losses and queueing delay and worse in none. Left early: below 0.7 BDP, of the exits that were not by loss."
        )?;
        let given_up: usize = self.arms.iter().map(|arm| arm.given_up).sum();
        if given_up > 0 {
            writeln!(
                out,
                "\n{given_up} runs were given up at the limit of their path. They count with the time until then (≥); ratios leave out paths on which no arm finished."
            )?;
        }
        self.classes(out)?;
        self.worst(out)
    }
}

impl Sweep {
    /// Wins and p95 of time by class.
    fn classes(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.arms.first() else { return Ok(()) };
        let heads: Vec<_> =
            first.classes.iter().map(|(name, class)| format!("{name} ({})", class.paths)).collect();
        writeln!(out, "\nWon, and time / best at p95, by class (paths):\n\n| arm | {} |", heads.join(" | "))?;
        writeln!(out, "| --- |{}", " ---: |".repeat(heads.len()))?;
        for arm in &self.arms {
            let cell = |class: &super::ClassSummary| {
                let p95 = class.time.map_or(0.0, |time| time.p95);
                format!("{:.0} %, {p95:.2}", class.won * 100.0)
            };
            let cells: Vec<_> = arm.classes.values().map(cell).collect();
            writeln!(out, "| `{}` | {} |", arm.arm, cells.join(" | "))?;
        }
        Ok(())
    }

    fn worst(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "\nWorst paths:\n\n| arm | path | s | best | retransmitted | left at | link |\n| --- | --- | ---: | --- | ---: | --- | --- |"
        )?;
        self.arms.iter().try_for_each(|arm| worst_of(arm, out))
    }
}

fn worst_of(arm: &ArmSummary, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Three are enough to see; the JSON has more.
    for worst in arm.worst.iter().take(3) {
        let exit = if worst.exit.is_empty() {
            "not".to_owned()
        } else {
            format!("{:.2} BDP, {}", worst.exit_bdp, worst.exit)
        };
        writeln!(
            out,
            "| `{}` | {} | {:.3} | {:.3}, `{}` | {} | {exit} | {} |",
            arm.arm,
            worst.name,
            worst.seconds,
            worst.best_seconds,
            worst.best,
            worst.retransmitted_segments,
            worst.about,
        )?;
    }
    Ok(())
}

/// Of an arm some of whose runs were given up, figures are lower bounds.
fn at_least(arm: &ArmSummary, figures: String) -> String {
    if arm.given_up > 0 { format!("≥ {figures}") } else { figures }
}

fn ratios(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or("-".to_owned(), |of| {
        format!("{:.3}, {:.2}, {:.2}, {:.2}", of.median, of.p95, of.p99, of.worst)
    })
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::row;
    use super::*;

    #[test]
    fn arms_classes_and_worst_paths_have_their_rows() {
        let rows = [
            row(0, "one", 1_000, 3),
            row(0, "two", 2_500, 0),
            row(2, "one", 1_000, 0),
            row(2, "two", 1_000, 0),
        ];
        let text = Sweep::new("x", 7, &rows).to_string();
        assert!(
            text.starts_with("2 paths of population x, seed 7; doubling limit on 2; digest `sha256:"),
            "{text}"
        );
        assert!(text.contains("| `one` * | 100.0 % | 1.000, 1.00, 1.00, 1.00 |"), "{text}");
        assert!(text.contains("| `two` * | 50.0 % | 1.000, 2.50, 2.50, 2.50 |"), "{text}");
        assert!(text.contains("| arm | a (1) | b (1) |"), "{text}");
        assert!(
            text.contains("| `two` | a-0 | 2.500 | 1.000, `one` | 0 | not | 8.000 Mb/s, 50.0 ms"),
            "{text}"
        );
    }
}
