// SPDX-License-Identifier: MIT OR GPL-2.0-only
use onramp_algorithm::ExitReason;

use super::*;
use crate::replay::{Options, candidates};

const HEADER: &str =
    "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited";

fn through(algorithm: &str, set: &[&str], text: &str) -> Result<CsvReport, String> {
    let set: Vec<String> = set.iter().map(|&one| one.to_owned()).collect();
    let candidates = candidates(&[algorithm.to_owned()], &set, &[]).unwrap();
    replay_csv_beside(text.as_bytes(), false, Replay::new(candidates, Options::default()), |_| true)
}

#[test]
fn rows_are_fed_in_order_and_the_exit_is_found_on_its_row() {
    let mut text = HEADER.to_owned();
    for ack in 0..20_u64 {
        let cwnd = 10 + ack;
        text += &format!(
            "\n{},{},{},30000,{cwnd},{cwnd},1000,0",
            50_000 + ack * 100,
            ack * 1000,
            (ack + cwnd) * 1000
        );
    }
    let report = through("fixed", &["exit_window_bytes=20000"], &text).unwrap();
    assert_eq!((report.rows, report.bad_rows), (20, 0));
    let finding = &report.flows[0].findings[0];
    let exit = finding.exit.as_ref().unwrap();
    assert_eq!((exit.ack, exit.window_bytes, exit.reason), (11, 20_000, ExitReason::Algorithm));
    // The first data was sent a round trip before the first ACK.
    assert_eq!((exit.at_us, exit.since_start_us), (51_000, 31_000));
    assert_eq!(finding.judged, 11);
    assert_eq!(finding.outcomes["below_threshold"], 10);
    assert_eq!(finding.outcomes["exit"], 1);
    assert_eq!(report.flows[0].acks, 20);
}

#[test]
fn several_flows_and_columns_in_any_order() {
    let text = "flow,mss_bytes,app_limited,cwnd_segments,in_flight_segments,rtt_us,sent_bytes,acknowledged_bytes,at_us,ssthresh_segments\n\
                7,1000,0,30,30,1000,30000,1000,10,2147483647\n\
                8,1000,true,10,10,1000,10000,1000,11,2147483647\n\
                7,1000,0,31,30,1000,31000,2000,12,31\n";
    let report = through("fixed", &["exit_window_bytes=20000"], text).unwrap();
    let exits: Vec<_> =
        report.flows.iter().map(|flow| (flow.flow, flow.findings[0].exit.is_some())).collect();
    assert_eq!(exits, [(7, true), (8, false)]);
    let none = through("fixed", &["exit_window_bytes=40000"], text).unwrap();
    // The second ACK of flow 7 is beyond slow start: its window is at the threshold.
    assert_eq!(none.flows[0].findings[0].judged, 1);
}

#[test]
fn bad_rows_are_named_with_their_line_and_passed_over() {
    let good = |now: u32| format!("{now},1000,20000,30000,10,10,1000,0\n");
    let text = format!(
        "{HEADER}\n{}\n{}{}{}{}{}{}{}{}{}",
        "",
        good(1),
        "2,x,20000,30000,10,10,1000,0\n",
        good(3),
        "2,1000,20000,30000,10,10,1000,0\n",
        "4,1000,20000,30000,10,10,0,0\n",
        "5,1000,20000,30000,10,10,1000\n",
        "6,1000,20000,30000,-1,10,1000,0\n",
        "7,1000,20000,30000,10,10,1000,maybe\n",
        good(8)
    );
    let report = through("plain", &[], &text).unwrap();
    assert_eq!((report.rows, report.bad_rows), (3, 6));
    let expected = [
        "line 4: acknowledged_bytes is \"x\", not a whole number",
        "line 6: at_us goes back from 3 to 2",
        "line 7: mss_bytes is 0",
        "line 8: it has 7 values, the first line 8",
        "line 9: cwnd_segments is \"-1\"",
        "line 10: app_limited is \"maybe\"",
    ];
    for (described, expected) in report.described.iter().zip(expected) {
        assert!(described.starts_with(expected), "{described} / {expected}");
    }
    assert_eq!(report.described.len(), expected.len());
    assert_eq!(report.flows[0].acks, 3);
}

