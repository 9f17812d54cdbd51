//! `onramp apply`: the kernel becomes what files say, and again, and nothing else is touched.

use std::ffi::CString;
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use onramp_loader::ROOT;
use onramp_loader::abi::{ABI_VERSION, Attachment};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, Ran, host_state, json, onramp, state};
use onramp_tests::pinned::{change, of_abi, pin};
use onramp_tests::traffic::{Transfer, namespace};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

const SEARCH: &str = "version = 1
[attach.search]
profile = 'geo'
default = true
telemetry = 'exit'
[attach.search.params]
exit_action = 'hold'
[attach.plain]
base = 'reno'
";
const RULES: &str = "version = 1
[[select]]
to = '203.0.113.0/24'
use = 'search'
initial_window = 20
[[select]]
port = 22
accept = true
use = 'cubic'
";

/// A network namespace whose default is reno, and a directory of files.
struct Host {
    place: Namespace,
    directory: TempDir,
}

impl Host {
    fn new() -> Self {
        let place = namespace();
        place.sysctl_set(DEFAULT, "reno").unwrap();
        Self { place, directory: tempdir().unwrap() }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn apply(&self, options: &str) -> Ran {
        cli::inside(&self.place, &format!("apply --config {} {options}", self.directory.path().display()))
    }

    /// The steps of an apply that did all of them.
    fn applied(&self) -> Vec<Value> {
        let report: Value = serde_json::from_str(&self.apply("--json").ok()).unwrap();
        let steps = report["steps"].as_array().unwrap().clone();
        assert!(steps.iter().all(|step| step["result"] == "done"), "{report}");
        steps
    }

    fn nothing_to_do(&self) {
        let said = self.apply("").ok();
        assert!(said.starts_with("nothing to do: "), "{said}");
        assert_eq!(self.apply("--check").ok(), "would do nothing\n");
    }

    fn default(&self) -> String {
        self.place.sysctl_get(DEFAULT).unwrap()
    }

    fn state(&self) -> Vec<String> {
        host_state(&[&self.place])
    }
}

/// An algorithm as `status` has it.
fn status(algorithm: &str) -> Value {
    cli::status(algorithm).unwrap_or_default()
}

fn rules() -> String {
    onramp("select list").ok()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_files_say_is_had_and_had_again_and_what_no_file_says_any_more_goes() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let before = host.state();
    host.write("10-attach.toml", SEARCH);
    host.write("20-rules.toml", RULES);
    let check = host.apply("--check");
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.names(&["search", "reno", "geo"]), "{check:?}");
    assert!(check.stdout.contains("--port 22 --accept --use cubic"), "{check:?}");
    assert_eq!(host.state(), before);

    // As after a reboot, nothing is there.
    let planned = check.stdout.lines().count();
    assert_eq!(host.applied().len(), planned);
    let search = status("search");
    assert_eq!(
        (&search["state"], &search["base"], &search["applied"]),
        (&json!("attached"), &json!("reno"), &json!(true))
    );
    let set = &search["parameter_sets"][0];
    assert_eq!((&set["profile"], &set["telemetry_max"]), (&json!("geo"), &json!("exit")));
    assert_eq!(
        (&set["parameters"]["exit_action"], &set["parameters"]["look_back"]),
        (&json!("hold"), &json!("min"))
    );
    assert_eq!(status("plain")["base"], "reno");
    assert_eq!(host.default(), "onramp_search");
    let both = "--to 203.0.113.0/24 --use search --initial-window 20\n--port 22 --accept --use cubic\n";
    assert_eq!(rules(), both);
    let generation = search["generation"].clone();
    host.nothing_to_do();
    assert_eq!(status("search")["generation"], generation);

    // What others have made stays, also where a file says the same for a while.
    onramp("attach fixed").ok();
    onramp("select add --port 23 --use reno").ok();
    onramp("select add --port 24 --use reno").ok();
    host.write("30-more.toml", "version = 1\n[attach.fixed]\n[[select]]\nport = 24\nuse = 'reno'\n");
    host.nothing_to_do();

