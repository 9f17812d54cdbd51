// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Results and reports as a document of HTML that shows what it holds: modules of the page of `onramp serve` (`web/src/lab.ts`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::experiment::directory_name;

/// The document without its data; empty where the page was not built.
const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/results.html"));
/// Where in it the data belong.
const DATA: &str = "<!--data-->";
/// Rows of a flow at most: more points than a chart is wide are not seen.
const ROWS: usize = 1_200;

/// What a document shows.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Results of the lab or the simulator, next to each other.
    Results(Vec<Opened>),
    /// A report of `onramp replay` or `onramp shadow`.
    Report(Opened),
}

/// A result or a report.
#[derive(Serialize)]
pub struct Opened {
    /// Where it is from.
    pub name: String,
    /// As it was printed or written.
    pub json: Value,
    /// Flows over time, as CSV, by arm and number of the run.
    pub flows: BTreeMap<String, BTreeMap<usize, String>>,
}

/// Whether this program was built with the document.
pub fn is_built() -> bool {
    !DOCUMENT.is_empty()
}

/// The document; `None`: this program was built without it.
///
/// # Errors
/// What is shown cannot be written as JSON.
pub fn document(shown: &Shown) -> serde_json::Result<Option<String>> {
    let Some((before, after)) = DOCUMENT.split_once(DATA) else { return Ok(None) };
    // Nothing in it ends the element that it stands in.
    let json = serde_json::to_string(shown)?.replace('<', "\\u003c");
    Ok(Some([before, &json, after].concat()))
}

