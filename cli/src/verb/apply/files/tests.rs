use tempfile::{TempDir, tempdir};

use super::*;

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn refused(text: &str) -> String {
    let directory = directory(&[("a.toml", text)]);
    let error = read(Some(directory.path())).map(|_| ()).unwrap_err();
    assert_eq!(crate::exit::code(&error), crate::failure::USAGE, "{text}");
    let error = sentence(&error);
    error.split_once("a.toml ").map_or(error.clone(), |(_, said)| said.to_owned())
}

#[test]
fn files_of_a_directory_are_read_together_in_the_order_of_their_names() {
    let directory = directory(&[
        (
            "20.toml",
            "version = 1\n[[select]]\nto = '203.0.113.0/24'\nport = 443\nconnect = true\nuse = 'search'\ninitial_window = 20\n[[select]]\nport = 22\naccept = true\nuse = 'reno'\n",
        ),
        (
            "10.toml",
            "version = 1\n[attach.search]\nprofile = 'geo'\ndefault = true\ntelemetry = 'exit'\nbase = 'reno'\nguard = 'goodput=-10%'\ncontrol_share = '20%'\n[attach.search.params]\nexit_action = 'hold'\n[attach.plain]\n",
        ),
        (".10.toml", "not read"),
        ("note.txt", "not read"),
    ]);
    let desired = read(Some(directory.path())).unwrap();
    let names: Vec<_> = desired.files.iter().map(|file| file.file_name().unwrap()).collect();
    assert_eq!(names, ["10.toml", "20.toml"]);
    assert_eq!(desired.attach.keys().collect::<Vec<_>>(), [&"plain", &"search"]);
    let search = &desired.attach["search"];
    assert_eq!((search.profile.as_str(), search.default, search.telemetry_max), ("geo", true, Level::Exit));
    assert_eq!(search.base, Some(onramp_loader::Base::Reno));
    let guard = search.guard.unwrap();
    assert_eq!(guard::words(&guard), "--guard goodput=-10% --control-share 20%");
    assert!(desired.attach["plain"].guard.is_none());
    let shown: BTreeMap<_, _> = search.parameters.shown().collect();
    assert_eq!((shown["exit_action"].as_str(), shown["threshold_pct"].as_str()), ("hold", "10"));
    assert!(desired.attach.values().all(|options| options.applied && !options.observe));
    let rules: Vec<_> = desired.rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "--to 203.0.113.0/24 --port 443 --connect --use search --initial-window 20",
            "--port 22 --accept --use reno"
        ]
    );
}

/// This machine may have some algorithms attached, but not all.
#[test]
fn what_a_rule_uses_is_attached_or_in_the_files() {
    let registered = onramp_loader::kernel::registered().unwrap();
    let absent = algorithm::all().find(|one| !registered.contains(&one.congestion_control())).unwrap().name();
    let rule = format!("version = 1\n[[select]]\nport = 22\naccept = true\nuse = '{absent}'\n");
    assert!(refused(&rule).starts_with(&format!("line 2: {absent}")));
    let both = directory(&[("10.toml", &format!("version = 1\n[attach.{absent}]\n")), ("20.toml", &rule)]);
    assert_eq!(read(Some(both.path())).unwrap().rules.len(), 1);
    let error = read(Some(&both.path().join("20.toml"))).map(|_| ()).unwrap_err();
    assert!(sentence(&error).contains(&format!("20.toml line 2: {absent}")), "{error}");
}

#[test]
fn a_file_whose_ending_is_in_upper_case_is_refused_and_not_left_out() {
    for name in ["A.TOML", "a.Toml"] {
        let directory = directory(&[(name, "version = 1\n"), ("b.toml", "version = 1\n")]);
        let error = read(Some(directory.path())).map(|_| ()).unwrap_err();
        assert_eq!(crate::exit::code(&error), crate::failure::USAGE);
        assert!(sentence(&error).contains(name), "{error}");
    }
    let others = [(".A.TOML", ""), ("a.toml.dpkg-old", ""), ("b.toml~", ""), ("TOML", "")];
    assert!(read(Some(directory(&others).path())).unwrap().files.is_empty());
}

#[test]
fn what_editors_and_packages_leave_is_no_file_and_a_link_that_leads_nowhere_is_named() {
    let empty = tempdir().unwrap();
    assert!(read(Some(empty.path())).unwrap().files.is_empty());
    let wanted = "version = 1\n[attach.plain]\n";
    let left = [(".a.toml.swp", "\0"), ("a.toml.dpkg-old", "x"), ("a.toml.rpmsave", "x"), ("#a.toml#", "x")];
    let directory = directory(&[&[("a.toml", wanted)], &left[..]].concat());
    assert_eq!(read(Some(directory.path())).unwrap().files, [directory.path().join("a.toml")]);
    std::os::unix::fs::symlink("nowhere", directory.path().join("b.toml")).unwrap();
    let error = read(Some(directory.path())).map(|_| ()).unwrap_err();
    assert_eq!(crate::exit::code(&error), crate::failure::USAGE);
    assert!(sentence(&error).contains("b.toml"), "{error}");
}

/// What root's shell has opened is root's, wherever it is typed.
#[test]
fn standard_input_is_read_in_a_directory_that_others_may_write() {
    let directory = tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), open).unwrap();
    let (program, at) = (std::env::current_exe().unwrap(), module_path!().split_once("::").unwrap().1);
    let mut command = std::process::Command::new(program);
    command.args(["--exact", &format!("{at}::child::standard_input_is_trusted"), "--ignored"]);
    let ran = command.current_dir(directory.path()).output().unwrap();
    assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
}

mod child {
    use super::*;

