//! What docs/start.md says of starts.

use std::collections::BTreeSet;

use super::*;

const DOUBLE: &str = "ramp:start=double";
const SUSS: &str = "ramp:start=suss";
/// In the order in which the page has them.
const STARTS: [&str; 3] = [DOUBLE, "ramp:start=fast", SUSS];

#[test]
fn the_page_on_starts_has_the_figures_of_the_runs() {
    let visits = results("docs/evaluation/start-second-visits.csv");
    let of_cubic = |bytes: &str| {
        let rows: Vec<_> =
            visits.iter().filter(|row| row["bytes"] == bytes && row["path"] != "geo").cloned().collect();
        let paths = rows.iter().map(|row| &row["path"]).collect::<BTreeSet<_>>().len();
        assert_eq!(pairs(&rows, "6.12", DOUBLE, "cubic").len(), 3 * paths);
        let of = |start: &str| {
            let arm = format!("ramp:start={start}");
            let (time, lost, _) = ratio(&rows, "6.12", &arm, "cubic");
            (time, lost, slowest(&rows, "6.12", &arm, "cubic"))
        };
        let (resume, both) = (of("resume"), of("resume+window"));
        let cubic = ratio(&rows, "6.12", DOUBLE, "cubic").2;
        format!(
            "{paths} paths {:.3} ({}; {:.2}), {:.3} ({}; {:.2}; CUBIC {cubic})",
            resume.0, resume.1, resume.2, both.0, both.1, both.2
        )
    };
    let (short, long) = (of_cubic("100000"), of_cubic("500000"));
    states("docs/start.md", &format!("100 kB over {short}, 500 kB over {long}"));
    let seconds = |bytes: &str, arm: &str| {
        let row =
            visits.iter().find(|row| row["path"] == "geo" && row["bytes"] == bytes && row["arm"] == arm);
        number(row.unwrap_or_else(|| panic!("no run of {arm}")), "seconds")
    };
    for (size, bytes) in [("1 MB", "1000000"), ("5.3 MB", "5300000")] {
        states(
            "docs/start.md",
            &format!(
                "{size} {:.2} s, {:.2} s, {:.2} s without, CUBIC {:.2} s",
                seconds(bytes, "ramp:start=resume+window"),
                seconds(bytes, "ramp:start=resume"),
                seconds(bytes, DOUBLE),
                seconds(bytes, "cubic")
            ),
        );
    }
}

/// What is said of each start where nothing is remembered, by one program over the same paths.
#[test]
fn first_visits_are_as_the_runs_found_them() {
    let rows = results("docs/evaluation/start-first-visits.csv");
    let of_size =
        |bytes: &str| -> Vec<_> { rows.iter().filter(|row| row["bytes"] == bytes).cloned().collect() };
    let of = |size: &str, bytes: &str| {
        let rows = of_size(bytes);
        let [double, fast, suss] = STARTS.map(|arm| ratio(&rows, "6.12", arm, "cubic"));
        let paths = rows.iter().filter(|row| row["arm"] == "cubic").count();
        states(
            "docs/start.md",
            &format!(
                "{size} over {paths} paths {:.3} ({}), {:.3} ({}), {:.3} ({}; CUBIC {})",
                double.0, double.1, fast.0, fast.1, suss.0, suss.1, suss.2
            ),
        );
    };
    of("500 kB", "500000");
    of("2 MB", "2000000");
    let seconds = |bytes: &str, arm: &str| {
        let runs = of_size(bytes);
        let of_arm = runs.iter().filter(|row| row["arm"] == arm);
        format!("{:.2}", median(of_arm.map(|row| number(row, "seconds")).collect()))
    };
    let all = |bytes: &str| STARTS.map(|arm| seconds(bytes, arm)).join(", ");
    let [short, middle, long] = ["1000000", "5300000", "79000000"].map(all);
    states("docs/start.md", &format!("1 MB {short}, 5.3 MB {middle}, 79 MB {long}."));
    states("docs/start.md", &format!("(`leo-handover` {})", all("50000000")));
    let worst = |bytes: &str, arm: &str| slowest(&of_size(bytes), "6.12", arm, "cubic");
    let both = |arm: &str| (worst("500000", arm), worst("2000000", arm));
    let [_, fast, suss] = STARTS.map(both);
    states(
        "docs/start.md",
        &format!(
            "At worst `fast` takes {:.2} and {:.2}, `suss` {:.2} and {:.2}.",
            fast.0, fast.1, suss.0, suss.1
        ),
    );
}

/// Over more paths, of seeds that no start was chosen by.
#[test]
fn first_visits_with_suss_are_as_the_runs_over_other_paths_found_them() {
    let rows = results("docs/evaluation/start-first-visits-fresh.csv");
    let of = |bytes: &str| {
        let rows: Vec<_> = rows.iter().filter(|row| row["bytes"] == bytes).cloned().collect();
        let (time, lost, reference) = ratio(&rows, "6.12", SUSS, "cubic");
        let paths = pairs(&rows, "6.12", SUSS, "cubic").len();
        let said = format!("{time:.3} ({lost}; CUBIC {reference})");
        (said, paths, slowest(&rows, "6.12", SUSS, "cubic"))
    };
    let ((short, short_paths, short_worst), (long, long_paths, long_worst)) = (of("500000"), of("2000000"));
    states(
        "docs/start.md",
        &format!(
            "`suss` takes {short} for 500 kB over {short_paths}, {long} for 2 MB over {long_paths}, at worst {short_worst:.2} and \
             {long_worst:.2}."
        ),
    );
}

#[test]
fn the_page_on_starts_has_what_receivers_offer() {
    let rows = results("docs/evaluation/receivers.csv");
    let mut kernels: Vec<_> = rows.iter().map(|row| &row["kernel"]).collect();
    kernels.dedup();
    for kernel in &kernels {
        let of = |setting: &'static str| {
            rows.iter().filter(move |row| row["kernel"] == **kernel && row["setting"] == setting)
        };
        let first = |setting| of(setting).find(|row| row["round"] == "first").unwrap();
        let (now, raised) = (first("now"), first("raised"));
        // The buffer is Linux's own until the kernel has enlarged it.
        let autotuned =
            of("now").find(|row| row["buffer_bytes"].parse().is_ok_and(|bytes: u64| bytes > 131_072));
        let line = format!(
            "{kernel} {:.0} kB {} {:.1}, {:.1} s {:.0} kB, {:.1}, {:.1} s",
            number(now, "window_bytes") / 1e3,
            autotuned.unwrap()["round"],
            number(now, "seconds_1mb"),
            number(now, "seconds_5mb"),
            number(raised, "window_bytes") / 1e3,
            number(raised, "seconds_1mb"),
            number(raised, "seconds_5mb"),
        );
        states("docs/start.md", &line);
    }
    assert!(kernels.len() >= 3, "{kernels:?}");
}
