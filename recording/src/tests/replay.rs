// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Replay calls an algorithm as the recording's own driver did.

use onramp_algorithm::{Ack, Flow, all, find};

use crate::fixtures::{START_US, manifest, record, slow_start};
use crate::replay::{Finding, FlowReport, Generations, Known, Options, Replay, candidates, replay};
use crate::rows::{AckRow, FlowRow, ParameterRow};
use crate::{Limits, Recording, Run, Sample, Writer};

const ON: Options = Options { keep_going: true, beyond: false, regret: false };

fn through(
    directory: &std::path::Path,
    algorithms: &[&str],
    set: &[&str],
    options: Options,
) -> Vec<FlowReport> {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let candidates = candidates(&owned(algorithms), &owned(set), &[]).unwrap();
    let mut recording = Recording::open(directory).unwrap();
    let flows = replay(&mut recording, Replay::new(candidates, options));
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    flows
}

#[test]
fn every_algorithm_answers_its_own_recording_as_it_did() {
    for algorithm in all() {
        let directory = tempfile::tempdir().unwrap();
        let acks = slow_start(1_000);
        // Over several files.
        record(directory.path(), 9, &algorithm.parameters(), &acks, 300);
        let flows = through(directory.path(), &[algorithm.name()], &[], ON);
        let verdicts = flows[0].findings[0].recorded.clone().unwrap();
        assert_eq!((verdicts.compared, verdicts.different), (1_000, 0), "{algorithm:?}");
        assert_eq!(flows[0].acks, 1_000);
        assert_eq!(flows[0].known.remote.as_deref(), Some("[2001:db8::2]:443"));
        assert_eq!(flows[0].known.recorded_exit.as_ref().unwrap().reason, "loss");
    }
}

#[test]
fn recorded_parameters_are_used_and_settings_go_on_top() {
    let directory = tempfile::tempdir().unwrap();
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", "50000").unwrap();
    record(directory.path(), 1, &parameters, &slow_start(200), 1_000);
    let flows = through(directory.path(), &["fixed", "plain"], &[], Options::default());
    let exit = flows[0].findings[0].exit.as_ref().unwrap();
    assert_eq!((exit.window_bytes, exit.ack, exit.since_start_us), (50_000, 41, 90_000));
    assert_eq!(flows[0].findings[0].recorded.as_ref().unwrap().different, 0);
    // After the first exit there are no calls any more.
    assert_eq!(flows[0].findings[0].evaluated, 41);
    assert_eq!((flows[0].findings[1].exit.is_none(), flows[0].findings[1].evaluated), (true, 200));

    let changed = through(directory.path(), &["fixed"], &["exit_window_bytes=60000"], ON);
    let finding = &changed[0].findings[0];
    assert_eq!(finding.exit.as_ref().unwrap().window_bytes, 60_000);
    // Where the recorded one had left and this one had not.
    assert_eq!(finding.recorded.as_ref().unwrap().first_different_ack, Some(41));
}

/// One flow with these acknowledgments, after a change of each row.
fn custom(directory: &std::path::Path, rows: impl Iterator<Item = AckRow>, generations: &[(u32, u64)]) {
    let mut writer = Writer::create(directory, manifest(), Limits::default()).unwrap();
    let start = FlowRow { event: "start".into(), algorithm: "fixed".into(), flow: 1, ..FlowRow::default() };
    writer.push(FlowRow { at_us: START_US, ..start }).unwrap();
    for (generation, bytes) in generations {
        let row = ParameterRow {
            algorithm: "fixed".into(),
            parameters_generation: *generation,
            ..ParameterRow::default()
        };
        let (name, value) = ("exit_window_bytes".into(), bytes.to_string().into());
        writer.push(ParameterRow { name, value, ..row }).unwrap();
    }
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish(0).unwrap();
}

fn ack_rows(count: usize) -> impl Iterator<Item = AckRow> {
    slow_start(count)
        .into_iter()
        .map(|ack| AckRow { slow_starts: 1, ..AckRow::new(1, &ack, &Default::default(), "grow".into()) })
}

#[test]
fn a_change_of_parameters_is_felt_on_the_acknowledgment_that_first_had_it() {
    let directory = tempfile::tempdir().unwrap();
    let rows = ack_rows(100)
        .enumerate()
        .map(|(index, row)| AckRow { parameters_generation: u32::from(index >= 60), ..row });
    custom(directory.path(), rows, &[(0, 0), (1, 20_000)]);
    let flows = through(directory.path(), &["fixed"], &[], Options::default());
    assert_eq!(flows[0].findings[0].exit.as_ref().unwrap().ack, 61);
    let set = through(directory.path(), &["fixed"], &["exit_window_bytes=0"], Options::default());
    assert!(set[0].findings[0].exit.is_none());
}

