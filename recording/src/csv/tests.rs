// SPDX-License-Identifier: MIT OR GPL-2.0-only
use onramp_algorithm::ExitReason;

use super::*;
use crate::replay::{Options, candidates};

const HEADER: &str =
    "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited";

fn through(algorithm: &str, set: &[&str], text: &str) -> Result<CsvReport, String> {
    let set: Vec<String> = set.iter().map(|&one| one.to_owned()).collect();
    let candidates = candidates(&[algorithm.to_owned()], &set, &[]).unwrap();
    replay_csv(text.as_bytes(), false, Replay::new(candidates, Options::default()), |_| true)
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
    assert_eq!(finding.evaluated, 11);
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
    assert_eq!(none.flows[0].findings[0].evaluated, 1);
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
        (&format!("{HEADER},cwnd"), "columns cwnd are not known (did you mean \"cwnd_segments\"?)"),
        ("time,cwnd", "lacks the columns at_us, acknowledged_bytes"),
        (&format!("{HEADER},flags"), "both flags and one of"),
        ("", "it is empty"),
        (HEADER, "no row"),
        (&HEADER.replace(',', " "), "separated by blanks"),
        ("{\"flows\": []}", "JSON"),
        ("\u{1f}\u{8b}", "lacks the columns"),
        ("a\0t\0_\0u\0", "UTF-16"),
    ] {
        let error = through("plain", &[], header).unwrap_err();
        assert!(error.contains(said), "{header}: {error}");
    }
    let candidates = candidates(&["plain".to_owned()], &[], &[]).unwrap();
    let text = format!("{HEADER},colour\n1,1000,20000,30000,10,10,1000,0,red\n");
    let report =
        replay_csv(text.as_bytes(), true, Replay::new(candidates, Options::default()), |_| true).unwrap();
    assert_eq!((report.rows, report.ignored), (1, vec!["colour".to_owned()]));
}

/// Rows of a flow whose window doubles, without a line of names.
fn good(rows: u64) -> Vec<Vec<String>> {
    let row = |index: u64| {
        let (at, acknowledged) = (1_000_000 + index * 400, (index + 1) * 1_448);
        let sent = acknowledged + (10 + index) * 1_448;
        [at, acknowledged, sent, 50_000 + index, 10 + index, 10 + index, 1_448, 0]
            .map(|value| value.to_string())
            .to_vec()
    };
    (0..rows).map(row).collect()
}

fn text(rows: &[Vec<String>]) -> String {
    let lines = rows.iter().map(|row| row.join(",") + "\n");
    format!("{HEADER}\n{}", lines.collect::<String>())
}

#[test]
fn an_outlier_at_each_place_and_in_each_column_costs_its_own_row_and_no_other() {
    let places = 40;
    let columns = HEADER.split(',').count();
    for (column, name) in HEADER.split(',').enumerate().take(columns) {
        for outlier in ["18446744073709551615", "9999999999999999", "-9223372036854775808", "x", "0.5"] {
            // Below 0 there is no sample, which is no fault.
            if name == "rtt_us" && outlier.starts_with('-') {
                continue;
            }
            for place in 0..places {
                let mut rows = good(places as u64);
                rows[place][column] = outlier.to_owned();
                let report = through("plain", &[], &text(&rows)).unwrap();
                assert_eq!(
                    (report.rows, report.bad_rows),
                    (places as u64 - 1, 1),
                    "{name}={outlier} in {place}"
                );
                let line = format!("line {}: ", place + 2);
                assert!(report.described[0].starts_with(&line), "{name}={outlier}: {:?}", report.described);
            }
        }
    }
}

#[test]
fn a_jump_that_all_later_rows_contradict_is_dropped_and_one_that_they_do_not_stays() {
    let through = |rows: &[Vec<String>]| through("plain", &[], &text(rows)).unwrap();
    for place in 0..39 {
        let mut rows = good(40);
        // Within what was sent, so that it does not contradict itself.
        for (column, more) in [(0, 1_000_000), (1, 10 * 1_448), (2, 1_000_000)] {
            let mut jump = rows.clone();
            jump[place][column] = (jump[place][column].parse::<u64>().unwrap() + more).to_string();
            let report = through(&jump);
            assert_eq!(
                (report.rows, report.bad_rows),
                (39, 1),
                "column {column} of {place}: {:?}",
                report.described
            );
        }
        // What goes on from the jump is right.
        for row in &mut rows[place..] {
            row[0] = (row[0].parse::<u64>().unwrap() + 1_000_000).to_string();
        }
        assert_eq!(through(&rows).bad_rows, 0, "{place}");
    }
    // A few rows in a row that go back are wrong, and so are a few that are ahead.
    for (from, to) in [(10, 14), (20, 27)] {
        for offset in [-900_000_i64, 100_000, 1_700_000] {
            let mut rows = good(60);
            for row in &mut rows[from..to] {
                row[0] = (row[0].parse::<i64>().unwrap() + offset).to_string();
            }
            let report = through(&rows);
            assert_eq!(
                report.bad_rows,
                (to - from) as u64,
                "{from} to {to} by {offset}: {:?}",
                report.described
            );
        }
    }
}

