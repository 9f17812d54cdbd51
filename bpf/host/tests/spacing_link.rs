//! Spacing over an ideal link: where the queue is too small for slow start's bursts, and where the way back makes the
//! estimate fail. Shows its tables with --nocapture.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::link::SEGMENT;
use common::paced_link::{Back, Path, Transfer};
use onramp_algorithm::{Flow, find};

/// The GEO path of Ataei Kachooei et al. 2022 and Peters et al. 2021: 150 Mb/s, 600 ms.
const GEO: Path = Path { rate: 150_000_000, rtt_us: 600_000, queue_pct: 0, back: CLEAR, seed: 1 };
/// ACKs as they come.
const CLEAR: Back = Back { jitter_us: 0, hold_us: 0, gap_us: 0 };
/// 80 MB.
const DOWNLOAD: u64 = 80_000_000 / SEGMENT;
/// Queues, percent of the bandwidth-delay product.
const QUEUES: [u64; 5] = [10, 25, 50, 100, 300];

fn carry(algorithm: &str, settings: &[&str], path: Path) -> Transfer {
    let mut parameters = find(algorithm).unwrap().parameters();
    parameters.assign(settings).unwrap();
    path.carry(&mut Flow::new(parameters), DOWNLOAD)
}

/// One line of a table: what ended slow start, and when.
fn line(name: &str, path: &Path, transfer: &Transfer) -> String {
    let bdp = path.bdp() as f64;
    let seconds = |us: u64| us as f64 / 1e6;
    let exit = transfer.exit.map_or("-".into(), |(at, window)| {
        format!("{:.2} s at {:.2} BDP", seconds(at), f64::from(window) / bdp)
    });
    let drop = transfer.drop_us.map_or("-".into(), |at| format!("{:.2} s", seconds(at)));
    let done = transfer.done_us.map_or("-".into(), |at| format!("{:.2} s", seconds(at)));
    let queue = transfer.max_queue as f64 / bdp;
    format!(
        "{name:26} queue {:3} %  exit {exit:20} drop {drop:8} done {done:8} most queued {queue:.2} BDP",
        path.queue_pct
    )
}

/// plain drops wherever the queue is no larger than three paths; paced at the median nothing drops, nothing waits for
/// long, and the window is that of the path.
#[test]
fn spaced_slow_start_fills_the_path_without_a_drop_whatever_the_queue() {
    for queue_pct in QUEUES {
        let path = Path { queue_pct, ..GEO };
        let plain = carry("plain", &[], path);
        println!("{}", line("plain", &path, &plain));
        assert_eq!(
            plain.drop_us.is_some(),
            queue_pct <= 100,
            "the download ends before three paths are full"
        );
        for (name, settings) in [
            ("spacing", &[][..]),
            ("spacing", &["exit_pct=0"]),
            ("best", &["pacing=on"]),
            ("search", &["pacing=on"]),
        ] {
            let paced = carry(name, settings, path);
            println!("{}", line(&format!("{name} {}", settings.join(" ")), &path, &paced));
            assert_eq!(paced.drop_us, None, "{name} {queue_pct} %");
            if let Some((_, window)) = paced.exit {
                let part = f64::from(window) / path.bdp() as f64;
                assert!((0.9..1.05).contains(&part), "{name} {queue_pct} %: {part} BDP");
            }
            let done = paced.done_us.unwrap() as f64 / 1e6;
            assert!((9.5..11.0).contains(&done), "{name} {queue_pct} %: {done} s");
        }
    }
}

/// The bursts are what overflows: the same exit without spacing drops where the queue holds less than half the path.
#[test]
fn the_exit_alone_does_not_help_a_small_queue() {
    for (queue_pct, drops) in [(10, true), (25, true), (50, false), (100, false)] {
        let path = Path { queue_pct, ..GEO };
        let best = carry("best", &[], path);
        println!("{}", line("best", &path, &best));
        assert_eq!(best.drop_us.is_some(), drops, "{queue_pct} %");
    }
}

/// Spaced at twice the rate nothing is paced, and equation (6) of Barakat et al. 1999 say where between the two drops begin.
#[test]
fn a_gain_is_bounded_by_the_queue() {
    let path = Path { queue_pct: 10, ..GEO };
    for (gain, drops) in [("100", false), ("110", false), ("150", true), ("200", true)] {
        let paced = carry("spacing", &[&format!("gain_pct={gain}")], path);
        println!("{}", line(&format!("spacing gain {gain}"), &path, &paced));
        assert_eq!(paced.drop_us.is_some(), drops, "gain {gain}");
    }
}

/// What the way back does is seen through where it is short compared with the RTT; a queue must hold what leaves unpaced
/// until it is.
#[test]
fn what_the_way_back_does_to_the_estimate() {
    let jitter = |jitter_us| Back { jitter_us, ..CLEAR };
    let held = |hold_us| Back { hold_us, ..CLEAR };
    for queue_pct in [10, 25, 100] {
        for (name, back, least, smallest_queue) in [
            ("jitter 1 ms", jitter(1_000), 0.95, 10),
            ("jitter 10 ms", jitter(10_000), 0.95, 25),
            ("held 5 ms", held(5_000), 0.95, 25),
            ("held 5 ms, 5 us apart", Back { gap_us: 5, ..held(5_000) }, 0.95, 25),
            ("jitter 10 ms, 5 us apart", Back { gap_us: 5, ..jitter(10_000) }, 0.95, 25),
        ] {
            let path = Path { queue_pct, back, ..GEO };
            let transfer = carry("spacing", &[], path);
            println!("{}", line(name, &path, &transfer));
            if queue_pct < smallest_queue {
                continue;
            }
            let window = transfer.exit.map(|(_, window)| f64::from(window) / path.bdp() as f64);
            assert!(
                window.is_some_and(|part| (least..1.1).contains(&part)),
                "{name} {queue_pct} % {window:?}"
            );
            assert_eq!(transfer.drop_us, None, "{name} {queue_pct} %");
        }
    }
}
