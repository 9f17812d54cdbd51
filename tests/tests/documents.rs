//! The pages' figures are those of the committed results, their links lead somewhere, and they keep within their length.

#[path = "documents/compared.rs"]
mod compared;
#[path = "documents/recorded.rs"]
mod recorded;
#[path = "documents/starts.rs"]
mod starts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A row of a CSV file, by the names of its columns.
type Row = BTreeMap<String, String>;

/// Most words of README.md: an operator decides within a minute.
const README_WORDS: usize = 1000;
/// Most words of all pages of docs/.
const DOCS_WORDS: usize = 20_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A page with its lines joined, so that a sentence is found wherever it is wrapped.
fn joined(path: &str) -> String {
    page(path).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn states(path: &str, figure: &str) {
    assert!(joined(path).contains(figure), "{path} does not state what the results give: {figure}");
}

fn results(path: &str) -> Vec<Row> {
    rows(&page(path))
}

/// The rows of CSV.
fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("names of columns").split(',').map(str::to_owned).collect();
    lines.map(|line| names.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is {:?}", row[column]))
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The valid runs over the profiles of one arm, each a row.
fn profile_runs<'a>(rows: &'a [Row], profile: &str, arm: &str) -> Vec<&'a Row> {
    let runs: Vec<_> = rows
        .iter()
        .filter(|row| row["profile"] == profile && row["arm"] == arm && row["valid"] == "1")
        .collect();
    assert!(!runs.is_empty(), "no run of {arm} over {profile}");
    runs
}

fn profiles(rows: &[Row]) -> Vec<String> {
    let mut profiles: Vec<_> = rows.iter().map(|row| row["profile"].clone()).collect();
    profiles.dedup();
    profiles
}

fn medians(rows: &[Row], profile: &str, arm: &str) -> (f64, f64) {
    let of =
        |column| median(profile_runs(rows, profile, arm).iter().map(|row| number(row, column)).collect());
    (of("seconds"), of("retransmitted_segments"))
}

/// The median time with its range where runs differ, and the median of retransmitted segments.
fn cell(rows: &[Row], profile: &str, arm: &str) -> String {
    let seconds: Vec<_> = profile_runs(rows, profile, arm).iter().map(|row| number(row, "seconds")).collect();
    let least = format!("{:.2}", seconds.iter().copied().fold(f64::INFINITY, f64::min));
    let most = format!("{:.2}", seconds.iter().copied().fold(0.0, f64::max));
    let (time, retransmitted) = medians(rows, profile, arm);
    let range = if least == most { String::new() } else { format!(" ({least}–{most})") };
    format!("{time:.2}{range}, {retransmitted:.0}")
}

/// How many rows of a table of a page are of a profile, each of which has these arms' figures.
fn rows_of_profiles(rows: &[Row], path: &str, arms: &[&str]) -> usize {
    let text = page(path);
    let mut found = 0;
    for profile in profiles(rows) {
        let cells: Vec<_> = arms.iter().map(|arm| cell(rows, &profile, arm)).collect();
        let end = format!("`{profile}` | {} |", cells.join(" | "));
        for line in text.lines().filter(|line| line.contains(&format!("`{profile}` | "))) {
            assert!(line.ends_with(&end), "{path} has\n{line}\nwhere the results give\n{end}");
            found += 1;
        }
    }
    found
}

#[test]
fn tables_of_paths_have_the_medians_and_ranges_of_the_runs() {
    let rows = results("docs/evaluation/profiles.csv");
    let every = profiles(&rows).len();
    let arms = ["ramp", "cubic", "bbr"];
    assert_eq!(rows_of_profiles(&rows, "docs/algorithms/ramp.md", &arms), every);
    assert!(rows_of_profiles(&rows, "README.md", &arms) >= every / 2);
}