    // Edited: parameters under flows, another base, another default, another rule.
    let tuned = SEARCH
        .replace("'hold'", "'drain'")
        .replace("default = true\n", "")
        .replace("telemetry = 'exit'\n", "");
    let edited = tuned.replace("base = 'reno'", "base = 'cubic'\ndefault = true");
    host.write("10-attach.toml", &edited);
    host.write("20-rules.toml", &RULES.replace("= 20", "= 30").replace("port = 22", "port = 25"));
    let steps = host.applied();
    let whats: Vec<_> = steps.iter().map(|step| step["what"].as_str().unwrap()).collect();
    for what in [
        "restore this network namespace's previous default reno (now onramp_search)",
        "upgrade plain (base reno) to the code of this onramp, base cubic",
        "tune search --telemetry ack exit_action=drain",
        "remove rule --port 22 --accept --use cubic",
        "add rule --port 25 --accept --use cubic",
    ] {
        assert!(whats.contains(&what), "{what}: {whats:?}");
    }
    assert!(whats.iter().any(|what| what.starts_with("replace rule --to 203.0.113.0/24")), "{whats:?}");
    assert_eq!(status("search")["generation"], generation);
    assert_eq!(status("search")["parameter_sets"][0]["parameters"]["exit_action"], "drain");
    assert_eq!((status("plain")["base"].as_str(), host.default()), (Some("cubic"), "onramp_plain".into()));
    host.nothing_to_do();

