//! Congestion controls of a kernel as arms and competitors of the lab, in virtual time on this machine.

use onramp_tests::cli::{json, onramp};
use onramp_tests::skip;
use tempfile::tempdir;

/// The kernel whose controls are tried.
const KERNEL: &str = "6.12";

fn is_kept() -> bool {
    let kept = json("lab kernel list")["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .any(|one| one["series"] == KERNEL && one["release"].is_string());
    if !kept {
        skip("no kernel is kept: `onramp lab kernel fetch`");
    }
    kept
}

/// `yeah` needs the module of another one.
#[test]
fn what_the_kernel_has_as_a_module_is_an_arm_and_a_competitor() {
    if !is_kept() {
        return;
    }
    let place = tempdir().unwrap();
    let result = json(&format!(
        "-q lab compare --kernel {KERNEL} --profile terrestrial --arms hybla,yeah --competitor westwood --lead 1 --bytes 100k -n 1 -o {}",
        place.path().join("run").display()
    ));
    let arms = result["arms"].as_array().unwrap();
    assert_eq!(arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["hybla", "yeah"]);
    for arm in arms {
        assert_eq!(arm["runs"][0]["valid"], true, "{arm}");
        assert_eq!(arm["competitor_share"]["n"], 1, "{arm}");
    }
}

/// A transfer of `bytes` by each arm.
fn transfers(profile: &str, arms: &str, bytes: &str) -> Vec<serde_json::Value> {
    let place = tempdir().unwrap();
    let result = json(&format!(
        "-q lab compare --kernel {KERNEL} --profile {profile} --arms {arms} --bytes {bytes} -n 1 -o {}",
        place.path().join("run").display()
    ));
    result["arms"].as_array().unwrap().iter().map(|arm| arm["runs"][0].clone()).collect()
}

#[test]
fn suss_is_faster_over_a_long_path_to_an_opened_receiver_and_a_policer_stops_it() {
    if !is_kept() {
        return;
    }
    let opened = "host.tcp_rmem=4096/33554432/268435456";
    let runs = transfers("geo", &format!("plain:{opened},plain:start=suss:{opened}"), "1M");
    let seconds = |run: &serde_json::Value| run["seconds"].as_f64().unwrap();
    assert!(seconds(&runs[1]) < 0.8 * seconds(&runs[0]), "{runs:?}");
    assert_eq!(runs[1]["retransmitted_segments"], 0, "{runs:?}");
    let runs = transfers("policer", "plain,plain:start=suss", "2M");
    for run in &runs {
        assert_eq!((&run["valid"], &run["exit"]["reason"]), (&true.into(), &"loss".into()), "{run}");
    }
}

#[test]
fn what_the_kernel_lacks_is_refused_with_all_that_it_has() {
    if !is_kept() {
        return;
    }
    let error = onramp(&format!("lab compare --kernel {KERNEL} --arms hybia")).refused(2);
    for name in ["\"hybia\"", "hybla", "cubic", "reno", "bbr", "illinois", "dctcp", "cdg", "vegas"] {
        assert!(error.contains(name), "{name}: {error}");
    }
    // Simulations have fewer.
    let error = onramp("sim compare --arms hybla").refused(2);
    assert!(!error.contains("illinois"), "{error}");
}
