//! `onramp detach` under open sockets.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, getsockopt, setsockopt, socket,
    sockopt::TcpCongestion,
};
use onramp_net::Namespace;
use onramp_tests::cli::{DEFAULT, Names, host_state, json, onramp, state, status};
use onramp_tests::connection::Connection;
use onramp_tests::traffic::{Transfer, eventually, namespace};
use onramp_tests::wire::{FAR, Fate, NEAR, Wire};
use onramp_tests::{Attachments, cli, guest, skip};

/// Attaches an algorithm from inside a namespace, as its default.
fn attach_as_default(inside: &Namespace, algorithm: &str) {
    let status = inside.command(cli::binary()).args(["attach", algorithm, "--default", "-q"]).status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "in a guest: make test"]
fn open_sockets_are_moved_and_go_on_transferring() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&inside]);
    attach_as_default(&inside, "plain");
    let transfers: Vec<_> = (0..5).map(|_| Transfer::start(&inside, 1_000_000)).collect();
    let sockets = json("status")["algorithms"][0]["sockets"].clone();
    // Both ends of each, and the listeners have gone.
    assert_eq!(sockets[0]["sockets"], 10, "{sockets}");

    let report = json("detach plain");
    let row = &report["detached"][0];
    assert_eq!(row["sockets_moved"], 10, "{report}");
    assert_eq!(row["stragglers"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(row["defaults_restored"][0]["congestion_control"], "reno", "{report}");
    assert_eq!(host_state(&[&inside]), before);
    let undo = row["undo"].as_str().unwrap();
    assert!(undo.starts_with("onramp attach plain --base reno --default=/proc/"), "{undo}");
    for transfer in &transfers {
        assert!(transfer.goes_on());
    }
    let controls = inside.command("ss").args(["-tinH"]).output().unwrap();
    let controls = String::from_utf8(controls.stdout).unwrap();
    assert_eq!(controls.matches(" reno ").count(), 10, "{controls}");
}

#[test]
#[ignore = "in a guest: make test"]
fn sockets_that_are_left_are_said_to_run_detached_code() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    attach_as_default(&inside, "fixed");
    let transfer = Transfer::start(&inside, 1_000_000);
    let said = onramp("detach fixed --leave-sockets").ok();
    assert!(said.contains("2 sockets"), "{said}");
    assert_eq!(state("fixed").as_deref(), Some("lingering"));
    let flows = inside.command(cli::binary()).args(["flows", "--json"]).output().unwrap();
    let flows: serde_json::Value = serde_json::from_slice(&flows.stdout).unwrap();
    assert_eq!(flows["flows"][0]["state"], "detached_code", "{flows}");
    assert!(transfer.goes_on());

    // The name is free again, and old code does not hinder the new.
    onramp("attach fixed").ok();
    onramp("detach fixed --leave-sockets").ok();
    // What was left can still be moved.
    assert!(onramp("detach --all --dry-run").ok().contains("2 sockets"));
    assert_eq!(json("detach --all")["detached"][0]["sockets_moved"], 2);
    assert!(transfer.goes_on());
    drop(transfer);
    assert_eq!(host_state(&[&inside]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_lost_its_pins_by_other_means_is_explained_and_cleared() {
    let _attachments = Attachments::lock();
    if !guest::has_links() {
        // The control stays registered without its pins, and only a reboot ends it.
        return;
    }
    let inside = namespace();
    attach_as_default(&inside, "plain");
    let transfer = Transfer::start(&inside, 1_000_000);
    fs::remove_dir_all(onramp_loader::ROOT).unwrap();
    assert!(eventually(|| state("plain").as_deref() == Some("lingering")));
    assert_eq!(inside.sysctl_get(DEFAULT).unwrap(), "onramp_plain");

    let report = json("detach plain");
    assert_eq!(report["detached"][0]["sockets_moved"], 2, "{report}");
    let now = inside.sysctl_get(DEFAULT).unwrap();
    assert!(["cubic", "reno"].contains(&now.as_str()), "{now}");
    assert!(transfer.goes_on());
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_not_attached_is_refused_and_all_of_nothing_is_success() {
    let _attachments = Attachments::lock();
    assert!(onramp("detach search").refused(1).contains("search"));
    assert!(onramp("detach nonsense").refused(2).contains("there is no algorithm"));
    assert_eq!(onramp("detach --all").ok(), "nothing is attached\n");
    assert_eq!(json("detach --all")["detached"].as_array().unwrap().len(), 0);
    assert_eq!(onramp("detach").code, Some(2));
    assert_eq!(onramp("detach search --all").code, Some(2));
}

#[test]
#[ignore = "in a guest: make test"]
fn all_detaches_every_one() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for algorithm in ["plain", "fixed", "search"] {
        onramp(&format!("attach {algorithm}")).ok();
    }
    let report = json("detach --all");
    assert_eq!(report["detached"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_socket_that_chose_it_by_name_is_moved_to_the_default_too() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    onramp("attach plain").ok();
    let socket = inside.run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    setsockopt(&socket, TcpCongestion, &"onramp_plain".into()).unwrap();
    assert_eq!(json("detach plain")["detached"][0]["sockets_moved"], 1);
    let default = inside.sysctl_get(DEFAULT).unwrap();
    let name = getsockopt(&socket, TcpCongestion).unwrap().to_string_lossy().into_owned();
    assert_eq!(name.trim_end_matches('\0'), default);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_socket_that_may_not_be_moved_is_reported_and_the_rest_is_done() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    onramp("attach fixed").ok();
    let wire = Wire::lay(Duration::from_millis(1), |_| Fate::Deliver);
    let routes = wire.near.command("ip").args(["route", "show", "192.0.2.0/24"]).output().unwrap();
    let routes = String::from_utf8(routes.stdout).unwrap();
    let route = routes.trim().split_once(" proto").map_or(routes.trim(), |(route, _)| route);
    let locked =
        format!("route replace {route} proto kernel scope link src {NEAR} congctl lock onramp_fixed");
    assert!(wire.near.command("ip").args(locked.split_whitespace()).status().unwrap().success(), "{locked}");
    let listener = wire.far.run(|| TcpListener::bind((FAR, 0)).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = wire.near.run(|| TcpStream::connect((FAR, port)).unwrap()).unwrap();

    let ran = onramp("detach fixed");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("1 socket"), "{ran:?}");
    assert_eq!(state("fixed").as_deref(), Some("lingering"));
    let again = onramp("--json detach --all");
    assert_eq!(again.code, Some(5), "{again:?}");
    drop(socket);
    assert!(eventually(|| state("fixed").is_none()));
    assert_eq!(host_state(&[]), before);
}

/// A socket of a namespace, neither connected nor listening.
fn unconnected(inside: &Namespace) -> OwnedFd {
    let made = inside.run(|| socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None));
    made.unwrap().unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_socket_that_no_list_shows_is_not_passed_over() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    for is_bound in [false, true] {
        attach_as_default(&inside, "plain");
        // From now on it has the code, which its later connection would run.
        let held = unconnected(&inside);
        if is_bound {
            bind(held.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        }
        let ran = onramp("--json detach plain");
        assert_eq!(ran.code, Some(5), "{ran:?}");
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let holders = &report["detached"][0]["held_by"];
        assert_eq!(holders.as_array().unwrap().len(), 1, "{report}");
        let holder = &holders[0];
        assert_eq!((&holder["state"], &holder["sockets"]), (&"UNCONN".into(), &1.into()), "{report}");
        assert_eq!((&holder["pid"], &holder["only_listens"]), (&std::process::id().into(), &false.into()));
        assert_eq!(report["detached"][0]["still_loaded"], 1, "{report}");
        assert_eq!(status("plain").unwrap()["held_by"], *holders, "bound: {is_bound}");
        assert_eq!(state("plain").as_deref(), Some("lingering"), "bound: {is_bound}");
        assert_eq!(onramp("detach plain").code, Some(5));
        drop(held);
        assert!(eventually(|| state("plain").is_none()), "bound: {is_bound}");
        assert_eq!(onramp("detach --all").ok(), "nothing is attached\n");
        assert_eq!(host_state(&[&inside]), before);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_listening_socket_of_mptcp_is_named_with_its_process() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    if inside.sysctl_get("net.mptcp.enabled").is_err() {
        skip("the kernel has no CONFIG_MPTCP");
        return;
    }
    let before = host_state(&[&inside]);
    // A second algorithm, so that what processes have open is looked for once for both.
    let listens = |algorithm: &str| {
        attach_as_default(&inside, algorithm);
        let connection = Connection { mptcp: true, ..Connection::default() };
        inside.run(move || connection.listen(([127, 0, 0, 1], 0).into())).unwrap()
    };
    let (one, other) = (listens("plain"), listens("fixed"));
    let report = json("detach --all");
    let rows = report["detached"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{report}");
    for row in rows {
        let algorithm = row["algorithm"].as_str().unwrap();
        let holders = row["held_by"].as_array().unwrap();
        assert_eq!(holders.len(), 1, "{report}");
        let named = (&holders[0]["state"], &holders[0]["only_listens"], &holders[0]["pid"]);
        assert_eq!(named, (&"LISTEN".into(), &true.into(), &std::process::id().into()), "{report}");
        assert_eq!(status(algorithm).unwrap()["held_by"], row["held_by"]);
    }
    drop((one, other));
    assert!(eventually(|| state("plain").is_none() && state("fixed").is_none()));
    assert_eq!(host_state(&[&inside]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn sockets_in_every_state_are_named_with_their_number_and_moved() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    let before = host_state(&[&inside]);
    attach_as_default(&inside, "plain");
    let listener = inside.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let pair = || {
        let near = inside.run(move || TcpStream::connect(address)).unwrap().unwrap();
        (near, listener.accept().unwrap().0)
    };
    let (closing, ended, last, left, open) = (pair(), pair(), pair(), pair(), pair());
    // Its end at the near side has no code of any control once the far side has closed, too.
    drop(ended.0);
    drop(ended.1);
    left.1.shutdown(Shutdown::Write).unwrap();
    last.1.shutdown(Shutdown::Write).unwrap();
    // Nothing is left to come in where nobody accepts: the next SYN is dropped.
    let full = inside.run(|| Connection::default().listen_for(0, ([127, 0, 0, 1], 0).into())).unwrap();
    let address = full.local_addr().unwrap();
    let _waiting = inside.run(move || TcpStream::connect(address)).unwrap().unwrap();
    let unanswered = unconnected(&inside);
    fcntl(&unanswered, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let to = SockaddrIn::from(match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => unreachable!(),
    });
    assert_eq!(connect(unanswered.as_raw_fd(), &to), Err(Errno::EINPROGRESS));
    // Where a FIN is acknowledged late.
    let acknowledged = || {
        let ss = inside.command("ss").args(["-tanH", "state", "fin-wait-2"]).output().unwrap();
        String::from_utf8(ss.stdout).unwrap().lines().count() == 2
    };
    assert!(eventually(acknowledged));
    assert!(inside.command("ip").args(["link", "set", "lo", "down"]).status().unwrap().success());
    closing.0.shutdown(Shutdown::Write).unwrap();
    last.0.shutdown(Shutdown::Write).unwrap();

    let states = |held: &serde_json::Value| {
        let mut states = BTreeMap::new();
        for one in held.as_array().unwrap() {
            let state = one["state"].as_str().unwrap().to_owned();
            *states.entry(state).or_insert(0) += one["sockets"].as_u64().unwrap();
        }
        states
    };
    let report = json("detach plain --leave-sockets");
    let expected: BTreeMap<String, u64> = [
        // Both ends of the open one, the far end of what closes, and both of what waits to be accepted.
        ("ESTAB", 5),
        ("SYN-SENT", 1),
        ("FIN-WAIT-1", 1),
        ("FIN-WAIT-2", 2),
        ("CLOSE-WAIT", 1),
        ("LAST-ACK", 1),
        ("LISTEN", 2),
    ]
    .map(|(state, sockets)| (state.to_owned(), sockets))
    .into();
    assert_eq!(states(&report["detached"][0]["held_by"]), expected, "{report}");
    assert_eq!(states(&status("plain").unwrap()["held_by"]), expected);

    let report = json("detach plain");
    let row = &report["detached"][0];
    assert_eq!((&row["sockets_moved"], &row["stragglers"]), (&11.into(), &serde_json::json!([])), "{report}");
    assert_eq!(states(&row["held_by"]), [("LISTEN".to_owned(), 2)].into(), "{report}");
    drop((listener, full));
    assert!(eventually(|| state("plain").is_none()));
    drop((closing, last, left, open));
    assert_eq!(host_state(&[&inside]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn connections_that_the_kernel_is_ending_are_waited_for_while_other_commands_go_on() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for (orphan_retries, code) in [("2", 0), ("6", 5)] {
        let (ended, loaded) = (namespace(), cli::bpf_objects());
        ended.sysctl_set("net.ipv4.tcp_orphan_retries", orphan_retries).unwrap();
        attach_as_default(&ended, "plain");
        let listener = ended.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let mut near = ended.run(|| TcpStream::connect(address)).unwrap().unwrap();
        let far = listener.accept().unwrap().0;
        // What is sent from here on arrives nowhere, and both ends are in a namespace that only they hold.
        assert!(ended.command("ip").args(["link", "set", "lo", "down"]).status().unwrap().success());
        near.write_all(&[0; 1000]).unwrap();
        drop((near, far, listener, ended));
        let detach = thread::spawn(|| onramp("--json detach --all"));
        let gone = || !onramp_loader::kernel::registered().unwrap().contains(&"onramp_plain".to_owned());
        assert!(eventually(gone));
        // The holder of the lock would keep this command waiting.
        let lingering = state("plain");
        assert!(detach.is_finished() || lingering.as_deref() == Some("lingering"), "{lingering:?}");
        let ran = detach.join().unwrap();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["detached"][0]["still_loaded"], i32::from(code != 0), "{report}");
        assert_eq!(report["detached"][0]["held_by"], serde_json::json!([]), "{report}");
        // Less than a look at who holds what.
        assert!(eventually(|| cli::bpf_objects() == loaded));
        assert_eq!(state("plain"), None);
    }
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn where_nothing_is_attached_what_cannot_be_looked_into_is_no_reason_to_detach() {
    let _attachments = Attachments::lock();
    let bpffs = Path::new("/sys/fs/bpf");
    let mode = fs::metadata(bpffs).unwrap().permissions();
    fs::set_permissions(bpffs, fs::Permissions::from_mode(0o755)).unwrap();
    let ambient = |arguments: &str| -> cli::Ran {
        // Without CAP_DAC_OVERRIDE the descriptors of root's processes cannot be listed.
        let mut command = cli::as_nobody("+bpf,+perfmon,+net_admin,+sys_admin,+sys_ptrace");
        command.args(arguments.split(' ')).current_dir("/").output().unwrap().into()
    };
    let status: serde_json::Value = serde_json::from_str(&ambient("--json status").ok()).unwrap();
    assert_ne!(status["unseen"].as_array().unwrap().len(), 0, "{status}");
    let error = ambient("detach plain").refused(1);
    assert!(error.contains("plain"), "{error}");
    assert_eq!(ambient("detach --all").ok(), "nothing is attached\n");
    fs::set_permissions(bpffs, mode).unwrap();
}

#[test]
#[ignore = "in a guest: make test"]
fn directories_among_the_pins_go_with_them() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    onramp("attach plain").ok();
    fs::create_dir_all(Path::new(onramp_loader::ROOT).join("plain/odd/inner")).unwrap();
    assert_eq!(json("detach plain")["detached"][0]["still_loaded"], 0);
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn more_namespaces_than_descriptors_are_all_restored() {
    let _attachments = Attachments::lock();
    let all: Vec<_> = (0..30).map(|_| namespace()).collect();
    let watched: Vec<&Namespace> = all.iter().collect();
    let before = host_state(&watched);
    attach_as_default(&all[0], "plain");
    for one in &all {
        one.sysctl_set(DEFAULT, "onramp_plain").unwrap();
    }
    let detach =
        Command::new("prlimit").arg("--nofile=20").arg(cli::binary()).args(["detach", "plain"]).output();
    let ran: cli::Ran = detach.unwrap().into();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout.matches(" again").count(), 30, "{ran:?}");
    assert_eq!(host_state(&watched), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn without_a_look_into_every_namespace_nothing_is_detached() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    attach_as_default(&inside, "plain");
    let before = host_state(&[&inside]);
    let ambient = |capabilities: &str, arguments: &str| -> cli::Ran {
        cli::as_nobody(capabilities).args(arguments.split(' ')).current_dir("/").output().unwrap().into()
    };
    let few = "+bpf,+perfmon,+dac_override";
    for arguments in ["detach plain", "detach --all", "detach plain --dry-run"] {
        let error = ambient(few, arguments).refused(4);
        assert!(error.names(&["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]), "{arguments}: {error}");
        assert_eq!(host_state(&[&inside]), before, "{arguments}");
    }
    // What may only be looked at says where it could not look.
    let status: serde_json::Value = serde_json::from_str(&ambient(few, "--json status").ok()).unwrap();
    assert_ne!(status["unseen"].as_array().unwrap().len(), 0, "{status}");
    ambient("+bpf,+perfmon,+dac_override,+net_admin,+sys_admin,+sys_ptrace", "detach plain").ok();
    assert_eq!(state("plain"), None);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_default_that_is_taken_while_it_is_detached_is_restored_too() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&inside]);
    attach_as_default(&inside, "plain");
    let taken = inside.clone();
    // Again and again, until the name is gone; whether it was restored and taken again meanwhile.
    let taker = thread::spawn(move || {
        let mut again = false;
        loop {
            let restored = taken.sysctl_get(DEFAULT).unwrap() == "reno";
            if taken.sysctl_set(DEFAULT, "onramp_plain").is_err() {
                return again;
            }
            again |= restored;
            thread::yield_now();
        }
    });
    let report = json("detach plain");
    let again = taker.join().unwrap();
    let restored = report["detached"][0]["defaults_restored"].as_array().unwrap().len();
    assert!(restored > usize::from(again), "{report}");
    assert_eq!(host_state(&[&inside]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_default_was_that_cannot_be_restored_is_not_forgotten() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "bbr").unwrap();
    let before = host_state(&[&place]);
    cli::inside(&place, "attach plain --default").ok();
    // As it is where /proc/sys may only be read.
    let script =
        "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec $0 detach plain";
    let detach =
        Command::new("unshare").args(["--mount", "sh", "-c", script]).arg(cli::binary()).output().unwrap();
    let detach = cli::Ran::from(detach);
    assert_eq!(detach.code, Some(5), "{detach:?}");
    assert!(detach.stdout.contains("tcp_congestion_control"), "{detach:?}");
    assert_eq!(place.sysctl_get(DEFAULT).unwrap(), "onramp_plain");
    assert_eq!(state("plain").as_deref(), Some("lingering"));
    let said = onramp("detach plain").ok();
    assert!(said.contains("bbr"), "{said}");
    assert_eq!(host_state(&[&place]), before);
}
