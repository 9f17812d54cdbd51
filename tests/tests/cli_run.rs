//! `onramp run`: the command's sockets, its exit code, and that nothing remains.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::Attachments;
use onramp_tests::cgroups::cgroups;
use onramp_tests::cli::{self, Ran, host_state, json, onramp};
use onramp_tests::traffic::{eventually, namespace};

/// Runs a shell command under `onramp run`.
fn run(options: &str, script: &str) -> Ran {
    let words = ["run"].into_iter().chain(options.split_whitespace()).chain(["--", "sh", "-c", script]);
    cli::command(words).output().unwrap().into()
}

#[test]
#[ignore = "in a guest: make test"]
fn the_exit_code_is_the_commands_and_nothing_remains() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    assert_eq!(run("search", "echo said; exit 0").ok(), "said\n");
    assert_eq!(run("search --set missed_bins_rtts=3", "exit 7").code, Some(7));
    assert_eq!(run("search --profile geo --base reno", "kill -TERM $$").code, Some(128 + 15));
    assert_eq!(
        cli::command(["run", "fixed", "--", "/nonexistent"]).output().unwrap().status.code(),
        Some(127)
    );
    assert_eq!(
        cli::command(["run", "fixed", "--", "/etc/passwd"]).output().unwrap().status.code(),
        Some(126)
    );
    run("search --set missed_bins_rtts=0", "true").refused(2);
    assert_eq!(onramp("run search").code, Some(2));
    assert_eq!(onramp("run").code, Some(2));
    // Without a name it is ramp.
    assert!(run("", "cat /proc/sys/net/ipv4/tcp_available_congestion_control").ok().contains("onramp_ramp"));
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn sockets_of_the_command_use_the_algorithm_and_others_do_not() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    let outside = inside.run(|| std::net::TcpListener::bind("127.0.0.1:7001").unwrap()).unwrap();
    // A connection from within the run to the listener outside of it.
    let script = "exec 3<>/dev/tcp/127.0.0.1/7001; ss -tinH";
    let ran: Ran = inside
        .command(cli::binary())
        .args(["run", "search", "--", "bash", "-c", script])
        .output()
        .unwrap()
        .into();
    let listed = ran.ok();
    assert_eq!(listed.matches("onramp_search").count(), 1, "{listed}");
    drop(outside);
    assert_eq!(host_state(&[&inside]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_attached_already_is_used_as_it_is_and_stays() {
    let _attachments = Attachments::lock();
    onramp("attach search --set missed_bins_rtts=3").ok();
    let before = host_state(&[]);
    assert_eq!(run("search", "exit 4").code, Some(4));
    assert_eq!(run("search --set missed_bins_rtts=3", "exit 5").code, Some(5));
    assert!(run("search --set missed_bins_rtts=4", "true").refused(2).contains("search"));
    assert!(run("search --base reno", "true").refused(2).contains("leave out"));
    assert_eq!(host_state(&[]), before);
}

/// A run whose command has said that it is there.
fn start(script: &str) -> Child {
    let mut child = cli::command(["run", "plain", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "there\n");
    child
}

#[test]
#[ignore = "in a guest: make test"]
fn a_signal_goes_to_the_command_and_nothing_remains() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for (signal, script, code) in [
        (Signal::SIGTERM, "echo there; sleep 10 & wait", 128 + 15),
        (Signal::SIGTERM, "trap 'exit 9' TERM; echo there; sleep 10 & wait", 9),
        (Signal::SIGINT, "trap 'exit 8' INT; echo there; sleep 10 & wait", 8),
        (Signal::SIGHUP, "echo there; sleep 10 & wait", 128 + 1),
    ] {
        let mut child = start(script);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(host_state(&[]), before, "{signal}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_run_that_is_killed_is_explained_and_cleared() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let mut child = start("echo there; exec sleep 10");
    child.kill().unwrap();
    child.wait().unwrap();
    let status = json("status");
    assert_eq!(status["algorithms"][0]["owner_alive"], false, "{status}");
    assert_eq!(status["dead_runs"][0]["pid"], child.id(), "{status}");
    assert_eq!(status["dead_runs"][0]["processes"], 1, "{status}");
    let said = onramp("status").ok();
    assert!(said.contains("attached for a run that has died"), "{said}");
    let pid = std::fs::read_to_string(format!(
        "{}/cgroup.procs",
        status["dead_runs"][0]["cgroup"].as_str().unwrap()
    ));
    let pid: i32 = pid.unwrap().trim().parse().unwrap();

    let report = json("detach --all");
    assert_eq!(report["cgroups_removed"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(host_state(&[]), before);
    // The command itself was left alone.
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    assert!(eventually(|| !std::path::Path::new(&format!("/proc/{pid}")).exists() || zombie(pid)));
}

fn zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
#[ignore = "in a guest: make test"]
fn runs_at_once_share_the_attachment_and_the_last_detaches() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let (mut first, mut second) =
        (start("echo there; sleep 10 & wait"), start("echo there; sleep 10 & wait"));
    kill(Pid::from_raw(first.id() as i32), Signal::SIGTERM).unwrap();
    first.wait().unwrap();
    assert_eq!(cli::state("plain").as_deref(), Some("attached"));
    kill(Pid::from_raw(second.id() as i32), Signal::SIGTERM).unwrap();
    second.wait().unwrap();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_run_can_be_ended_at_any_moment() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let begin = Instant::now();
    assert!(cli::command(["run", "plain", "--", "true"]).status().unwrap().success());
    let whole = begin.elapsed();
    const ROUNDS: u32 = 14;
    for round in 0..ROUNDS {
        let signal = if round % 2 == 0 { Signal::SIGTERM } else { Signal::SIGKILL };
        let mut child = cli::command(["run", "plain", "--", "true"]).spawn().unwrap();
        // Half of them after what takes most of the time, the load.
        let time = if round % 4 < 2 {
            whole * round / ROUNDS
        } else {
            whole - whole / 20 * (ROUNDS - round) / ROUNDS
        };
        std::thread::sleep(time);
        let _ = kill(Pid::from_raw(child.id() as i32), signal);
        let status = child.wait().unwrap();
        if signal == Signal::SIGKILL {
            onramp("detach --all").ok();
        }
        assert_eq!(host_state(&[]), before, "{signal} in round {round}: {status}");
    }
}

/// The cgroups that a process is in, as /proc has them.
fn cgroup_of(pid: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_the_command_leaves_behind_stays_where_the_run_was() {
    let _attachments = Attachments::lock();
    let home = cgroups().join("onramp-test-home");
    std::fs::create_dir(&home).unwrap();
    let script = "echo $$ > \"$1/cgroup.procs\"; \
                  exec \"$0\" run plain -- sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo $!'";
    let ran = std::process::Command::new("sh").arg("-c").arg(script).arg(cli::binary()).arg(&home).output();
    let pid = Ran::from(ran.unwrap()).ok();
    let pid = pid.trim();
    let found = cgroup_of(pid);
    kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
    assert!(found.contains("0::/onramp-test-home\n"), "{found}");
    assert!(eventually(|| std::fs::remove_dir(&home).is_ok()));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_dead_run_is_known_also_when_its_number_is_another_processes() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // This process and the run must not have begun in the same tick.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut child = start("echo there; exec sleep 600");
    child.kill().unwrap();
    child.wait().unwrap();
    let [cgroup] = &cli::run_cgroups()[..] else { panic!("one cgroup") };
    let command = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
    // As if the number of the dead process were this one's by now.
    let name = cgroup.file_name().unwrap().to_str().unwrap();
    let (own, dead) = (std::process::id().to_string(), child.id().to_string());
    let taken = cgroup.with_file_name(name.replacen(&dead, &own, 1));
    std::fs::create_dir(&taken).unwrap();
    let status = json("status");
    assert_eq!(status["dead_runs"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!(status["algorithms"][0]["owner_alive"], false, "{status}");
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
    kill(Pid::from_raw(command.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
}