    // A file goes, and what it alone had asked for.
    for file in ["10-attach.toml", "20-rules.toml", "30-more.toml"] {
        fs::remove_file(host.directory.path().join(file)).unwrap();
    }
    host.applied();
    assert_eq!((state("search"), state("plain")), (None, None));
    assert_eq!(state("fixed").as_deref(), Some("attached"));
    assert_eq!(rules(), "--port 23 --use reno\n--port 24 --use reno\n");
    assert_eq!(host.default(), "reno");
    host.nothing_to_do();
    onramp("detach --all").ok();
    assert_eq!(host.state(), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn the_printed_undos_in_reverse_order_restore_what_was() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let described = || {
        // A mark without its rule says nothing; it goes with the rules.
        let state: Vec<_> =
            host.state().into_iter().filter(|one| !one.ends_with("/select/applied")).collect();
        let parameters = status("search")["parameter_sets"].clone();
        let base = status("plain")["base"].clone();
        (state, rules(), parameters[0]["parameters"].clone(), base)
    };
    onramp("attach search --set threshold_pct=30").ok();
    onramp("attach plain --base reno").ok();
    onramp("select add --to 203.0.113.0/24 --use plain").ok();
    let before = described();
    host.write("a.toml", &SEARCH.replace("base = 'reno'", "base = 'cubic'"));
    host.write("b.toml", RULES);
    let steps = host.applied();
    assert!(steps.len() >= 5, "{steps:?}");
    assert_ne!(described(), before);
    for step in steps.iter().rev() {
        for undo in step["undo"].as_str().unwrap().split("; ") {
            let done = match undo.strip_prefix("onramp ") {
                Some(arguments) => cli::inside(&host.place, arguments).code == Some(0),
                None => {
                    let (name, value) = undo.strip_prefix("sysctl -w ").unwrap().split_once('=').unwrap();
                    host.place.sysctl_set(name, value).is_ok()
                }
            };
            assert!(done, "{undo}");
        }
    }
    assert_eq!(described(), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_wrong_in_any_file_changes_nothing() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let before = host.state();
    host.write("a.toml", SEARCH);
    host.write("b.toml", &RULES.replace("accept", "accepted"));
    for check in ["", "--check"] {
        let error = host.apply(check).refused(2);
        assert!(error.names(&["b.toml line 8", "`accepted`"]), "{error}");
    }
    // Files that are right alone, and not together.
    host.write("b.toml", "version = 1\n[attach.ramp]\ndefault = true\n");
    let error = host.apply("").refused(2);
    assert!(error.names(&["b.toml line 2", "ramp", "search"]), "{error}");
    assert_eq!(host.state(), before);
    let error = onramp("apply --config /nonexistent").refused(2);
    assert!(error.contains("/nonexistent"), "{error}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_step_that_fails_is_named_with_what_was_done_and_what_was_not() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    host.write("a.toml", "version = 1\n[attach.best]\n");
    host.applied();
    host.write("a.toml", "version = 1\n[attach.fixed]\n[[select]]\nport = 22\nuse = 'fixed'\n");
    // Where rules are pinned others may write, so that no rule is made.
    let select = Path::new(ROOT).join("select");
    fs::create_dir(&select).unwrap();
    fs::set_permissions(&select, fs::Permissions::from_mode(0o777)).unwrap();
    let ran = host.apply("--json");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let results: Vec<_> =
        report["steps"].as_array().unwrap().iter().map(|step| step["result"].clone()).collect();
    assert_eq!(results, ["done", "failed", "not_done"], "{report}");
    assert!(report["error"].as_str().unwrap().contains("others may write to it"), "{report}");
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("others may write to it"), "{ran:?}");
    assert_eq!((state("fixed"), state("best")), (Some("attached".into()), Some("attached".into())));
    // Applied again it goes on where it stopped.
    fs::set_permissions(&select, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(host.applied().len(), 2);
    assert_eq!((state("best"), rules()), (None, "--port 22 --use fixed\n".into()));
    host.nothing_to_do();
}

#[test]
#[ignore = "in a guest: make test"]
fn what_interrupted_commands_and_others_left_is_made_as_files_say() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    host.write("a.toml", "version = 1\n[attach.plain]\n[attach.search]\n[attach.fixed]\n[[select]]\nport = 22\nuse = 'plain'\n");
    host.write("b.toml", "version = 1\n[attach.best]\n");
    host.applied();
    fs::remove_file(host.directory.path().join("b.toml")).unwrap();
    // Half attached, one of which no file names any more; rules that are not asked, one that would go by itself.
    for algorithm in ["plain", "best"] {
        fs::remove_file(Path::new(ROOT).join(algorithm).join("params")).unwrap();
    }
    fs::remove_file(Path::new(ROOT).join("select/link")).unwrap();
    onramp("detach search").ok();
    onramp("attach search --observe").ok();
    onramp("detach fixed").ok();
    onramp("attach fixed --for 2h").ok();
    host.applied();
    for algorithm in ["plain", "search", "fixed"] {
        assert_eq!(state(algorithm).as_deref(), Some("attached"), "{algorithm}");
    }
    assert_eq!(state("best"), None);
    assert_eq!(status("search")["observe"], false);
    assert!(status("fixed")["expires_at_us"].is_null());
    assert_eq!(json("status")["selection"]["active"], true);
    host.nothing_to_do();
}

#[test]
#[ignore = "in a guest: make test"]
fn the_options_of_a_base_become_what_a_file_says() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    for (written, options) in
        [("", vec![]), ("after_exit = 'floor'", vec!["floor"]), ("after_exit = 'none'", vec![])]
    {
        host.write("a.toml", &format!("version = 1\n[attach.plain]\nbase = 'cubic'\n{written}\n"));
        if written.ends_with("'none'") || written.ends_with("'floor'") {
            assert_eq!(host.applied().len(), 1, "{written}");
        } else {
            host.applied();
        }
        assert_eq!(status("plain")["after_exit"], serde_json::json!(options), "{written}");
        host.nothing_to_do();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_another_build_or_another_base_has_is_upgraded_under_its_flows() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let before = host.state();
    let wanted = |parameters: &str, base: &str| {
        let text = format!("version = 1\n[attach.search]\ndefault = true\nbase = '{base}'\n{parameters}");
        host.write("a.toml", &text);
    };
    wanted("", "reno");
    host.applied();
    let transfer = Transfer::start(&host.place, 1_000_000);
    of_abi("search", ABI_VERSION + 1);
    assert_eq!(state("search").as_deref(), Some("other_build"));
    wanted("params = { missed_bins_rtts = 7 }\n", "reno");
    let said: Vec<_> = host.applied().iter().map(|step| step["what"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        said,
        [
            "upgrade search (another onramp) to the code of this onramp, base reno",
            "tune search missed_bins_rtts=7"
        ]
    );
    assert_eq!(status("search")["parameter_sets"][0]["parameters"]["missed_bins_rtts"], 7);
    assert!(transfer.goes_on());
    host.nothing_to_do();

    // Another base is newer code, too.
    wanted("params = { missed_bins_rtts = 7 }\n", "cubic");
    host.applied();
    assert_eq!(
        (status("search")["base"].as_str(), host.default().as_str()),
        (Some("cubic"), "onramp_search")
    );
    assert!(transfer.goes_on());
    host.nothing_to_do();
    // What cannot be taken over is attached anew.
    change("search/attachment", |value| value[offset_of!(Attachment, tables_crc32)] ^= 1);
    fs::remove_file(pin("search/tables")).unwrap();
    let steps = host.applied();
    assert!(steps[0]["what"].as_str().unwrap().starts_with("detach search (another onramp"), "{steps:?}");
    assert!(transfer.goes_on());
    drop(transfer);
    fs::remove_file(host.directory.path().join("a.toml")).unwrap();
    host.applied();
    assert_eq!(host.state(), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn with_the_capabilities_of_the_unit_all_of_it_works_in_a_mount_namespace_of_its_own() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let before = host.state();
    let unit = include_str!("../../packaging/systemd/onramp-apply.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let names = line.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase());
    let bounding = names.fold("-all".to_owned(), |set, name| format!("{set},+{name}"));
    let apply = || -> Ran {
        let mut command = host.place.command("unshare");
        command.args(["--mount", "--propagation", "slave", "setpriv", "--no-new-privs", "--bounding-set"]);
        command.arg(&bounding).arg(cli::binary()).args(["apply", "--config"]).arg(host.directory.path());
        command.output().unwrap().into()
    };
    host.write("a.toml", SEARCH);
    host.write("b.toml", RULES);
    let ran = apply();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!((host.default().as_str(), rules().lines().count()), ("onramp_search", 2));
    host.write("a.toml", &SEARCH.replace("base = 'reno'", "base = 'cubic'"));
    assert_eq!(apply().code, Some(0));
    for file in ["a.toml", "b.toml"] {
        fs::remove_file(host.directory.path().join(file)).unwrap();
    }
    let ran = apply();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(host.state(), before);
}

/// Lets user 1000 write to a file by its access control list; false: its file system has none.
fn let_write(path: &Path) -> bool {
    // Version 2 of linux/posix_acl_xattr.h: owner, user 1000, group, mask, others.
    let entries =
        [(1_u16, 6_u16, u32::MAX), (2, 6, 1_000), (4, 4, u32::MAX), (16, 6, u32::MAX), (32, 4, u32::MAX)];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        acl.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        acl.extend(id.to_le_bytes());
    }
    let (path, name) = (CString::new(path.as_os_str().as_bytes()).unwrap(), c"system.posix_acl_access");
    // SAFETY: two strings that end with NUL, and as many bytes as are said.
    unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), acl.as_ptr().cast(), acl.len(), 0) == 0 }
}

#[test]
#[ignore = "in a guest: make test"]
fn files_that_others_may_write_are_refused_and_nothing_is_attached() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let before = host.state();
    let directory = host.directory.path();
    let file = directory.join("a.toml");
    host.write("a.toml", "version = 1\n[attach.plain]\n");
    let set = |path: &Path, owner: u32, mode: u32| {
        chown(path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let asked = |config: &Path| {
        let config = config.display();
        ["--check", ""].map(|options| cli::inside(&host.place, &format!("apply --config {config} {options}")))
    };
    let refused = |named: &Path| {
        for ran in asked(directory).into_iter().chain(asked(&file)) {
            let error = ran.refused(2);
            assert!(
                error.contains("not to be trusted") && error.contains(named.to_str().unwrap()),
                "{error}"
            );
        }
        assert_eq!(host.state(), before);
    };
    for (owner, mode, directory_owner, directory_mode, named) in [
        (1_000, 0o644, 0, 0o755, &file),
        (0, 0o664, 0, 0o755, &file),
        (0, 0o646, 0, 0o700, &file),
        (1_000, 0o666, 0, 0o777, &directory.to_owned()),
        (0, 0o644, 1_000, 0o755, &directory.to_owned()),
        (0, 0o600, 0, 0o770, &directory.to_owned()),
    ] {
        set(&file, owner, mode);
        set(directory, directory_owner, directory_mode);
        refused(named);
    }
    set(&file, 0, 0o644);
    set(directory, 0, 0o755);
    if let_write(&file) {
        refused(&file);
        set(&file, 0, 0o644);
    }

    // What a file names is as much what is done: a profile, and the one that it is like.
    let profile = directory.join("mine.profile");
    fs::write(&profile, "").unwrap();
    host.write("a.toml", &format!("version = 1\n[attach.ramp]\nprofile = '{}'\n", profile.display()));
    set(&profile, 0, 0o666);
    refused(&profile);
    fs::remove_file(&profile).unwrap();

    // Links are followed, as those of a ConfigMap, to what is looked at likewise.
    let target = directory.join("..2026");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("a.toml"), "version = 1\n[attach.plain]\n").unwrap();
    fs::remove_file(&file).unwrap();
    symlink("..2026", directory.join("..data")).unwrap();
    symlink("..data/a.toml", &file).unwrap();
    set(&target.join("a.toml"), 1_000, 0o644);
    refused(&target.join("a.toml"));
    set(&target.join("a.toml"), 0, 0o644);
    set(&target, 0, 0o777);
    refused(&target);
    set(&target, 0, 0o755);
    assert_eq!(host.applied().len(), 1);
    assert_eq!(status("plain")["state"], "attached");
    onramp("detach plain").ok();
    assert_eq!(host.state(), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn rules_that_start_from_a_known_path_are_refused_over_bbr_before_anything_is_attached() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    let with = |attach: &str| {
        let rule = "[[select]]\nport = 7\nuse = 'ramp'\nresume = '50mbit,600ms'\n";
        host.write("a.toml", &format!("version = 1\n[attach.ramp]\n{attach}\n{rule}"));
    };
    let refused = || {
        let before = (host.state(), rules());
        for check in ["--check", ""] {
            let error = host.apply(check).refused(2);
            assert!(error.names(&["a.toml line 4", "resume", "bbr"]), "{error}");
            assert_eq!((host.state(), rules()), before, "{check}");
        }
    };
    host.place.sysctl_set(DEFAULT, "bbr").unwrap();
    // No file names a base: it is what the namespace has.
    with("");
    refused();
    with("base = 'bbr'");
    refused();
    // And of what is attached already, the one that it has.
    cli::inside(&host.place, "attach ramp").ok();
    with("");
    refused();
    with("observe = true");
    refused();
    with("base = 'cubic'");
    assert_eq!(host.applied().len(), 2);
    with("");
    host.nothing_to_do();
    assert_eq!((status("ramp")["base"].clone(), rules().lines().count()), ("cubic".into(), 1));
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_no_regular_file_is_named_at_once_by_every_verb_that_reads_one() {
    let _attachments = Attachments::lock();
    let host = Host::new();
    onramp("attach plain").ok();
    let at = |name: &str| host.directory.path().join(name);
    mkfifo(&at("a.toml"), Mode::from_bits_retain(0o666)).unwrap();
    // Not among the files of the directory.
    mkfifo(&at("fifo"), Mode::from_bits_retain(0o666)).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink(at("fifo"), at("link")).unwrap();
    chown(at("link"), Some(1_000), None).unwrap();
    chown(at("fifo"), Some(1_000), Some(1_000)).unwrap();
    for path in ["a.toml", "fifo", "socket"] {
        fs::set_permissions(at(path), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let named = |arguments: &str, what: &str| {
        let ran: Ran = Command::new("timeout")
            .arg("20")
            .arg(cli::binary())
            .args(arguments.split(' '))
            .output()
            .unwrap()
            .into();
        assert!(matches!(ran.code, Some(1 | 2)), "{arguments}: {ran:?}");
        // To check profiles is to print what is wrong with them.
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(what), "{arguments}: {ran:?}");
        assert!(!said.contains("chmod") && !said.contains("chown"), "{arguments}: {ran:?}");
    };
    named(&format!("apply --config {}", host.directory.path().display()), "it is a FIFO");
    for (path, what) in [
        (at("a.toml"), "it is a FIFO"),
        (at("fifo"), "it is a FIFO"),
        (at("link"), "it is a FIFO"),
        (at("socket"), "it is a socket"),
        ("/dev/null".into(), "it is a device"),
        ("/dev/zero".into(), "it is a device"),
        (host.directory.path().into(), "it is a directory"),
    ] {
        let is_directory = path.is_dir();
        let path = path.display();
        let files = [
            format!("attach --profile {path}"),
            format!("doctor --profile {path}"),
            format!("lab profile check {path}"),
            format!("select load {path}"),
            format!("select add --port 7 --use plain --profile {path}"),
            format!("paths import {path}"),
            format!("sim compare --profile {path}"),
            format!("sim sweep --population {path}"),
            format!("serve --read-token-file {path}"),
            format!("serve --listen 127.0.0.1:0 --tls-cert {path} --tls-key {path}"),
        ];
        for arguments in &files {
            named(arguments, what);
        }
        // Directories are recordings, results and what `apply` reads.
        let either = [
            format!("apply --config {path}"),
            format!("apply --check --config {path}"),
            format!("replay {path} --algorithm ramp"),
            format!("lab qlog {path}"),
            format!("sim path {path}"),
            format!("lab verify {path}"),
        ];
        for arguments in either.iter().filter(|_| !is_directory) {
            named(arguments, what);
        }
    }
}