#[test]
fn files_are_read_as_other_tools_write_them() {
    let rows = good(30);
    let plain = through("fixed", &["exit_window_bytes=30000"], &text(&rows)).unwrap();
    let exit = plain.flows[0].findings[0].exit.clone().unwrap();
    let with = |separator: &str| text(&rows).replace(',', separator);
    let lines = |change: fn(usize, &str) -> String| -> String {
        text(&rows).lines().enumerate().map(|(at, line)| change(at, line) + "\n").collect()
    };
    for (what, text) in [
        ("semicolons", with(";")),
        ("tabs", with("\t")),
        ("bars", with("|")),
        ("sep=;", format!("sep=;\n{}", with(";"))),
        ("CRLF", text(&rows).replace('\n', "\r\n")),
        ("CR", text(&rows).replace('\n', "\r")),
        ("byte order mark", format!("\u{feff}{}", text(&rows))),
        (
            "byte order mark and quotes",
            format!("\u{feff}{}", lines(|_, line| format!("\"{}\"", line.replace(',', "\",\"")))),
        ),
        ("capitals", text(&rows).replace(HEADER, &HEADER.to_ascii_uppercase())),
        ("comments", format!("# of today\n\n{}", text(&rows).replacen('\n', "\n# rows\n", 1))),
        ("names in a comment", format!("# {}", text(&rows))),
        ("blanks", with(" , ")),
        (
            "index",
            lines(|at, line| {
                format!("{},{line}", at.checked_sub(1).map_or(String::new(), |at| at.to_string()))
            }),
        ),
        (
            "named index",
            lines(|at, line| {
                format!("{},{line}", at.checked_sub(1).map_or("Unnamed: 0".into(), |at| at.to_string()))
            }),
        ),
        ("floats", lines(|at, line| if at == 0 { line.to_owned() } else { line.replace(',', ".0,") + ".0" })),
        (
            "exponents",
            lines(|at, line| if at == 0 { line.to_owned() } else { line.replace(",1448,", ",1.448e3,") }),
        ),
        (
            "False",
            lines(
                |at, line| {
                    if at == 0 { line.to_owned() } else { line[..line.len() - 1].to_owned() + "False" }
                },
            ),
        ),
        (
            "FALSE",
            lines(
                |at, line| {
                    if at == 0 { line.to_owned() } else { line[..line.len() - 1].to_owned() + "FALSE" }
                },
            ),
        ),
    ] {
        let report = through("fixed", &["exit_window_bytes=30000"], &text)
            .unwrap_or_else(|why| panic!("{what}: {why}"));
        assert_eq!((report.rows, report.bad_rows), (30, 0), "{what}: {:?}", report.described);
        assert_eq!(report.flows[0].findings[0].exit.as_ref(), Some(&exit), "{what}");
    }
}

#[test]
fn a_blank_rtt_is_no_sample_and_other_blanks_are_refused_or_derived() {
    for blank in ["", "NA", "NaN", "null", "None"] {
        let header = format!("{HEADER},min_rtt_us,slow_starts");
        let blanks = format!(
            "{header}\n1000,2896,14480,{blank},10,8,1448,0,{blank},{blank}\n1400,5792,17376,50000,12,10,1448,0,,\n"
        );
        let report = through("plain", &[], &blanks).unwrap();
        assert_eq!((report.rows, report.bad_rows), (2, 0), "{blank}: {:?}", report.described);
        for (column, name) in HEADER.split(',').enumerate().filter(|(_, name)| *name != "rtt_us") {
            let mut rows = good(3);
            rows[1][column] = blank.to_owned();
            let report = through("plain", &[], &text(&rows)).unwrap();
            assert_eq!((report.rows, report.bad_rows), (2, 1), "{name}={blank}");
            assert!(report.described[0].contains(&format!("{name} is blank")), "{:?}", report.described);
        }
    }
}

#[test]
fn what_contradicts_itself_is_refused_alone() {
    let row = |acknowledged: u64, sent: u64| format!("1000,{acknowledged},{sent},50000,10,8,1448,0\n");
    let two = |first: String| {
        through("plain", &[], &format!("{HEADER}\n{first}2000,5000,9000,50000,10,8,1448,0\n"))
    };
    // SYN and FIN are acknowledged as bytes are.
    assert_eq!(two(row(1_450, 1_448)).unwrap().bad_rows, 0);
    assert_eq!(two(row(1_451, 1_448)).unwrap().bad_rows, 1);
    let error = through("plain", &[], &format!("{HEADER}\n{}", row(2_896, 1_448))).unwrap_err();
    assert!(error.contains("line 2: acknowledged_bytes is 2896"), "{error}");
    let many: String = (0..30).map(|_| row(2_896, 1_448)).collect();
    let error = through("plain", &[], &format!("{HEADER}\n{many}")).unwrap_err();
    assert!(error.contains("30 rows"), "{error}");
}

