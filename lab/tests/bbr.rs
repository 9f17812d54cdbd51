//! BBR as it is simulated, and what onramp does to it, compared with the same runs of kernel TCP: over the profiles and over random
//! paths (docs/evaluation).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onramp_algorithm::ExitReason;
use onramp_lab::experiment::{Amount, Arm, Exit, ExitSource, Plan, Run};
use onramp_lab::population::Population;
use onramp_lab::sim::agreement::Pair;
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;
use onramp_profiles::link::{DirectionSpec, Limit};

/// Of the population that docs/evaluation/simulated-bbr.csv is of.
const SEED: u64 = 20_261_124;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A run of kernel TCP, by column.
struct Row(BTreeMap<String, String>);

impl Row {
    fn get(&self, column: &str) -> &str {
        &self.0[column]
    }

    fn number<T: std::str::FromStr>(&self, column: &str) -> Option<T> {
        self.get(column).parse().ok()
    }

    fn seed(&self) -> u64 {
        self.number("seed").expect("a seed")
    }

    fn amount(&self) -> Amount {
        Amount::Bytes(self.number("bytes").expect("bytes"))
    }

    /// As a run, at whose exit the window was so large, bytes; the rest is another's.
    fn run(&self, window_bytes: Option<f64>, other: &Run) -> Run {
        let source = if self.get("arm") == "bbr" { ExitSource::Sampled } else { ExitSource::Record };
        let exit = self.number("exit_seconds").zip(window_bytes).map(|(seconds, bytes)| Exit {
            reason: ExitReason::Algorithm,
            seconds,
            window_bytes: bytes as u64,
            acks: None,
            source,
        });
        Run {
            seconds: self.number("seconds").expect("seconds"),
            retransmitted_segments: self.number("retransmitted_segments").expect("segments"),
            exit,
            ..other.clone()
        }
    }
}

/// The valid runs of an arm in a table.
fn rows(table: &str, arm: &str) -> Vec<Row> {
    let text = text(table);
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let columns: Vec<String> = lines.next().expect("columns").collect();
    let rows = lines.map(|line| Row(columns.iter().cloned().zip(line).collect()));
    rows.filter(|row| row.get("arm") == arm && row.get("valid") == "1").collect()
}

/// `bbr`, or an algorithm over it.
fn arm(name: &str) -> Arm {
    let Some((algorithm, _)) = name.split_once(':') else { return Arm::stock(name) };
    let parameters = [("base".to_owned(), "bbr".to_owned())].into();
    let control = format!("onramp_{algorithm}");
    Arm { name: name.to_owned(), parameters, records_exit: true, ..Arm::stock(&control) }
}

fn simulated(plan: &Plan, name: &str, seed: u64) -> Run {
    sim::run(plan, &arm(name), seed, SourceSpec::Bulk).expect("a simulated arm")
}

/// Pairs of an arm over the profiles.
fn over_profiles(name: &str) -> Vec<Pair> {
    let pair = |row: &Row| {
        let profile = file(&format!("profiles/{}.toml", row.get("profile")));
        let profile = Profile::load(&profile).unwrap_or_else(|error| panic!("{error}"));
        let bdp = profile.link.bdp_bytes() as f64;
        let plan = Plan { amount: row.amount(), repetitions: 1, ..Plan::new(profile) };
        let run = simulated(&plan, name, row.seed());
        let window = row.number::<f64>("exit_to_bdp").map(|part| part * bdp);
        Pair {
            profile: row.get("profile").to_owned(),
            arm: name.to_owned(),
            ..Pair::new(&row.run(window, &run), &run)
        }
    };
    rows("docs/evaluation/profiles.csv", name).iter().map(pair).collect()
}