    #[test]
    #[ignore = "started by another test"]
    fn standard_input_is_trusted() {
        require_trusted(Path::new(bounded::STANDARD)).unwrap();
        assert!(require_trusted(Path::new("./other")).is_err());
    }
}

#[test]
fn files_changed_anywhere_are_wanted_or_refused_with_their_line() {
    let valid = [
        "version = 1\n[attach.search]\nprofile = 'geo'\ndefault = true\ntelemetry = 'exit'\nbase = 'reno'\nguard = 'goodput=-10%'\ncontrol_share = '20%'\n[attach.search.params]\nexit_action = 'hold'\n",
        "version = 1\n[attach.plain]\n[attach.ramp]\nobserve = true\n[[select]]\nto = '203.0.113.0/24'\nuse = 'plain'\ninitial_window = 20\n[[select]]\nport = 22\naccept = true\nuse = 'plain'\n",
    ];
    let directory = tempdir().unwrap();
    let path = directory.path().join("a.toml");
    let accepted = std::cell::Cell::new(0);
    onramp_mutation::check(1, 4_000, onramp_mutation::text(&valid), |text| {
        fs::write(&path, &text).unwrap();
        match read(Some(&path)) {
            Ok(_) => accepted.set(accepted.get() + 1),
            Err(error) => {
                let said = sentence(&error);
                let placed = ["a.toml line ", "a.toml: line ", "a.toml: it is empty"];
                let placed = placed.iter().any(|place| said.contains(place));
                assert!(placed, "{text:?}: {said}");
            }
        }
        Ok(())
    });
    assert!(accepted.get() > 400, "{}", accepted.get());
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (text, said) in [
        ("{\"version\": 1}\n", "it is JSON, not TOML"),
        ("# nothing\n", "it is empty"),
        ("[attach.plain]\n", "line 1: `version` is missing"),
        ("version = 2\n", "line 1: version = 2 is not known: give 1"),
        (
            "version = 1\n\nattached = 3\n",
            "line 3: unknown key `attached` (did you mean \"attach\"?): known are version, attach, select",
        ),
        ("version = 1\n[attach.plain]\nis_default = true\n", "line 3: unknown key `is_default`"),
        ("version = 1\n[attach.plan]\n", "line 2: there is no algorithm \"plan\""),
        ("version = 1\n[attach.search]\nprofile = 'nowhere'\n", "line 3: there is no profile \"nowhere\""),
        (
            "version = 1\n[attach.plain]\nprofile = 'geo'\n",
            "line 3: profile geo is for ramp and search, not for plain",
        ),
        (
            "version = 1\n[attach.plain]\nbase = 'vegas'\n",
            "line 3: `vegas` is not known: give one of cubic, reno, bbr",
        ),
        (
            "version = 1\n[attach.plain]\ntelemetry = 'all'\n",
            "line 3: telemetry = \"all\" is not a level: give one of off",
        ),
        (
            "version = 1\n[attach.search]\nguard = 'goodput=10%'\n",
            "line 3: goodput=10% is not allowed: give -1% to -90%",
        ),
        (
            "version = 1\n[attach.search]\nguard = 'goodput=-10%'\ncontrol_share = '60%'\n",
            "line 4: \"60%\" is not a share of flows for the control: give 1% to 50%",
        ),
        ("version = 1\n[attach.search]\ncontrol_share = '20%'\n", "line 3: control_share is of a guard"),
        (
            "version = 1\n[attach.search]\nguard = 'goodput=-10%'\nobserve = true\n",
            "line 2: what only observes does nothing that a guard could compare",
        ),
        (
            "version = 1\n[attach.search.params]\nform = 'sent'\nthreshold_pct = 101\n",
            "line 4: search threshold_pct=101 is not allowed: give 0..100 percent",
        ),
        (
            "version = 1\n[attach.search.params]\ntreshold_pct = 1\n",
            "line 3: search has no parameter \"treshold_pct\"",
        ),
        (
            "version = 1\n[attach.search]\ndefault = true\n[attach.plain]\ndefault = true\n",
            "line 2: search cannot be the default: plain is, in ",
        ),
        (
            "version = 1\n[[select]]\nport = 22\nuse = 'reno'\n[[select]]\nto = '10.0.0.1/8'\nuse = 'reno'\n",
            "line 5: \"10.0.0.1/8\" has bits set",
        ),
        ("version = 1\n[[select]]\nport = 70_000\nuse = 'reno'\n", "line 2: \"70000\" is not a port"),
        ("version = 1\n[[select]]\nport = 22\n", "line 2: a rule has --use ALG"),
        (
            "version = 1\n[[select]]\nport = 22\nuse = 'nonsense'\n",
            "line 2: there is no congestion control \"nonsense\"",
        ),
        ("version = 1\n[[select]]\nport = 22\nuse = 'reno'\nwindow = 3\n", "line 5: unknown key `window`"),
        (
            "version = 1\n[[select]]\nport = 22\nuse = 'reno'\n[[select]]\nport = 22\nuse = 'reno'\n",
            "line 5: --port 22 has a rule in ",
        ),
        ("version = 1\n[attach\n", "line 2: "),
    ] {
        let error = refused(text);
        assert!(error.contains(said) || error.starts_with(said), "{text}\n{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = read(Some(Path::new("/nonexistent.toml"))).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent.toml"), "{error}");
}

#[test]
fn an_algorithm_in_two_files_is_refused_naming_both() {
    let text = "version = 1\n[attach.plain]\n";
    let directory = directory(&[("a.toml", text), ("b.toml", text)]);
    let error = sentence(&read(Some(directory.path())).map(|_| ()).unwrap_err());
    assert!(error.contains("b.toml line 2: plain") && error.ends_with("a.toml line 2 already"), "{error}");
}
