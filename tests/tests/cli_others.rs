//! Other users of the host: no other user gets root's rights by what he puts in its way, and no user is kept
//! waiting for ever, or without a word.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Ran, host_state, inside, onramp};
use onramp_tests::traffic::{eventually, namespace};
use serde_json::Value;

const BPFFS: &str = "/sys/fs/bpf";
/// A user without any right.
const NOBODY: u32 = 65534;

/// The BPF file system as some mount it, writable for all users, as long as this lives.
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
    // Where only the file system itself is open to all users, as /tmp is, nothing is wrong yet.
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
fn a_lock_that_another_keeps_for_a_minute_is_named() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    onramp("detach plain").ok();
    let held = hold_the_lock();
    let mut child = cli::command(["attach", "plain"]).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(70));
    // Else it would wait for as long as this does.
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    let error = Ran::from(child.wait_with_output().unwrap());
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
        (Signal::SIGTERM, "shadow --algorithm plain", "shadow --algorithm plain"),
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

/// Where a command's output goes.
#[derive(Clone, Copy, Debug)]
enum Sink {
    Full,
    BothFull,
    Closed,
}

impl Sink {
    const ALL: [Self; 3] = [Self::Full, Self::BothFull, Self::Closed];

    /// Runs the binary; the arguments are split at spaces.
    fn run(self, arguments: &str) -> Ran {
        let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        let words = arguments.split_whitespace();
        let mut command = match self {
            Self::Closed => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(cli::binary()).args(words);
                shell
            }
            _ => cli::command(words),
        };
        if !matches!(self, Self::Closed) {
            command.stdout(full());
        }
        if matches!(self, Self::BothFull) {
            command.stderr(full());
        }
        command.output().unwrap().into()
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_exit_code_says_what_was_done_also_where_that_cannot_be_reported() {
    let _attachments = Attachments::lock();
    let files = tempfile::tempdir().unwrap();
    let [wanted, rules, learned] = ["a.toml", "rules", "paths"].map(|name| files.path().join(name));
    fs::write(&wanted, "version = 1\n[attach.fixed]\n").unwrap();
    fs::write(&rules, "--port 81 --use plain\n--port 82 --use plain\n").unwrap();
    let of_plain = |field: &str| cli::status("plain").map_or(Value::Null, |row| row[field].clone());
    let is_attached = |algorithm: &str| cli::state(algorithm).as_deref() == Some("attached");
    let rules_now = || cli::json("select list")["rules"].as_array().unwrap().len();
    let changed = || cli::json("status")["settings"].as_array().unwrap().len();
    let remembered = || cli::json("paths list")["paths"].as_array().unwrap().len();
    fs::write(&learned, "203.0.113.9 50mbit,600ms 41s\n").unwrap();
    let import = format!("paths import {}", learned.display());
    let apply = format!("apply --config {}", wanted.display());
    let load = format!("select load {}", rules.display());
    for sink in Sink::ALL {
        let generation = std::cell::RefCell::new(Value::Null);
        let steps: [(&str, &dyn Fn() -> bool); 18] = [
            ("attach plain", &|| is_attached("plain")),
            ("attach plain --for 1h", &|| of_plain("expires_at_us").is_u64()),
            ("confirm plain", &|| of_plain("expires_at_us").is_null()),
            ("--json tune plain --telemetry exit", &|| {
                *generation.borrow_mut() = of_plain("generation");
                of_plain("parameter_sets")[0]["telemetry_max"] == "exit"
            }),
            ("select add --port 80 --use plain", &|| rules_now() == 1),
            (&load, &|| rules_now() == 2),
            ("--json select del --port 81", &|| rules_now() == 1),
            ("select del --all", &|| rules_now() == 0),
            ("upgrade plain", &|| of_plain("generation") != *generation.borrow()),
            ("upgrade plain --start resume", &|| of_plain("start") == serde_json::json!(["resume"])),
            (&import, &|| remembered() == 1),
            ("paths flush", &|| remembered() == 0),
            (&apply, &|| is_attached("fixed")),
            ("doctor --rate 150mbit --rtt 600ms --fix", &|| changed() > 0),
            ("undo settings", &|| changed() == 0),
            ("run plain -- true", &|| is_attached("plain")),
            ("detach plain", &|| !is_attached("plain")),
            ("undo", &|| !is_attached("fixed")),
        ];
        for (arguments, is_done) in steps {
            assert!(!is_done() || arguments.starts_with("run"), "{sink:?}: {arguments}");
            let ran = sink.run(arguments);
            assert_eq!(ran.code, Some(0), "{sink:?}: {arguments}: {ran:?}");
            assert!(is_done(), "{sink:?}: {arguments}");
            let warns = !matches!(sink, Sink::BothFull) && !arguments.starts_with("run");
            assert_eq!(ran.stderr.matches("warning: ").count(), usize::from(warns), "{arguments}: {ran:?}");
        }
    }
    // What is asked for is the output.
    onramp("attach plain").ok();
    for sink in Sink::ALL {
        for arguments in
            ["status", "--json status", "select list", "flows", "tune plain", "attach fixed --dry-run"]
        {
            assert_eq!(sink.run(arguments).code, Some(1), "{sink:?}: {arguments}");
        }
    }
    onramp("detach plain").ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn what_doctor_cannot_see_from_here_is_no_fault_of_the_kernel_and_its_remedies_are_for_here() {
    let _attachments = Attachments::lock();
    let elsewhere = cli::doctor(&namespace(), "");
    for row in ["BPF JIT", "default queueing discipline"] {
        let row = cli::row(&elsewhere, row);
        assert_eq!((&row["verdict"], &row["advice"]), (&"ok".into(), &Value::Null), "{row}");
    }
    let binary = cli::binary().display();
    let ran = |program: &str, arguments: &[&str]| -> Ran {
        Command::new(program).args(arguments).output().unwrap().into()
    };
    // What root of a user namespace lacks is not got by becoming root.
    let in_user_namespace = ran("unshare", &["-Ur", &binary.to_string(), "--json", "doctor"]);
    let of_nobody: Ran =
        cli::as_nobody("").args(["--json", "doctor"]).current_dir("/").output().unwrap().into();
    let [inner, outer] = [in_user_namespace, of_nobody].map(|ran| cli::row(&ran.report(), "privilege"));
    assert_eq!((&inner["verdict"], &outer["verdict"]), (&"missing".into(), &"missing".into()));
    assert_ne!(inner["advice"], outer["advice"]);
    // The remedy for a /sys that is not mounted is one.
    let without = |then: &str| {
        let as_root = cli::WITHOUT_LOADING.join(" ");
        let script = format!("umount -l /sys && {then} {as_root} {binary} --json doctor");
        cli::row(&ran("unshare", &["-m", "sh", "-c", &script]).report(), "type information (BTF)")
    };
    let missing = without("");
    assert_eq!(missing["verdict"], "missing", "{missing}");
    let remedy = missing["advice"].as_str().unwrap().split('`').nth(1).unwrap();
    assert_eq!(without(&format!("{remedy} &&"))["verdict"], "ok", "{remedy}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_detach_that_cannot_be_finished_changes_nothing_or_is_reported_as_done_in_part() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    let remount = |flags: MsFlags| {
        let flags = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
        mount(None::<&str>, BPFFS, None::<&str>, flags, None::<&str>).unwrap();
    };
    inside(&place, "attach plain --default").ok();
    let attached = host_state(&[&place]);
    remount(MsFlags::MS_RDONLY);
    let ran = onramp("detach plain");
    let still = host_state(&[&place]);
    remount(MsFlags::empty());
    assert!(ran.refused(1).contains("remount,rw"));
    assert_eq!(still, attached);

    // What is no pin is in the way of the last step.
    let odd = Path::new(onramp_loader::ROOT).join("plain/odd");
    fs::create_dir(&odd).unwrap();
    let ran = onramp("detach plain");
    assert_eq!(place.sysctl_get(DEFAULT).unwrap(), "reno");
    let code = if odd.exists() { 5 } else { 0 };
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let _ = fs::remove_dir(&odd);
    onramp("detach --all").ok();
    assert_eq!(host_state(&[&place]), before);
}
