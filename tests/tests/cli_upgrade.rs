//! What another build of onramp has attached: neither in the way nor misread. And code that outlives its attachment.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use onramp_loader::abi::{ABI_VERSION, Attachment};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{DEFAULT, host_state, inside, json, onramp, state};
use onramp_tests::pinned::{change, of_abi, pin};
use onramp_tests::traffic::{Transfer, namespace};
use serde_json::Value;

/// The flows of a namespace, as `flows --json` has them.
fn flows(namespace: &Namespace) -> Vec<Value> {
    let listing: Value = serde_json::from_str(&inside(namespace, "--json flows").ok()).unwrap();
    listing["flows"].as_array().unwrap().clone()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_another_abi_has_attached_is_explained_refused_and_cleared() {
    let _attachments = Attachments::lock();
    let inside_it = namespace();
    inside_it.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&inside_it]);
    inside(&inside_it, "attach search --default").ok();
    let transfer = Transfer::start(&inside_it, 1_000_000);
    let other = ABI_VERSION + 1;
    of_abi("search", other);

    let status = json("status");
    let row = &status["algorithms"][0];
    assert_eq!(row["state"], "other_build", "{status}");
    let explanation = row["explanation"].as_str().unwrap();
    assert!(
        explanation.contains(&format!("ABI {other}, and this one has ABI {ABI_VERSION}")),
        "{explanation}"
    );
    assert!(explanation.contains("onramp detach search"), "{explanation}");
    assert!(status["consumers_unknown"].as_str().unwrap().contains("onramp detach --all"), "{status}");
    onramp("status").ok();
    assert_eq!(flows(&inside_it)[0]["state"], "other_build");
    for refused in ["attach search", "tune search", "tune search missed_bins_rtts=3", "confirm search"] {
        let error = onramp(refused).refused(1);
        assert!(error.contains("another onramp") && error.contains("onramp detach search"), "{error}");
    }
    for refused in ["attach plain", "watch --count 1"] {
        let error = onramp(refused).refused(1);
        assert!(error.contains("another onramp") && error.contains("onramp detach"), "{error}");
    }

    let report = json("detach --all");
    assert_eq!(report["detached"][0]["sockets_moved"], 2, "{report}");
    assert_eq!(report["detached"][0]["undo"], Value::Null, "{report}");
    assert!(transfer.goes_on());
    drop(transfer);
    assert_eq!(host_state(&[&inside_it]), before);
    onramp("attach search").ok();
    assert_eq!(state("search").as_deref(), Some("attached"));
}

#[test]
#[ignore = "in a guest: make test"]
fn parameters_of_another_table_are_neither_shown_nor_written_by_position() {
    let _attachments = Attachments::lock();
    onramp("attach best").ok();
    let params = || MapHandle::from_pinned_path(pin("best/params")).unwrap().lookup(&[0; 4], MapFlags::ANY);
    let before = params().unwrap();
    let at = std::mem::offset_of!(Attachment, tables_crc32);
    change("best/attachment", |value| value[at] ^= 1);
    for refused in ["tune best", "tune best cut_to_bdp=on pacing=on", "watch --count 1"] {
        let error = onramp(refused).refused(1);
        assert!(error.contains("parameters, outcomes or exports are not this one's"), "{refused}: {error}");
    }
    assert_eq!(params().unwrap(), before);
    assert_eq!(state("best").as_deref(), Some("other_build"));
    // Algorithms that this build attached are not affected.
    onramp("attach plain").ok();
    assert_eq!(state("plain").as_deref(), Some("attached"));
    onramp("detach best").ok();
    assert_eq!(state("best"), None);
}

#[test]
#[ignore = "in a guest: make test"]
fn code_of_an_earlier_attachment_is_distinguished_from_that_of_this_one() {
    let _attachments = Attachments::lock();
    let inside_it = namespace();
    let before = host_state(&[&inside_it]);
    inside(&inside_it, "attach plain --default").ok();
    let old = Transfer::start(&inside_it, 1_000_000);
    onramp("detach plain --leave-sockets").ok();
    inside(&inside_it, "attach plain --default").ok();
    let new = Transfer::start(&inside_it, 1_000_000);

    assert_eq!(json("status")["algorithms"][0]["older_code"], 1);
    let flows = flows(&inside_it);
    let state_of = |transfer: &Transfer| {
        let port = transfer.local.port();
        flows.iter().find(|flow| flow["local_port"] == port).unwrap()["state"].clone()
    };
    assert_eq!(state_of(&old), "detached_code");
    assert_ne!(state_of(&new), "detached_code");
    assert_ne!(state_of(&new), "no_state");

    assert_eq!(json("detach plain")["detached"][0]["sockets_moved"], 4);
    assert!(old.goes_on() && new.goes_on());
    drop((old, new));
    assert_eq!(state("plain"), None);
    assert_eq!(host_state(&[&inside_it]), before);
}
