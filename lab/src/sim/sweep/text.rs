// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A sweep as Markdown, for people and for pages.

use std::fmt;

use super::{ArmSummary, Sweep};
use crate::stats::{Bound, Quantiles};

/// Where there is no figure.
const NONE: &str = "-";

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
            "\n| arm | won | time / best: median, p95, p99, worst | paths compared | time / limit | time / receiver's | bound by receiver | losses above best: p95, p99 | retransmitted | of 1000 | queueing delay | given up | left early |"
        )?;
        writeln!(
            out,
            "| --- | ---: | --- | ---: | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
        )?;
        for arm in &self.arms {
            writeln!(
                out,
                "| `{}`{} | {:.1} % | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} ms | {} | {} of {} |",
                arm.arm,
                if arm.front { " *" } else { "" },
                arm.won * 100.0,
                at_least(arm.bound, ratios(arm.time)),
                arm.paths_compared,
                at_least(arm.bound, ratios(arm.time_over_limit)),
                at_least(arm.bound, ratios(arm.time_over_receiver_limit)),
                arm.bound_by_receiver,
                at_least(
                    arm.bound,
                    arm.losses.map_or(NONE.into(), |losses| format!("{:.0}, {:.0}", losses.p95, losses.p99))
                ),
                at_least(arm.bound, arm.retransmitted_segments.to_string()),
                at_least(arm.bound, format!("{:.1}", arm.retransmitted_per_mille)),
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
                "\n{given_up} runs were given up at the limit of their path. They count with the time until then (≥). Ratios to the best are of the paths on which an arm finished (paths compared)."
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
        let head = |(name, class): (&String, &super::ClassSummary)| match class.paths_compared {
            all if all == class.paths => format!("{name} ({all})"),
            compared => format!("{name} ({}, {compared} compared)", class.paths),
        };
        let heads: Vec<_> = first.classes.iter().map(head).collect();
        writeln!(out, "\nWon, and time / best at p95, by class (paths):\n\n| arm | {} |", heads.join(" | "))?;
        writeln!(out, "| --- |{}", " ---: |".repeat(heads.len()))?;
        for arm in &self.arms {
            let cell = |class: &super::ClassSummary| {
                let p95 = class.time.map(|time| at_least(class.bound, format!("{:.2}", time.p95)));
                format!("{:.0} %, {}", class.won * 100.0, p95.unwrap_or_else(|| NONE.to_owned()))
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
            "| `{}` | {} | {} | {:.3}, `{}` | {} | {exit} | {} |",
            arm.arm,
            worst.name,
            at_least(worst.bound, format!("{:.3}", worst.seconds)),
            worst.best_seconds,
            worst.best,
            at_least(worst.bound, worst.retransmitted_segments.to_string()),
            worst.about,
        )?;
    }
    Ok(())
}

/// Figures that may be bounds.
fn at_least(bound: Option<Bound>, figures: String) -> String {
    match bound {
        Some(bound) if figures != NONE => format!("{}{figures}", bound.sign()),
        _ => figures,
    }
}

fn ratios(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or(NONE.to_owned(), |of| {
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
        assert!(text.contains("| `one` * | 100.0 % | 1.000, 1.00, 1.00, 1.00 | 2 |"), "{text}");
        assert!(text.contains("| `two` * | 50.0 % | 1.000, 2.50, 2.50, 2.50 | 2 |"), "{text}");
        assert!(text.contains("| arm | a (1) | b (1) |"), "{text}");
        assert!(
            text.contains("| `two` | a-0 | 2.500 | 1.000, `one` | 0 | not | 8.000 Mb/s, 50.0 ms"),
            "{text}"
        );
    }
    /// The cells of the rows that begin with an arm, in the tables after each other.
    fn cells(text: &str, arm: &str) -> Vec<Vec<String>> {
        let of_arm = |line: &&str| line.starts_with(&format!("| `{arm}`"));
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect();
        text.lines().filter(of_arm).map(cells).collect()
    }

    #[test]
    fn every_table_shows_bounds_as_such_and_how_many_pairs_are_left() {
        let given_up = |path, arm| super::super::RunRow { complete: 0, ..row(path, arm, 9_000, 7) };
        let rows = [
            [row(0, "one", 1_000, 0), row(0, "two", 2_000, 0)],
            [row(2, "one", 1_000, 0), given_up(2, "two")],
            [given_up(3, "one"), given_up(3, "two")],
        ];
        let text = Sweep::new("x", 7, &rows.concat()).to_string();
        let [main, class, worst_of_all, worst] = &cells(&text, "two")[..] else { panic!("{text}") };
        // Time over the best arm's, over the limit, losses and retransmissions; the paths that are compared.
        for at in [3, 5, 8, 9, 10] {
            assert!(main[at].starts_with('≥'), "{at}: {main:?}");
        }
        assert_eq!((main[4].as_str(), main[6].as_str()), ("2", "-"), "{main:?}");
        assert_eq!((class[2].as_str(), class[3].as_str()), ("0 %, 2.00", "0 %, ≥ 9.00"));
        assert!(text.contains("| a (1) | b (2, 1 compared) |"), "{text}");
        assert_eq!((worst_of_all[2].as_str(), worst_of_all[3].as_str()), ("a-2", "≥ 9.000"));
        assert_eq!((worst[2].as_str(), worst[3].as_str()), ("a-0", "2.000"));
    }
}
