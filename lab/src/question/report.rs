// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One page with everything that a reproduction yielded: no scripts, no styles or figures from elsewhere.

use std::fmt::Write;

use onramp_terminal::html::escaped;
use serde::Serialize;

use super::{Check, Comparand};

/// A question and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Its name.
    pub id: String,
    /// Whether it holds.
    pub holds: bool,
    /// Document and place.
    pub source: String,
    /// What the document says.
    pub statement: String,
    /// Figures compared with the source's.
    pub measured: Vec<Comparand>,
    /// The predicates.
    pub checks: Vec<Check>,
    /// Runs that it rests on.
    pub runs: Runs,
    /// Of those in virtual time, what crossed the link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<RunDigest>,
    /// Why it could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Number of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// That were measured in full.
    pub valid: usize,
    /// That were given up at the limit: a question that rests on one does not hold.
    #[serde(skip_serializing_if = "is_nothing")]
    pub cut_off: usize,
    /// All, repeated ones included.
    pub total: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_nothing(count: &usize) -> bool {
    *count == 0
}

/// What crossed the link in a run, see [`Run::digest`](crate::experiment::Run::digest).
#[derive(Clone, Debug, Serialize)]
pub struct RunDigest {
    /// Name of the trial.
    pub trial: String,
    /// Name of the arm.
    pub arm: String,
    /// Seed of the link's randomness.
    pub seed: u64,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// The words of a page.
#[derive(Clone, Copy, Debug)]
pub struct ReportText<'a> {
    /// What it is about.
    pub title: &'a str,
    /// What is asked: a claim, a case.
    pub question: &'static str,
    /// What the figures of here are compared with.
    pub compared_with: &'a str,
    /// Whose figures they are.
    pub here: &'a str,
}

/// Figures of a question: a caption and an SVG document each.
pub type Figures = Vec<(String, String)>;

/// The page.
pub fn html(words: ReportText<'_>, about: &[(String, String)], outcomes: &[(Outcome, Figures)]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{0}</h1>\n<dl>\n",
        escaped(words.title)
    );
    for (name, value) in about {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
    }
    let _ = writeln!(
        page,
        "</dl>\n<table>\n<tr><th>{}</th><th>source</th><th>holds</th><th>checks</th><th>runs</th></tr>",
        words.question
    );
    for (one, _) in outcomes {
        let held = one.checks.iter().filter(|check| check.holds).count();
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td class=\"{2}\">{2}</td><td>{held}/{3}</td><td>{4}/{5}</td></tr>",
            escaped(&one.id),
            escaped(&one.source),
            yes_or_no(one.holds),
            one.checks.len(),
            one.runs.valid,
            one.runs.total,
        );
    }
    page += "</table>\n";
    for (one, figures) in outcomes {
        section(&mut page, words, one, figures);
    }
    page + "</body>\n</html>\n"
}

fn section(page: &mut String, words: ReportText<'_>, one: &Outcome, figures: &Figures) {
    let _ = writeln!(
        page,
        "<h2 id=\"{0}\">{0}: <span class=\"{1}\">{2}</span></h2>\n<p>{3}: {4}</p>",
        escaped(&one.id),
        yes_or_no(one.holds),
        if one.holds { "holds" } else { "does not hold" },
        escaped(&one.source),
        escaped(&one.statement),
    );
    if let Some(error) = &one.error {
        let _ = writeln!(page, "<p class=\"no\">Not evaluated: {}</p>", escaped(error));
    }
    let _ = writeln!(
        page,
        "<table>\n<tr><th>figure</th><th>{}</th><th>{}</th></tr>",
        escaped(words.compared_with),
        escaped(words.here)
    );
    for row in &one.measured {
        let cells = [&row.what, &row.source, &row.ours].map(|cell| escaped(cell));
        let _ = writeln!(page, "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", cells[0], cells[1], cells[2]);
    }
    *page += "</table>\n<table>\n<tr><th>check</th><th>measured</th><th>expected</th><th>holds</th></tr>\n";
    for check in &one.checks {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{:.3}</td><td>{}</td><td class=\"{3}\">{3}</td></tr>",
            escaped(&check.what),
            check.measured,
            escaped(&check.expected),
            yes_or_no(check.holds),
        );
    }
    *page += "</table>\n";
    if !one.digests.is_empty() {
        *page += "<details><summary>Digests</summary><table>\n";
        for RunDigest { trial, arm, seed, digest } in &one.digests {
            let cells = [trial, arm, digest].map(|cell| escaped(cell));
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{seed}</td><td>{}</td></tr>",
                cells[0], cells[1], cells[2]
            );
        }
        *page += "</table></details>\n";
    }
    for (caption, svg) in figures {
        // Within a page an SVG document has no XML declaration.
        let svg = svg.find("<svg").map_or("", |start| &svg[start..]);
        let _ = writeln!(page, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(caption));
    }
}

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}\
th{background:#f4f4f4}.yes{color:#007a4d}.no{color:#c0392b;font-weight:bold}dt{float:left;clear:left;width:10em;color:#666}\
dd{margin-left:10em}figure{margin:1em 0}svg{max-width:100%;height:auto}figcaption{color:#666}";

fn yes_or_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_claim_its_figures_and_nothing_from_elsewhere() {
        let outcome = Outcome {
            id: "geo-download".into(),
            holds: false,
            source: "Ataei Kachooei et al. 2022".into(),
            statement: "a < b".into(),
            measured: vec![Comparand::new("time, s", "about 30", 24.0, 1)],
            checks: vec![Check::at_most("ratio", 1.25, 1.0)],
            runs: Runs { cut_off: 0, valid: 3, total: 4 },
            digests: vec![RunDigest {
                trial: "geo".into(),
                arm: "plain".into(),
                seed: 7,
                digest: "sha256:0a".into(),
            }],
            error: None,
        };
        let words = ReportText { title: "T", question: "claim", compared_with: "source", here: "here" };
        let svg = "<?xml version=\"1.0\"?>\n<svg width=\"1\"></svg>";
        let page = html(
            words,
            &[("kernel".into(), "6 & more".into())],
            &[(outcome, vec![("c".into(), svg.into())])],
        );
        for part in [
            "a &lt; b",
            "6 &amp; more",
            "<td>3/4</td>",
            "does not hold",
            "<svg width",
            "1.250",
            "at most 1",
            "<td>7</td><td>sha256:0a</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<?xml") && !page.contains("http") && !page.contains("<script"));
    }
}
