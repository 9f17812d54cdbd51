//! What `ramp` over BBR does next to BBR alone, over populations of paths on seeds that nothing was tuned on: docs/bbr.md has
//! the table, and docs/evaluation/ramp-over-bbr-population.csv every path. With `ONRAMP_WRITE` in the environment the paths
//! are simulated anew, which takes minutes.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::thread;

use onramp_lab::experiment::Arm;
use onramp_lab::population::Population;
use onramp_lab::sim::sweep;

const SEEDS: [u64; 5] = [99_911, 99_912, 99_913, 99_914, 99_915];
/// Of each population and seed.
const PATHS: u64 = 1000;
const TABLE: &str = "docs/evaluation/ramp-over-bbr-population.csv";
const COLUMNS: &str = "population,seed,path,bbr_us,ramp_us,bbr_retransmitted,ramp_retransmitted\n";
/// Of how many paths one is simulated anew.
const SAMPLE: usize = 50;
/// That much longer is slower, that much shorter faster.
const APART: f64 = 0.05;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn population(name: &str) -> Population {
    let path = format!("lab/populations/{name}.toml");
    Population::parse(&text(&path), &path).expect("a population")
}

/// Both arms over a path of a population, as a line of the table.
fn simulate(population: &Population, name: &str, seed: u64, number: u64) -> String {
    let path = population.path(seed, number);
    let parameters = [("base".to_owned(), "bbr".to_owned())].into();
    let ramp = Arm { parameters, records_exit: true, ..Arm::stock("onramp_ramp") };
    let rows = sweep::path(&path, &[Arm::stock("bbr"), ramp]).expect("simulated arms");
    let [bbr, ramp] = rows.as_slice() else { unreachable!("two arms") };
    format!(
        "{name},{seed},{},{},{},{},{}\n",
        path.profile.name,
        bbr.duration_ns / 1000,
        ramp.duration_ns / 1000,
        bbr.retransmitted_segments,
        ramp.retransmitted_segments
    )
}

/// The whole table, simulated.
fn all() -> String {
    let mut table = COLUMNS.to_owned();
    for name in ["default", "stress"] {
        let population = &population(name);
        for seed in SEEDS {
            let workers = thread::available_parallelism().map_or(1, usize::from) as u64;
            let mut lines: Vec<(u64, String)> = thread::scope(|scope| {
                let some = |worker: u64| {
                    let numbers = (worker..PATHS).step_by(workers as usize);
                    numbers
                        .map(|number| (number, simulate(population, name, seed, number)))
                        .collect::<Vec<_>>()
                };
                let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || some(worker))).collect();
                running.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
            });
            lines.sort();
            table.extend(lines.into_iter().map(|(_, line)| line));
        }
    }
    table
}

/// A line of the table.
struct Row<'a> {
    population: &'a str,
    seed: u64,
    path: &'a str,
    /// BBR, `ramp` over it.
    microseconds: [u64; 2],
    retransmitted: [u64; 2],
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Self {
        let cells: Vec<_> = line.split(',').collect();
        let [population, seed, path, a, b, c, d] = cells.as_slice() else { panic!("{line}") };
        let count = |text: &str| text.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        Self {
            population,
            seed: count(seed),
            path,
            microseconds: [count(a), count(b)],
            retransmitted: [count(c), count(d)],
        }
    }

    fn ratio(&self) -> f64 {
        self.microseconds[1] as f64 / self.microseconds[0] as f64
    }

    fn class(&self) -> &str {
        self.path.rsplit_once('-').map_or(self.path, |(class, _)| class)
    }
}