#[test]
fn headers_that_cannot_be_used_say_why() {
    for (header, said) in [
        ("at_us,acknowledged_bytes", "lacks the columns sent_bytes, rtt_us"),
        (&format!("{HEADER},colour"), "columns colour are not known"),
        (&format!("{HEADER},cwnd_segments"), "column cwnd_segments is there twice"),
        (&format!("{HEADER},cwnd"), "column cwnd_segments is there twice"),
        (&format!("{HEADER},flags"), "both flags and one of"),
        ("", "lacks the columns at_us"),
    ] {
        let error = through("plain", &[], header).unwrap_err();
        assert!(error.contains(said), "{header}: {error}");
    }
    let candidates = candidates(&["plain".to_owned()], &[], &[]).unwrap();
    let text = format!("{HEADER},colour\n1,1000,20000,30000,10,10,1000,0,red\n");
    let report =
        replay_csv_beside(text.as_bytes(), true, Replay::new(candidates, Options::default()), |_| true)
            .unwrap();
    assert_eq!((report.rows, report.ignored), (1, vec!["colour".to_owned()]));
}

#[test]
fn what_is_missing_is_derived() {
    let mut flows = HashMap::new();
    let header = Header::new(HEADER.split(','), false).unwrap();
    let mut sample = |row: &str| {
        let record = ::csv::StringRecord::from(row.split(',').collect::<Vec<_>>());
        header.sample(&record, &mut flows).unwrap().1
    };
    let first = sample("10,3000,20000,40000,10,10,1000,1");
    assert_eq!(first.ack.flags, onramp_algorithm::ack_flag::APP_LIMITED);
    assert_eq!((first.ack.bytes_outstanding, first.ack.delivered, first.ack.acked), (17_000, 3, 3));
    assert_eq!((first.ack.min_rtt_us, first.ack.smoothed_rtt_us, first.slow_starts), (40_000, 40_000, 1));
    let second = sample("20,5000,22000,32000,12,10,1000,0");
    assert_eq!((second.ack.delivered, second.ack.acked), (5, 2));
    assert_eq!((second.ack.min_rtt_us, second.ack.smoothed_rtt_us), (32_000, 39_000));
    let third = sample("30,5000,22000,-1,12,10,1000,0");
    assert_eq!((third.ack.rtt_us, third.ack.smoothed_rtt_us, third.slow_starts), (-1, 39_000, 1));
}

#[test]
fn the_names_of_schema_1_say_the_same() {
    let rows = "\n10,3000,20000,40000,10,10,1000,1\n20,9000,30000,41000,30,20,1000,0\n";
    let former = "now_us,bytes_acked,bytes_sent,rtt_us,cwnd,in_flight,mss,app_limited";
    let [new, old] = [HEADER, former].map(|header| {
        let report = through("fixed", &["exit_window_bytes=20000"], &format!("{header}{rows}")).unwrap();
        report.flows[0].findings[0].exit.clone().unwrap()
    });
    assert_eq!(new, old);
}

#[test]
fn rows_changed_anywhere_are_used_or_described_by_their_line() {
    let good =
        "10,3000,20000,40000,10,10,1000,1\n20,9000,30000,41000,30,20,1000,0\n30,9000,40000,-1,30,20,1448,0\n";
    let valid = [
        format!("{HEADER}\n{good}"),
        format!("flow,event,asked,{HEADER}\n")
            + &good.lines().map(|line| format!("1,ack,1,{line}\n")).collect::<String>(),
    ];
    let used = std::cell::Cell::new(0);
    onramp_mutation::check(1, 6_000, onramp_mutation::text(&valid), |text| {
        let candidates = candidates(&["search".to_owned(), "best".to_owned()], &[], &[]).unwrap();
        let options = Options { keep_going: true, beyond: true, regret: true };
        match replay_csv_beside(text.as_bytes(), true, Replay::new(candidates, options), |_| true) {
            Ok(report) => {
                used.set(used.get() + report.rows);
                proptest::prop_assert!(report.described.iter().all(|bad| bad.starts_with("line ")));
                proptest::prop_assert_eq!(report.described.len() as u64, report.bad_rows.min(20));
            }
            Err(why) => proptest::prop_assert!(!why.is_empty()),
        }
        Ok(())
    });
    assert!(used.get() > 4_000, "{}", used.get());
}

#[test]
fn a_line_without_an_end_and_a_source_that_fails_are_errors() {
    let replay = || Replay::new(candidates(&["plain".to_owned()], &[], &[]).unwrap(), Options::default());
    let error = replay_csv_beside(std::io::repeat(b'1'), false, replay(), |_| true).unwrap_err();
    assert!(error.contains("a line has more than 1048576 bytes"), "{error}");
    let begin = format!("{HEADER}\n10,3000,20000,40000,10,10,1000,1\n");
    let error = replay_csv_beside(begin.as_bytes().chain(std::io::repeat(b'1')), false, replay(), |_| true)
        .unwrap_err();
    assert!(error.contains("a line has more than 1048576 bytes"), "{error}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("it broke"))
        }
    }
    let error = replay_csv_beside(begin.as_bytes().chain(Broken), false, replay(), |_| true).unwrap_err();
    assert!(error.contains("it broke"), "{error}");
}