#[test]
fn the_page_on_ramp_has_what_its_evaluation_found() {
    let checks = results("docs/evaluation/ramp-checks.csv");
    let holds = |row: &&Row| row["holds"] == "true";
    let held = checks.iter().filter(holds).count();
    let path = "docs/algorithms/ramp.md";
    states(path, &format!("{held} of {} checks hold.", checks.len()));
    let failed = checks.iter().filter(|row| !holds(row));
    let (lost, others): (Vec<_>, Vec<_>) = failed.partition(|row| row["check"].contains("retransmitted"));
    states(path, &format!("Retransmissions fail in {} cases", lost.len()));
    assert_eq!(others.len(), 4, "a time, sharing and a neighbour, which the page names: {others:?}");
    let [wired, sharing, neighbour, _] = ["four-terrestrial", "four-geo", "cubic", "codel"].map(|start| {
        others
            .iter()
            .find(|row| row["check"].starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {others:?}"))
    });
    let keeps = number(neighbour, "measured");
    states(
        path,
        &format!(
            "Jain's index is {} of stock CUBIC's; a CUBIC flow that was there first keeps {keeps:.0} %",
            sharing["measured"]
        ),
    );
    states(path, &format!("`terrestrial`: index {}.", wired["measured"]));
    let valid = |row: &Row| row["valid"] == "true" && row["digest"].len() == 16;
    assert!(results("docs/evaluation/ramp.csv").iter().all(valid));
}

#[test]
fn the_page_on_options_after_slow_start_has_the_figures_of_the_runs() {
    const NONE: &str = "ramp:after_exit=none";
    const OPTIONS: &str = "ramp:after_exit=plateau+floor";
    let rows = results("docs/evaluation/after-exit.csv");
    assert_eq!(
        rows_of_profiles(&rows, "docs/after-exit.md", &["ramp", NONE, OPTIONS]),
        profiles(&rows).len()
    );
    let rows = results("docs/evaluation/after-exit-paths.csv");
    let arms = [
        (NONE, "without options"),
        (OPTIONS, "with plateau and floor"),
        ("ramp:after_exit=floor", "with the floor"),
    ];
    for (arm, name) in arms {
        let (time, lost, reference) = ratio(&rows, "6.12", arm, "cubic");
        let share = lost / reference;
        let slowest = slowest(&rows, "6.12", arm, "cubic");
        states("docs/after-exit.md", &format!("{name} {time:.3}, {share:.2} ({slowest:.2})"));
    }
    let rows = results("docs/evaluation/after-exit-neighbours-kernel.csv");
    let keeps = |arm: &str| {
        let runs = rows.iter().filter(|row| row["path"] == "cubic-of-160-ms" && row["arm"] == arm);
        median(runs.map(|row| number(row, "neighbour_keeps_percent")).collect())
    };
    let figures = format!(
        "keeps {:.0} % next to `ramp` of 40 ms without options, and {:.0} % with plateau and floor",
        keeps(NONE),
        keeps(OPTIONS)
    );
    states("docs/after-exit.md", &figures);
    let rows = results("docs/evaluation/after-exit-neighbours-floor.csv");
    let with_the_floor_and_without = |path: &str| {
        let keeps = |arm: &str| {
            let runs =
                rows.iter().filter(|row| row["path"] == path && row["arm"] == arm && row["valid"] == "1");
            median(runs.map(|row| number(row, "neighbour_keeps_percent")).collect())
        };
        format!("{:.0} % for {:.0} %", keeps("ramp:after_exit=floor"), keeps(NONE))
    };
    for (path, place) in [
        ("cubic-of-160-ms", "with 160 ms"),
        ("cubic-of-40-ms", "with 40 ms"),
        ("cubic-terrestrial", "on a wired path"),
        ("cubic-lte", "over `lte`"),
        ("cubic-wifi", "over `wifi`"),
    ] {
        states("docs/after-exit.md", &format!("{} {place}", with_the_floor_and_without(path)));
    }
}

#[test]
fn fitted_paths_are_counted_and_those_that_are_given_are_right() {
    let (fits, given, wrong, refused, right) = fitted_paths("docs/evaluation/fitted-paths.csv");
    states("docs/simulator.md", &format!("{fits} {given} {wrong} {refused} {right}"));
    let (fits, given, wrong, refused, right) = fitted_paths("docs/evaluation/fitted-paths-simulated.csv");
    states("docs/simulator.md", &format!("{fits} {given} {wrong} {refused} {right}"));
    assert_eq!(wrong, 0);
}

/// Of the fits of a file: how many, given, wrong, refused, refused though right. Those that are given are right as the page
/// says it.
fn fitted_paths(file: &str) -> (usize, usize, usize, usize, usize) {
    let rows: Vec<_> = results(file).into_iter().filter(|row| row["verdict"] != "no path").collect();
    let count = |verdict: &str| rows.iter().filter(|row| row["verdict"] == verdict).count();
    let (given, wrong, right) = (count("given"), count("given wrong"), count("refused though right"));
    let refused = count("refused") + right;
    assert_eq!(given + wrong + refused, rows.len());
    for row in rows.iter().filter(|row| row["verdict"] == "given") {
        for arm in ["cubic", "ramp"] {
            let (real, fitted) =
                (number(row, &format!("{arm}_seconds")), number(row, &format!("{arm}_fitted_seconds")));
            assert!((fitted / real - 1.0).abs() <= 0.1, "{row:?}");
        }
    }
    (rows.len(), given + wrong, wrong, refused, right)
}

#[test]
fn the_page_on_bbr_has_the_medians_of_the_runs() {
    let rows = results("docs/evaluation/profiles.csv");
    let text = page("docs/bbr.md");
    for profile in profiles(&rows) {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{profile}, ")))
            .unwrap_or_else(|| panic!("docs/bbr.md has no row of {profile}"));
        for arm in ["bbr", "ramp:base=bbr"] {
            let (time, retransmitted) = medians(&rows, &profile, arm);
            let figures = format!("  {time:.2}, {retransmitted:.0}, ");
            assert!(line.contains(&figures), "docs/bbr.md, {profile}, {arm}: {figures} is not in\n{line}");
        }
    }
}

#[test]
fn the_page_on_ramp_says_which_profiles_meet_the_bounds() {
    let rows = results("docs/evaluation/profiles.csv");
    let text = page("docs/algorithms/ramp.md");
    let others = ["cubic", "best", "spacing", "hystartpp", "search"];
    for profile in profiles(&rows) {
        let (time, retransmitted) = medians(&rows, &profile, "ramp");
        let figures = others.map(|arm| medians(&rows, &profile, arm));
        let least_time = figures.iter().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
        let least_lost = figures
            .iter()
            .filter(|(time, _)| *time <= 1.02 * least_time)
            .map(|(_, lost)| *lost)
            .fold(f64::INFINITY, f64::min);
        let met = time <= 1.02 * least_time && retransmitted <= (1.25 * least_lost).max(50.0);
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(&profile) && line.ends_with(['s', 'o']))
            .unwrap_or_else(|| panic!("docs/algorithms/ramp.md has no row of {profile}"));
        let words: Vec<_> = line.split_whitespace().rev().take(4).collect();
        let expected = [
            if met { "yes".to_owned() } else { "no".to_owned() },
            format!("{least_lost:.0}"),
            format!("{retransmitted:.0}"),
            format!("{:.3}", time / least_time),
        ];
        assert_eq!(words, expected, "docs/algorithms/ramp.md: {line}");
    }
}

