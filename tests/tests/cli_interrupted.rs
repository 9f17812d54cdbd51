//! Commands that are killed, and commands at once: what is left is explained and can be cleared.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onramp_tests::Attachments;
use onramp_tests::cli::{self, host_state, json, onramp, state};
use onramp_tests::traffic::{Transfer, namespace};

/// Times that a command is killed, each at another moment.
const KILLS: u32 = 16;

fn start(arguments: &str) -> Child {
    cli::command(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// How long a command takes undisturbed, at least.
fn duration(arguments: &str) -> Duration {
    let begin = Instant::now();
    onramp(arguments).ok();
    begin.elapsed()
}

/// Kills the command after `part` of `whole`.
fn kill_after(arguments: &str, whole: Duration, part: u32) {
    let mut child = start(arguments);
    thread::sleep(whole * part / KILLS);
    let _ = child.kill();
    child.wait().unwrap();
}

/// Kills the command so many microseconds after the first pin of plain appears. Sleeps meanwhile: with one processor
/// the command would stand still while this one looks.
fn kill_after_pins(arguments: &str, delay_us: u32) {
    let directory = Path::new(onramp_loader::ROOT).join("plain");
    let mut child = start(arguments);
    while !directory.exists() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_micros(100));
    }
    thread::sleep(Duration::from_micros(delay_us.into()));
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn an_attach_that_is_killed_is_explained_and_cleared() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let whole = duration("attach plain");
    onramp("detach plain").ok();
    let mut seen = Vec::new();
    for round in 0..KILLS {
        if round % 4 == 0 {
            kill_after("attach plain", whole, round);
        } else {
            // What can be half done is done within a millisecond or so.
            kill_after_pins("attach plain", 1_500 * round / KILLS);
        }
        let found = state("plain");
        match found.as_deref() {
            None => {}
            Some("attached") => {
                onramp("tune plain --telemetry exit").ok();
            }
            Some("interrupted") => {
                assert!(onramp("status").ok().contains("half attached: an attach or detach was cut off"));
                let refused = onramp("attach plain").refused(1);
                assert!(refused.contains("run `onramp detach plain`"), "{refused}");
                onramp("tune plain --telemetry exit").refused(1);
            }
            Some(other) => panic!("killed in round {round}: {other}"),
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[]), before, "after round {round}, {found:?}");
        seen.push(found);
    }
    let count = |state: Option<&str>| seen.iter().filter(|one| one.as_deref() == state).count();
    let (nothing, half, whole) = (count(None), count(Some("interrupted")), count(Some("attached")));
    println!("{KILLS} killed: {nothing} left nothing, {half} half an attachment, {whole} a whole one");
    assert!(half > 0, "no kill came in between");
    onramp("attach plain").ok();
    assert_eq!(state("plain").as_deref(), Some("attached"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_default_that_a_killed_command_took_or_gave_back_is_restored() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    let start = |arguments: &str| {
        let mut command = inside.command(cli::binary());
        command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let kill_after = |arguments: &str, time: Duration| {
        let mut child = start(arguments);
        thread::sleep(time);
        let _ = child.kill();
        child.wait().unwrap();
    };
    let duration = |arguments: &str| {
        let begin = Instant::now();
        assert!(start(arguments).wait().unwrap().success());
        begin.elapsed()
    };
    // The kernel does some things once, at the first attachment.
    onramp("attach plain").ok();
    onramp("detach plain").ok();
    let (attach, detach) = (duration("attach plain --default"), duration("detach plain"));
    for round in 0..KILLS / 2 {
        if round % 2 == 0 {
            // The default is taken at the end.
            kill_after("attach plain --default", attach - Duration::from_micros(400) * round);
        } else {
            duration("attach plain --default");
            kill_after("detach plain", detach * round * 2 / KILLS);
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[&inside]), before, "after round {round}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_detach_that_is_killed_can_be_continued() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    onramp("attach plain").ok();
    let whole = duration("detach plain");
    for round in 0..KILLS / 2 {
        let attach = inside.command(cli::binary()).args(["attach", "plain", "--default", "--quiet"]).status();
        assert!(attach.unwrap().success());
        let transfer = Transfer::start(&inside, 1_000_000);
        kill_after("detach plain", whole, 2 * round);
        if let Some(state) = state("plain") {
            assert!(["attached", "interrupted", "lingering"].contains(&state.as_str()), "{state}");
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[&inside]), before, "after round {round}");
        assert!(transfer.goes_on(), "after round {round}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn commands_at_once_leave_a_consistent_state() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let storm = |verbs: &'static [&'static str], rounds: usize| {
        thread::spawn(move || {
            let mut codes = Vec::new();
            for round in 0..rounds {
                let ran = onramp(verbs[round % verbs.len()]);
                // Refused by what another has done, never broken.
                let expected = ran.code == Some(0)
                    || (ran.code == Some(1)
                        && (ran.stderr.contains("is attached already")
                            || ran.stderr.contains("is not attached")));
                assert!(expected, "{ran:?}");
                codes.push(ran.code);
            }
            codes
        })
    };
    let storms = [
        storm(&["attach fixed", "detach fixed"], 12),
        storm(&["attach fixed", "tune fixed exit_window_bytes=60000", "detach fixed"], 12),
        storm(&["tune fixed exit_window_bytes=90000", "status", "attach plain", "detach plain"], 12),
        storm(&["status --json", "flows", "list", "detach --all"], 12),
    ];
    for storm in storms {
        let codes = storm.join().unwrap();
        assert!(codes.contains(&Some(0)), "{codes:?}");
    }
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn settings_made_at_once_are_never_mixed() {
    let _attachments = Attachments::lock();
    onramp("attach search --set alpha=10 --set threshold_pct=10").ok();
    let storms: Vec<_> = [20, 30, 40]
        .map(|value| {
            thread::spawn(move || {
                for _ in 0..8 {
                    onramp(&format!("tune search alpha={value} threshold_pct={value}")).ok();
                }
            })
        })
        .into();
    let mut generation = 0;
    while storms.iter().any(|storm| !storm.is_finished()) {
        let now = json("tune search");
        assert_eq!(now["parameters"]["alpha"], now["parameters"]["threshold_pct"], "{now}");
        let next = now["parameters_generation"].as_u64().unwrap();
        assert!(next >= generation, "{next} after {generation}");
        generation = next;
    }
    for storm in storms {
        storm.join().unwrap();
    }
}
