//! Over a recorded link (profiles/recorded): the figures of README.md and of the recording's page are those of
//! docs/evaluation/recorded.csv, which the simulator makes again for some of its parts.

use std::process::Command;

use onramp_tests::cli;

use super::{Row, by_clock, median, number, page, pairs, ratio, results, root, rows, slowest};

const ARMS: [&str; 3] = ["ramp", "cubic", "bbr"];
const RESULTS: &str = "docs/evaluation/recorded.csv";

fn of<'a>(rows: &'a [Row], clock: &str, bytes: &str, arm: &str) -> Vec<&'a Row> {
    let is_asked = |row: &&Row| row["clock"] == clock && row["bytes"] == bytes && row["arm"] == arm;
    rows.iter().filter(is_asked).collect()
}

#[test]
fn tables_of_the_recorded_link_have_the_figures_of_its_runs() {
    let runs = by_clock(RESULTS, |row| row["part"].clone());
    let table = page("profiles/recorded/README.md");
    for (clock, sizes, parts) in [
        ("simulated", &["500000", "2000000", "10000000", "50000000"][..], 40),
        ("virtual", &["10000000"][..], 8),
    ] {
        for size in sizes {
            let over: Vec<Row> = runs.iter().filter(|row| row["bytes"] == *size).cloned().collect();
            for arm in ARMS {
                assert_eq!(of(&over, clock, size, arm).len(), parts, "{clock} {size} {arm}");
                assert_eq!(pairs(&over, clock, arm, "cubic").len(), parts, "{clock} {size} {arm}");
            }
            let [(mean, ramp_lost, cubic_lost), (bbr, bbr_lost, _)] =
                ["ramp", "bbr"].map(|arm| ratio(&over, clock, arm, "cubic"));
            let [worst, bbr_worst] = ["ramp", "bbr"].map(|arm| slowest(&over, clock, arm, "cubic"));
            let megabytes = size.parse::<f64>().unwrap() / 1e6;
            let line = format!(
                "| {clock}, {megabytes} MB | {mean:.3} ({worst:.2}), {ramp_lost} | {bbr:.3} ({bbr_worst:.2}), {bbr_lost} | {cubic_lost} |"
            );
            assert!(table.contains(&line), "{line}");
        }
    }
    let cells = ARMS.map(|arm| {
        let runs = of(&runs, "virtual", "10000000", arm);
        let [seconds, lost] = ["seconds", "retransmitted_segments"]
            .map(|column| runs.iter().map(|row| number(row, column)).collect::<Vec<_>>());
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = seconds.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({least:.2}–{most:.2}), {:.0}", median(seconds), median(lost))
    });
    let line = format!("[recorded](profiles/recorded/README.md) | {} |", cells.join(" | "));
    assert!(page("README.md").contains(&line), "{line}");
}

#[test]
fn the_simulator_makes_them_again() {
    let output = Command::new(root().join("tests/recorded.sh"))
        .arg(cli::laboratory())
        .args(["0", "26", "39"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let recorded = results(RESULTS);
    let again = rows(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(again.len(), 36);
    for row in &again {
        assert!(recorded.contains(row), "{row:?}");
    }
}
