//! What is asked for wrongly is refused before anything is made, and a profile says what was found.

use clap::Parser;

use super::*;
use crate::global::Global;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    tune: Tune,
    #[command(flatten)]
    global: Global,
}

fn run(words: &[&str]) -> anyhow::Result<u8> {
    let words = CommandLine::try_parse_from([&["tune"], words].concat())?;
    words.tune.run(&Output::new(&words.global))
}

#[test]
fn what_is_asked_for_wrongly_is_refused_by_name() {
    let says = |words: &[&str]| run(words).unwrap_err().to_string();
    assert!(says(&["vegas"]).contains("vegas"));
    assert!(says(&["plain"]).contains("no parameters to vary"));
    assert!(says(&["search", "--population", "none.toml"]).contains("none.toml"));
    let two = ["search", "--profile", "geo,leo", "--write-profile", "x.toml"];
    assert!(says(&two).contains("--profile"), "{}", says(&two));
    for (option, value) in [
        ("--paths", "2"),
        ("--candidates", "2"),
        ("--loss-weight", "-1"),
        ("--confirm", "0"),
        ("--timeout", "25h"),
    ] {
        assert!(says(&["search", &format!("{option}={value}")]).contains(option));
    }
    assert!(says(&["search", "--write-profile", "x.toml"]).contains("--profile"));
}

#[test]
fn a_tuned_profile_has_what_differs_from_the_defaults_and_is_read_back() {
    let profile = profile::load("geo").unwrap();
    let mut parameters = onramp_loader::find("search").unwrap().parameters();
    parameters.assign(["threshold_pct=31", "look_back=min"]).unwrap();
    let tuned = tuned(profile.clone(), "mine".into(), &parameters);
    let text = toml::to_string(&tuned).unwrap();
    let read = Profile::parse(&text, "mine.toml").unwrap();
    assert_eq!((read.name.as_str(), read.algorithm.as_str()), ("mine", "search"));
    let mut again = onramp_loader::find("search").unwrap().parameters();
    profile::apply(&read, &mut again).unwrap();
    assert_eq!(again, parameters);
    assert_eq!(read.link, profile.link);
    assert_eq!(attach(&parameters), "onramp attach search --set threshold_pct=31 --set look_back=min");
}

/// A long path with a small queue.
const LINK: &str = r#"
version = 1
name = "long"
about = "a long path with a small queue"
algorithm = "fixed"

[link.forward]
rate_bps = 10_000_000
delay_us = 150_000
queue_bytes = 200_000

[link.return]
rate_bps = 10_000_000
delay_us = 150_000
queue_bytes = 200_000

[host]
tcp_rmem = [4096, 131072, 16000000]
tcp_wmem = [4096, 16384, 16000000]
"#;

#[test]
fn what_is_better_is_written_and_what_is_not_is_not() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    std::fs::write(at("long.toml"), LINK).unwrap();
    let (link, tuned, results) = (at("long.toml"), at("tuned.toml"), at("results"));
    let tune = |vary: &str| {
        let words = ["fixed", "--profile", &link, "--vary", vary, "--candidates", "9", "--paths", "3"];
        run(&[&words[..], &["--write-profile", &tuned, "-o", &results]].concat()).unwrap()
    };
    // No window above the queue's end is ever reached: all candidates are one.
    assert_eq!(tune("exit_window_bytes=3000000000..4000000000"), FAILURE);
    assert!(!std::path::Path::new(&tuned).exists());
    assert_eq!(tune("exit_window_bytes=20000..2000000"), 0);
    let written = std::fs::read_to_string(&tuned).unwrap();
    assert!(written.starts_with("# Found by `onramp sim tune fixed"), "{written}");
    let profile = Profile::parse(&written, "tuned.toml").unwrap();
    let [(name, Value::Integer(window))] = profile.parameters_of("fixed").collect::<Vec<_>>()[..] else {
        panic!("{profile:?}")
    };
    assert!(
        name == "exit_window_bytes" && (200_000..600_000).contains(window),
        "the path holds 375 kB: {window}"
    );
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(at("results/tune.json")).unwrap()).unwrap();
    assert_eq!(
        (&report["schema"], &report["better"], &report["kernel"]),
        (&1.into(), &true.into(), &serde_json::Value::Null)
    );
    assert!(std::path::Path::new(&at("results/front.svg")).exists());
    let text = std::fs::read_to_string(at("results/tune.md")).unwrap();
    assert!(text.contains("--confirm 5"), "{text}");
}