/// Geometric mean of times over BBR's, retransmissions over BBR's, parts slower and faster by [`APART`], %.
fn measures(rows: &[&Row<'_>]) -> [f64; 4] {
    let count = rows.len() as f64;
    let sum = |which: usize| rows.iter().map(|row| row.retransmitted[which]).sum::<u64>() as f64;
    let part =
        |is: &dyn Fn(f64) -> bool| 100.0 * rows.iter().filter(|row| is(row.ratio())).count() as f64 / count;
    [
        (rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / count).exp(),
        sum(1) / sum(0),
        part(&|ratio| ratio > 1.0 + APART),
        part(&|ratio| ratio < 1.0 - APART),
    ]
}

/// A line of the page: all seeds, the range over them in brackets if it is asked for, and the slowest path.
fn line(name: &str, rows: &[&Row<'_>], with_range: bool) -> String {
    let of_seed = |seed: u64| rows.iter().filter(|row| row.seed == seed).copied().collect::<Vec<_>>();
    let seeds = SEEDS.map(|seed| measures(&of_seed(seed)));
    let mut line = format!("{name:<22}");
    for (at, (all, digits)) in measures(rows).into_iter().zip([3, 2, 1, 1]).enumerate() {
        let range = seeds.map(|seed| seed[at]);
        let [least, most] =
            [range.iter().copied().fold(f64::MAX, f64::min), range.iter().copied().fold(0.0, f64::max)];
        let range = if with_range { format!(" ({least:.digits$}–{most:.digits$})") } else { String::new() };
        write!(line, "  {all:.digits$}{range}").expect("text");
    }
    let worst = rows.iter().map(|row| row.ratio()).fold(0.0, f64::max);
    format!("{line}  {worst:.2}")
}

#[test]
fn the_page_has_what_every_path_says() {
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        std::fs::write(file(TABLE), all()).expect("the table");
    }
    let table = text(TABLE);
    let body = table.strip_prefix(COLUMNS).expect("columns");
    let rows: Vec<_> = body.lines().map(Row::parse).collect();
    let populations = ["default", "stress"];
    assert_eq!(rows.len() as u64, PATHS * SEEDS.len() as u64 * populations.len() as u64);
    let mut lines = Vec::new();
    for name in populations {
        let of: Vec<_> = rows.iter().filter(|row| row.population == name).collect();
        lines.push(line(name, &of, true));
        for class in of.iter().map(|row| row.class()).collect::<BTreeSet<_>>() {
            let of: Vec<_> = of.iter().filter(|row| row.class() == class).copied().collect();
            // Where it loses.
            if measures(&of)[0] > 1.0 {
                lines.push(line(&format!("  {class}"), &of, false));
            }
        }
    }
    let page = text("docs/bbr.md");
    let lacks: Vec<_> = lines.iter().filter(|line| !page.contains(line.as_str())).collect();
    assert!(lacks.is_empty(), "docs/bbr.md lacks:\n{}", lines.join("\n"));
    let mut slowest: Vec<_> = rows.iter().collect();
    slowest.sort_by(|one, other| other.ratio().total_cmp(&one.ratio()));
    for row in &slowest[..3] {
        let named = format!("{} ({}): {:.1}", row.path, row.seed, row.ratio());
        assert!(page.contains(&named), "docs/bbr.md lacks {named}");
    }
}

#[test]
fn a_path_of_the_table_is_what_the_simulator_makes_of_it() {
    let table = text(TABLE);
    let of = |name: &str| (name.to_owned(), population(name));
    let populations: std::collections::BTreeMap<_, _> = ["default", "stress"].map(of).into();
    let sample: Vec<_> = table.lines().skip(1).step_by(SAMPLE).collect();
    thread::scope(|scope| {
        for part in
            sample.chunks(sample.len().div_ceil(thread::available_parallelism().map_or(1, usize::from)))
        {
            let populations = &populations;
            scope.spawn(move || {
                for line in part {
                    let row = Row::parse(line);
                    let number = row.path.rsplit('-').next().and_then(|number| number.parse().ok());
                    let name = row.population;
                    let number = number.unwrap_or_else(|| panic!("{line}"));
                    assert_eq!(simulate(&populations[name], name, row.seed, number).trim_end(), *line);
                }
            });
        }
    });
}
