//! `onramp attach --for` and `onramp confirm`.

use std::time::{Duration, Instant};

use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, host_state, json, onramp, state};
use onramp_tests::traffic::{eventually, namespace};

/// Processes that wait for an algorithm's time to be over.
fn watches(algorithm: &str) -> usize {
    let command = format!("onramp\0expire\0{algorithm}\0");
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(command.as_bytes()))
        .count()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_attached_for_a_time_detaches_by_itself() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&inside]);
    let said = inside
        .command(cli::binary())
        .args(["attach", "search", "--default", "--for", "2s"])
        .output()
        .unwrap();
    let said = cli::Ran::from(said).ok();
    assert!(said.contains("detaches in 2.00 s unless confirmed: onramp confirm search"), "{said}");
    let row = &json("status")["algorithms"][0];
    let time = row["expires_at_us"].as_u64().unwrap() - row["attached_at_us"].as_u64().unwrap();
    assert_eq!(time, 2_000_000);
    assert!(onramp("status").ok().contains("unless confirmed"));
    assert_eq!(inside.sysctl_get(DEFAULT).unwrap(), "onramp_search");
    assert_eq!(watches("search"), 1);

    assert!(eventually(|| host_state(&[&inside]) == before), "{:?}", onramp("status"));
    assert!(eventually(|| watches("search") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_confirmed_stays() {
    let _attachments = Attachments::lock();
    onramp("attach plain --for 2s").ok();
    let confirmed = json("confirm plain");
    assert_eq!(confirmed["confirmed"], true);
    assert_eq!(json("status")["algorithms"][0]["expires_at_us"], serde_json::Value::Null);
    assert!(eventually(|| watches("plain") == 0));
    assert_eq!(state("plain").as_deref(), Some("attached"));
    // Again, and of what never had a limit, is no error.
    assert_eq!(json("confirm plain")["confirmed"], false);
    onramp("detach plain").ok();
    assert!(onramp("confirm plain").refused(1).contains("plain is not attached"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_later_attachment_is_not_detached_by_an_earlier_limit() {
    let _attachments = Attachments::lock();
    onramp("attach plain --for 2s").ok();
    onramp("detach plain").ok();
    onramp("attach plain --for 1h").ok();
    assert!(eventually(|| watches("plain") == 1));
    assert_eq!(state("plain").as_deref(), Some("attached"));
    onramp("detach plain").ok();
    assert!(eventually(|| watches("plain") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_limit_holds_also_when_the_command_is_killed_right_after_attaching() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let begin = Instant::now();
    onramp("attach plain --for 1s").ok();
    let whole = begin.elapsed();
    onramp("detach plain").ok();
    for round in 0..8 {
        let mut child = cli::command(["attach", "plain", "--for", "1s", "--quiet"]).spawn().unwrap();
        std::thread::sleep(whole - Duration::from_millis(1) * round);
        let _ = child.kill();
        child.wait().unwrap();
        if state("plain").as_deref() == Some("attached") {
            assert!(eventually(|| host_state(&[]) == before), "{:?}", onramp("status"));
        } else {
            onramp("detach --all").ok();
        }
    }
    assert!(eventually(|| watches("plain") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_limit_that_cannot_be_kept_attaches_nothing() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // A user who may attach, but may not start a second process.
    let capabilities = "+bpf,+perfmon,+dac_override";
    let ran = std::process::Command::new("setpriv")
        .args([
            "--reuid",
            "65533",
            "--clear-groups",
            "--inh-caps",
            capabilities,
            "--ambient-caps",
            capabilities,
        ])
        .args(["prlimit", "--nproc=1"])
        .arg(cli::public_copy())
        .args(["attach", "search", "--for", "1s"])
        .output()
        .unwrap();
    let error = cli::Ran::from(ran).refused(1);
    assert!(error.contains("so nothing was attached"), "{error}");
    assert_eq!(host_state(&[]), before);
}
