//! `onramp select` by cgroup under an OCI runtime: what is in a container gets what the rule says, and its neighbours, whose
//! namespaces have other defaults, do not.

use std::collections::BTreeSet;

use onramp_tests::Attachments;
use onramp_tests::cli::{json, onramp};
use onramp_tests::containers::{CGROUP, Container};
use onramp_tests::traffic::eventually;

/// The controls of nginx's end and of curl's of a new connection in a container, as ss(8) has them there.
fn controls(container: &Container) -> [String; 2] {
    let listed = |side: &str| container.ss(&format!("-tinHO state established {side} = :80"));
    assert!(eventually(|| listed("dport").is_empty()), "previous connections");
    let _download = container.download();
    assert!(eventually(|| listed("dport").contains("bytes_acked") && !listed("sport").is_empty()));
    ["sport", "dport"].map(|side| {
        let text = listed(side);
        let known = ["reno", "cubic", "bbr", "onramp_plain", "onramp_fixed"];
        let control = text.split_whitespace().find(|word| known.contains(word));
        control.unwrap_or_else(|| panic!("no control in {text:?}")).to_owned()
    })
}

fn both(name: &str) -> [String; 2] {
    [name.into(), name.into()]
}

#[test]
#[ignore = "in a guest: make test"]
fn a_containers_connections_get_what_the_rule_of_its_cgroup_says_and_its_neighbours_their_own_defaults() {
    let _attachments = Attachments::lock();
    onramp("attach plain").ok();
    onramp("attach fixed").ok();
    let (one, two) = (Container::start("one", "reno"), Container::start("two", "cubic"));
    assert_eq!((controls(&one), controls(&two)), (both("reno"), both("cubic")));

    onramp(&format!("select add --cgroup {CGROUP}/one --use plain")).ok();
    assert_eq!((controls(&one), controls(&two)), (both("onramp_plain"), both("cubic")));
    // By its path, too; that of all containers decides for those without a nearer rule.
    onramp(&format!("select del --cgroup {}", one.cgroup().display())).ok();
    onramp(&format!("select add --cgroup {} --accept --use plain", one.cgroup().display())).ok();
    onramp(&format!("select add --cgroup {CGROUP} --use fixed")).ok();
    assert_eq!(controls(&one), ["onramp_plain", "onramp_fixed"].map(str::to_owned));
    assert_eq!(controls(&two), both("onramp_fixed"));

    // What is in progress in a container is listed from outside, with what chose it.
    let download = one.download();
    let accepted = || {
        let flows = json("flows --all")["flows"].as_array().unwrap().clone();
        let mut found = flows.into_iter().filter(|flow| flow["why"]["side"] == "accept");
        found.find(|flow| flow["why"]["cgroup"] == format!("{CGROUP}/one"))
    };
    assert!(eventually(|| accepted().is_some()));
    let why = accepted().unwrap()["why"].clone();
    assert_eq!((&why["chosen_by"], &why["code"]), (&"cgroup".into(), &"attached".into()), "{why}");
    assert_eq!(why["rule"], format!("--cgroup {CGROUP}/one --accept --use plain"), "{why}");

    // A container that ends takes its cgroup along; its rule is said to be without one, and goes.
    drop(download);
    drop(one);
    let listed = onramp("select list").ok();
    let gone: BTreeSet<_> = listed.lines().filter(|line| line.contains("--cgroup id:")).collect();
    assert_eq!(gone.len(), 1, "{listed}");
    assert_eq!(controls(&two), both("onramp_fixed"));
}
