//! `onramp select add --profile`: several profiles of one algorithm at once, each for its own connections.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use onramp_loader::abi::ExitRecord;
use onramp_loader::algorithm;
use onramp_loader::telemetry::{Level, What};
use onramp_loader::{ExitReason, Phase, ROOT};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{Names, Ran, host_state, inside, json, onramp, status};
use onramp_tests::faults::Traced;
use onramp_tests::recorder::Recorder;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{FAR, Fate, Wire};
use serde_json::Value;
use tempfile::TempDir;

/// Addresses of the far end, by the prefixes that rules name.
const NEAR_BY: &str = "198.51.100.1";
const DISTANT: &str = "203.0.113.1";
/// Windows at which slow start ends, bytes: by the attachment, and by two profiles.
const OWN: u64 = 20_000;
const SHORT: u64 = 60_000;
const LONG: u64 = 140_000;
/// What one of them is tuned to.
const TUNED: u64 = 300_000;

/// Profiles of `fixed`, whose window at the exit shows which one a flow has, and others that are wrong for it.
struct Profiles(TempDir);

impl Profiles {
    fn write() -> Self {
        let profiles = Self(tempfile::tempdir().unwrap());
        profiles.put("short", "fixed", &format!("exit_window_bytes = {SHORT}"));
        profiles.put("long", "fixed", &format!("exit_window_bytes = {LONG}"));
        profiles.put("other", "plain", "");
        profiles
    }

    fn put(&self, name: &str, algorithm: &str, parameters: &str) {
        let text = format!(
            "version = 1\nname = '{name}'\nabout = 'a test'\nalgorithm = '{algorithm}'\n[params]\n{parameters}\n\
             [link.forward]\nrate_bps = 10_000_000\ndelay_us = 10_000\nqueue_bytes = 100_000\n\
             [link.return]\nrate_bps = 10_000_000\ndelay_us = 10_000\nqueue_bytes = 100_000\n\
             [host]\ntcp_rmem = [4_096, 131_072, 6_291_456]\ntcp_wmem = [4_096, 16_384, 4_194_304]\n"
        );
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.toml"))
    }

    /// Adds a rule with one of them.
    fn add(&self, rule: &str, name: &str) -> Ran {
        onramp(&format!("select add {rule} --use fixed --profile {}", self.path(name).display()))
    }

    /// `fixed` attached, and a rule for each prefix.
    fn attach(&self) {
        onramp(&format!("attach fixed --set exit_window_bytes={OWN}")).ok();
        onramp(&format!("select add --to {FAR} --use fixed")).ok();
        self.add("--to 198.51.100.0/24", "short").ok();
        self.add("--to 203.0.113.0/24", "long").ok();
    }
}

/// A wire whose far end has addresses in both prefixes.
fn wire() -> Wire {
    let wire = Wire::lay(Duration::from_millis(20), |_| Fate::Deliver);
    for address in [NEAR_BY, DISTANT] {
        let far = format!("address add {address}/32 dev lo");
        let near = format!("route add {address}/32 via {FAR}");
        for (place, words) in [(&wire.far, far), (&wire.near, near)] {
            assert!(place.command("ip").args(words.split(' ')).status().unwrap().success(), "{words}");
        }
    }
    wire
}

/// A connection from the near end, under what rules give it.
struct Connection<'a> {
    near: &'a Namespace,
    stream: TcpStream,
}