/// The flows of the runs in an experiment's directory, by arm and number of the run: those directories are named
/// `NNN-ARM`, and `NNN-ARM-againN` where a run was tried again, which takes the place of what was not valid.
///
/// # Errors
/// A directory or file that cannot be read.
pub fn flows(directory: &Path, arms: &[&str]) -> io::Result<BTreeMap<String, BTreeMap<usize, String>>> {
    let mut places: Vec<_> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    places.sort();
    let mut flows = BTreeMap::new();
    for arm in arms {
        let of_arm = places.iter().filter_map(|place| {
            let (number, rest) = place.split_once('-')?;
            let again = rest.strip_prefix(&directory_name(arm))?;
            (again.is_empty() || again.starts_with("-again")).then_some((number.parse::<u32>().ok()?, place))
        });
        let latest: BTreeMap<u32, &String> = of_arm.collect();
        let mut runs = BTreeMap::new();
        for (run, place) in latest.values().enumerate() {
            match fs::read_to_string(directory.join(place).join("flow.csv")) {
                Ok(text) => drop(runs.insert(run, thinned(&text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        flows.insert((*arm).to_owned(), runs);
    }
    Ok(flows)
}

/// The header, and every n-th row.
fn thinned(csv: &str) -> String {
    let rows = csv.lines().skip(1);
    let step = rows.clone().count().div_ceil(ROWS).max(1);
    csv.lines().take(1).chain(rows.step_by(step)).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::*;

    #[test]
    fn flows_are_found_by_arm_and_run_and_a_second_attempt_counts() {
        let directory = tempfile::tempdir().unwrap();
        for (place, text) in [
            ("000-cubic", "a\n1\n"),
            ("001-ramp_base_bbr", "a\n2\n"),
            ("002-cubic", "a\n3\n"),
            ("002-cubic-again1", "a\n4\n"),
            ("003-ramp_base_bbr", "a\n5\n"),
        ] {
            fs::create_dir(directory.path().join(place)).unwrap();
            fs::write(directory.path().join(place).join("flow.csv"), text).unwrap();
        }
        let flows = flows(directory.path(), &["cubic", "ramp:base=bbr", "ramp"]).unwrap();
        let of = |arm: &str| flows[arm].iter().map(|(run, text)| (*run, text.as_str())).collect::<Vec<_>>();
        assert_eq!(of("cubic"), [(0, "a\n1\n"), (1, "a\n4\n")]);
        assert_eq!(of("ramp:base=bbr"), [(0, "a\n2\n"), (1, "a\n5\n")]);
        assert_eq!(of("ramp"), []);
    }

    #[test]
    fn a_long_flow_keeps_its_header_and_a_part_of_its_rows() {
        let long: String =
            std::iter::once("seconds\n".to_owned()).chain((0..5_000).map(|n| format!("{n}\n"))).collect();
        let thin = thinned(&long);
        assert!(
            thin.starts_with("seconds\n0\n5\n") && thin.lines().count() == 1_001,
            "{}",
            thin.lines().count()
        );
        assert_eq!(thinned("seconds\n1\n2\n"), "seconds\n1\n2\n");
    }

    /// Text that would be markup, were it taken for that.
    const MARKUP: &str = "</script><img src=x onerror=\"window.taken=1\">";

    /// A document in a real Chromium, looked at by `web/tests/lab.mjs`.
    fn looked_at(shown: &Shown, what: &str) {
        let Some(text) = document(shown).unwrap() else {
            return println!("SKIP: the page was not built: `make web`");
        };
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let mut places = std::env::split_paths(&path).flat_map(|place| names.map(|name| place.join(name)));
        let chromium = places.find(|place| place.is_file());
        let Some(chromium) = chromium.filter(|_| web.join("node_modules/playwright-core").exists()) else {
            return println!("SKIP: there is no Chromium: `apt-get install chromium`");
        };
        let file = tempfile::Builder::new().suffix(".html").tempfile().unwrap();
        fs::write(file.path(), text).unwrap();
        let mut script = Command::new("node");
        let script = script.arg("tests/lab.mjs").arg(chromium).arg(what).arg(file.path()).current_dir(web);
        assert!(script.status().unwrap().success(), "web/tests/lab.mjs says what was wrong");
    }

    #[test]
    fn a_browser_shows_results_and_takes_nothing_in_them_for_markup() {
        let run = |seconds: f64, valid: bool| {
            json!({
                "valid": valid, "seed": 1, "seconds": seconds, "goodput_bps": 8e7 / seconds,
                "retransmitted_segments": 3, "max_rtt_us": 70_000, "mean_rtt_us": 6e4, "min_rtt_us": 5e4,
                "exit": { "reason": "algorithm", "seconds": 1, "window_bytes": 5e5 },
                "regret": { "window_to_bdp": 0.8, "early_us": 20_000, "queue_us": 0, "at_least": false },
            })
        };
        let json = json!({
            "schema": 1, "profile": MARKUP, "clock": "virtual", "kernel": "6.12", "bytes": 1e7, "bdp_bytes": 625_000,
            "base_rtt_us": 5e4, "rate_bps": 1e8,
            "arms": [
                { "arm": "cubic", "runs": [run(4.0, true), run(4.2, true)] },
                { "arm": MARKUP, "runs": [run(2.0, true), run(2.1, true), run(9.0, false)] },
            ],
        });
        let csv = "seconds,cwnd_segments,mss_bytes,acknowledged_bytes\n0,10,1448,0\n1,20,1448,100000\n";
        let flows = BTreeMap::from([("cubic".to_owned(), BTreeMap::from([(0, csv.to_owned())]))]);
        looked_at(&Shown::Results(vec![Opened { name: "one".into(), json, flows }]), "results");
    }

    #[test]
    fn a_browser_shows_a_report() {
        let finding = |algorithm: &str, exit: Value| {
            let regret = if exit.is_null() {
                Value::Null
            } else {
                json!({ "window_to_bdp": 0.5, "early_us": 3e6, "queue_us": 0 })
            };
            json!({ "algorithm": algorithm, "exit": exit, "regret": regret, "last_outcome": "bin_open" })
        };
        let exit = json!({ "since_start_us": 1e6, "window_bytes": 1e6, "cwnd_segments": 700 });
        let json = json!({ "schema": 1, "flows": [{
            "flow": 7, "local": "192.0.2.1:1", "remote": "192.0.2.2:2", "algorithm": "one", "given": null,
            "findings": [finding("other", exit), finding(MARKUP, Value::Null)],
        }]});
        looked_at(
            &Shown::Report(Opened { name: "replay.json".into(), json, flows: BTreeMap::new() }),
            "report",
        );
    }
}
