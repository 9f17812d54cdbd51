//! What somebody else does to what is attached: pins removed by hand, the BPF file system unmounted, a namespace deleted.
//! `status` explains each, and one command clears it.

use std::fs;
use std::path::Path;
use std::process::Command;

use onramp_loader::ROOT;
use onramp_net::Namespace;
use onramp_tests::cli::{self, DEFAULT, host_state, inside, onramp, state};
use onramp_tests::traffic::{Transfer, namespace};
use onramp_tests::{Attachments, guest};

/// Makes plain the default of a namespace that has reno.
fn attach_as_default(inside_it: &Namespace) {
    inside_it.sysctl_set(DEFAULT, "reno").unwrap();
    inside(inside_it, "attach plain --default").ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn pins_that_are_removed_by_hand_are_missed_and_the_rest_is_cleared() {
    let _attachments = Attachments::lock();
    let here = namespace();
    here.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&here]);
    let mut pins =
        vec!["plain/flows", "plain/params", "plain/counters", "plain/attachment", "plain/defaults"];
    pins.extend(["telemetry/rings", "telemetry/telemetry"]);
    if guest::has_links() {
        // Before there were links, the map is the registration, and can be told from a stranger's only by its pin.
        pins.extend(["plain/link", "plain/operations"]);
    }
    for pin in pins {
        attach_as_default(&here);
        let transfer = Transfer::start(&here, 1_000_000);
        fs::remove_file(Path::new(ROOT).join(pin)).unwrap();
        let said = onramp("status").ok();
        if pin.starts_with("plain") {
            assert_eq!(state("plain").as_deref(), Some("interrupted"), "without {pin}");
            assert!(said.contains("pins were removed"), "without {pin}: {said}");
            let error = onramp("tune plain --telemetry exit").refused(1);
            assert!(error.contains("run `onramp detach plain`"), "without {pin}: {error}");
            assert!(onramp("attach plain").refused(1).contains("run `onramp detach plain`"), "without {pin}");
        }
        if pin.starts_with("telemetry") {
            assert!(said.contains("of telemetry was removed") && said.contains(pin), "without {pin}: {said}");
            assert_eq!(state("plain").as_deref(), Some("attached"), "without {pin}");
            // New maps would be filled by nobody.
            for verb in ["watch", "attach search"] {
                assert!(onramp(verb).refused(1).contains("then attach it anew"), "{verb} without {pin}");
            }
        }
        onramp("detach --all").ok();
        let default = here.sysctl_get(DEFAULT).unwrap();
        if pin == "plain/defaults" {
            // What it was is not known any more.
            assert!(["cubic", "reno"].contains(&default.as_str()), "{default}");
            here.sysctl_set(DEFAULT, "reno").unwrap();
        }
        assert_eq!(host_state(&[&here]), before, "without {pin}");
        assert!(transfer.goes_on(), "without {pin}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_bpf_file_system_that_is_unmounted_beneath_leaves_nothing_that_detach_cannot_clear() {
    let _attachments = Attachments::lock();
    if !guest::has_links() {
        // The registration is there for ever without its pin: `status` says so, and bpftool removes it.
        return;
    }
    let here = namespace();
    attach_as_default(&here);
    let transfer = Transfer::start(&here, 1_000_000);
    assert!(Command::new("umount").arg("/sys/fs/bpf").status().unwrap().success());
    assert_eq!(state("plain").as_deref(), Some("lingering"));
    assert!(onramp("status").ok().contains("onramp detach plain"));
    onramp("detach --all").ok();
    assert!(["cubic", "reno"].contains(&here.sysctl_get(DEFAULT).unwrap().as_str()));
    assert_eq!(state("plain"), None);
    assert!(transfer.goes_on());
    onramp("attach plain").ok();
    assert_eq!(state("plain").as_deref(), Some("attached"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_namespace_that_is_deleted_takes_its_default_with_it() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let here = namespace();
    attach_as_default(&here);
    drop(here);
    assert_eq!(state("plain").as_deref(), Some("attached"));
    let detached = cli::json("detach plain");
    assert_eq!(detached["detached"][0]["defaults_restored"].as_array().unwrap().len(), 0, "{detached}");
    assert_eq!(host_state(&[]), before);
}
