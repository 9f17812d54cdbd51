//! `onramp lab shell`.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use onramp_net::Namespace;
use onramp_tests::cli::{self, Ran, onramp};
use onramp_tests::guest;

/// An argument by which this test's own processes are found.
const MARK: &str = "7654.321";

fn until(condition: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        condition() || {
            thread::sleep(Duration::from_millis(20));
            false
        }
    })
}

/// Processes with the mark as their last argument; a zombie has no arguments.
fn marked() -> Vec<String> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_marked = |pid: &String| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(b"sleep\0") && line.ends_with(format!("{MARK}\0").as_bytes()))
    };
    processes.filter(is_marked).collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_command_runs_on_the_senders_side_and_hands_on_its_exit_code() {
    guest::required();
    let script = "ip -4 -o address show onramp0; exec 3<>/dev/tcp/192.0.2.2/9; echo x >&3; exit 7";
    let mut command = cli::command(["lab", "shell", "--profile", "terrestrial", "--", "bash", "-c", script]);
    let ran: Ran = command.stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.stdout.contains("192.0.2.1/24"), "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("terrestrial: 100.0 Mb/s, 30 ms; this host is 192.0.2.1, the receiver 192.0.2.2 ("),
        "{ran:?}"
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert_eq!(onramp("lab shell -- /no/such/command").code, Some(127));
    onramp("lab shell --profile nowhere -- true").refused(2);
}

#[test]
#[ignore = "in a guest: make test"]
fn whatever_the_shell_has_started_ends_with_onramp_also_when_it_is_killed() {
    guest::required();
    // In the background, in a session of its own, and in the foreground.
    let script = format!("sleep {MARK} & setsid sleep {MARK} & sleep {MARK}");
    let mut command = cli::command(["lab", "shell", "--profile", "terrestrial", "--", "sh", "-c", &script]);
    let mut shell = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(until(|| marked().len() == 3), "{:?}", marked());
    let inside = Namespace::open(format!("/proc/{}/ns/net", marked()[0])).unwrap();
    let cookie = inside.cookie().unwrap();
    drop(inside);
    let exists = || Namespace::all().unwrap().iter().any(|one| one.cookie().ok() == Some(cookie));
    assert!(exists());
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(until(|| marked().is_empty()), "{:?}", marked());
    assert!(until(|| !exists()), "the namespace survives");
}