impl<'a> Connection<'a> {
    fn to(wire: &'a Wire, address: &str) -> Self {
        let listener = wire.far.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
        let to = listener.local_addr().unwrap();
        thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut buffer = vec![0; 1 << 16];
            while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
        });
        let stream = wire.near.run(|| TcpStream::connect(to).unwrap()).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { near: &wire.near, stream }
    }

    fn send(&mut self, bytes: usize) {
        self.stream.write_all(&vec![0; bytes]).unwrap();
    }

    /// Sends more than an initial window, and has a profile then.
    fn send_more(mut self) -> Self {
        self.send(20_000);
        assert!(eventually(|| self.profile().is_some()));
        self
    }

    fn flow(&self) -> onramp_loader::Flow {
        let local = self.stream.local_addr().unwrap();
        let listed = self.near.run(|| onramp_loader::flows(|socket| socket.local == local));
        listed.unwrap().unwrap().into_iter().next().expect("the flow is listed")
    }

    fn profile(&self) -> Option<String> {
        self.flow().profile
    }

    /// Sends until slow start ends, and returns how.
    fn leave(&mut self) -> ExitRecord {
        self.send(1_500_000);
        let mut phase = self.flow().phase();
        eventually(|| {
            phase = self.flow().phase();
            matches!(phase, Phase::Left(..))
        });
        let Phase::Left(ExitReason::Algorithm, record) = phase else { panic!("{phase:?}") };
        record
    }

    /// Fails unless slow start ends at this window. One ACK at most doubles it: no other window above has such an exit.
    #[track_caller]
    fn leaves_at(&mut self, bytes: u64) {
        let record = self.leave();
        let window = record.window_bytes();
        assert!((bytes..2 * bytes).contains(&window), "{window} bytes, not {bytes}");
    }

    /// Its row of `onramp flows`.
    fn row(&self) -> Value {
        let text = inside(self.near, "flows --json").ok();
        let listed: Value = serde_json::from_str(&text).unwrap();
        let port = self.stream.local_addr().unwrap().port();
        let rows = listed["flows"].as_array().unwrap();
        rows.iter().find(|row| row["local_port"] == port).cloned().unwrap()
    }
}

/// The parameter sets of `fixed` that are there for rules.
fn sets() -> Vec<Value> {
    let Some(row) = status("fixed") else { return Vec::new() };
    row["parameter_sets"].as_array().unwrap()[1..].to_vec()
}

fn set(name: &str) -> Value {
    sets().into_iter().find(|set| set["profile"] == name).unwrap_or_default()
}

fn rules() -> String {
    onramp("select list").ok()
}