#[test]
fn parameters_that_were_not_recorded_are_said_to_be_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let rows = ack_rows(100)
        .enumerate()
        .map(|(index, row)| AckRow { parameters_generation: u32::from(index >= 60), ..row });
    custom(directory.path(), rows, &[(0, 0)]);
    let flows = through(directory.path(), &["fixed"], &[], Options::default());
    assert_eq!(flows[0].findings[0].unknown_generations, [1]);
}

#[test]
fn slow_start_alone_is_evaluated_unless_beyond_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let set = ["exit_window_bytes=90000"];
    // Slow start ended at a window of 50, and the kernel called no algorithm from then on.
    let rows = ack_rows(100).map(|row| match row.cwnd_segments {
        ..50 => row,
        _ => AckRow { ssthresh_segments: 50, called: 0, ..row },
    });
    custom(directory.path(), rows, &[]);
    let within = through(
        directory.path(),
        &["fixed", "plain"],
        &["fixed.exit_window_bytes=90000"],
        Options::default(),
    );
    assert_eq!((within[0].findings[0].evaluated, within[0].findings[0].exit.is_none()), (40, true));
    assert_eq!(within[0].findings[1].evaluated, 40);
    let beyond = Options { beyond: true, keep_going: false, regret: false };
    let flows = through(directory.path(), &["fixed"], &set, beyond);
    assert_eq!(flows[0].findings[0].exit.as_ref().unwrap().cwnd_segments, 90);
}

#[test]
fn restarts_and_losses_reach_the_algorithm_where_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let search = find("search").unwrap();
    let mut parameters = search.parameters();
    parameters.set("exit_action", "drain").unwrap();
    let acks = slow_start(1_500);
    // What the shell would have done, by hand.
    let mut driven = Flow::new(parameters.clone());
    let mut rows = Vec::new();
    for (index, ack) in acks.iter().enumerate() {
        let slow_starts = 1 + u32::from(index >= 400);
        if index == 0 || index == 400 {
            driven.restart();
        }
        if index == 900 || index == 1_200 {
            let threshold = driven.on_loss(ack, 77);
            let loss = AckRow::new(1, ack, &Default::default(), "".into());
            rows.push(AckRow {
                event: "loss".into(),
                base_ssthresh_segments: 77,
                verdict_ssthresh_segments: threshold,
                slow_starts,
                ..loss
            });
        }
        let verdict = driven.on_ack(ack);
        let name = search.outcome_name(verdict.outcome);
        rows.push(AckRow { slow_starts, ..AckRow::new(1, ack, &verdict, name.into()) });
    }
    let mut writer =
        Writer::create(directory.path(), manifest(), Limits { rows: 401, ..Limits::default() }).unwrap();
    let start = FlowRow { event: "start".into(), algorithm: "search".into(), flow: 1, ..FlowRow::default() };
    writer.push(start).unwrap();
    for row in &rows {
        writer.push(row.clone()).unwrap();
    }
    writer.finish(0).unwrap();
    let flows = through(directory.path(), &["search"], &["exit_action=drain"], ON);
    let verdicts = flows[0].findings[0].recorded.clone().unwrap();
    assert_eq!((verdicts.compared, verdicts.different), (1_500, 0));
    assert_eq!(flows[0].acks, 1_500);
    // The test can fail: without the loss a drain in progress would go on.
    assert!(flows[0].findings[0].outcomes["draining"] > 0, "{:?}", flows[0].findings[0].outcomes);
}

/// The kernel counts the SYN of a connection that this host opened as acknowledged, and never as sent.
#[test]
fn a_syn_that_counts_as_acknowledged_changes_no_exit_and_no_cost() {
    let names: Vec<String> = all().map(|one| one.name().to_owned()).collect();
    let found = [0, 1].map(|syn| {
        let samples: Vec<Sample> = slow_start(600)
            .into_iter()
            .map(|ack| Ack { bytes_acked: ack.bytes_acked + syn, ..ack })
            .map(|ack| Sample { ack, slow_starts: 1, ..Sample::default() })
            .collect();
        let options = Options { regret: true, ..Options::default() };
        let mut replay = Replay::new(candidates(&names, &[], &[]).unwrap(), options);
        let run = Run { flow: 1, samples: &samples, verdicts: &[] };
        replay.feed(&run, &Known::default(), &Generations::default());
        let report = replay.finish().pop().unwrap();
        let exit = |finding: &Finding| finding.exit.as_ref().map(|exit| (exit.ack, exit.window_bytes));
        let findings =
            report.findings.iter().map(|finding| (exit(finding), finding.regret, finding.last_outcome));
        (report.given, findings.collect::<Vec<_>>())
    });
    assert!(found[0].0.is_some());
    assert!(found[0].1.iter().filter(|(exit, ..)| exit.is_some()).count() > 2, "{:?}", found[0].1);
    assert_eq!(found[0], found[1]);
}
