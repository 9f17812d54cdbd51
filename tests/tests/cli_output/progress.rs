//! Progress is on a terminal only, and Ctrl-C leaves one line.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::cli::{command, json, onramp};

/// Exit codes of what Ctrl-C has stopped, and SIGTERM.
const INTERRUPTED: Option<i32> = Some(130);
const TERMINATED: Option<i32> = Some(143);

/// Commands that go on for hours, with what the same command does once it was stopped.
fn endless(directory: &str) -> [(Vec<String>, &'static str); 3] {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    [
        (words("sim compare --arms plain -n 10000"), "anew"),
        (words(&format!("sim sweep --paths 1000000 --arms plain -o {directory}/sweep")), "goes on"),
        (words(&format!("sim tune search --candidates 50 --paths 100000 -o {directory}/tune")), "anew"),
    ]
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// What stands on the terminal, as it came.
fn on_a_terminal(mut command: Command, shown: impl Fn(&str) -> bool) -> (Option<i32>, String) {
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let near = terminal.slave.try_clone().unwrap();
    let mut child = command.stdout(Stdio::null()).stderr(near).spawn().unwrap();
    drop((terminal.slave, command));
    let (mut far, mut text, mut buffer, mut stopped) =
        (File::from(terminal.master), String::new(), [0; 4096], false);
    // Ends with an error once no process has the other side any more.
    while let Ok(count @ 1..) = far.read(&mut buffer) {
        text += &String::from_utf8_lossy(&buffer[..count]);
        if !stopped && shown(&text) {
            stopped = true;
            send(&child, Signal::SIGINT);
        }
    }
    (child.wait().unwrap().code(), text)
}

/// `[12/34]`, and a time.
fn has_counts(text: &str) -> bool {
    let counts = text.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    counts.is_some_and(|(counts, rest)| {
        counts.split_once('/').is_some_and(|(made, all)| is_number(made) && is_number(all))
            && rest.contains(" so far")
    })
}

#[test]
fn what_takes_long_shows_counts_and_time_on_a_terminal_and_ctrl_c_says_what_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    for (words, kept) in endless(directory.path().to_str().unwrap()) {
        // Some of it is made, so that what is left is known.
        let shown = |text: &str| has_counts(text) && text.contains(" left");
        let (code, text) = on_a_terminal(command(&words), shown);
        assert_eq!(code, INTERRUPTED, "{words:?}: {text:?}");
        let last = text.rsplit('\r').find(|line| line.contains("stopped")).unwrap_or_default();
        assert_eq!(text.matches("stopped").count(), 1, "{text:?}");
        assert!(last.contains(kept), "{words:?}: {last:?}");
    }
}

#[test]
fn a_pipe_gets_no_progress_and_the_same_last_line() {
    let directory = tempfile::tempdir().unwrap();
    for (words, kept) in endless(directory.path().to_str().unwrap()) {
        let child = command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Longer than what a terminal would be shown nothing for.
        std::thread::sleep(Duration::from_secs(4));
        send(&child, Signal::SIGTERM);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), TERMINATED, "{words:?}: {stderr}");
        let lines: Vec<_> = stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].contains(kept), "{words:?}: {stderr}");
    }
}

#[test]
fn a_time_of_nothing_is_not_negative() {
    let list = onramp("lab reproduce --list").ok();
    assert!(list.contains(" min ") && !list.contains("-0"), "{list}");
    for claim in json("lab reproduce --list")["claims"].as_array().unwrap() {
        assert!(!claim["expected_seconds"].to_string().starts_with('-'), "{claim}");
    }
}
