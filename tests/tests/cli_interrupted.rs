//! Commands that are killed, and commands at once: what is left is explained and can be cleared.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onramp_tests::cli::{self, host_state, json, onramp, state};
use onramp_tests::traffic::{Transfer, namespace};
use onramp_tests::{Attachments, root_or_skip};

/// Times that a command is killed at another moment.
const KILLS: u32 = 60;

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

/// Kills the command so many microseconds after the first pin of search appears.
fn kill_after_pins(arguments: &str, delay_us: u32) {
    let directory = Path::new(onramp_loader::ROOT).join("search");
    let mut child = start(arguments);
    while !directory.exists() && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(delay_us.into()) {
        std::hint::spin_loop();
    }
    let _ = child.kill();
    child.wait().unwrap();
}

/// A number below `limit`, from the clock: the moments are to differ between runs.
fn random(limit: u32) -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.subsec_nanos() / 7 % limit
}

#[test]
fn an_attach_that_is_killed_is_explained_and_cleared() {
    if !root_or_skip("an_attach_that_is_killed_is_explained_and_cleared") {
        return;
    }
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let whole = duration("attach search");
    onramp("detach search").ok();
    let mut seen = Vec::new();
    for round in 0..KILLS {
        if round % 3 == 0 {
            kill_after("attach search", whole, random(KILLS));
        } else {
            // What can be half done is done within a millisecond or so.
            kill_after_pins("attach search", random(1_500));
        }
        let found = state("search");
        match found.as_deref() {
            None => {}
            Some("attached") => {
                onramp("tune search alpha=3").ok();
            }
            Some("interrupted") => {
                assert!(onramp("status").ok().contains("half attached: an attach or detach was cut off"));
                let refused = onramp("attach search").refused(1);
                assert!(refused.contains("run `onramp detach search`"), "{refused}");
                onramp("tune search alpha=3").refused(1);
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
    onramp("attach search").ok();
    assert_eq!(state("search").as_deref(), Some("attached"));
}

#[test]
fn a_default_that_a_killed_command_took_or_gave_back_is_restored() {
    if !root_or_skip("a_default_that_a_killed_command_took_or_gave_back_is_restored") {
        return;
    }
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    let run = |arguments: &str, part: u32| {
        let mut child = inside.command(cli::binary());
        child.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        thread::sleep(Duration::from_millis(2) * part);
        let _ = child.kill();
        child.wait().unwrap();
    };
    for round in 0..KILLS / 2 {
        run("attach search --default", random(40));
        if round % 2 == 0 && state("search").as_deref() == Some("attached") {
            run("detach search", random(20));
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[&inside]), before, "after round {round}");
    }
}

#[test]
fn a_detach_that_is_killed_can_be_continued() {
    if !root_or_skip("a_detach_that_is_killed_can_be_continued") {
        return;
    }
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    onramp("attach search").ok();
    let whole = duration("detach search");
    for round in 0..KILLS / 2 {
        let attach =
            inside.command(cli::binary()).args(["attach", "search", "--default", "--quiet"]).status();
        assert!(attach.unwrap().success());
        let transfer = Transfer::start(&inside, 1_000_000);
        kill_after("detach search", whole, random(KILLS));
        if let Some(state) = state("search") {
            assert!(["attached", "interrupted", "lingering"].contains(&state.as_str()), "{state}");
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[&inside]), before, "after round {round}");
        assert!(transfer.goes_on(), "after round {round}");
    }
}

#[test]
fn commands_at_once_leave_a_consistent_state() {
    if !root_or_skip("commands_at_once_leave_a_consistent_state") {
        return;
    }
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
        storm(&["attach search", "detach search"], 40),
        storm(&["attach search", "tune search alpha=3", "detach search"], 40),
        storm(&["tune search alpha=4 threshold_pct=40", "status", "attach plain", "detach plain"], 40),
        storm(&["status --json", "flows", "list", "detach --all"], 40),
    ];
    for storm in storms {
        let codes = storm.join().unwrap();
        assert!(codes.contains(&Some(0)), "{codes:?}");
    }
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
fn settings_made_at_once_are_never_mixed() {
    if !root_or_skip("settings_made_at_once_are_never_mixed") {
        return;
    }
    let _attachments = Attachments::lock();
    onramp("attach search --set alpha=10 --set threshold_pct=10").ok();
    let storms: Vec<_> = [20, 30, 40]
        .map(|value| {
            thread::spawn(move || {
                for _ in 0..20 {
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
