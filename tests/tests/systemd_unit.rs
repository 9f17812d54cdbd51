//! The units that apply /etc/onramp at boot and serve the page: under systemd as the first process of a machine of its own, and
//! as `systemd-analyze` rates them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Ran, json, onramp};
use onramp_tests::traffic::{eventually, namespace};
use serde_json::Value;
use tempfile::TempDir;

/// The units, by their verbs, and the pages that say how exposed they are.
const UNITS: [(&str, &str, &str); 2] = [
    (
        "apply",
        include_str!("../../packaging/systemd/onramp-apply.service"),
        include_str!("../../docs/apply.md"),
    ),
    (
        "serve",
        include_str!("../../packaging/systemd/onramp-serve.service"),
        include_str!("../../docs/serve.md"),
    ),
];
/// Where the machine's own cgroups are.
const CGROUP: &str = "/sys/fs/cgroup/onramp-test-systemd";
/// Where the machine keeps what `serve` says.
const LOG: &str = "/run/serve.log";

const WANTED: &str = "version = 1
[attach.search]
profile = 'geo'
default = true
[attach.search.params]
exit_action = 'hold'
[[select]]
to = '203.0.113.0/24'
use = 'search'
initial_window = 20
";

/// What a machine keeps over a reboot: /etc and /usr/bin.
struct Disk(TempDir);

impl Disk {
    /// A machine with both units, of which that of one verb is enabled.
    fn new(enabled: &str) -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        for directory in ["etc/onramp", "etc/systemd/system/multi-user.target.wants", "bin"] {
            fs::create_dir_all(disk.path(directory)).unwrap();
        }
        fs::write(disk.path("etc/machine-id"), format!("{}\n", "0123456789abcdef".repeat(2))).unwrap();
        fs::write(disk.path("etc/passwd"), "root:x:0:0::/:/bin/sh\nonramp:x:990:991::/:/bin/false\n")
            .unwrap();
        fs::write(disk.path("etc/group"), "root:x:0:\nonramp:x:991:\n").unwrap();
        for (verb, text, _) in UNITS {
            let unit = format!("etc/systemd/system/onramp-{verb}.service");
            fs::write(disk.path(&unit), text).unwrap();
            // As `systemctl enable` makes it.
            if verb == enabled {
                let wants = format!("etc/systemd/system/multi-user.target.wants/onramp-{verb}.service");
                symlink(format!("/{unit}"), disk.path(&wants)).unwrap();
            }
        }
        // There is no journal.
        fs::create_dir(disk.path("etc/systemd/system/onramp-serve.service.d")).unwrap();
        let log = format!("[Service]\nStandardError=append:{LOG}\n");
        fs::write(disk.path("etc/systemd/system/onramp-serve.service.d/log.conf"), log).unwrap();
        symlink("/usr/lib/systemd/system/multi-user.target", disk.path("etc/systemd/system/default.target"))
            .unwrap();
        symlink(cli::binary(), disk.path("bin/onramp")).unwrap();
        fs::create_dir_all("/usr/bin").unwrap();
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn wants(&self, text: &str) {
        fs::write(self.path("etc/onramp/edge.toml"), text).unwrap();
    }
}

/// systemd as process 1 of namespaces of its own, but for cgroups, because rules hold from the root of their hierarchy. All of it
/// ends when it is dropped, as by a loss of power.
struct Machine {
    outside: Child,
    first: String,
}

impl Machine {
    fn boot(place: &Namespace, disk: &Disk) -> Self {
        fs::create_dir(CGROUP).unwrap();
        let inside = "mount -t tmpfs none /run && mount --bind $0/etc /etc && mount --bind $0/bin /usr/bin && \
                      exec env -i container=test PATH=/usr/bin:/bin /usr/lib/systemd/systemd --system --log-target=console";
        let script = format!(
            "echo 0 >{CGROUP}/cgroup.procs && exec unshare --pid --fork --kill-child --mount --mount-proc \
             sh -c '{inside}' $0"
        );
        let mut command = place.command("sh");
        let outside = command.args(["-c", &script]).arg(disk.0.path()).stdin(Stdio::null()).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", outside.id());
        let mut first = String::new();
        assert!(eventually(|| {
            first = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
            !first.is_empty()
        }));
        let machine = Self { outside, first };
        let up = || machine.systemctl("is-system-running").stdout.trim() == "running";
        assert!(eventually(up), "{:?}", machine.systemctl("--no-pager list-units"));
        machine
    }

    /// A command in it, whose name and arguments follow.
    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first, "--mount", "--pid"]);
        command
    }

    fn systemctl(&self, arguments: &str) -> Ran {
        self.enter().arg("systemctl").args(arguments.split(' ')).output().unwrap().into()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.outside.kill();
        let _ = self.outside.wait();
        assert!(eventually(|| remove(Path::new(CGROUP))), "cgroups of {CGROUP}");
    }
}

/// Removes a cgroup with all below it; whether it is gone.
fn remove(cgroup: &Path) -> bool {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove(&entry.path());
        }
    }
    fs::remove_dir(cgroup).is_ok()
}