#[test]
#[ignore = "in a guest: make test"]
fn two_profiles_of_one_algorithm_live_at_once_and_tuning_one_leaves_the_others_alone() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let profiles = Profiles::write();
    profiles.attach();
    let wire = wire();
    for (address, bytes, profile) in [
        (NEAR_BY.to_owned(), SHORT, "short"),
        (DISTANT.into(), LONG, "long"),
        (FAR.to_string(), OWN, "default"),
    ] {
        let mut connection = Connection::to(&wire, &address);
        assert_eq!(connection.profile(), None, "in its initial window");
        connection.leaves_at(bytes);
        assert_eq!(connection.profile().as_deref(), Some(profile));
        let row = connection.row();
        assert_eq!((&row["profile"], &row["why"]["chosen_by"]), (&profile.into(), &"prefix".into()), "{row}");
    }
    assert!(eventually(|| sets().iter().all(|set| set["flows"] == 0)));

    // Flows in progress read the new values with their next ACK, and only those of this profile.
    let [mut near_by, mut distant, mut own] =
        [NEAR_BY, DISTANT, &FAR.to_string()].map(|address| Connection::to(&wire, address).send_more());
    let said = onramp(&format!("tune fixed --profile short exit_window_bytes={TUNED}")).ok();
    assert!(said.contains("onramp tune fixed --profile short exit_window_bytes=60000"), "{said}");
    near_by.leaves_at(TUNED);
    distant.leaves_at(LONG);
    own.leaves_at(OWN);
    Connection::to(&wire, NEAR_BY).leaves_at(TUNED);
    assert!(onramp("tune fixed --profile short").ok().contains("300000"));
    assert_eq!(set("long")["parameters"]["exit_window_bytes"], LONG);
    assert_eq!(json("tune fixed")["parameters"]["exit_window_bytes"], OWN);

    // A consumer that gets a flow gets its parameters.
    let listed = rules();
    assert!(listed.contains("--to 198.51.100.0/24 --use fixed --profile short\n"), "{listed}");
    let said = onramp(&format!("select test {DISTANT} --connect")).ok();
    let expected =
        "connect: onramp_fixed with profile long by --to 203.0.113.0/24 --use fixed --profile long";
    assert!(said.starts_with(expected), "{said}");
    // A connection that has been closed takes its time.
    let reported = "profile short, generation 2, for 1 rule, with 1 open flow:";
    assert!(eventually(|| onramp("status").ok().contains(reported)), "{}", onramp("status").ok());
    let why = inside(&wire.near, "flows --why").ok();
    assert!(why.contains("--use fixed --profile long"), "{why}");

    // A second rule with a profile that is there leaves it as it is.
    onramp("select add --port 7 --use fixed --profile short").ok();
    assert_eq!(
        (set("short")["parameters"]["exit_window_bytes"].clone(), set("short")["rules"].clone()),
        (TUNED.into(), 2.into())
    );
    drop((near_by, distant, own));
    onramp("undo").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    profiles.attach();
    let other = profiles.path("other").display().to_string();
    let before = (host_state(&[]), rules(), sets());
    for (rule, code, said) in [
        ("--port 80 --use fixed --profile nowhere".to_owned(), 2, "there is no profile \"nowhere\""),
        (format!("--port 80 --use fixed --profile {other}"), 2, "profile other is for plain, not for fixed"),
        (
            "--port 80 --use fixed --profile geo".into(),
            2,
            "profile geo is for ramp and search, not for fixed",
        ),
        (
            "--port 80 --use cubic --profile geo".into(),
            2,
            "cubic is a control of the kernel, which has no profiles",
        ),
        ("--port 80 --use plain --profile other".into(), 1, "plain is not attached"),
        (format!("--to {FAR} --use fixed --profile short"), 1, "there is a rule for"),
    ] {
        for dry_run in ["", " --dry-run"] {
            let error = onramp(&format!("select add {rule}{dry_run}")).refused(code);
            assert!(error.contains(said), "{rule}: {error}");
        }
        let file = profiles.path("rules");
        fs::write(&file, format!("--port 79 --use cubic\n{rule}\n")).unwrap();
        if code == 2 {
            let error = onramp(&format!("select load {}", file.display())).refused(code);
            assert!(error.contains("line 2: ") && error.contains(said), "{rule}: {error}");
        }
        assert_eq!((host_state(&[]), rules(), sets()), before, "{rule}");
    }
    // A file of a name that is there, and of other values, is not passed over.
    let again = |directory: &str| {
        let path = profiles.0.path().join(directory);
        fs::create_dir_all(&path).unwrap();
        let text = fs::read_to_string(profiles.path("short")).unwrap();
        fs::write(path.join("short.toml"), text.replace(&format!("{SHORT}"), "1")).unwrap();
        path.join("short.toml").display().to_string()
    };
    let error = onramp(&format!("select add --port 80 --use fixed --profile {}", again("again"))).refused(2);
    assert!(error.names(&["fixed", "short"]), "{error}");
    assert_eq!((host_state(&[]), rules(), sets()), before);
    assert!(onramp("tune fixed --profile nowhere").refused(2).contains("default, short, long"));
    // Fifteen are the most.
    for number in 2..16 {
        let name = format!("number-{number}");
        profiles.put(&name, "fixed", "");
        let added = profiles.add(&format!("--port {number}"), &name);
        if number < 15 {
            added.ok();
        } else {
            let error = added.refused(2);
            assert!(error.contains("15") && error.contains("fixed: short, long, "), "{error}");
        }
    }
    assert_eq!((sets().len(), rules().lines().count()), (15, 16));
    onramp("select del --port 2").ok();
    profiles.add("--port 15", "number-15").ok();
    assert_eq!(sets().len(), 15);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_keeps_its_profile_when_the_rule_goes_and_the_profile_goes_after_both() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    onramp(&format!("attach fixed --set exit_window_bytes={OWN}")).ok();
    let before = host_state(&[]);
    let wire = wire();
    profiles.add("--to 198.51.100.0/24", "short").ok();
    let mut established = Connection::to(&wire, NEAR_BY).send_more();
    let removed = onramp("select del --to 198.51.100.0/24").ok();
    assert!(
        removed.contains("onramp select add --to 198.51.100.0/24 --use fixed --profile short"),
        "{removed}"
    );
    let short = set("short");
    assert_eq!([&short["parameters_generation"], &short["rules"], &short["flows"]], [1, 0, 1], "{short}");
    // What comes meanwhile takes another place, also under the same number of rules.
    profiles.add("--to 198.51.100.0/24", "long").ok();
    let mut new = Connection::to(&wire, NEAR_BY).send_more();
    assert_eq!((established.profile().as_deref(), new.profile().as_deref()), (Some("short"), Some("long")));
    assert_ne!(set("short")["parameter_set"], set("long")["parameter_set"]);
    onramp(&format!("tune fixed --profile short exit_window_bytes={TUNED}")).ok();
    established.leaves_at(TUNED);
    new.leaves_at(LONG);
    // Of two rules with one profile the first to go leaves it.
    profiles.add("--port 7", "long").ok();
    onramp("select del --to 198.51.100.0/24").ok();
    drop((established, new));
    assert!(eventually(|| sets().iter().all(|set| set["flows"] == 0)));
    assert_eq!(set("long")["rules"], 1);
    onramp("select del --port 7").ok();
    assert_eq!((sets(), host_state(&[])), (Vec::new(), before));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_rule_outlives_its_algorithm_and_says_what_it_lacks_until_it_is_loaded_again() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    let before = host_state(&[]);
    profiles.attach();
    onramp("detach fixed").ok();
    onramp(&format!("attach fixed --set exit_window_bytes={OWN}")).ok();
    let wire = wire();
    let mut own = Connection::to(&wire, NEAR_BY);
    own.leaves_at(OWN);
    assert_eq!(own.profile().as_deref(), Some("default"));
    let listed = rules();
    assert!(listed.names(&["--profile short", "onramp_fixed"]), "{listed}");
    let missing = json("status")["selection"]["profiles_missing"].clone();
    let short = serde_json::json!({"congestion_control": "onramp_fixed", "profile": "short"});
    assert!(missing.as_array().unwrap().contains(&short), "{missing}");
    let said = onramp(&format!("select test {NEAR_BY} --connect")).ok();
    assert!(said.starts_with("connect: onramp_fixed by ") && said.contains("short"), "{said}");
    // By name it would be looked for elsewhere.
    let file = profiles.path("rules");
    fs::write(
        &file,
        listed
            .replace("--profile short", &format!("--profile {}", profiles.path("short").display()))
            .replace("--profile long", &format!("--profile {}", profiles.path("long").display())),
    )
    .unwrap();
    onramp(&format!("select load {}", file.display())).ok();
    let mut again = Connection::to(&wire, NEAR_BY);
    again.leaves_at(SHORT);
    assert_eq!(again.profile().as_deref(), Some("short"));
    // The connection that was there has not changed: its rule has.
    assert_eq!(own.row()["why"]["chosen_by"], "other");
    drop((own, again));
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn wherever_the_command_ends_the_state_is_explained_and_one_command_clears_it() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    onramp(&format!("attach fixed --set exit_window_bytes={OWN}")).ok();
    let before = host_state(&[]);
    let here = Namespace::current().unwrap();
    let path = profiles.path("short").display().to_string();
    let add =
        Traced { namespace: &here, arguments: format!("select add --port 80 --use fixed --profile {path}") };
    let clear = || {
        onramp("select del --all").ok();
        assert_eq!((sets(), host_state(&[])), (Vec::new(), before.clone()));
    };
    onramp(&add.arguments).ok();
    let seen = RefCell::new(Vec::new());
    add.disturb(clear, |call, ran| {
        let (rule, set) = (rules().contains("--port 80 --use fixed --profile short"), set("short"));
        println!("{call}: rule {rule}, set {set}");
        // A rule never names what is not there, and a set without one says so.
        assert!(!rule || set["rules"] == 1, "{call}: {set}");
        if !rule && !set.is_null() {
            let status = onramp("status").ok();
            assert!(set["rules"] == 0 && status.contains("select del --all"), "{set}: {status}");
        }
        if let Some(ran) = ran {
            assert_eq!(ran.code == Some(0), rule, "{call}: {ran:?}");
        }
        seen.borrow_mut().push((rule, !set.is_null()));
        // The next command goes on.
        let again = onramp(&add.arguments);
        assert!(again.code == Some(0) || again.stderr.contains("already"), "{call}: {again:?}");
        assert_eq!(
            (rules().as_str(), self::set("short")["rules"].clone()),
            ("--port 80 --use fixed --profile short\n", 1.into())
        );
    });
    clear();
    // A set without its rule has been met.
    assert!(seen.borrow().contains(&(false, true)), "{seen:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn live_and_replayed_are_alike_under_each_profile() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    profiles.attach();
    let wire = wire();
    let directory = profiles.0.path().join("recording");
    let recorder = Recorder::start(&directory, "--level ack");
    let mut listening = stream(Level::Ack);
    for (address, bytes) in [(NEAR_BY, SHORT), (DISTANT, LONG)] {
        Connection::to(&wire, address).leaves_at(bytes);
    }
    let items = until_ended(&mut listening, 2);
    let (mut flows, mut compared, mut windows) = (std::collections::BTreeMap::new(), 0, Vec::new());
    for event in events(&items) {
        match &event.what {
            What::Flow(reported) => {
                let window =
                    reported.parameters.shown().find(|(name, _)| *name == "exit_window_bytes").unwrap().1;
                windows.push((reported.profile, window));
                flows.insert(
                    event.flow,
                    algorithm::Flow::resume(reported.parameters.clone(), &reported.state).unwrap(),
                );
            }
            What::Restart(_) => flows.get_mut(&event.flow).unwrap().restart(),
            What::Ack(reported) => {
                if let Some(verdict) = reported.answer() {
                    assert_eq!(
                        flows.get_mut(&event.flow).unwrap().on_ack(&reported.ack),
                        verdict,
                        "{reported:?}"
                    );
                    compared += 1;
                }
            }
            _ => {}
        }
    }
    assert!(compared > 40, "{compared}");
    windows.dedup();
    assert_eq!(windows, [(1, SHORT.to_string()), (2, LONG.to_string())]);
    assert!(eventually(|| fs::read_dir(&directory).unwrap().count() > 0));
    drop(listening);
    recorder.end().ok();
    let replayed = json(&format!("replay --continue --algorithm fixed {}", directory.display()));
    let rows = replayed["flows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{replayed}");
    for row in rows {
        let recorded = &row["findings"][0]["recorded"];
        assert!(recorded["compared"].as_u64().unwrap() > 10, "{row}");
        assert_eq!(
            (&recorded["different"], &row["recorded_exit"]["reason"]),
            (&0.into(), &"algorithm".into()),
            "{row}"
        );
        assert_eq!(row["recorded_exit"]["window_bytes"], row["findings"][0]["exit"]["window_bytes"], "{row}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn an_upgrade_keeps_profiles_and_flows_on_them_and_an_older_selection_is_renewed() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    let before = host_state(&[]);
    profiles.attach();
    let wire = wire();
    let connections = [NEAR_BY, DISTANT].map(|address| Connection::to(&wire, address).send_more());
    onramp(&format!("tune fixed --profile long exit_window_bytes={TUNED}")).ok();
    let had = sets();
    onramp("upgrade fixed").ok();
    let names =
        |connections: &[Connection<'_>]| connections.iter().map(Connection::profile).collect::<Vec<_>>();
    assert_eq!(names(&connections), [Some("short".to_owned()), Some("long".to_owned())]);
    assert_eq!(sets(), had);
    Connection::to(&wire, DISTANT).leaves_at(TUNED);
    drop(connections);

    // The program of an onramp that knew of no profiles has other maps.
    fs::remove_file(format!("{ROOT}/profiles/profile_names")).unwrap();
    onramp("detach fixed").ok();
    onramp(&format!("attach fixed --set exit_window_bytes={OWN}")).ok();
    onramp("select del --to 198.51.100.0/24").ok();
    profiles.add("--to 198.51.100.0/24", "short").ok();
    Connection::to(&wire, NEAR_BY).leaves_at(SHORT);
    assert_eq!(json("status")["selection"]["active"], true);
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn files_give_rules_their_profiles_and_take_them_away() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    let before = host_state(&[]);
    let directory = profiles.0.path().join("etc");
    fs::create_dir(&directory).unwrap();
    let write = |rules: &[(&str, &str)]| {
        let rules = rules.iter().map(|(prefix, name)| {
            format!(
                "[[select]]\nto = '{prefix}'\nuse = 'fixed'\nprofile = '{}'\n",
                profiles.path(name).display()
            )
        });
        let head = format!("version = 1\n[attach.fixed.params]\nexit_window_bytes = {OWN}\n");
        fs::write(directory.join("a.toml"), head + &rules.collect::<String>()).unwrap();
    };
    let apply = || onramp(&format!("apply --config {}", directory.display()));
    let nothing_to_do = || assert!(apply().ok().starts_with("nothing to do"));
    write(&[("198.51.100.0/24", "short"), ("203.0.113.0/24", "long")]);
    apply().ok();
    nothing_to_do();
    let wire = wire();
    Connection::to(&wire, NEAR_BY).leaves_at(SHORT);
    Connection::to(&wire, DISTANT).leaves_at(LONG);

    // What was tuned by hand becomes what the profile says, and what the profile says now.
    onramp("tune fixed --profile long exit_window_bytes=1").ok();
    profiles.put("short", "fixed", &format!("exit_window_bytes = {TUNED}"));
    let said = apply().ok();
    assert!(said.contains("tune fixed --profile long exit_window_bytes=140000"), "{said}");
    assert!(said.contains("tune fixed --profile short exit_window_bytes=300000"), "{said}");
    assert!(said.contains("onramp tune fixed --profile long exit_window_bytes=1\n"), "{said}");
    nothing_to_do();
    Connection::to(&wire, NEAR_BY).leaves_at(TUNED);

    // Attached anew, it has them again.
    onramp("detach fixed").ok();
    let said = apply().ok();
    assert!(said.names(&["onramp_fixed", "profile long"]), "{said}");
    nothing_to_do();
    Connection::to(&wire, DISTANT).leaves_at(LONG);

    assert!(eventually(|| sets().iter().all(|set| set["flows"] == 0)));
    write(&[("198.51.100.0/24", "short")]);
    apply().ok();
    assert_eq!(sets().len(), 1);
    write(&[("198.51.100.0/24", "other")]);
    let error = apply().refused(2);
    assert!(error.names(&["a.toml line 4", "other", "plain", "fixed"]), "{error}");
    fs::write(directory.join("a.toml"), "version = 1\n").unwrap();
    apply().ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn profiles_of_a_file_for_which_there_is_no_room_are_refused_before_anything_is_attached() {
    let _attachments = Attachments::lock();
    let profiles = Profiles::write();
    let before = host_state(&[]);
    let directory = profiles.0.path().join("etc");
    fs::create_dir(&directory).unwrap();
    let write = |from: usize, to: usize| {
        let rule = |number: usize| {
            let name = format!("number-{number}");
            profiles.put(&name, "fixed", "");
            let profile = profiles.path(&name);
            format!("[[select]]\nport = {number}\nuse = 'fixed'\nprofile = '{}'\n", profile.display())
        };
        let rules: String = (from..to).map(rule).collect();
        fs::write(directory.join("a.toml"), format!("version = 1\n[attach.fixed]\n{rules}")).unwrap();
    };
    let apply = |check: &str| onramp(&format!("apply --config {} {check}", directory.display()));
    write(1, 17);
    for check in ["--check", ""] {
        assert!(apply(check).refused(2).names(&["15", "fixed", "number-16"]));
        assert_eq!(host_state(&[]), before, "{check}");
    }
    write(1, 16);
    apply("").ok();
    assert_eq!(sets().len(), 15);
    // They keep their places until their rules have gone.
    write(2, 17);
    assert!(apply("--check").refused(2).names(&["15", "fixed", "number-16"]));
    write(2, 16);
    apply("").ok();
    write(2, 17);
    apply("").ok();
    assert_eq!(sets().len(), 15);
}