/// Pairs of an arm over random paths.
fn over_random_paths(name: &str) -> Vec<Pair> {
    let population = "lab/populations/default.toml";
    let population = Population::parse(&text(population), population).expect("a population");
    let pair = |row: &Row| {
        let path = population.path(SEED, row.seed() - SEED);
        let plan = path.plan();
        assert_eq!((path.profile.name.as_str(), plan.amount), (row.get("path"), row.amount()));
        let run = simulated(&plan, name, row.seed());
        let kernel = row.run(row.number("exit_window_bytes"), &run);
        Pair { profile: path.profile.name, arm: name.to_owned(), ..Pair::new(&kernel, &run) }
    };
    rows("docs/evaluation/simulated-bbr.csv", name).iter().map(pair).collect()
}

/// A line of the page's table: of how many runs completion, losses, time and window of the exit are near, and all of it.
fn line(what: &str, pairs: &[Pair]) -> String {
    let near = |what: &str| pairs.iter().filter(|pair| !pair.apart.contains(&what)).count();
    let all = pairs.iter().filter(|pair| pair.apart.is_empty()).count();
    let [completion, losses, exit, window] = ["seconds", "losses", "exit_seconds", "exit_window"].map(near);
    let (runs, name) = (pairs.len(), format!("{}, {what}", pairs[0].arm));
    format!("{name:<29} {runs:>4} {completion:>11} {losses:>7} {exit:>11} {window:>7} {all:>11}")
}

#[test]
fn it_agrees_with_the_kernel_as_far_as_the_page_says() {
    let page = text("docs/simulator.md");
    let mut lines = Vec::new();
    for name in ["bbr", "ramp:base=bbr"] {
        lines.push(line("profiles", &over_profiles(name)));
    }
    for name in ["bbr", "ramp:base=bbr", "plain:base=bbr"] {
        let pairs = over_random_paths(name);
        lines.push(line("random paths", &pairs));
        // Where a completion is apart it is near all the same.
        let far = pairs.iter().find(|pair| (pair.seconds[1] / pair.seconds[0] - 1.0).abs() > 0.1);
        assert!(far.is_none(), "{far:?}");
    }
    let lacks: Vec<_> = lines.iter().filter(|line| !page.contains(line.as_str())).collect();
    assert!(lacks.is_empty(), "docs/simulator.md lacks:\n{lacks:#?}");
}

/// When capacity is asked for, and so when it is granted, depends on the delay. The kernels, too, take one time or the other.
#[test]
fn over_capacity_on_demand_milliseconds_of_delay_decide() {
    let mut profile = Profile::load(file("profiles/bod.toml")).expect("a profile");
    let mut seconds = |delay_us: u64| {
        (profile.link.forward.delay_us, profile.link.back.delay_us) = (delay_us, delay_us);
        let plan = Plan { amount: Amount::Bytes(2_000_000), repetitions: 1, ..Plan::new(profile.clone()) };
        simulated(&plan, "ramp:base=bbr", 1).seconds
    };
    let [least, most] = [370_000, 375_000].map(&mut seconds);
    let stated = format!("between {least:.0} and {most:.0} s");
    assert!(text("docs/bbr.md").contains(&stated), "docs/bbr.md does not say {stated}");
}

/// 16 s over a queue of ten BDP: with a search for the minimum RTT in them.
#[test]
fn it_leaves_a_large_queue_nearly_empty_that_cubic_fills() {
    let mut profile = Profile::load(file("profiles/cable.toml")).expect("a profile");
    profile.link.forward = DirectionSpec::new(20_000_000, 20_000, Limit::Bytes(1_000_000));
    profile.link.back = DirectionSpec::new(20_000_000, 20_000, Limit::Bytes(1_000_000));
    let plan = Plan { amount: Amount::Bytes(40_000_000), repetitions: 1, ..Plan::new(profile) };
    let plain = Arm { records_exit: true, ..Arm::stock("onramp_plain") };
    let [ours, cubic] = [Arm::stock("bbr"), plain]
        .map(|arm| sim::run(&plan, &arm, 1, SourceSpec::Bulk).expect("a simulated arm"));
    assert!(3.0 * ours.mean_rtt_us < cubic.mean_rtt_us, "{} {}", ours.mean_rtt_us, cubic.mean_rtt_us);
    assert!(ours.seconds < 1.05 * cubic.seconds, "{} {}", ours.seconds, cubic.seconds);
}
