//! Applications that ask for objects and pause: on no kernel does any algorithm take a pause for a path that is full. The
//! paths are of `lab/populations/requests.toml`, which `onramp sim sweep` simulates by the thousand.

use std::thread;
use std::time::Duration;

use onramp_loader::algorithm;
use onramp_loader::{AttachOptions, ExitReason, Phase};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::{SEGMENT, bottleneck};
use onramp_tests::sender::Sender;
use onramp_tests::wire::Wire;

/// Name; payload, bytes per second; one way, microseconds; bytes of an object; pause, microseconds; objects.
type Path = (&'static str, u32, u64, usize, u64, usize);

/// Among those over which `search` once left, simulated, at 0.04 to 0.25 of what they hold.
const LEFT_ONCE: &[Path] = &[
    ("lte-77", 7_224_000, 46_824, 18_806, 58_562, 10),
    ("geo-573", 6_808_000, 288_588, 348_110, 101_768, 5),
    ("leo-922", 28_996_000, 31_362, 171_227, 161_349, 8),
    ("terrestrial-863", 19_983_000, 46_682, 227_989, 87_318, 6),
];

/// Others of that population, over which one kernel is asked (tests/guests/once).
const OTHERS: &[Path] = &[
    ("leo-528", 10_153_000, 12_618, 45_769, 4_586, 10),
    ("geo-894", 2_682_000, 339_419, 40_383, 576_090, 8),
    ("terrestrial-3", 5_215_000, 16_028, 101_757, 227_963, 8),
    ("leo-8", 36_039_000, 25_479, 30_549, 118_200, 10),
    ("lte-10", 7_801_000, 36_823, 20_820, 570_003, 8),
    ("lte-12", 1_200_000, 41_749, 30_000, 138_378, 8),
    ("lte-20", 1_179_000, 35_648, 26_593, 40_681, 8),
    ("terrestrial-25", 45_356_000, 61_577, 50_557, 226_841, 8),
];

/// What of a path's bandwidth-delay product is too early, percent.
const EARLY_PCT: u64 = 70;

/// The window at which the algorithm left, percent of what the path holds; `None`: it did not.
fn left_at(control: &str, (_, rate, delay_us, object, pause_us, objects): Path) -> Option<u64> {
    let held = u64::from(rate) * 2 * delay_us / 1_000_000;
    // Three times what the path holds, so that nothing is lost that decides instead.
    let queue = (3 * held / u64::from(SEGMENT)).max(30) as u32;
    let mut sender =
        Sender::connect(Wire::lay(Duration::from_micros(delay_us), bottleneck(rate, queue)), control);
    for _ in 0..objects {
        sender.deliver(object);
        thread::sleep(Duration::from_micros(pause_us));
    }
    match sender.flow().phase() {
        Phase::Left(ExitReason::Algorithm, record) | Phase::Exiting(ExitReason::Algorithm, record) => {
            Some(record.window_bytes() * 100 / held)
        }
        _ => None,
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_pause_between_objects_ends_no_slow_start_below_what_the_path_holds() {
    pause_over(LEFT_ONCE);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_pause_ends_none_over_other_paths_either() {
    pause_over(OTHERS);
}

fn pause_over(paths: &[Path]) {
    let attachments = Attachments::lock();
    let mut early = Vec::new();
    for algorithm in algorithm::all().filter(|algorithm| algorithm.name() != "fixed") {
        attachments.attach(&AttachOptions::new(algorithm.parameters()));
        let control = algorithm.congestion_control();
        for path in paths {
            let left = left_at(&control, *path);
            println!("{} over {}: {left:?}", algorithm.name(), path.0);
            early.extend(left.filter(|at| *at < EARLY_PCT).map(|at| (algorithm.name(), path.0, at)));
        }
        onramp_loader::detach(algorithm, false).unwrap();
    }
    assert!(early.is_empty(), "{early:?}");
}
