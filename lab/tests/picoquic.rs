//! The simulator next to picoquic's own, a QUIC with its own controls, on the same paths: its figures are committed
//! (`data/picoquic.csv`), and `picoquic/README.md` has the table and says how they were made.

use std::collections::BTreeMap;
use std::path::Path;

use onramp_lab::experiment::{Amount, Arm, Plan, Run};
use onramp_lab::sim::{self, SourceSpec};
use onramp_profiles::Profile;
use onramp_profiles::link::{DirectionSpec, Limit};

const HEADER: &str = "path,rate_bps,one_way_us,queue_bytes,bytes,control,repetition,seconds,lost,source";
/// picoquic's, in the order of the table.
const CONTROLS: [&str; 3] = ["cubic", "bbr", "newreno"];
/// The simulator's, in the order of the table.
const ARMS: [&str; 4] = ["cubic", "bbr", "ramp", "ramp:base=bbr"];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the rows of a path have in common.
#[derive(Clone, Debug, PartialEq)]
struct Bottleneck {
    rate_bps: u64,
    one_way_us: u64,
    queue_bytes: u64,
    bytes: u64,
}

impl Bottleneck {
    /// Without jitter, with as fast a way back, and with the hosts of the profile of this name.
    fn plan(&self, profile: &str, bytes: u64) -> Plan {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../profiles/{profile}.toml"));
        let mut profile = Profile::load(path).expect("a profile");
        assert_eq!(profile.link.forward.rate_bps, self.rate_bps);
        assert_eq!(profile.link.forward.delay_us, self.one_way_us);
        let direction = DirectionSpec::new(self.rate_bps, self.one_way_us, Limit::Bytes(self.queue_bytes));
        profile.link.forward = direction.clone();
        profile.link.back = direction;
        Plan { amount: Amount::Bytes(bytes), repetitions: 1, ..Plan::new(profile) }
    }

    /// A transfer less one of a byte, as its cell: seconds and retransmitted segments.
    fn simulated(&self, profile: &str, arm: &str) -> String {
        let arm = match arm.split_once(':') {
            None if arm == "ramp" => Arm { records_exit: true, ..Arm::stock("onramp_ramp") },
            None => Arm::stock(arm),
            Some(_) => {
                let parameters = [("base".to_owned(), "bbr".to_owned())].into();
                Arm { parameters, records_exit: true, ..Arm::stock("onramp_ramp") }
            }
        };
        let run = |bytes: u64| -> Run {
            sim::run(&self.plan(profile, bytes), &arm, 1, SourceSpec::Bulk).expect("a simulated arm")
        };
        let (whole, byte) = (run(self.bytes), run(1));
        format!("{:.2}, {}", whole.seconds - byte.seconds, whole.retransmitted_segments)
    }
}

/// Median and range of times, median of losses.
fn cell(mut rows: Vec<(f64, u64)>) -> String {
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (median, least, most) = (rows[rows.len() / 2].0, rows[0].0, rows[rows.len() - 1].0);
    let mut lost: Vec<_> = rows.iter().map(|row| row.1).collect();
    lost.sort_unstable();
    format!("{median:.2} ({least:.2}–{most:.2}), {}", lost[lost.len() / 2])
}

#[test]
fn the_page_has_both_simulators_over_every_path() {
    let table = text("tests/data/picoquic.csv");
    let page = text("tests/picoquic/README.md");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let mut paths: Vec<(String, Bottleneck)> = Vec::new();
    let mut runs: BTreeMap<(String, String), Vec<(f64, u64)>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<_> = line.split(',').collect();
        let number =
            |at: usize| -> u64 { cells[at].parse().unwrap_or_else(|error| panic!("{line}: {error}")) };
        let bottleneck = Bottleneck {
            rate_bps: number(1),
            one_way_us: number(2),
            queue_bytes: number(3),
            bytes: number(4),
        };
        match paths.iter().find(|(name, _)| name == cells[0]) {
            Some((_, known)) => assert_eq!(*known, bottleneck, "{line}"),
            None => paths.push((cells[0].to_owned(), bottleneck)),
        }
        let seconds: f64 = cells[7].parse().expect("seconds");
        runs.entry((cells[0].into(), cells[5].into())).or_default().push((seconds, number(8)));
        // What it was built of is what the page says.
        assert!(page.contains(cells[9]), "{line}");
    }
    let of = |(name, bottleneck): &(String, Bottleneck)| {
        let theirs = CONTROLS.map(|control| cell(runs[&(name.clone(), control.to_owned())].clone()));
        let ours = ARMS.map(|arm| bottleneck.simulated(name, arm));
        format!(
            "| `{name}`, {} | {} | {} |",
            bottleneck.bytes / 1_000_000,
            theirs.join(" | "),
            ours.join(" | ")
        )
    };
    let lines: Vec<_> = paths.iter().map(of).collect();
    let lacks: Vec<_> = lines.iter().filter(|line| !page.contains(line.as_str())).collect();
    assert!(lacks.is_empty(), "lab/tests/picoquic/README.md lacks:\n{}", lines.join("\n"));
}
