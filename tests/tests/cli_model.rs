//! `onramp-lab model`: the documents' figures as a script sees them. Needs no kernel.

use std::fs;

use onramp_tests::cli::{json, onramp};
use serde_json::Value;
use tempfile::tempdir;

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {value}"))
}

#[test]
fn threshold_gives_the_figures_of_002_without_options() {
    let report = json("lab model threshold --spacing 440pps");
    assert_eq!((number(&report, "largest_factor") * 100.0).floor(), 38.0);
    assert_eq!(report["safe_rate"]["kind"], "below");
    assert_eq!(number(&report["safe_rate"], "pps").floor(), 480.0);
    assert_eq!((&report["lossless"], &report["lower_threshold"]), (&false.into(), &"helps".into()));
    assert_eq!(report["spacing"]["lossless"], true);
    assert!(
        number(&report, "spaced_avoidance_window_packets")
            > number(&report, "standard_avoidance_window_packets")
    );

    let text = onramp("lab model threshold").ok();
    assert!(text.contains("0.386") && text.contains("481.0"), "{text}");
    // The same load in bits, and a buffer so large that any rate is safe.
    let in_bits = json("lab model threshold --cross-traffic 409600bit");
    assert_eq!(in_bits["cross_traffic_pps"], 100.0);
    let large = json("lab model threshold --buffer-packets 200");
    assert_eq!(
        (&large["safe_rate"], &large["lower_threshold"]),
        (&serde_json::json!({"kind": "unbounded"}), &"not-needed".into())
    );
    // At the rate that is left nothing overflows.
    let even =
        json("lab model threshold --rate 1mbit --packet-bytes 125 --cross-traffic 0pps --spacing 1kpps");
    assert_eq!(even["spacing"]["overflow_window_packets"], Value::Null);
}

#[test]
fn buffers_shows_what_000_shows_and_fails_where_it_is_not_so() {
    let home = tempdir().unwrap();
    let svg = home.path().join("buffers.svg");
    let report = json(&format!("lab model buffers --rate 150mbit --rtt 600ms -o {}", svg.display()));
    assert_eq!(
        (report["claims_failed"].as_u64(), report["claims"].as_array().map(Vec::len)),
        (Some(0), Some(8))
    );
    let path = &report["path"];
    assert_eq!(path["bdp_bytes"], 11_250_000);
    assert_eq!(
        (&path["required_bytes"], &path["recommended_bytes"]),
        (&22_500_000.into(), &26_214_400.into())
    );
    assert_eq!((&path["fits_default"], &path["fits_recommended"]), (&false.into(), &true.into()));
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.starts_with("<svg"));
    for text in ["GEO", "LEO", "4G", "5G", "4194304", "26214400", "capacity, Mb/s", "this path"] {
        assert!(drawn.contains(text), "{text}");
    }

    let larger = onramp("lab model buffers --default-bytes 16777216");
    assert_eq!(larger.code, Some(1), "{larger:?}");
    assert!(larger.stdout.contains("6 of 8") && larger.stdout.contains("not so: default"), "{larger:?}");
}

#[test]
fn bod_gives_the_figures_of_004_without_options() {
    let home = tempdir().unwrap();
    let svg = home.path().join("bod.svg");
    let report = json(&format!("lab model bod -o {}", svg.display()));
    assert!((number(&report, "delay_ratio") - 2.73).abs() < 0.005);
    assert!((number(&report, "best_factor") - 4.8).abs() < 0.05);
    let startups = report["startups"].as_array().unwrap();
    assert_eq!((startups.len(), report["factors"].as_array().map(Vec::len)), (9, Some(8)));
    for row in startups {
        assert_eq!(row["completions"].as_array().map(Vec::len), Some(3), "{row}");
        assert!(number(row, "saturation_seconds") > 5.0 && row["holds"] == true, "{row}");
    }
    let drawn = fs::read_to_string(&svg).unwrap();
    for text in ["W0 1, rho 2.73", "saturation", "1000 packets", "completion time, seconds"] {
        assert!(drawn.contains(text), "{text}");
    }
    let none = json("lab model bod --initial-window 10 --volumes 1");
    assert_eq!(none["startups"][2]["completions"][0]["seconds"], Value::Null);
}

#[test]
fn a_pretty_document_is_the_same_and_help_has_examples() {
    for verb in ["threshold", "buffers", "bod"] {
        let pretty = onramp(&format!("--pretty lab model {verb}")).ok();
        assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), json(&format!("lab model {verb}")));
        let help = onramp(&format!("lab model {verb} --help")).ok();
        assert!(help.contains("Examples:") && help.contains(" et al. "), "{help}");
    }
    assert!(onramp("lab model --help").ok().contains("Examples:"));
}

#[test]
fn values_out_of_range_are_named_with_what_is_allowed() {
    for (arguments, expected) in [
        ("threshold --cross-traffic 1500kbit", ["cross_traffic_pps = 366.2", "expected 0 to below 366.2"]),
        ("threshold --buffer-packets 0", ["buffer_packets = 0", "expected 1 to"]),
        ("threshold --rate 999bit", ["rate_bps = 999", "expected 1000 to"]),
        ("threshold --rtt 0s", ["rtt_seconds = 0", "expected"]),
        ("threshold --spacing 266pps", ["--spacing 266.0pps", "expected 266.2"]),
        ("threshold --spacing 633pps", ["--spacing 633.0pps", "to 632.4"]),
        ("buffers --rate 1mbit --rtt 21s", ["rtt_seconds = 21", "expected"]),
        ("buffers --default-bytes 1", ["--default-bytes 1", "expected 4096 to"]),
        ("buffers --default-bytes 30000000", ["--default-bytes 30000000", "--recommended-bytes 26214400"]),
        ("bod --factor 0", ["factor = 0", "expected 0.01 to 100"]),
        ("bod --factor nan", ["factor = NaN", "expected 0.01 to 100"]),
        ("bod --initial-window 132", ["initial_window_packets = 132", "less than 132.0"]),
        ("bod --initial-window 0", ["initial_window_packets = 0", "expected 1 to"]),
        ("bod --volumes 0", ["--volumes 0", "expected 1 to"]),
        ("bod --volumes 1,2,3,4,5,6,7,8", ["--volumes has 8 values", "give 1 to 7"]),
        ("bod --request-period 1h", ["allocation_delay_seconds", "expected 0 to 60"]),
    ] {
        let message = onramp(&format!("lab model {arguments}")).refused(2);
        assert!(expected.iter().all(|part| message.contains(part)), "{arguments}: {message}");
    }
    for arguments in [
        "lab model",
        "lab model nonsense",
        "lab model threshold --cross-traffic 100",
        "lab model threshold --packet-bytes 0",
        "lab model threshold --packet-bytes 65536",
        "lab model bod --packet-bytes 64Ki",
        "lab model threshold --rate 150",
        "lab model buffers --rate 150mbit",
        "lab model bod --factor many",
    ] {
        assert_eq!(onramp(arguments).code, Some(2), "{arguments}");
    }
}

#[test]
fn a_figure_that_cannot_be_written_is_an_error_that_names_it() {
    for verb in ["buffers", "bod"] {
        let message = onramp(&format!("lab model {verb} -o /nonexistent/figure.svg")).refused(1);
        assert!(message.contains("/nonexistent/figure.svg"), "{message}");
    }
}