/// The valid runs of two arms over the same paths, of the same seed.
fn pairs<'a>(rows: &'a [Row], kernel: &str, arm: &str, reference: &str) -> Vec<(&'a Row, &'a Row)> {
    let mut runs: BTreeMap<(&str, Option<&String>), BTreeMap<&str, &Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["kernel"] == kernel && row["valid"] == "1") {
        runs.entry((&row["path"], row.get("seed"))).or_default().insert(&row["arm"], row);
    }
    runs.values().filter_map(|arms| Some((*arms.get(arm)?, *arms.get(reference)?))).collect()
}

/// Rows of results of which each counts, as those that two arms' are compared by: the clock is their kernel, `path` what they are over.
fn by_clock(file: &str, path: impl Fn(&Row) -> String) -> Vec<Row> {
    let mut rows = results(file);
    for row in &mut rows {
        row.insert("kernel".into(), row["clock"].clone());
        row.insert("valid".into(), "1".into());
        row.insert("path".into(), path(row));
    }
    rows
}

/// The time of one run over that of another.
fn times((arm, reference): (&Row, &Row)) -> f64 {
    number(arm, "seconds") / number(reference, "seconds")
}

/// The most that an arm takes of another one's time, of the same paths.
fn slowest(rows: &[Row], kernel: &str, arm: &str, reference: &str) -> f64 {
    pairs(rows, kernel, arm, reference).into_iter().map(times).fold(0.0, f64::max)
}