#[test]
fn no_window_is_larger_than_the_largest_of_tcp() {
    for place in 0..40 {
        let mut rows = good(40);
        rows[place][2] = u32::MAX.to_string();
        let report = through("plain", &[], &text(&rows)).unwrap();
        assert_eq!((report.rows, report.bad_rows), (39, 1), "{place}: {:?}", report.described);
    }
}

#[test]
fn counters_of_32_bits_that_begin_anew_are_named() {
    let before = (1 << 32) - 20 * 1_448;
    let row = |number: u64| {
        let acknowledged = (before + number * 1_448) % (1 << 32);
        let sent = (before + (number + 10) * 1_448) % (1 << 32);
        format!("{},{acknowledged},{sent},50000,10,10,1448,0\n", 1_000 * (number + 1))
    };
    let rows: String = (0..40).map(row).collect();
    let report = through("plain", &[], &format!("{HEADER}\n{rows}")).unwrap();
    assert!(report.described.iter().any(|why| why.contains("2^32")), "{:?}", report.described);
}

#[test]
fn text_in_another_encoding_is_named_in_the_header_and_in_a_row() {
    let replay = || Replay::new(Vec::new(), Options::default());
    let read = |text: &[u8]| replay_csv(text, true, replay(), |_| true);
    let header = [HEADER.as_bytes(), b",\xe9t\xe9\n1,1448,20000,30000,10,10,1448,0,1\n"].concat();
    assert!(read(&header).unwrap_err().contains("UTF-8"));
    let row =
        [HEADER.as_bytes(), b",n\n1,1448,20000,30000,10,10,1448,0,1\n2,1448,20000,30000,10,10,1448,0,\xe9\n"]
            .concat();
    let report = read(&row).unwrap();
    assert_eq!((report.rows, report.bad_rows), (1, 1));
    assert!(report.described[0].contains("UTF-8"), "{:?}", report.described);
}

#[test]
fn after_twenty_refusals_one_sentence_says_how_many_there_are() {
    let mut rows = good(60);
    rows[5..55].iter_mut().for_each(|row| row[4] = "0".to_owned());
    let report = through("plain", &[], &text(&rows)).unwrap();
    assert_eq!((report.rows, report.bad_rows, report.described.len()), (10, 50, 20));
    let problems = report.problems();
    assert_eq!((problems.len(), problems[20].as_str()), (21, "50 of 60 rows are not used"));
}

#[test]
fn what_is_missing_is_derived() {
    let mut state = FlowState::default();
    let header = Header::new(HEADER.split(','), false).unwrap();
    let mut sample = |row: &str| {
        let record = ::csv::StringRecord::from(row.split(',').collect::<Vec<_>>());
        header.derive(header.parse(&record, 1).unwrap().1, &mut state)
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
fn rows_changed_anywhere_are_used_or_described_by_their_line() {
    let good =
        "10,3000,20000,40000,10,10,1000,1\n20,9000,30000,41000,30,20,1000,0\n30,9000,40000,-1,30,20,1448,0\n";
    let valid = [
        format!("{HEADER}\n{good}"),
        format!("flow,event,called,{HEADER}\n")
            + &good.lines().map(|line| format!("1,ack,1,{line}\n")).collect::<String>(),
    ];
    let used = std::cell::Cell::new(0);
    onramp_mutation::check(1, 6_000, onramp_mutation::text(&valid), |text| {
        let candidates = candidates(&["search".to_owned(), "best".to_owned()], &[], &[]).unwrap();
        let options = Options { keep_going: true, beyond: true, regret: true };
        match replay_csv(text.as_bytes(), true, Replay::new(candidates, options), |_| true) {
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
    let error = replay_csv(std::io::repeat(b'1'), false, replay(), |_| true).unwrap_err();
    assert!(error.contains("1048576 bytes"), "{error}");
    let begin = format!("{HEADER}\n10,3000,20000,40000,10,10,1000,1\n");
    let error =
        replay_csv(begin.as_bytes().chain(std::io::repeat(b'1')), false, replay(), |_| true).unwrap_err();
    assert!(error.contains("1048576 bytes"), "{error}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("it broke"))
        }
    }
    let error = replay_csv(begin.as_bytes().chain(Broken), false, replay(), |_| true).unwrap_err();
    assert!(error.contains("it broke"), "{error}");
}
