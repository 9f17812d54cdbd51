//! What is said of flows, as a page of its own: no script, and nothing from elsewhere.

use std::fmt::Write as _;

use onramp_terminal::html::escaped;

use super::row::{FlowRow, Report};
use super::text;
use crate::limits::Limit;
use crate::units::show_us;

/// Of the bars.
const WIDTH: f64 = 1_000.0;

/// By limit; text and legend say the same without colours (Okabe and Ito's palette, for whoever sees few).
fn color(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "#999999",
        Limit::ReceiveWindow => "#cc79a7",
        Limit::SendBuffer => "#f0e442",
        Limit::SlowStart => "#56b4e9",
        Limit::CongestionAvoidance => "#0072b2",
        Limit::Recovery => "#d55e00",
        Limit::Pacing => "#e69f00",
        Limit::HostQueue => "#8c564b",
        Limit::Path => "#009e73",
    }
}

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;\
padding:0 1rem}h2{font-size:1.1rem;margin-top:2.5rem;overflow-wrap:anywhere}.verdict{font-weight:600}\
svg{width:100%;height:1.75rem;display:block;margin:.5rem 0}ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;\
gap:.25rem 1.25rem}i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}pre{padding:.5rem;border:1px solid #8888;\
overflow-x:auto}footer{margin-top:3rem;font-size:.9rem}";

/// The page.
pub(super) fn page(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>What transfers waited for</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>What transfers waited for</h1>\n"
    );
    for row in &report.flows {
        section(&mut page, row);
    }
    let nothing = report.flows.is_empty().then(|| text::nothing(report));
    let left_out = text::left_out(report, report.flows.len());
    page.push_str("<footer>\n");
    for line in nothing.iter().flat_map(|text| text.lines()).chain(left_out.lines()) {
        let _ = writeln!(page, "<p>{}</p>", escaped(line));
    }
    page + "</footer>\n</body>\n</html>\n"
}

fn section(page: &mut String, row: &FlowRow) {
    let _ = writeln!(page, "<section>\n<h2>{}</h2>", escaped(&row.title));
    if let Some(verdict) = &row.verdict {
        let _ = writeln!(
            page,
            "<p><span class=\"verdict\">{}</span> {}</p>",
            escaped(&verdict.verdict),
            verdict.remedy
        );
        if let Some(command) = verdict.command {
            let _ = writeln!(page, "<pre>{}</pre>", escaped(command));
        }
        bar(page, row);
        over_time(page, row);
    }
    // The begin of the text is the title, and its end the verdict.
    for line in text::facts(row) {
        let _ = writeln!(page, "<p>{}</p>", escaped(&line));
    }
    page.push_str("</section>\n");
}

/// Time by limit, the largest first, and what its colours stand for.
fn bar(page: &mut String, row: &FlowRow) {
    let (mut bars, mut legend, mut at) = (String::new(), String::new(), 0.0);
    for limit in row.limited_by.by_size() {
        let us = row.limited_by.of(limit);
        let share = us as f64 / row.observed_us.max(1) as f64;
        let label = format!("{} {} ({:.0} %)", limit.title(), show_us(us), 100.0 * share);
        bars += &rectangle(at, share * WIDTH, limit, &label);
        at += share * WIDTH;
        let _ = write!(legend, "<li><i style=\"background:{}\"></i>{label}</li>", color(limit));
    }
    let _ = writeln!(page, "{}\n<ul>{legend}</ul>", drawing("Time by what limited the flow", &bars));
}

/// What limited the flow in each slice of time.
fn over_time(page: &mut String, row: &FlowRow) {
    let slices = &row.over_time.limited;
    let width = WIDTH / slices.len().max(1) as f64;
    let mut bars = String::new();
    for (number, limit) in slices.iter().enumerate() {
        let Some(limit) = limit else { continue };
        let label = format!("{}: {}", show_us(row.over_time.slice_us * number as u64), limit.title());
        bars += &rectangle(number as f64 * width, width, *limit, &label);
    }
    let each = format!("Over time, {} each", show_us(row.over_time.slice_us));
    let _ = writeln!(page, "{}\n<p>{each}</p>", drawing(&each, &bars));
}

fn drawing(label: &str, bars: &str) -> String {
    format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} 28\" preserveAspectRatio=\"none\">{bars}</svg>",
        escaped(label)
    )
}

fn rectangle(at: f64, width: f64, limit: Limit, label: &str) -> String {
    format!(
        "<rect x=\"{at:.2}\" width=\"{width:.2}\" height=\"28\" fill=\"{}\"><title>{}</title></rect>",
        color(limit),
        escaped(label)
    )
}
