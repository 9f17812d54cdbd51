//! Completion: what the programs answer, and what each shell makes of it.

use std::path::Path;
use std::process::Command;

use onramp_tests::cli::{self, Ran, onramp};

/// What a program offers for the last of these words: the values, and what they mean.
fn offered(program: &Path, words: &[&str]) -> Vec<(String, String)> {
    let mut command = Command::new(program);
    let answer: Ran = command.args(words).env("ONRAMP_COMPLETE", "1").output().unwrap().into();
    let line = |line: &str| line.split_once('\t').map(|(value, help)| (value.to_owned(), help.to_owned()));
    answer.ok().lines().map(|one| line(one).unwrap_or_else(|| panic!("{one:?}"))).collect()
}

fn values(words: &[&str]) -> Vec<String> {
    offered(cli::binary(), words).into_iter().map(|(value, _)| value).collect()
}

fn of_laboratory(words: &[&str]) -> Vec<String> {
    offered(&cli::laboratory(), words).into_iter().map(|(value, _)| value).collect()
}

#[test]
fn verbs_and_options_are_offered_with_their_meaning_and_hidden_ones_are_not() {
    let all = offered(cli::binary(), &["s"]);
    let verbs: Vec<_> = all.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(verbs, ["status", "select", "serve", "shadow", "sim"]);
    assert!(all.iter().all(|(_, help)| !help.is_empty()), "{all:?}");
    assert_eq!(values(&["completion"]), [""; 0]);
    assert!(values(&[]).contains(&"attach".to_owned()));
    assert_eq!(values(&["attach", "--dr"]), ["--dry-run"]);
    assert_eq!(values(&["select", "a"]), ["add"]);
    assert_eq!(values(&["attach", "ramp", "--base", "c"]), ["cubic"]);
}

#[test]
fn values_are_offered_by_what_the_words_before_name() {
    assert_eq!(values(&["attach", "sea"]), ["search"]);
    assert_eq!(values(&["attach", "--profile", "geo-t"]).len(), 3);
    assert_eq!(values(&["attach", "--profile=geo-r"]), ["--profile=geo-ramp"]);
    assert_eq!(values(&["tune", "search", "thresh"]), ["threshold_pct="]);
    assert_eq!(values(&["tune", "search", "threshold_pct="]), ["threshold_pct=0"]);
    assert_eq!(values(&["attach", "search", "--set", "exit_action=d"]), ["exit_action=drain"]);
    // Without a name: those of the profile's algorithm, or of the default.
    assert_eq!(values(&["attach", "--profile", "wifi", "--set", "confirm"]), ["confirm_bins="]);
    assert_eq!(values(&["attach", "--set", "exit_p"]), ["exit_pct="]);
    assert_eq!(values(&["shadow", "--algorithm", "search,be"]), ["search,best"]);
    assert_eq!(values(&["shadow", "--set", "best.min_rate"]), ["best.min_rate_bytes_per_s="]);
    // What cannot stand next to what is there is not offered.
    assert_eq!(values(&["attach", "--start", "resume+"]), ["resume+window", "resume+fast", "resume+suss"]);
    assert_eq!(values(&["attach", "--start", "suss+f"]), [""; 0]);
    assert_eq!(values(&["attach", "--after-exit", "plateau,f"]), ["plateau,floor"]);
}

#[test]
fn files_are_offered_where_files_are_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one.pcap"), "").unwrap();
    let begun = format!("{}/on", directory.path().display());
    assert_eq!(values(&["replay", "~/"]), [""; 0], "a shell's own");
    assert_eq!(values(&["replay", &begun]), [format!("{}/one.pcap", directory.path().display())]);
}

#[test]
fn the_laboratory_offers_arms_claims_cases_and_kernels() {
    assert_eq!(of_laboratory(&["compare", "--arms", "cubic,sea"]), ["cubic,search"]);
    assert_eq!(of_laboratory(&["compare", "--arms", "ramp:sta"]), ["ramp:start="]);
    assert_eq!(of_laboratory(&["compare", "--arms", "cubic,ramp:start=d"]), ["cubic,ramp:start=double"]);
    assert_eq!(
        of_laboratory(&["compare", "--arms", "search:base=reno:exit_action=d"]),
        ["search:base=reno:exit_action=drain"]
    );
    assert_eq!(of_laboratory(&["compare", "--arms", "cubic:"]), [""; 0]);
    assert_eq!(of_laboratory(&["sim", "compare", "--arms", "or"]), ["oracle"]);
    assert_eq!(of_laboratory(&["compare", "--arms", "or"]), [""; 0]);
    assert_eq!(of_laboratory(&["matrix", "--profile", "geo,leo-h"]), ["geo,leo-handover"]);
    assert_eq!(of_laboratory(&["reproduce", "geo-d"]), ["geo-download"]);
    assert_eq!(of_laboratory(&["sim", "reproduce", "geo-d"]), [""; 0]);
    assert_eq!(of_laboratory(&["evaluate", "ramp", "--case", "aqm,neighbour-c"]), ["aqm,neighbour-cubic"]);
    assert_eq!(of_laboratory(&["run", "--kernel", "6.1"]), ["6.1", "6.12"]);
}

