//! `onramp lab` and `onramp bench` as a script sees them.

use onramp_tests::cli::{json, onramp};
use onramp_tests::{Attachments, root_or_skip};

#[test]
fn a_comparison_is_one_object_with_the_promised_fields_and_leaves_nothing_attached() {
    if !root_or_skip("a_comparison_is_one_object_with_the_promised_fields_and_leaves_nothing_attached") {
        return;
    }
    let _attachments = Attachments::lock();
    let directory = std::env::temp_dir().join(format!("onramp-lab-{}", std::process::id()));
    let command = format!(
        "-q lab compare --arms cubic,fixed --bytes 2000000 -n 1 --set fixed.exit_window_bytes=300000 -o {}",
        directory.display()
    );
    let text = onramp(&format!("--json {command}")).ok();
    assert_eq!(text.matches("\"schema\"").count(), 1, "{text}");
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((result["schema"].as_u64(), result["profile"].as_str()), (Some(1), Some("geo")));
    assert_eq!(result["bytes"].as_u64(), Some(2_000_000));
    let arms = result["arms"].as_array().unwrap();
    assert_eq!(arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect::<Vec<_>>(), ["cubic", "fixed"]);
    for arm in arms {
        for run in arm["runs"].as_array().unwrap() {
            for field in [
                "valid",
                "seconds",
                "goodput_bps",
                "retransmitted_segments",
                "queue_drops",
                "max_rtt_us",
                "exit",
            ] {
                assert!(run.get(field).is_some(), "no {field} in {run}");
            }
        }
    }
    let exit = &arms[1]["runs"][0]["exit"];
    assert_eq!(
        (exit["reason"].as_str(), exit["source"].as_str()),
        (Some("algorithm"), Some("record")),
        "{exit}"
    );
    let window = exit["window_bytes"].as_u64().unwrap();
    assert!((300_000..600_000).contains(&window), "{exit}");
    assert!(exit["seconds"].as_f64().unwrap() > 0.6, "{exit}");

    for file in ["manifest.json", "result.json", "plot.svg"] {
        assert!(directory.join(file).exists(), "{file} is missing");
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(json("status")["algorithms"].as_array().map(Vec::len), Some(0), "fixed was detached again");
}

#[test]
fn wrong_arms_settings_and_profiles_are_refused_before_anything_is_done() {
    let _attachments = Attachments::lock();
    for (arguments, expected) in [
        ("lab run nonsense", "there is no arm \"nonsense\""),
        ("lab compare --arms plain,plain", "given twice"),
        ("lab compare --arms plain --set plain", "write ALG.NAME=VALUE"),
        ("lab compare --arms plain --set search.alpha=2", "names no algorithm among the arms"),
        ("lab run plain --profile nowhere", "there is no profile \"nowhere\""),
        ("bench --pairs 0", "give 1 to 100"),
    ] {
        let message = onramp(arguments).refused(2);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}
