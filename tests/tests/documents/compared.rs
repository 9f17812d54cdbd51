//! Published starts beside those of onramp: the tables of lab/examples/README.md are those of docs/evaluation/start-comparison.csv.
//! With `ONRAMP_WRITE` in the environment they are written.

use super::{Row, by_clock, grouped, median, number, page, pairs, ratio, root, slowest, states, times};

const PAGE: &str = "lab/examples/README.md";
/// In the order in which the tables have them.
const ARMS: [&str; 11] = [
    "cubic",
    "ramp:start=double",
    "ramp:start=fast",
    "ramp:start=suss",
    "hystart:start=suss",
    "stopeg",
    "afstart",
    "flash",
    "ramp:start=resume",
    "ramp:start=resume+window",
    "scubic",
];
const CELLS: [(&str, &str, &str); 4] = [
    ("stock", "500000", "stock, 500 kB"),
    ("stock", "2000000", "stock, 2 MB"),
    ("opened", "500000", "opened, 500 kB"),
    ("opened", "2000000", "opened, 2 MB"),
];
/// What runs are made by.
const CLOCKS: [(&str, &str); 2] = [("virtual", "kernel TCP, 6.12"), ("simulated", "simulated")];
const WRONG: [(&str, &str); 3] = [
    ("stale", "a rate four times too large"),
    ("prefix", "another path's: four times the rate, three times the RTT"),
    ("parallel", "eight connections at once, the path's own"),
];

/// All of them.
fn runs() -> Vec<Row> {
    by_clock("docs/evaluation/start-comparison.csv", |row| row["path"].clone())
}

/// The runs of an arm and of stock CUBIC's over the same paths: what is remembered, if anything is, does not matter to CUBIC.
fn of(rows: &[Row], clock: &str, cases: &[&str], receiver: &str, bytes: &str) -> Vec<Row> {
    let asked = |row: &&Row| {
        cases.contains(&row["case"].as_str())
            && row["clock"] == clock
            && row["receiver"] == receiver
            && row["bytes"] == bytes
    };
    rows.iter().filter(asked).cloned().collect()
}

/// The line of an arm.
fn line(rows: &[Row], clock: &str, arm: &str) -> String {
    let mut cells = vec![format!("`{arm}`")];
    let (mut worst, mut slower) = (0.0_f64, 0);
    for (receiver, bytes, _) in CELLS {
        let runs = of(rows, clock, &["first", "second"], receiver, bytes);
        let (time, lost, _) = ratio(&runs, clock, arm, "cubic");
        worst = worst.max(slowest(&runs, clock, arm, "cubic"));
        slower += pairs(&runs, clock, arm, "cubic").into_iter().filter(|pair| times(*pair) > 1.05).count();
        cells.push(format!("{time:.3}, {}", grouped(lost)));
    }
    let all = |column: &str, cases: &[&str]| -> Vec<f64> {
        let asked =
            |row: &&Row| row["arm"] == arm && row["clock"] == clock && cases.contains(&row["case"].as_str());
        // A neighbour that had not begun in earnest keeps nothing that could be counted.
        rows.iter()
            .filter(asked)
            .filter(|row| !row[column].is_empty())
            .map(|row| number(row, column))
            .collect()
    };
    cells.push(format!("{worst:.2}, {slower}"));
    cells.push(format!("{:.1}", median(all("queueing_ms", &["first", "second"]))));
    cells.push(format!("{:.0}", median(all("neighbour_keeps_percent", &["neighbour"]))));
    format!("| {} |\n", cells.join(" | "))
}

/// A memory that is wrong, or that eight connections have at once: time over that of `ramp` without any.
fn wrong(rows: &[Row], clock: &str) -> String {
    let mut text = String::new();
    for (case, what) in WRONG {
        let ours = if case == "parallel" { "ramp:start=resume+window" } else { "ramp:resume" };
        let runs: Vec<Row> =
            rows.iter().filter(|row| row["case"] == case && row["clock"] == clock).cloned().collect();
        let cell = |arm: &str| {
            let (time, lost, _) = ratio(&runs, clock, arm, "ramp:start=double");
            let worst = slowest(&runs, clock, arm, "ramp:start=double");
            format!("{time:.3} ({worst:.2}), {}", grouped(lost))
        };
        let (_, _, without) = ratio(&runs, clock, ours, "ramp:start=double");
        text += &format!("| {what} | {} | {} | {} |\n", grouped(without), cell(ours), cell("scubic"));
    }
    text
}