#[test]
fn words_of_the_laboratory_are_completed_by_it_and_nothing_is_offered_where_it_is_missing() {
    assert_eq!(values(&["la"]), ["lab"]);
    assert_eq!(values(&["lab", "comp"]), ["compare"]);
    assert_eq!(values(&["--json", "lab", "compare", "--arms", "sea"]), ["search"]);
    assert_eq!(values(&["sim", "comp"]), ["compare"]);
    let (directory, program) = super::alone();
    let mut command = Command::new(&program);
    command.args(["lab", "comp"]).env("PATH", directory.path()).env("ONRAMP_COMPLETE", "1");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
}

/// What a shell offers after its script was read, a line each.
fn shell(name: &str, script: &str) -> Vec<String> {
    let directory = cli::binary().parent().unwrap().display().to_string();
    let path = format!("{directory}:/usr/bin:/bin");
    let mut command = Command::new(name);
    let ran: Ran = command.arg("-c").arg(script).env("PATH", path).output().unwrap().into();
    assert_eq!(ran.stderr, "");
    ran.ok().lines().map(str::to_owned).collect()
}

#[test]
fn bash_replaces_only_what_stands_after_the_last_equals_sign_or_colon() {
    let bash = |program: &str, line: &str, word: &str| {
        let function = program.replace('-', "_");
        shell(
            "bash",
            &format!(
                "source <({program} completions bash); compopt() {{ echo \"$@\"; }}
                COMP_LINE='{line}' COMP_POINT={}; _{function} {program} '{word}' ''
                complete -p {program} >/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                line.len()
            ),
        )
    };
    assert_eq!(bash("onramp", "onramp att", "att"), ["attach"]);
    assert_eq!(bash("onramp", "onramp attach search --set exit_action=d", "d"), ["drain"]);
    assert_eq!(bash("onramp", "onramp attach search --set exit_a", "exit_a"), ["-o nospace", "exit_action="]);
    assert_eq!(bash("onramp", "onramp attach search --set exit_action=", "").len(), 3);
    assert_eq!(bash("onramp", "onramp lab compare --arms cubic,ramp:start=d", "d"), ["double"]);
    assert_eq!(bash("onramp-lab", "onramp-lab compare --arms ramp:sta", "sta"), ["-o nospace", "start="]);
}

#[test]
fn zsh_describes_values_and_sets_no_space_after_those_that_go_on() {
    let zsh = |words: &str| {
        shell(
            "zsh",
            &format!(
                "_describe() {{ echo ${{(P)3}} $4 $5 }}; _files() {{ echo files }}; compdef() {{ }}
                source <(onramp completions zsh); words=({words}); CURRENT=${{#words}}; _onramp"
            ),
        )
    };
    let one = zsh("onramp attach sea");
    assert!(one.len() == 1 && one[0].starts_with("search:"), "{one:?}");
    let begun = zsh("onramp tune search thresh");
    assert!(begun[0].starts_with("threshold_pct=:") && begun[0].ends_with(" -S"), "{begun:?}");
    assert_eq!(zsh("onramp lab compare --arms ramp:start=d"), ["ramp\\:start=double"]);
    assert_eq!(zsh("onramp run -- make"), ["files"]);
}

#[test]
fn fish_lists_values_with_their_meaning() {
    let fish = |line: &str| {
        shell("fish", &format!("onramp completions fish | source; complete --do-complete '{line}'"))
    };
    let one = fish("onramp attach sea");
    assert!(one.len() == 1 && one[0].starts_with("search\t"), "{one:?}");
    assert_eq!(fish("onramp attach --profile=geo-r").len(), 1);
    assert_eq!(fish("onramp lab compare --arms ramp:start=d"), ["ramp:start=double"]);
}

#[test]
fn a_script_of_another_shell_is_refused() {
    assert_eq!(onramp("completions tcsh").code, Some(2));
}