/// Of two arms over the same paths: the geometric mean of the ratio of their times, and what each retransmitted.
fn ratio(rows: &[Row], kernel: &str, arm: &str, reference: &str) -> (f64, f64, f64) {
    let pairs = pairs(rows, kernel, arm, reference);
    let mean = (pairs.iter().map(|pair| times(*pair).ln()).sum::<f64>() / pairs.len() as f64).exp();
    let sum = |row: fn(&(&Row, &Row)) -> f64| pairs.iter().map(row).sum::<f64>();
    (
        mean,
        sum(|(arm, _)| number(arm, "retransmitted_segments")),
        sum(|(_, reference)| number(reference, "retransmitted_segments")),
    )
}

/// As in prose: 23,483.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn what_is_said_of_paths_at_random_is_what_the_runs_give() {
    let rows = results("docs/evaluation/paths-at-random-fresh.csv");
    let (time, lost, reference) = ratio(&rows, "6.12", "ramp", "cubic");
    let slowest = slowest(&rows, "6.12", "ramp", "cubic");
    states(
        "README.md",
        &format!(
            "`ramp` takes {time:.2} of stock CUBIC's time with {:.2} of its retransmissions",
            lost / reference
        ),
    );
    states(
        "docs/algorithms/ramp.md",
        &format!(
            "`ramp` takes {time:.3} of stock CUBIC's time (geometric mean; slowest path {slowest:.2}) with {} retransmissions \
             (`cubic` {})",
            grouped(lost),
            grouped(reference)
        ),
    );
}

#[test]
fn what_is_said_of_paths_at_random_over_bbr_is_what_the_runs_give() {
    const ARM: &str = "ramp:base=bbr";
    let rows = results("docs/evaluation/ramp-over-bbr-paths.csv");
    let (time, lost, reference) = ratio(&rows, "6.12", ARM, "bbr");
    states("README.md", &format!("{time:.3} of BBR's time with {:.2}", lost / reference));
    let pairs = pairs(&rows, "6.12", ARM, "bbr");
    let beyond = |is: fn(f64) -> bool| pairs.iter().filter(|pair| is(times(**pair))).count();
    states("docs/bbr.md", &format!("Over {} random paths", pairs.len()));
    states(
        "docs/bbr.md",
        &format!(
            "takes {time:.3} of BBR's time (slowest path {:.2}), with {} retransmissions, `bbr` {}. {} paths are more than 5 % \
             faster, {} slower",
            slowest(&rows, "6.12", ARM, "bbr"),
            grouped(lost),
            grouped(reference),
            beyond(|time| time < 0.95),
            beyond(|time| time > 1.05)
        ),
    );
}

#[test]
fn the_download_that_virtual_time_shows_is_one_of_the_runs() {
    let rows = results("docs/evaluation/profiles.csv");
    let text = page("docs/virtual-time.md");
    for arm in ["cubic", "ramp", "search", "best"] {
        let runs = profile_runs(&rows, "geo", arm);
        let run = runs.iter().find(|row| row["seed"] == "1").expect("seed 1");
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{arm} ")))
            .unwrap_or_else(|| panic!("docs/virtual-time.md has no row of {arm}"));
        let words: Vec<_> = line.split_whitespace().collect();
        let seconds = format!("{:.2}", number(run, "seconds"));
        let window = format!("{:.2}", number(run, "exit_to_bdp"));
        let digest = run["digest"].trim_start_matches("sha256:");
        assert_eq!(words[1], seconds, "{line}");
        assert_eq!(words[2], run["retransmitted_segments"], "{line}");
        assert_eq!(words[3], window, "{line}");
        assert!(digest.starts_with(words.last().expect("a digest")), "{line}: {digest}");
    }
}

