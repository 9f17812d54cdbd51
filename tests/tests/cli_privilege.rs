//! Who may do what: a missing privilege ends with exit code 4 before anything has changed, also where it is only a
//! namespace's root who asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, setsockopt, socket};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, Names, Ran, host_state, json, onramp};
use onramp_tests::recorder::Recorder;
use onramp_tests::traffic::{Transfer, namespace};

/// Runs the binary as a user who has these capabilities and no others.
fn with(capabilities: &str, arguments: &str) -> Ran {
    cli::as_nobody(capabilities).args(arguments.split(' ')).current_dir("/").output().unwrap().into()
}

/// Runs the binary as root in namespaces of its own; `before`: what to do there first.
fn unshared(namespaces: &[&str], before: &str, arguments: &str) -> Ran {
    let mut command = Command::new("unshare");
    let script = format!("{before} exec \"$0\" {arguments}");
    command.args(namespaces).args(["sh", "-c", &script]).arg(cli::public_copy()).output().unwrap().into()
}

#[test]
#[ignore = "in a guest: make test"]
fn without_the_right_to_configure_networks_nothing_is_attached_for_a_run_or_as_default() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let few = "+bpf,+perfmon,+dac_override";
    for arguments in ["run search -- true", "attach search --default", "attach search --default --dry-run"] {
        let error = with(few, arguments).refused(4);
        assert!(error.contains("CAP_NET_ADMIN"), "{arguments}: {error}");
        assert_eq!(host_state(&[]), before, "{arguments}");
    }
    onramp("attach search").ok();
    let before = host_state(&[]);
    for arguments in ["attach search --default", "attach search --default --dry-run"] {
        assert!(with(few, arguments).refused(4).contains("CAP_NET_ADMIN"), "{arguments}");
        assert_eq!(host_state(&[]), before, "{arguments}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn root_of_a_user_namespace_is_reported_that_it_is_not_enough() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for arguments in
        ["attach search", "status", "detach --all", "run search -- true", "watch --for 1s", "doctor"]
    {
        let ran = unshared(&["--user", "--map-root-user"], "", arguments);
        if arguments == "doctor" {
            assert!(ran.stdout.contains("none of the capabilities"), "{ran:?}");
            continue;
        }
        let error = ran.refused(4);
        assert!(error.names(&["CAP_BPF", "CAP_PERFMON"]), "{arguments}: {error}");
        assert!(error.contains("outside of user namespaces"), "{arguments}: {error}");
    }
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn in_a_container_without_the_hosts_bpf_file_system_nothing_is_mounted_or_attached() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let container = ["--mount", "--pid", "--fork", "--mount-proc"];
    let hide = "umount /sys/fs/bpf 2>/dev/null;";
    let error = unshared(&container, hide, "attach search").refused(3);
    assert!(error.contains("this is a container"), "{error}");
    assert_eq!(host_state(&[]), before);
}

/// A user who may use BPF and not look into root's directories: where the BPF file system is open to all, as many mount it, and
/// where it is not.
#[test]
#[ignore = "in a guest: make test"]
fn what_a_user_may_not_look_at_is_not_said_to_be_absent() {
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    onramp("select add --port 80 --use search").ok();
    let before = host_state(&[]);
    let bpf = Path::new("/sys/fs/bpf");
    let mode = |mode| fs::set_permissions(bpf, fs::Permissions::from_mode(mode)).unwrap();
    let was = fs::metadata(bpf).unwrap().permissions().mode() & 0o7777;
    for open in [0o1777, 0o700] {
        mode(open);
        for arguments in [
            "status",
            "flows",
            "attach search",
            "attach plain",
            "tune search threshold_pct=40",
            "confirm search",
            "upgrade search",
            "detach search",
            "detach --all",
            "select list",
            "select test 127.0.0.1",
            "select del --all",
            "watch --for 1s",
        ] {
            let ran = with("+bpf,+perfmon,+net_admin,+sys_admin,+sys_ptrace", arguments);
            println!("{open:o} {arguments}: {:?} {}", ran.code, ran.stderr.trim());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{arguments}: {ran:?}");
            assert!(ran.stderr.contains("Permission denied"), "{arguments}: {ran:?}");
            assert_eq!(host_state(&[]), before, "{arguments}");
        }
    }
    mode(was);
}

/// Runs a command as a user without any capability, and says whether it was done.
fn nobody_can(command: &str) -> bool {
    let mut shell = Command::new("setpriv");
    shell.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", command]);
    shell.output().unwrap().status.success()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_user_without_privileges_neither_reads_nor_changes_what_is_attached_chosen_or_recorded() {
    let _attachments = Attachments::lock();
    let place = namespace();
    cli::inside(&place, "attach search --default").ok();
    onramp("select add --to 127.0.0.0/8 --use search").ok();
    // Where every user may look, as many are.
    let open = cli::public_directory();
    let path = |name: &str| open.path().join(name).display().to_string();
    fs::write(path("rules"), "--port 80 --use search\n").unwrap();
    fs::create_dir(path("wanted")).unwrap();
    fs::write(path("wanted/a.toml"), "version = 1\n[attach.plain]\n").unwrap();
    let recorder = Recorder::start(&open.path().join("recording"), "");
    let transfer = Transfer::start(&place, 100_000);
    assert!(transfer.goes_on());
    drop(transfer);
    recorder.end().ok();

    let state = || (host_state(&[&place]), onramp("select list").ok(), json("status")["algorithms"].clone());
    let parameters = |(state, rules, rows): (Vec<String>, String, serde_json::Value)| {
        (state, rules, rows[0]["parameter_sets"].clone(), rows[0]["generation"].clone())
    };
    let before = parameters(state());
    for arguments in [
        "status",
        "flows",
        "attach plain",
        "tune search threshold_pct=40",
        "confirm search",
        "upgrade search",
        "detach search",
        "detach --all",
        "undo",
        "run search -- true",
        "watch --for 1s",
        "shadow --algorithm search --for 1s",
        "select list",
        "select test 127.0.0.1",
        "select add --port 80 --use search",
        "select del --to 127.0.0.0/8",
        "select del --all",
        &format!("select load {}", path("rules")),
        &format!("apply --config {}", path("wanted")),
        &format!("record -o {}", path("another")),
    ] {
        let ran = with("", arguments);
        println!("{arguments}: {:?} {}", ran.code, ran.stderr.trim());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{arguments}: {ran:?}");
        let verb = arguments.split(' ').next().unwrap();
        // These three say which of their parts asks.
        let whole = !["watch", "record", "apply"].contains(&verb);
        let needs = if whole { format!("error: {verb} needs CAP_") } else { " needs CAP_".to_owned() };
        assert!(ran.stderr.contains(&needs), "{arguments}: {ran:?}");
        assert_eq!(parameters(state()), before, "{arguments}");
    }
    for verb in ["lab qlog", "replay --algorithm search"] {
        let ran = with("", &format!("{verb} {}", path("recording")));
        assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{verb}: {ran:?}");
        assert!(ran.stderr.contains("ermission denied"), "{verb}: {ran:?}");
    }
    assert!(nobody_can(&format!("ls {}", path("wanted"))));
    for file in fs::read_dir(path("recording")).unwrap() {
        assert!(!nobody_can(&format!("cat {}", file.unwrap().path().display())));
    }
    for command in [
        &format!("ls {}", path("recording")),
        &format!("touch {}", path("recording/manifest.json")),
        &format!("ls {}", onramp_loader::ROOT),
        &format!("ls {}/select", onramp_loader::ROOT),
        &format!("cat {}/select/tables", onramp_loader::ROOT),
        &format!("rm -r {}/select", onramp_loader::ROOT),
        &format!("mkdir {}/other", onramp_loader::ROOT),
    ] {
        assert!(!nobody_can(command), "{command}");
    }
    assert_eq!(parameters(state()), before);
}

/// Whether a user without privileges can choose a control for a socket, in a network namespace and a thread of its own.
fn nobody_chooses(place: &Namespace, control: &str) -> bool {
    let choose = || {
        for call in [libc::SYS_setresgid, libc::SYS_setresuid] {
            // SAFETY: they take numbers, and called so they change this thread alone.
            let changed = unsafe { libc::syscall(call, 65_534, 65_534, 65_534) };
            assert_eq!(changed, 0, "{}", std::io::Error::last_os_error());
        }
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
        let chosen = setsockopt(&socket, TcpCongestion, &control.into()).is_ok();
        assert!(
            !chosen || getsockopt(&socket, TcpCongestion).unwrap().to_string_lossy().starts_with(control)
        );
        chosen
    };
    place.run(choose).unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_user_without_privileges_may_choose_what_is_attached_in_a_namespace_too() {
    let _attachments = Attachments::lock();
    let (here, other) = (Namespace::current().unwrap(), namespace());
    for place in [&here, &other] {
        assert!(!nobody_chooses(place, "onramp_search"));
    }
    onramp("attach search").ok();
    for place in [&here, &other] {
        assert!(nobody_chooses(place, "onramp_search"));
    }
    onramp("detach search").ok();
    assert!(!nobody_chooses(&other, "onramp_search"));
}