/// What the unit is to make: the default, the rules, and the parameters of search.
fn made(place: &Namespace) -> (String, String, Value) {
    let status = json("status");
    let rows = status["algorithms"].as_array().unwrap();
    let sets = rows.first().map_or(Value::Null, |row| row["parameter_sets"].clone());
    (place.sysctl_get(DEFAULT).unwrap(), onramp("select list").ok(), sets)
}

#[test]
#[ignore = "in a guest: make test"]
fn under_systemd_the_unit_makes_what_files_say_at_each_boot_and_reload_and_fails_without_changing_anything() {
    let _attachments = Attachments::lock();
    let (place, disk) = (namespace(), Disk::new("apply"));
    place.sysctl_set(DEFAULT, "reno").unwrap();
    disk.wants(WANTED);
    let machine = Machine::boot(&place, &disk);
    assert_eq!(machine.systemctl("is-active onramp-apply").ok(), "active\n");
    let first = made(&place);
    assert_eq!(first.0, "onramp_search");
    assert_eq!(first.1, "--to 203.0.113.0/24 --use search --initial-window 20\n");
    assert_eq!(first.2[0]["parameters"]["exit_action"], "hold");

    // The kernel of the next boot has nothing of it.
    drop(machine);
    onramp("detach --all").ok();
    assert_eq!(place.sysctl_get(DEFAULT).unwrap(), "reno");
    let machine = Machine::boot(&place, &disk);
    assert_eq!(made(&place), first);

    machine.systemctl("stop onramp-apply").ok();
    assert_eq!(made(&place), first);
    machine.systemctl("start onramp-apply").ok();
    disk.wants(&WANTED.replace("= 20", "= twenty"));
    let failed = machine.systemctl("reload onramp-apply");
    assert_ne!(failed.code, Some(0), "{failed:?}");
    assert_eq!(made(&place), first);

    // A service with a network namespace of its own, whose default it became, gets another one again.
    let file = "/proc/sys/net/ipv4/tcp_congestion_control";
    let service = format!("echo onramp_search >{file} && echo set && read -r line && cat {file}");
    let mut service = machine
        .enter()
        .args(["unshare", "--net", "sh", "-c", &service])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(service.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().unwrap(), "set");
    disk.wants("version = 1\n");
    machine.systemctl("restart onramp-apply").ok();
    assert_eq!(made(&place), ("reno".into(), "# no rules\n".into(), Value::Null));
    service.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(said.next().unwrap(), "reno");
    service.wait().unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn under_systemd_serve_answers_on_its_socket_as_a_user_of_its_own_with_two_capabilities() {
    let _attachments = Attachments::lock();
    let (place, disk) = (namespace(), Disk::new("serve"));
    onramp("attach search").ok();
    let machine = Machine::boot(&place, &disk);
    let socket = format!("/proc/{}/root/run/onramp/serve.sock", machine.first);
    let log = format!("/proc/{}/root{LOG}", machine.first);
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "{:?}", fs::read_to_string(log));
    let get = |path: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/healthz").starts_with("HTTP/1.1 200"), "{}", get("/healthz"));
    let answer = get("/api/status");
    let status: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(status["unreadable"], Value::Null);
    assert_eq!(status["algorithms"][0]["algorithm"], "search", "{status}");

    let main = machine.systemctl("show --property=MainPID --value onramp-serve").ok();
    let process = machine.enter().arg("cat").arg(format!("/proc/{}/status", main.trim())).output().unwrap();
    let process = Ran::from(process).ok();
    let field = |name: &str| process.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap();
    assert_eq!(field("Uid:").split_whitespace().take(3).collect::<Vec<_>>(), ["990"; 3]);
    // PERFMON and BPF, of the bounding set nothing.
    assert_eq!((field("CapEff:"), field("CapBnd:")), ("000000c000000000", "0000000000000000"));
    machine.systemctl("stop onramp-serve").ok();
    assert!(!Path::new(&socket).exists());
    drop(machine);
    onramp("detach search").ok();
}

#[test]
fn the_units_are_not_more_exposed_than_their_pages_say() {
    let directory = tempfile::tempdir().unwrap();
    for (verb, text, page) in UNITS {
        let words = page.split_once("rates its exposure ").unwrap().1;
        let said = words.split([' ', ';', ',']).next().unwrap().trim_end_matches('.');
        let tenths = (said.parse::<f64>().unwrap() * 10.0).round().to_string();
        let unit = directory.path().join(format!("onramp-{verb}.service"));
        fs::write(&unit, text).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--offline=true", "--no-pager", "--threshold", &tenths]).arg(&unit);
        let Ok(output) = command.output() else {
            onramp_tests::skip("systemd-analyze is not installed");
            return;
        };
        let rated = Ran::from(output);
        let last = rated.stdout.lines().last().unwrap_or_default();
        assert_eq!(rated.code, Some(0), "the page of {verb} says {said}: {last} {}", rated.stderr);
        assert!(last.contains("Overall exposure level"), "{rated:?}");
    }
}
