//! The base that an algorithm gets, and its options.

use std::fs;

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, host_state, inside, json, onramp, state, status};
use onramp_tests::traffic::namespace;
use serde_json::{Value, json};

/// Controls that network namespaces may choose, as long as this lives.
struct Allowed(String);

impl Allowed {
    const PATH: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

    fn all_of_the_kernel() -> Self {
        let before = fs::read_to_string(Self::PATH).unwrap();
        fs::write(Self::PATH, "reno cubic bbr dctcp").unwrap();
        Self(before)
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        fs::write(Self::PATH, &self.0).unwrap();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_base_is_a_choice() {
    let _attachments = Attachments::lock();
    assert!(onramp("attach plain --base reno").ok().contains("base reno"));
    assert_eq!(json("status")["algorithms"][0]["base"], "reno");
    assert!(onramp("detach plain").ok().contains("onramp attach plain --base reno"));
}

#[test]
#[ignore = "in a guest: make test"]
fn the_options_of_the_base_are_chosen_shown_changed_and_attached_again() {
    let _attachments = Attachments::lock();
    let shown = || json("status")["algorithms"][0]["after_exit"].clone();
    assert_eq!(json("attach plain --after-exit plateau,floor")["after_exit"], json!(["plateau", "floor"]));
    assert_eq!(shown(), json!(["plateau", "floor"]));
    assert_eq!(json("upgrade plain")["upgraded"][0]["after_exit"], json!(["plateau", "floor"]));
    // What the base that comes does not have is refused, and nothing changes.
    let error = onramp("upgrade plain --base reno").refused(2);
    assert!(error.contains("plateau") && error.contains("--base cubic"), "{error}");
    assert_eq!(json("status")["algorithms"][0]["base"], "cubic");
    onramp("upgrade plain --base reno --after-exit floor").ok();
    assert_eq!(shown(), json!(["floor"]));
    assert!(onramp("detach plain").ok().contains("--base reno --after-exit floor"));
    for refused in
        ["--base reno --after-exit plateau", "--base bbr --after-exit floor", "--after-exit floor --observe"]
    {
        onramp(&format!("attach plain {refused}")).refused(2);
        assert_eq!(state("plain"), None, "{refused}");
    }
    onramp("attach plain").ok();
    assert_eq!(shown(), json!([]));
    onramp("upgrade plain --after-exit floor").ok();
    assert_eq!(shown(), json!(["floor"]));
}

#[test]
#[ignore = "in a guest: make test"]
fn an_algorithm_has_its_usual_options_over_bases_that_have_them_unless_others_are_asked_for() {
    let _attachments = Attachments::lock();
    let shown = || json("status")["algorithms"][0]["after_exit"].clone();
    for (asked, has, undo) in [
        ("", json!(["floor"]), None),
        ("--base reno", json!(["floor"]), None),
        ("--base bbr", json!([]), None),
        ("--observe", json!([]), None),
        ("--after-exit none", json!([]), Some("--after-exit none")),
        ("--after-exit plateau,floor", json!(["plateau", "floor"]), Some("--after-exit plateau,floor")),
    ] {
        assert_eq!(json(&format!("attach ramp {asked}"))["after_exit"], has, "{asked}");
        assert_eq!(shown(), has, "{asked}");
        let detached = onramp("detach ramp").ok();
        assert_eq!(detached.contains("--after-exit"), undo.is_some(), "{asked}: {detached}");
        assert!(undo.is_none_or(|undo| detached.contains(undo)), "{asked}: {detached}");
    }
    // With another base come its usual options, unless some were asked for.
    onramp("attach ramp").ok();
    onramp("upgrade ramp --base bbr").ok();
    assert_eq!(shown(), json!([]));
    onramp("upgrade ramp --base reno").ok();
    assert_eq!(shown(), json!(["floor"]));
    onramp("upgrade ramp --after-exit none").ok();
    onramp("upgrade ramp --base cubic").ok();
    assert_eq!(shown(), json!([]));
}

fn json_inside(place: &Namespace, arguments: &str) -> Value {
    serde_json::from_str(&inside(place, &format!("--json {arguments}")).ok()).unwrap()
}

/// A namespace of its own with this default, and a file of apply.
fn host_with(default: &str, file: &str) -> (Namespace, tempfile::TempDir) {
    let place = namespace();
    place.sysctl_set(DEFAULT, default).unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.toml"), file).unwrap();
    (place, directory)
}

#[test]
#[ignore = "in a guest: make test"]
fn the_base_is_what_the_network_namespace_has_as_default_for_every_verb() {
    let _attachments = Attachments::lock();
    let _allowed = Allowed::all_of_the_kernel();
    for default in ["cubic", "reno", "bbr"] {
        let (place, files) = host_with(default, "version = 1\n[attach.plain]\ndefault = true\n");
        let before = host_state(&[&place]);
        let base = || status("plain").unwrap()["base"].clone();
        for options in ["", "--default ", "--default --guard goodput=-10% "] {
            let attached = json_inside(&place, &format!("attach plain {options}"));
            // With a guard its control runs the base alone, which is the previous default.
            assert_eq!((&attached["base"], &attached["default_before"]), (&json!(default), &json!(default)));
            assert_eq!((&attached["warning"], base()), (&Value::Null, json!(default)), "{options}");
            assert_eq!(status("plain").unwrap()["other_defaults"], json!([]));
            inside(&place, "detach plain").ok();
            assert_eq!(host_state(&[&place]), before, "{options}");
        }
        let plan = json_inside(&place, "run plain --dry-run -- true");
        let what = plan["actions"][0]["what"].as_str().unwrap();
        assert!(what.contains(&format!("onramp_plain with base {default}")), "{what}");
        assert_eq!(plan["warnings"], json!([]));
        let binary = cli::binary().display();
        let run = inside(&place, &format!("run plain -- {binary} status --json"));
        assert_eq!(run.stderr, "");
        let there: Value = serde_json::from_str(&run.ok()).unwrap();
        assert_eq!(there["algorithms"][0]["base"], default);
        let config = format!("apply --config {}", files.path().display());
        let applied = json_inside(&place, &config);
        assert_eq!((&applied["warnings"], base()), (&json!([]), json!(default)));
        // What it is now does not change what it was.
        assert_eq!(json_inside(&place, &config)["steps"], json!([]));
        let again = json_inside(&place, "upgrade plain");
        assert_eq!(again["upgraded"][0]["base"], default);
        inside(&place, "detach plain").ok();
        assert_eq!(host_state(&[&place]), before);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn where_the_default_cannot_be_a_base_one_has_to_be_named_and_what_is_lost_is_said() {
    let _attachments = Attachments::lock();
    let _allowed = Allowed::all_of_the_kernel();
    let (place, files) = host_with("dctcp", "version = 1\n[attach.ramp]\n");
    let before = host_state(&[&place]);
    let config = format!("apply --config {}", files.path().display());
    for refused in [
        "attach ramp",
        "attach ramp --default",
        "attach ramp --guard goodput=-10%",
        "attach ramp --dry-run",
        "run ramp -- true",
        "run ramp --dry-run -- true",
        &config,
    ] {
        let error = inside(&place, refused).refused(2);
        assert!(error.contains("dctcp") && error.contains("--base"), "{refused}: {error}");
        assert_eq!(host_state(&[&place]), before, "{refused}");
    }
    let named = |arguments: &str| {
        let ran = inside(&place, &format!("--json {arguments}"));
        assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{ran:?}");
        assert!(ran.stderr.contains("base cubic") && ran.stderr.contains("not dctcp"), "{ran:?}");
        serde_json::from_str::<Value>(&ran.ok()).unwrap()
    };
    let attached = named("attach ramp --base cubic --default --guard goodput=-10%");
    assert!(attached["warning"].as_str().unwrap().names(&["onramp_ramp", "cubic"]));
    assert_eq!(status("ramp").unwrap()["other_defaults"], json!(["dctcp"]));
    inside(&place, "detach ramp").ok();
    assert_eq!(place.sysctl_get(DEFAULT).unwrap(), "dctcp");
    assert_eq!(named("attach ramp --base cubic --dry-run")["warnings"].as_array().unwrap().len(), 1);
    let ran = inside(&place, "run ramp --base cubic -- true");
    assert!(ran.stderr.starts_with("warning: "), "{ran:?}");
    ran.ok();
    fs::write(files.path().join("a.toml"), "version = 1\n[attach.ramp]\nbase = 'cubic'\n").unwrap();
    assert_eq!(named(&config)["warnings"].as_array().unwrap().len(), 1);
    inside(&place, "detach ramp").ok();
    assert_eq!(host_state(&[&place]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_named_base_and_an_attached_one_are_distinguished_from_the_default_and_inflight_is_refused_over_bbr() {
    let _attachments = Attachments::lock();
    let (bbr, _files) = host_with("bbr", "");
    for verb in ["attach inflight", "run inflight -- true"] {
        assert!(inside(&bbr, verb).refused(2).names(&["inflight", "bbr"]), "{verb}");
    }
    let ran = inside(&bbr, "--json attach ramp --base cubic --default");
    assert!(ran.stderr.starts_with("warning: ") && ran.stderr.contains("--base bbr"), "{ran:?}");
    let said: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!((&said["base"], &said["default_before"]), (&json!("cubic"), &json!("bbr")));
    assert!(said["warning"].is_string());
    assert_eq!(status("ramp").unwrap()["other_defaults"], json!(["bbr"]));
    // Over another algorithm it is that one's base.
    assert_eq!(json_inside(&bbr, "attach plain --default")["base"], "cubic");
    inside(&bbr, "detach --all").ok();
    assert_eq!(bbr.sysctl_get(DEFAULT).unwrap(), "bbr");

    // What is attached already becomes the default of a namespace that has another one.
    onramp("attach ramp --base cubic").ok();
    let ran = inside(&bbr, "--json attach ramp --default");
    assert!(ran.stderr.starts_with("warning: "), "{ran:?}");
    let said: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert!(said["warning"].as_str().unwrap().contains("onramp upgrade ramp --base bbr"), "{said}");
    let undo = json_inside(&bbr, "detach ramp")["detached"][0]["undo"].clone();
    assert_eq!(undo, "onramp attach ramp --base cubic --default");
}
