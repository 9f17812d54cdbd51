//! `onramp attach`: what it does, and everything that it refuses without leaving anything behind.

#[path = "cli_attach/base.rs"]
mod base;

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::thread;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use onramp_loader::abi::NAMESPACES_MAX;
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, Ran, host_state, inside, json, onramp, state};
use onramp_tests::crowd::open_as_many_files_as_allowed;
use onramp_tests::pinned::pin;
use onramp_tests::traffic::namespace;
use serde_json::Value;

#[test]
#[ignore = "in a guest: make test"]
fn attaching_registers_and_pins_and_says_how_to_undo_it() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let said = onramp("attach search --set threshold_pct=30").ok();
    assert!(said.names(&["onramp_search", "base cubic"]), "{said}");
    assert!(said.contains("onramp detach search"), "{said}");
    assert!(onramp_loader::kernel::registered().unwrap().contains(&"onramp_search".to_owned()));

    let status = json("status");
    let row = &status["algorithms"][0];
    let generation = row["generation"].as_str().unwrap();
    assert!(said.contains(&format!("generation {generation}\n")), "{said} {generation}");
    assert_eq!(row["parameter_sets"][0]["parameters"]["threshold_pct"], 30);
    let listed = json("list search");
    assert_eq!(
        (&listed["algorithms"][0]["attached"], &listed["algorithms"][0]["base"]),
        (&true.into(), &"cubic".into())
    );

    assert_eq!(
        onramp("detach search").ok(),
        "detached search\n  undo: onramp attach search --set threshold_pct=30\n"
    );
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn the_name_of_the_control_is_one_of_the_algorithm_wherever_a_name_goes() {
    let _attachments = Attachments::lock();
    let home = tempfile::tempdir().unwrap();
    let profile = home.path().join("short.toml");
    let geo = onramp("lab profile show geo").ok();
    let geo = geo[geo.find("version = ").unwrap()..].replace("name = \"geo\"", "name = \"short\"");
    let config = home.path().join("apply.toml");
    // Each of these is for the algorithm, whichever of its names is given, and does the same.
    let places = [
        "attach NAME --dry-run",
        "attach NAME --set threshold_pct=30",
        "list NAME",
        "status",
        "tune NAME threshold_pct=31",
        "select add --port 7000 --use NAME",
        "select test 203.0.113.9:7000 --connect",
        "select del --port 7000",
        "upgrade NAME",
        "shadow --algorithm NAME --set NAME.threshold_pct=30 --for 10ms",
        "shadow --algorithm NAME --for 10ms",
        "detach NAME",
        "apply --check --config APPLY",
        "run NAME --dry-run -- true",
        "attach --profile PROFILE --dry-run",
        "sim run NAME --bytes 1M --set NAME.threshold_pct=30",
        "sim compare --arms cubic,NAME:threshold_pct=30 --bytes 1M --repetitions 1",
    ];
    let [plain, control] = ["search", "onramp_search"].map(|name| {
        let text =
            format!("version = 1\n[attach.{name}]\n[[select]]\nto = \"203.0.113.0/24\"\nuse = \"{name}\"\n");
        fs::write(&config, text).unwrap();
        let written = geo.replace("algorithm = \"ramp\"", &format!("algorithm = \"{name}\""));
        fs::write(&profile, written.replace("[params.search]", &format!("[params.{name}]"))).unwrap();
        places.map(|place| {
            let call = place.replace("NAME", name);
            let call =
                call.replace("APPLY", config.to_str().unwrap()).replace("PROFILE", profile.to_str().unwrap());
            let ran = onramp(&call);
            // 1: there is something to do.
            let expected = if call.starts_with("apply") { 1 } else { 0 };
            assert_eq!(ran.code, Some(expected), "{call}: {ran:?}");
            // Times and numbers of generations are others each time.
            let digits =
                |text: String| text.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect::<String>();
            (place, digits(ran.stdout))
        })
    });
    assert_eq!(plain, control);
    for call in [
        "attach onramp_serach",
        "attach serach",
        "tune serach a=1",
        "shadow --algorithm serach",
        "sim run serach",
    ] {
        assert!(onramp(call).refused(2).contains("\"search\""), "{call}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_profile_gives_parameters_and_settings_come_on_top() {
    let _attachments = Attachments::lock();
    onramp("attach search --profile geo --set exit_action=rollback").ok();
    let set = &json("status")["algorithms"][0]["parameter_sets"][0];
    assert_eq!(set["profile"], "geo");
    assert_eq!(set["parameters"]["look_back"], "min");
    assert_eq!(set["parameters"]["exit_action"], "rollback");
}

#[test]
#[ignore = "in a guest: make test"]
fn without_a_name_it_is_the_profiles_algorithm_and_without_a_profile_ramp() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let said = onramp("attach").ok();
    assert!(said.names(&["onramp_ramp", "base cubic"]), "{said}");
    assert!(said.contains("onramp detach ramp"), "{said}");
    onramp("attach").refused(1);
    let said = onramp("attach --profile geo-tail-drop-25").ok();
    let named =
        json("lab profile show geo-tail-drop-25")["profile"]["algorithm"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("attached {named} as onramp_{named}")), "{said}");
    // A parameter is looked for where the algorithm was found.
    let refused = onramp("attach --set threshold_pct=30").refused(2);
    assert!(refused.names(&["ramp", "threshold_pct"]), "{refused}");
    onramp("detach ramp").ok();
    onramp(&format!("detach {named}")).ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_asked_for_wrongly_is_refused_with_the_reason_and_changes_nothing() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for (arguments, said) in [
        ("attach serach", "there is no algorithm \"serach\" (did you mean \"search\"?): choose one of"),
        ("attach search --set treshold_pct=3", "search has no parameter \"treshold_pct\""),
        ("attach search --set threshold_pct=101", "give 0..100 percent"),
        ("attach search --set threshold_pct=many", "give 0..100 percent"),
        ("attach search --set look_back=sideways", "give latest|smoothed|min"),
        ("attach search --set threshold_pct", "write name=value"),
        (
            "attach search --set threshold_pct=30 --set missed_bins_rtts=0",
            "missed_bins_rtts=0 is not allowed",
        ),
        ("attach search --profile nowhere", "there is no profile \"nowhere\""),
        ("attach search --profile ./nowhere.toml", "cannot read profile ./nowhere.toml"),
        ("attach plain --profile geo", "profile geo is for ramp and search, not for plain"),
    ] {
        let error = onramp(arguments).refused(2);
        assert!(error.contains(said), "{arguments}: {error}");
        assert_eq!(host_state(&[]), before, "{arguments}");
    }
    // What clap refuses is shown with its usage line.
    for arguments in ["attach search --for soon", "attach search --base vegas"] {
        let ran = onramp(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with("error: "), "{ran:?}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn attaching_twice_is_refused_and_the_first_stays() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --set exit_window_bytes=5000").ok();
    let before = (host_state(&[]), json("status")["algorithms"][0]["generation"].clone());
    for arguments in [
        "attach fixed",
        "attach fixed --default --observe",
        "attach fixed --default --set exit_window_bytes=6000",
        "attach fixed --dry-run",
    ] {
        assert!(onramp(arguments).refused(1).contains("fixed"));
    }
    assert_eq!((host_state(&[]), json("status")["algorithms"][0]["generation"].clone()), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_dry_run_changes_nothing() {
    let _attachments = Attachments::lock();
    let empty = host_state(&[]);
    let said = onramp("attach search --default --dry-run").ok();
    assert!(said.contains("onramp_search") && said.contains("onramp detach search"), "{said}");
    assert!(said.contains(&format!("would set {DEFAULT}=onramp_search")), "{said}");
    let planned = json("attach search --for 10m --dry-run");
    let limit = planned["actions"].as_array().unwrap().last().unwrap();
    assert_eq!(limit["undo"], "onramp confirm search", "{planned}");
    onramp("run search --dry-run -- false").ok();
    assert_eq!(onramp("detach --all --dry-run").ok(), "would do nothing\n");
    assert_eq!(host_state(&[]), empty);
    // A dry run refuses what the real one would.
    onramp("attach search --set missed_bins_rtts=0 --dry-run").refused(2);
    onramp("detach search --dry-run").refused(1);

    onramp("attach search").ok();
    let attached = (host_state(&[]), json("status")["algorithms"][0]["parameter_sets"].clone());
    assert!(onramp("tune search missed_bins_rtts=3 --dry-run").ok().contains("missed_bins_rtts: 2 -> 3"));
    assert!(onramp("detach search --dry-run").ok().contains("onramp_search"));
    assert!(onramp("run search --dry-run -- false").ok().contains("search"));
    let plan = json("detach --all --dry-run");
    assert_eq!(
        (&plan["dry_run"], &plan["actions"][0]["undo"]),
        (&true.into(), &"onramp attach search".into())
    );
    assert_eq!((host_state(&[]), json("status")["algorithms"][0]["parameter_sets"].clone()), attached);
}

#[test]
#[ignore = "in a guest: make test"]
fn without_privilege_every_verb_that_needs_it_says_so() {
    let _attachments = Attachments::lock();
    onramp("attach search").ok();
    let before = host_state(&[]);
    let as_nobody = |arguments: &str| -> Ran {
        cli::as_nobody("").args(arguments.split(' ')).current_dir("/").output().unwrap().into()
    };
    for arguments in [
        "attach plain",
        "attach plain --for 1s",
        "attach plain --dry-run",
        "confirm search",
        "detach search",
        "detach --all",
        "detach --all --dry-run",
        "status",
        "tune search",
        "tune search missed_bins_rtts=3",
        "run search -- true",
        "flows",
    ] {
        let error = as_nobody(arguments).refused(4);
        assert!(error.names(&["CAP_BPF", "CAP_PERFMON"]), "{arguments}: {error}");
    }
    let listed = as_nobody("list search").ok();
    assert!(listed.contains("onramp_search"), "{listed}");
    assert_eq!(as_nobody("doctor").code, Some(1));
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_kernel_without_type_information_is_refused_as_unsupported() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let without = |arguments: &str| -> Ran {
        let script =
            format!("mount -t tmpfs none /sys/kernel/btf && exec {} {arguments}", cli::binary().display());
        Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap().into()
    };
    for arguments in
        ["attach search", "attach search --default", "attach plain --for 1s", "run search -- true"]
    {
        let error = without(arguments).refused(3);
        assert!(error.contains("BTF") && error.contains("CONFIG_DEBUG_INFO_BTF=y"), "{error}");
    }
    assert_eq!(without("doctor").code, Some(1));
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn attaching_below_ip_netns_exec_outlives_the_command() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // What `ip netns exec` does: a mount namespace with a /sys of its own.
    let script = format!(
        "umount -l /sys && mount -t sysfs none /sys && exec {} attach fixed",
        cli::binary().display()
    );
    let said: Ran = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap().into();
    said.ok();
    assert_eq!(state("fixed").as_deref(), Some("attached"));
    onramp("detach fixed").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_default_is_taken_in_its_namespace_only_and_restored() {
    let _attachments = Attachments::lock();
    let (a, b) = (namespace(), namespace());
    a.sysctl_set(DEFAULT, "reno").unwrap();
    let (here, inherited) =
        (Namespace::current().unwrap().sysctl_get(DEFAULT).unwrap(), b.sysctl_get(DEFAULT).unwrap());
    let before = host_state(&[&a, &b]);
    assert!(inside(&a, "attach search --default").ok().names(&["onramp_search", "reno"]));
    assert!(inside(&b, "attach plain --default").ok().contains(&format!("onramp_plain (was {inherited})")));
    assert_eq!(a.sysctl_get(DEFAULT).unwrap(), "onramp_search");
    assert_eq!(b.sysctl_get(DEFAULT).unwrap(), "onramp_plain");
    assert_eq!(Namespace::current().unwrap().sysctl_get(DEFAULT).unwrap(), here);
    let status = json("status");
    for row in status["algorithms"].as_array().unwrap() {
        assert_eq!(row["default_in"].as_array().unwrap().len(), 1, "{row}");
    }

    let said = onramp("detach --all").ok();
    assert!(said.contains(": reno again") && said.contains(&format!(": {inherited} again")), "{said}");
    assert_eq!(host_state(&[&a, &b]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn namespaces_that_took_the_default_by_themselves_get_one_that_they_may_have() {
    let _attachments = Attachments::lock();
    let (recorded, copied) = (namespace(), namespace());
    let inherited = recorded.sysctl_get(DEFAULT).unwrap();
    inside(&recorded, "attach fixed --default").ok();
    // As in a namespace that was made while another's default was this.
    copied.sysctl_set(DEFAULT, "onramp_fixed").unwrap();
    onramp("detach fixed").ok();
    assert_eq!(copied.sysctl_get(DEFAULT).unwrap(), inherited);

    onramp("attach fixed").ok();
    copied.sysctl_set(DEFAULT, "onramp_fixed").unwrap();
    onramp("detach fixed").ok();
    let now = copied.sysctl_get(DEFAULT).unwrap();
    assert!(["cubic", "reno"].contains(&now.as_str()), "{now}");
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_attached_becomes_the_default_of_a_second_namespace_too() {
    let _attachments = Attachments::lock();
    let (a, b) = (namespace(), namespace());
    a.sysctl_set(DEFAULT, "reno").unwrap();
    let inherited = b.sysctl_get(DEFAULT).unwrap();
    let before = host_state(&[&a, &b]);
    inside(&a, "attach search --default --set missed_bins_rtts=3").ok();
    assert!(inside(&b, "attach search --default --dry-run").ok().contains("would set"));
    assert_eq!(b.sysctl_get(DEFAULT).unwrap(), inherited);
    // As it is, or as it is asked for, but not as something else.
    inside(&b, "attach search --default --set missed_bins_rtts=4").refused(1);
    let said = inside(&b, "attach search --default --set missed_bins_rtts=3").ok();
    assert!(said.contains(&format!("onramp_search (was {inherited})")), "{said}");
    assert!(said.contains(&format!("undo: sysctl -w {DEFAULT}={inherited}")), "{said}");
    assert!(inside(&b, "attach search --default").ok().contains("onramp_search"));
    assert_eq!(json("status")["algorithms"][0]["default_in"].as_array().unwrap().len(), 2);

    onramp("detach search").ok();
    assert_eq!(host_state(&[&a, &b]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn who_keeps_another_default_is_said_and_all_or_some_can_get_it_too() {
    let _attachments = Attachments::lock();
    let (one, other) = (namespace(), namespace());
    one.sysctl_set(DEFAULT, "reno").unwrap();
    other.sysctl_set(DEFAULT, "bbr").unwrap();
    let here = Namespace::current().unwrap();
    let places = [&one, &other];
    let default_of = |place: &Namespace| place.sysctl_get(DEFAULT).unwrap();
    let before = host_state(&places);
    let kept = |others: &Value| {
        let others = others.as_array().unwrap().iter();
        let mut names: Vec<_> =
            others.map(|one| one["congestion_control"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let report = json("attach plain --default");
    assert_eq!(kept(&report["other_namespaces"]), ["bbr", "reno"], "{report}");
    assert_eq!(report["defaults_elsewhere"], serde_json::json!([]), "{report}");
    let status = json("status");
    assert_eq!(kept(&status["algorithms"][0]["default_not_in"]), ["bbr", "reno"], "{status}");
    let elsewhere = || cli::row(&cli::doctor_of_root(), "defaults of other network namespaces");
    let row = elsewhere();
    assert_eq!(row["verdict"], "warning", "{row}");

    // One by its file, then all that are left.
    let at = format!("attach plain --default=/proc/{}/fd/{}", std::process::id(), one.as_fd().as_raw_fd());
    let report = json(&at);
    assert_eq!(kept(&report["defaults_elsewhere"]), ["reno"], "{report}");
    assert_eq!((default_of(&one), default_of(&other)), ("onramp_plain".into(), "bbr".into()));
    let planned = json("attach plain --default=all --dry-run");
    assert_eq!(planned["actions"].as_array().unwrap().len(), 1, "{planned}");
    let report = json("attach plain --default=all");
    assert_eq!(kept(&report["defaults_elsewhere"]), ["bbr"], "{report}");
    assert_eq!(kept(&report["other_namespaces"]), [""; 0], "{report}");
    assert_eq!(elsewhere()["verdict"], "ok");
    let undo = report["undo"].as_str().unwrap();
    assert!(Command::new("sh").args(["-c", undo]).status().unwrap().success(), "{undo}");
    assert_eq!((default_of(&one), default_of(&other)), ("onramp_plain".into(), "bbr".into()));
    onramp("detach plain").ok();
    assert_eq!(host_state(&places), before);

    // With the attachment, and what is no namespace changes nothing.
    for wrong in ["/proc/self/ns/mnt", "/no/such", "early"] {
        let ran = onramp(&format!("attach plain --default={wrong}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(host_state(&places), before, "{wrong}");
    }
    let report = json("attach plain --default=all");
    assert_eq!(kept(&report["defaults_elsewhere"]), ["bbr", "reno"], "{report}");
    assert_eq!(default_of(&here), "onramp_plain");
    onramp(report["undo"].as_str().unwrap().strip_prefix("onramp ").unwrap()).ok();
    assert_eq!(host_state(&places), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn records_of_namespaces_that_have_ended_make_room_for_new_ones() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    onramp("attach plain").ok();
    let records = MapHandle::from_pinned_path(pin("plain/defaults")).unwrap();
    let mut reno = [0; 16];
    reno[..4].copy_from_slice(b"reno");
    let fill = || {
        // Cookies that no namespace has; full when one more is refused.
        (1_u64 << 50..)
            .find(|cookie| records.update(&cookie.to_ne_bytes(), &reno, MapFlags::ANY).is_err())
            .unwrap()
    };
    assert_eq!(fill() - (1 << 50), NAMESPACES_MAX as u64);
    // Which of them have ended is not known without a look into every process.
    let mut unprivileged = cli::as_nobody("+bpf,+perfmon,+net_admin,+dac_override");
    let ran: Ran = unprivileged.args(["attach", "plain", "--default"]).output().unwrap().into();
    let error = ran.refused(1);
    assert!(error.contains("1024"), "{error}");
    assert_eq!(records.keys().count(), NAMESPACES_MAX);

    inside(&place, "attach plain --default").ok();
    assert_eq!(place.sysctl_get(DEFAULT).unwrap(), "onramp_plain");
    assert_eq!(records.keys().count(), 1);
    drop(records);
    onramp("detach plain").ok();
    assert_eq!(host_state(&[&place]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn of_one_namespace_more_than_there_are_records_the_last_keeps_its_default_and_is_named() {
    let _attachments = Attachments::lock();
    // An open file keeps a namespace.
    open_as_many_files_as_allowed();
    let places: Vec<_> = (0..NAMESPACES_MAX).map(|_| Namespace::create().unwrap()).collect();
    let here = Namespace::current().unwrap();
    let default = here.sysctl_get(DEFAULT).unwrap();
    let before = host_state(&[&here]);
    // A thread for each of so many takes longer than all else.
    let names = || -> Vec<String> {
        let name = |place: &Namespace| {
            place.enter().unwrap();
            fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap().trim_end().to_owned()
        };
        thread::scope(|scope| scope.spawn(|| places.iter().map(name).collect()).join().unwrap())
    };
    let kept = || names().iter().filter(|name| **name == default).count();
    assert_eq!(kept(), NAMESPACES_MAX);
    let ran = onramp("--json attach plain --default=all");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let others = report["other_namespaces"].as_array().unwrap();
    assert_eq!((ran.code, kept(), others.len()), (Some(5), 1, 1));
    // It was looked into, and there was no room.
    assert_eq!(report["unseen"], serde_json::json!([]));
    let [not_set] = &report["not_set"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!(not_set["namespace"], others[0]["namespace"]);
    assert!(not_set["reason"].as_str().unwrap().contains("1024"), "{report}");
    // By itself it is refused, and stays as it is.
    let last = &places[names().iter().position(|name| *name == default).unwrap()];
    assert!(inside(last, "attach plain --default").refused(1).contains("1024"));
    assert_eq!(kept(), 1);
    onramp("detach plain").ok();
    assert_eq!((kept(), host_state(&[&here])), (NAMESPACES_MAX, before));
}

#[test]
#[ignore = "in a guest: make test"]
fn defaults_on_top_of_each_other_come_off_in_any_order() {
    let _attachments = Attachments::lock();
    let all = ["plain", "fixed", "inflight"];
    // Every order, and the lowest once more on top: what it had replaced is below all of them still.
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 1, 0], [1, 0, 1]];
    let places = orders.map(|_| namespace());
    for place in &places {
        place.sysctl_set(DEFAULT, "reno").unwrap();
    }
    let watched = places.each_ref();
    let before = host_state(&watched);
    for algorithm in all {
        onramp(&format!("attach {algorithm}")).ok();
    }
    let mut stacks: Vec<(&Namespace, Vec<&str>)> = Vec::new();
    for (place, order) in places.iter().zip(orders) {
        for algorithm in order.map(|index| all[index]) {
            inside(place, &format!("attach {algorithm} --default")).ok();
        }
        stacks.push((place, order.map(|index| all[index]).into()));
    }
    for gone in ["", "plain", "fixed", "inflight"] {
        if !gone.is_empty() {
            onramp(&format!("detach {gone}")).ok();
        }
        for ((place, stack), order) in stacks.iter_mut().zip(orders) {
            stack.retain(|algorithm| *algorithm != gone);
            let expected = stack.last().map_or("reno".to_owned(), |top| format!("onramp_{top}"));
            assert_eq!(place.sysctl_get(DEFAULT).unwrap(), expected, "{gone:?} gone of {order:?}");
        }
    }
    assert_eq!(host_state(&watched), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn the_undo_of_a_detach_attaches_the_same_again() {
    let _attachments = Attachments::lock();
    let described = || {
        let mut status = json("status");
        for time in ["generation", "attached_at_us", "expires_at_us"] {
            status["algorithms"][0][time].take();
        }
        status["algorithms"][0].clone()
    };
    for options in
        ["--observe", "--profile geo --set missed_bins_rtts=3 --telemetry exit", "--base reno", "--for 10m"]
    {
        onramp(&format!("attach search {options}")).ok();
        let before = described();
        let undo = json("detach search")["detached"][0]["undo"].as_str().unwrap().to_owned();
        onramp(undo.strip_prefix("onramp ").unwrap()).ok();
        assert_eq!(described(), before, "{options}: {undo}");
        onramp("detach search").ok();
    }
}