#[test]
fn the_matrix_page_has_the_figures_of_the_measurement() {
    let measured = page("docs/matrix.txt");
    let mut cells: BTreeMap<(&str, &str), (&str, &str)> = BTreeMap::new();
    for line in measured.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if words.last().is_some_and(|valid| valid.contains('/')) {
            cells.insert((words[0], words[1]), (words[2], words[4]));
        }
    }
    let mut compared = 0;
    let text = page("docs/matrix.md") + &page("profiles/recorded/README.md");
    let mut profiles: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if words.first() == Some(&"arm") {
            profiles = words[1..].to_vec();
        } else if let Some(arm) = words.first().filter(|arm| cells.keys().any(|(_, known)| known == *arm)) {
            let mut rest = words[1..].iter();
            for profile in &profiles {
                let (seconds, lost) = cells[&(*profile, *arm)];
                let first = rest.next().expect(line);
                if *first == "late" {
                    assert_eq!(seconds, "-", "{line}");
                } else {
                    assert_eq!((*first, *rest.next().expect(line)), (seconds, lost), "{profile}: {line}");
                }
                compared += 1;
            }
            assert_eq!(rest.next(), None, "{line}");
        } else {
            profiles.clear();
        }
    }
    assert_eq!(compared, cells.len(), "cells of docs/matrix.txt that a page shows");

    // What the page says of all of them.
    let figure = |cell: &str| cell.parse().unwrap_or(f64::INFINITY);
    let mut shares: Vec<(f64, &str)> = Vec::new();
    for (&(profile, arm), &(seconds, lost)) in &cells {
        if arm == "ramp" {
            let fastest = cells
                .iter()
                .filter(|(of, _)| of.0 == profile)
                .map(|(_, cell)| figure(cell.0))
                .fold(f64::INFINITY, f64::min);
            assert_eq!(
                figure(seconds) == fastest,
                profile != "bod",
                "{profile}: {seconds} s, the fastest {fastest} s"
            );
            shares.push((100.0 * figure(lost) / figure(cells[&(profile, "plain")].1), profile));
        }
    }
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    states(
        "docs/matrix.md",
        &format!(
            "at most {:.0} % of what `plain` does, over `{}` {:.0} %",
            shares[1].0, shares[0].1, shares[0].0
        ),
    );
}

/// Every page of the project.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root().join("docs"), root().join("bpf"), root().join("tests")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    found
}

/// As GitHub names the anchor of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'))
        .map(|sign| if sign == ' ' { '-' } else { sign })
        .collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading_that_are_there() {
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page");
        for rest in text.split("](").skip(1) {
            let Some(target) = rest.split(')').next() else { continue };
            if target.contains(char::is_whitespace) || target.starts_with("http") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if file.is_empty() { path.clone() } else { path.parent().expect("a place").join(file) };
            assert!(file.exists(), "{}: {target} leads nowhere", path.display());
            if !heading.is_empty() {
                let there = fs::read_to_string(&file).expect("a page");
                assert!(
                    there.lines().any(|line| line.starts_with('#') && anchor(line) == heading),
                    "{}: {target} has no such heading",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_readme_is_read_within_minutes() {
    let words = page("README.md").split_whitespace().count();
    assert!(words <= README_WORDS, "README.md has {words} words, at most {README_WORDS}");
}

#[test]
fn the_pages_of_docs_are_read_within_two_hours() {
    let docs = root().join("docs");
    let pages = pages().into_iter().filter(|path| path.starts_with(&docs));
    let words = pages.map(|path| fs::read_to_string(path).expect("a page").split_whitespace().count());
    let words: usize = words.sum();
    assert!(words <= DOCS_WORDS, "docs/ has {words} words, at most {DOCS_WORDS}");
}

#[test]
fn the_kernels_of_the_compatibility_page_accept_every_algorithm() {
    let known = page("lab/src/guest/kernels.toml");
    let series: Vec<_> = known
        .lines()
        .filter_map(|line| line.strip_prefix("series = "))
        .map(|name| name.trim_matches('"'))
        .collect();
    assert!(series.len() >= 3, "{series:?}");
    let compatibility = page("docs/compatibility.md");
    assert!(compatibility.contains(&format!("| | {} |", series.join(" | "))), "{series:?}");
    let loaded = page("tests/kernels/programs.tsv");
    for kernel in series {
        for algorithm in onramp_loader::algorithm::all() {
            let rows = format!("{kernel}\t{}\t", algorithm.name());
            assert!(loaded.lines().any(|line| line.starts_with(&rows)), "{rows:?}");
        }
    }
}

#[test]
fn pages_and_manifests_name_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (path, name) in [
        ("README.md", format!("onramp_{version}-1_amd64.deb")),
        ("docs/install.md", format!("onramp-{version}-1.x86_64.rpm")),
        ("docs/install.md", format!("onramp-{version}-amd64.oci.tar")),
        ("docs/fleet.md", format!("onramp_{version}-1_amd64.deb")),
        ("docs/python.md", format!("onramp-{version}-cp39-abi3-manylinux")),
        ("packaging/kubernetes/onramp.yaml", format!("image: onramp:{version}")),
        ("packaging/kubernetes/kustomization.yaml", format!("newTag: {version}")),
    ] {
        assert!(page(path).contains(&name), "{path} lacks {name}");
    }
}
