//! What `onramp lab` says where something is missing or breaks; nothing is left behind.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use onramp_tests::cli::{self, Ran, host_state};
use onramp_tests::{Attachments, guest};
use tempfile::{TempDir, tempdir};

/// A directory of programs: some of the system's, and scripts.
struct Programs(TempDir);

impl Programs {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let directory = tempdir().unwrap();
        let path = directory.path();
        for program in ["ip", "ss", "sh", "sleep"] {
            let directories = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
            let found = directories.iter().map(|directory| Path::new(directory).join(program));
            symlink(found.into_iter().find(|path| path.exists()).unwrap(), path.join(program)).unwrap();
        }
        for (script, text) in scripts {
            fs::write(path.join(script), text).unwrap();
            fs::set_permissions(path.join(script), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(directory)
    }

    fn run(&self, arguments: &str) -> Ran {
        let mut command = cli::command(arguments.split(' '));
        command.env("PATH", self.0.path()).current_dir(&self.0).output().unwrap().into()
    }
}

/// The error, which is the last line; progress stands before it.
fn error_of(ran: &Ran) -> &str {
    ran.stderr.lines().last().unwrap_or_default()
}

#[test]
#[ignore = "in a guest: make test"]
fn without_root_every_verb_of_the_lab_says_so_and_ends_with_4() {
    guest::required();
    for arguments in [
        "lab run cubic --clock machine",
        "lab matrix --clock machine --arms cubic",
        "lab shell",
        "lab reproduce search-wifi --clock machine",
    ] {
        let ran: Ran = cli::as_nobody("")
            .args(arguments.split(' '))
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap()
            .into();
        let message = ran.refused(4);
        assert!(message.contains("needs ") && message.contains("root"), "{arguments}: {message}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn without_tun_the_lab_names_the_device() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // An empty /dev/net for this command alone.
    let hidden = "mount -t tmpfs none /dev/net && exec \"$0\" -q lab shell -- true";
    let ran: Ran = Command::new("unshare")
        .args(["--mount", "sh", "-c", hidden])
        .arg(cli::binary())
        .output()
        .unwrap()
        .into();
    let message = ran.refused(1);
    assert!(message.contains("/dev/net/tun") && message.contains("CONFIG_TUN"), "{message}");
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn without_iperf3_or_with_one_that_dies_the_lab_says_which() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let missing = Programs::new(&[]);
    let ran = missing.run("-q lab run plain --clock machine --tool iperf3 --bytes 100000");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(error_of(&ran).contains("iperf3"), "{ran:?}");
    assert_eq!(host_state(&[]), before, "plain was detached again");

    let dying = "#!/bin/sh\ncase \"$*\" in *--version*) echo iperf 3;; *) echo no luck >&2; exit 1;; esac\n";
    let dying = Programs::new(&[("iperf3", dying)]);
    let ran = dying.run("--json -q lab run plain --clock machine --tool iperf3 --bytes 100000");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let reason = result["arms"][0]["runs"][0]["invalid_reason"].as_str().unwrap();
    assert!(reason.contains("iperf3") && reason.contains("no luck"), "{reason}");
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_link_that_is_cut_in_mid_run_spoils_that_run_and_says_so() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // The client takes the receiver's device down while it downloads.
    let cutting = "#!/bin/sh\ncase \"$*\" in *-c*) (sleep 1.5; ip link del onramp0) & ;; esac\nexec /bin/iperf3 \"$@\"\n";
    let cutting = Programs::new(&[("iperf3", cutting)]);
    let ran = cutting
        .run("--json -q lab run plain --clock machine --tool iperf3 --profile terrestrial --bytes 200000000");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let reason = result["arms"][0]["runs"][0]["invalid_reason"].as_str().unwrap();
    assert!(reason.contains("TUN device") && reason.contains("taken down"), "{reason}");
    assert_eq!(host_state(&[]), before);
}