fn tables() -> String {
    let rows = runs();
    let mut text = String::new();
    for (clock, title) in CLOCKS {
        text += &format!("\n### {title}\n\n| arm |");
        for (receiver, bytes, cell) in CELLS {
            let runs = of(&rows, clock, &["first", "second"], receiver, bytes);
            text += &format!(" {cell}, {} paths |", pairs(&runs, clock, "scubic", "cubic").len());
        }
        text += " slowest, over 1.05 | queue, ms | neighbour keeps, % |\n";
        text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
        text.extend(ARMS.map(|arm| line(&rows, clock, arm)));
        let paths = rows.iter().filter(|row| row["case"] == "stale" && row["clock"] == clock);
        let paths = paths.filter(|row| row["arm"] == "scubic").count();
        text +=
            &format!("\n| memory, opened receivers, {paths} paths | without | `ramp` with it | `scubic` |\n");
        text += "| --- | --- | --- | --- |\n";
        text += &wrong(&rows, clock);
    }
    text
}

#[test]
fn tables_of_published_starts_have_the_figures_of_their_runs() {
    const BEGIN: &str = "<!-- tables -->\n";
    const END: &str = "\n<!-- end of tables -->";
    let text = page(PAGE);
    let (before, rest) = text.split_once(BEGIN).expect("where the tables begin");
    let (found, after) = rest.split_once(END).expect("where they end");
    let made = tables();
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        std::fs::write(root().join(PAGE), format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, made, "{PAGE}: ONRAMP_WRITE=1 has this test write the tables");
    }
}

#[test]
fn the_page_on_starts_says_what_published_ones_gain_and_cost() {
    let rows = runs();
    let over = |receiver, bytes, arm| {
        let runs = of(&rows, "simulated", &["first", "second"], receiver, bytes);
        ratio(&runs, "simulated", arm, "cubic").0
    };
    for bytes in ["500000", "2000000"] {
        let [all, half] = ["scubic", "ramp:start=resume+window"].map(|arm| over("stock", bytes, arm));
        assert!(half - all < 0.01, "{bytes}: {all} {half}");
    }
    let [all, half] = ["scubic", "ramp:start=resume+window"].map(|arm| over("opened", "2000000", arm));
    let stale: Vec<Row> =
        rows.iter().filter(|row| row["case"] == "stale" && row["clock"] == "simulated").cloned().collect();
    let lost = |arm| ratio(&stale, "simulated", arm, "cubic").1;
    let paths = pairs(&stale, "simulated", "scubic", "cubic").len();
    states("docs/start.md", &format!("over {paths} simulated paths"));
    states(
        "docs/start.md",
        &format!(
            "2 MB take {all:.3} of CUBIC's time for {half:.3}; a memory four times too large costs {} retransmissions for {}.",
            grouped(lost("scubic")),
            grouped(lost("ramp:resume"))
        ),
    );
    let worst = slowest(&stale, "simulated", "ramp:resume", "ramp:start=double");
    states("docs/start.md", &format!("At worst `ramp` then takes {worst:.2} of its time without."));
}

/// What the page says of the simulated runs, each of which is in its tables.
#[test]
fn what_is_said_of_each_published_start_is_what_its_runs_show() {
    let rows = runs();
    let keeps = |arm: &str| {
        let asked =
            |row: &&Row| row["case"] == "neighbour" && row["clock"] == "simulated" && row["arm"] == arm;
        let kept = rows.iter().filter(asked).filter(|row| !row["neighbour_keeps_percent"].is_empty());
        median(kept.map(|row| number(row, "neighbour_keeps_percent")).collect())
    };
    for arm in ARMS {
        assert!(keeps(arm) > keeps("cubic") - 4.5, "{arm}: {}", keeps(arm));
    }
    let (mut slower, mut all) = (0, 0);
    for (receiver, bytes, _) in CELLS {
        let runs = of(&rows, "simulated", &["first"], receiver, bytes);
        let first = |arm| ratio(&runs, "simulated", arm, "cubic");
        let visits = ["ramp:start=fast", "ramp:start=suss", "stopeg", "afstart", "flash"];
        if receiver == "stock" {
            assert!(visits.iter().all(|arm| first(arm).0 > 0.835));
        } else {
            assert!(visits.iter().all(|arm| first(arm).0 >= first("flash").0));
        }
        let least = visits.iter().map(|arm| first(arm).1).fold(f64::INFINITY, f64::min);
        assert_eq!(first("afstart").1, least, "{receiver} {bytes}");
        let pairs = pairs(&runs, "simulated", "stopeg", "cubic");
        all += pairs.len();
        slower += pairs.into_iter().filter(|pair| times(*pair) > 1.05).count();
    }
    assert!(slower * 3 > all && slower * 2 < all, "{slower} of {all}");
    for case in ["stale", "prefix"] {
        let runs: Vec<Row> =
            rows.iter().filter(|row| row["case"] == case && row["clock"] == "simulated").cloned().collect();
        let lost = |arm| ratio(&runs, "simulated", arm, "cubic").1;
        assert!(lost("scubic") > 18.0 * lost("ramp:resume"), "{case}");
    }
}
