//! Other users of the host: nobody who is not root gets root's hand by what he puts in its way, and nobody is kept
//! waiting for ever, or without a word.

use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, host_state, onramp};
use onramp_tests::traffic::eventually;

const BPFFS: &str = "/sys/fs/bpf";
/// A user without any right.
const NOBODY: u32 = 65534;

/// The BPF file system as some mount it, writable for everybody, as long as this lives.
struct Open(Permissions);

impl Open {
    fn to_everybody() -> Self {
        // Mounts it where there is none yet.
        onramp("attach plain").ok();
        onramp("detach plain").ok();
        let before = fs::metadata(BPFFS).unwrap().permissions();
        fs::set_permissions(BPFFS, Permissions::from_mode(0o1777)).unwrap();
        Self(before)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = fs::remove_file(onramp_loader::ROOT);
        let _ = fs::remove_dir_all(onramp_loader::ROOT);
        fs::set_permissions(BPFFS, self.0.clone()).unwrap();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_others_have_put_in_the_place_of_the_pins_is_not_followed() {
    let _attachments = Attachments::lock();
    let _open = Open::to_everybody();
    let victim = tempfile::tempdir().unwrap();
    let file = victim.path().join("plain/file");
    fs::create_dir(victim.path().join("plain")).unwrap();
    fs::write(&file, "whole").unwrap();
    let root = Path::new(onramp_loader::ROOT);
    let refused = |why: &str| {
        for arguments in ["attach plain", "detach plain", "detach --all", "status", "watch --for 1s"] {
            let ran = onramp(arguments);
            assert!([Some(1), Some(5)].contains(&ran.code), "{arguments}: {ran:?}");
            assert!(ran.stderr.contains("not to be trusted") && ran.stderr.contains(why), "{ran:?}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "whole");
    };
    symlink(victim.path(), root).unwrap();
    lchown(root, Some(NOBODY), Some(NOBODY)).unwrap();
    refused("a link or a file");
    fs::remove_file(root).unwrap();
    fs::create_dir(root).unwrap();
    chown(root, Some(NOBODY), Some(NOBODY)).unwrap();
    refused("belongs to user 65534");
    fs::remove_dir(root).unwrap();
    DirBuilder::new().create(root).unwrap();
    fs::set_permissions(root, Permissions::from_mode(0o777)).unwrap();
    refused("others may write to it");
    fs::remove_dir(root).unwrap();
    // Where only the file system itself is open to everybody, as /tmp is, nothing is wrong yet.
    onramp("attach plain").ok();
    assert_eq!(fs::metadata(root).unwrap().permissions().mode() & 0o777, 0o700);
    onramp("detach plain").ok();
}

/// Has the lock that onramp's commands take.
fn hold_the_lock() -> Flock<File> {
    let directory = File::open(BPFFS).unwrap();
    Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap()
}

fn start(arguments: &str) -> Child {
    cli::command(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The exit code of a command that a signal ends, while this goes on; `None`: it does not end, or has none.
fn ended_by(signal: Signal, mut child: Child) -> Option<i32> {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let ended = eventually(|| child.try_wait().unwrap().is_some());
    let _ = child.kill();
    child.wait().unwrap().code().filter(|_| ended)
}

#[test]
#[ignore = "in a guest: make test"]
fn a_lock_that_somebody_keeps_for_a_minute_is_named() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    onramp("detach plain").ok();
    let held = hold_the_lock();
    let mut child = cli::command(["attach", "plain"]).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(70));
    // Else it would wait for as long as this does.
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    let error = cli::Ran::from(child.wait_with_output().unwrap());
    assert!(ended, "still waiting");
    let own = format!("another process ({}) has held the lock", std::process::id());
    assert!(error.code == Some(1) && error.stderr.contains(&own), "{error:?}");
    drop(held);
    onramp("attach plain").ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn what_waits_for_the_lock_can_be_ended_at_its_beginning_and_at_its_end() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    let before = host_state(&[]);
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name).display().to_string();
    let made = ["waiting", "working"].map(place);
    let [record, again] = made.each_ref().map(|directory| format!("record -o {directory}"));
    let serve = format!("serve --listen unix:{}", place("socket"));
    for (signal, waiting, working) in [
        (Signal::SIGINT, "watch", "watch"),
        (Signal::SIGTERM, "watch", "watch"),
        (Signal::SIGTERM, &record, &again),
        (Signal::SIGTERM, &serve, &serve),
        (Signal::SIGTERM, "shadow --algorithms plain", "shadow --algorithms plain"),
    ] {
        let held = hold_the_lock();
        let child = start(waiting);
        thread::sleep(Duration::from_secs(2));
        assert_eq!(ended_by(signal, child), Some(0), "{waiting} waits for the lock");
        drop(held);
        let child = start(working);
        thread::sleep(Duration::from_secs(2));
        let held = hold_the_lock();
        assert_eq!(ended_by(signal, child), Some(0), "{working} waits for the lock at its end");
        drop(held);
        assert!(eventually(|| host_state(&[]) == before), "{waiting}");
    }
    for directory in made {
        onramp_recording::Recording::open(Path::new(&directory)).unwrap();
    }
}
