//! Algorithms from outside the tree: from a header to an object, which everything takes by its path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_loader::algorithm::{self, Ack, Algorithm, Flow};
use onramp_loader::outside::{self, BuildError, Built};
use onramp_tests::cli::{self, json, onramp};
use onramp_tests::skip;
use tempfile::{TempDir, tempdir};

/// The header of an algorithm of the tree as that of another one: its own identifiers begin with the new name.
fn renamed(name: &str, new: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../bpf/algorithm/{name}.h"));
    let text = fs::read_to_string(path).unwrap();
    let (upper, new_upper) = (name.to_uppercase(), new.to_uppercase());
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let (mut made, mut is_text) = (String::new(), false);
    for word in text.split_inclusive(|letter| !is_word(letter)) {
        let (letters, end) = word.split_at(word.find(|letter| !is_word(letter)).unwrap_or(word.len()));
        // Identifiers that are the name or begin with it.
        let replaced =
            [(name, new), (upper.as_str(), new_upper.as_str())].into_iter().find_map(|(old, new)| {
                let rest = letters.strip_prefix(old).filter(|_| !is_text)?;
                (rest.is_empty() || rest.starts_with('_')).then(|| format!("{new}{rest}"))
            });
        made += &replaced.unwrap_or_else(|| letters.to_owned());
        made += end;
        is_text ^= end == "\"";
    }
    let control = algorithm::find(name).unwrap().congestion_control();
    made = made.replace(&format!("\"{control}\""), &format!("\"onramp_{new}\""));
    format!("#define {new_upper}_ABOUT \"of the tree\"\n#define {new_upper}_SOURCE \"here\"\n{made}")
}

fn build(header: &Path) -> Result<Built, BuildError> {
    outside::build(header, None, tempdir().unwrap().path())
}

/// Builds a copy of an algorithm of the tree.
fn copy(place: &TempDir, name: &str, new: &str) -> (Algorithm, PathBuf) {
    let header = place.path().join(format!("{new}.h"));
    fs::write(&header, renamed(name, new)).unwrap();
    let built = build(&header).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(built.warnings, "", "{name}");
    (built.algorithm, built.object)
}

/// ACKs of slow starts of many kinds, some of them lost, always the same.
fn acks() -> Vec<Ack> {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut ack = Ack { mss: 1_448, cwnd: 10, ssthresh: u32::MAX, gso_max_size: 65_536, ..Ack::default() };
    (ack.now_us, ack.min_rtt_us) = (1_000_000, 50_000);
    let mut all = Vec::new();
    for _ in 0..20_000 {
        ack.acked = random(4) as u32;
        ack.now_us += random(3_000);
        ack.bytes_acked += u64::from(ack.acked * ack.mss);
        ack.delivered += ack.acked;
        ack.cwnd = if random(2_000) == 0 { 10 } else { (ack.cwnd + ack.acked).min(5_000) };
        ack.bytes_outstanding = ack.cwnd * ack.mss;
        ack.bytes_sent = ack.bytes_acked + u64::from(ack.bytes_outstanding);
        ack.in_flight = ack.cwnd;
        ack.rtt_us = random(60) as i32 * 1_000 + if random(20) == 0 { -1_000_000 } else { 50_000 };
        ack.smoothed_rtt_us = 50_000 + random(50_000) as u32;
        ack.flags = random(16) as u32;
        ack.receiver_clock = (ack.now_us / 1_000) as u32;
        ack.receive_window = 1 << 20;
        ack.pacing_rate = random(100_000_000);
        all.push(ack);
    }
    all
}

#[test]
fn every_algorithm_of_the_tree_built_from_outside_does_and_shows_the_same() {
    let place = tempdir().unwrap();
    let tree: Vec<_> = algorithm::all().filter(|one| one.outside().is_none()).collect();
    assert!(tree.len() >= 10);
    let acks = acks();
    for (number, ours) in tree.into_iter().enumerate() {
        let (theirs, _) = copy(&place, ours.name(), &format!("copy{number}"));
        assert_eq!(theirs.tables(), ours.tables());
        // Texts have the name, too.
        let declared =
            |one: Algorithm| one.declarations().map(|one| (one.name, one.default)).collect::<Vec<_>>();
        assert_eq!(declared(theirs), declared(ours), "{ours:?}");
        assert_eq!((theirs.track(), theirs.traits()), (ours.track(), ours.traits()));
        // With what each parameter can be at most, too.
        let mut settings = vec![Vec::new()];
        settings
            .extend(ours.declarations().map(|one| vec![format!("{}={}", one.name, one.show(one.maximum))]));
        for settings in settings {
            let made = |algorithm: Algorithm| {
                let mut parameters = algorithm.parameters();
                parameters.assign(&settings).unwrap();
                (Flow::new(parameters.clone()), parameters)
            };
            let ((mut one, one_with), (mut other, other_with)) = (made(ours), made(theirs));
            for (at, ack) in acks.iter().enumerate() {
                assert_eq!(one.on_ack(ack), other.on_ack(ack), "{ours:?} {settings:?} {at}");
                if at % 499 == 0 {
                    assert_eq!(one.on_loss(ack, 77), other.on_loss(ack, 77), "{ours:?} {settings:?} {at}");
                    assert_eq!(one.state(), other.state(), "{ours:?} {settings:?} {at}");
                    let state = one.state();
                    assert_eq!(one_with.read_track(&state, ack), other_with.read_track(&state, ack));
                    assert_eq!(ours.picture(&state), theirs.picture(&state));
                }
                if at % 1_999 == 0 {
                    one.restart();
                    other.restart();
                }
            }
        }
    }
}

#[test]
fn a_copy_has_the_same_runs_in_the_simulator_as_the_one_of_the_tree() {
    let place = tempdir().unwrap();
    for (name, new) in
        [("hystart", "simone"), ("plain", "simtwo"), ("search", "simthree"), ("ramp", "simfour")]
    {
        let (_, object) = copy(&place, name, new);
        // What is done at the start and after the exit is not the algorithm's.
        let options = ":start=double:after_exit=none";
        let arms = format!("{name}{options},{}{options}", object.display());
        let result = json(&format!("sim compare --arms {arms} --profile geo --bytes 20M -n 2"));
        let arms = result["arms"].as_array().unwrap();
        assert!(arms[0]["runs"].as_array().is_some_and(|runs| runs.len() == 2), "{result}");
        assert_eq!(arms[0]["runs"], arms[1]["runs"], "{name}");
    }
}

#[test]
fn what_new_writes_builds_and_passes_its_tests_and_is_taken_by_its_path() {
    let place = tempdir().unwrap();
    let at = |file: &str| place.path().join(file).display().to_string();
    onramp(&format!("lab new mine -o {}", place.path().display())).ok();
    let report = json(&format!("lab build {}", at("mine.h")));
    assert_eq!(
        (report["algorithm"].as_str(), report["congestion_control"].as_str()),
        (Some("mine"), Some("onramp_mine"))
    );
    assert_eq!(report["tests"].as_array().unwrap().len(), 2);
    assert_eq!(report["parameters"][0]["name"], "rise_pct");
    let listed = json(&format!("list {}", at("mine.o")));
    assert_eq!(listed["algorithms"][0]["name"], "mine", "{listed}");
    // The names that are there are kept.
    assert!(onramp(&format!("lab new mine -o {}", place.path().display())).refused(2).contains("mine.h"));
    // Elsewhere these mean something else.
    for taken in ["ramp", "cubic", "oracle"] {
        let error = onramp(&format!("lab new {taken} -o {}", place.path().display())).refused(2);
        assert!(error.contains("another name"), "{error}");
    }
    let result = json(&format!(
        "sim compare --arms cubic,{}:rise_pct=10 --profile geo --bytes 20M -n 1",
        at("mine.o")
    ));
    assert_eq!(result["arms"][1]["runs"][0]["exit"]["reason"], "algorithm", "{result}");
    // A parameter that it does not have, and one out of its range.
    for setting in ["rise=10", "rise_pct=0"] {
        onramp(&format!("sim compare --arms {}:{setting}", at("mine.o"))).refused(2);
    }
}

#[test]
fn what_cannot_be_built_is_refused_with_what_to_do() {
    let place = tempdir().unwrap();
    let header = |name: &str, text: &str| {
        let path = place.path().join(format!("{name}.h"));
        fs::write(&path, text).unwrap();
        path
    };
    let build = |name: &str, text: &str| build(&header(name, text)).unwrap_err();
    for name in ["search", "ramp"] {
        let error = build(name, "");
        assert!(matches!(&error, BuildError::Outside(_)) && error.to_string().contains(name), "{error}");
    }
    for name in ["ninechars", "Big", "9th", "with-dash"] {
        let error = build(name, "");
        assert!(
            matches!(&error, BuildError::Name { .. }) && error.to_string().contains("15 bytes"),
            "{error}"
        );
    }
    outside::create("wrong", place.path()).unwrap();
    // A copy that has the names of what it was copied from.
    let text = fs::read_to_string(place.path().join("wrong.h")).unwrap();
    for (text, found) in [(text.as_str(), Some("WRONG_PARAMETERS")), ("", None)] {
        let error = build("copied", text);
        assert!(error.to_string().contains("COPIED_PARAMETERS"), "{error}");
        let BuildError::OtherNames { found: other, .. } = error else { panic!("{error}") };
        assert_eq!(other.as_deref(), found);
    }
    let text = fs::read_to_string(place.path().join("wrong.h")).unwrap();
    // Clang names the file and the line.
    let error =
        build("wrong", &text.replace("verdict->ssthresh = ack->cwnd;", "verdict->threshold = ack->cwnd;"));
    let line = 1 + text.lines().position(|line| line.contains("verdict->ssthresh = ")).unwrap();
    assert!(matches!(error, BuildError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(&format!("wrong.h:{line}:")), "{error}");
    // A test that fails, by its name and line.
    let test = place.path().join("wrong_test.c");
    let tests = fs::read_to_string(&test).unwrap();
    let error = build("wrong", &text.replace("verdict->ssthresh = ack->cwnd;", "verdict->ssthresh = 39;"));
    let line = 1 + tests.lines().position(|line| line.contains("verdict.ssthresh == 40")).unwrap();
    let BuildError::Tests { failures, .. } = &error else { panic!("{error}") };
    assert_eq!(failures.len(), 1, "{error}");
    assert!(failures[0].ends_with(&format!("line {line}")), "{error}");
    fs::remove_file(&test).unwrap();
    // What the declarations say.
    for (from, to, said) in [
        ("25, 1, 1000", "25, 26, 1000", "rise_pct"),
        ("\"onramp_wrong\"", "\"onramp_with_a_long_name\"", "15 bytes"),
        ("u64 round_end;", "u32 round_end;", "multiple of 8"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let error = build("wrong", &changed).to_string();
        assert!(error.contains(said), "{error}");
    }
    // What the verifier would refuse, the host's machine stops.
    let error = build("wrong", &text.replace("*state = (struct wrong){ 0 };", "state[1].unused = 1;"));
    assert!(error.to_string().contains("outside of its state"), "{error}");
    assert!(!place.path().join("wrong.o").exists());
}

/// A compiler that does not end; its process, and the directory that it works in, once it has begun.
fn endless_compiler(place: &Path) -> (PathBuf, PathBuf) {
    let (compiler, begun) = (place.join("clang"), place.join("begun"));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo clang version 19.1.7; exit; fi\necho $$ >{0}.new && mv {0}.new {0} && exec sleep 60\n",
        begun.display()
    );
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    (compiler, begun)
}

#[test]
fn a_build_that_a_signal_ends_leaves_nothing() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let (place, temporary) = (tempdir().unwrap(), tempdir().unwrap());
        outside::create("mine", place.path()).unwrap();
        let (compiler, begun) = endless_compiler(place.path());
        let mut command = cli::command(["lab", "build"]);
        command.arg(place.path().join("mine.h")).env("CLANG", compiler).env("TMPDIR", temporary.path());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        while !begun.exists() {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
        let compiler: i32 = fs::read_to_string(begun).unwrap().trim().parse().unwrap();
        kill(Pid::from_raw(compiler), Signal::SIGKILL).unwrap();
    }
}

#[test]
fn an_object_of_another_abi_and_what_is_none_are_refused_everywhere() {
    let place = tempdir().unwrap();
    let (_, object) = copy(&place, "plain", "other");
    let mut bytes = fs::read(&object).unwrap();
    let mark = b"onramp ABI\0\0";
    let at = bytes.windows(mark.len()).position(|bytes| bytes == mark).unwrap() + mark.len();
    bytes[at] += 1;
    let newer = place.path().join("newer.o");
    fs::write(&newer, &bytes).unwrap();
    let none = place.path().join("none.o");
    fs::write(&none, "int main(void)").unwrap();
    let cut = place.path().join("cut.o");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let lacking = place.path().join("lacking.o");
    for (path, said) in
        [(&newer, "built for ABI 2"), (&none, "lab build"), (&cut, "lab build"), (&lacking, "cannot read")]
    {
        for call in [
            "list PATH",
            "sim compare --arms cubic,PATH",
            "attach PATH --dry-run",
            "tune PATH",
            "lab compare --arms PATH",
        ] {
            let call = call.replace("PATH", path.to_str().unwrap());
            let error = onramp(&call).refused(2);
            assert!(error.contains(said), "{call}: {error}");
        }
    }
}

/// Commands of the page that are not run here, and why.
const ONLY_PARSED: [(&str, &str); 5] = [
    ("onramp lab compare", "makes guests; done by a test below"),
    ("onramp run", "changes the kernel; done by outside_kernel"),
    ("onramp attach", "changes the kernel; done by outside_kernel"),
    ("onramp tune", "changes the kernel; done by outside_kernel"),
    ("onramp detach", "changes the kernel; done by outside_kernel"),
];

#[test]
fn what_does_at_an_ack_what_the_verifier_refuses_ends_the_command_with_its_function_and_object() {
    let place = tempdir().unwrap();
    let header = place.path().join("wild.h");
    assert_eq!(onramp(&format!("lab new wild -o {}", place.path().display())).code, Some(0));
    let text = fs::read_to_string(&header).unwrap();
    // No sooner than its first calls: what fails in those is not built.
    let at_an_ack = "wild_on_ack(struct wild *state";
    let body = text.find(at_an_ack).and_then(|at| text[at..].find("{\n").map(|open| at + open + 2)).unwrap();
    let (before, after) = text.split_at(body);
    let late = "\tif (ack->bytes_acked > 50000)\n\t\t((u32 *)state)[ack->bytes_acked] = 1;\n";
    fs::write(&header, format!("{before}{late}{after}")).unwrap();
    let object = build(&header).unwrap().object;
    let object = object.display();
    for command in [
        format!("sim run {object} --profile terrestrial --bytes 1M"),
        format!("sim compare --profile terrestrial --arms cubic,{object} --bytes 1M"),
        format!("sim sweep --arms cubic,{object} --paths 20 -o {}", place.path().join("swept").display()),
    ] {
        let ran = onramp(&command);
        assert_eq!(ran.code, Some(1), "{command}: {ran:?}");
        assert!(ran.stderr.contains("wild_on_ack") && !ran.stderr.contains("panicked"), "{ran:?}");
    }
}

#[test]
fn the_commands_of_the_page_run_one_after_the_other() {
    let place = tempdir().unwrap();
    fs::create_dir(place.path().join("bin")).unwrap();
    for program in [cli::binary().clone(), cli::laboratory()] {
        let name = program.file_name().unwrap();
        symlink(fs::canonicalize(&program).unwrap(), place.path().join("bin").join(name)).unwrap();
    }
    let path = format!("{}:{}", place.path().join("bin").display(), std::env::var("PATH").unwrap());
    let blocks = include_str!("../../docs/outside.md").split("\n```").skip(1).step_by(2);
    let mut unused = ONLY_PARSED.map(|(words, _)| words).to_vec();
    let mut ran = 0;
    for line in blocks.flat_map(str::lines).filter(|line| line.starts_with("onramp")) {
        if let Some((words, _)) = ONLY_PARSED.iter().find(|(words, _)| line.starts_with(words)) {
            unused.retain(|other| other != words);
            continue;
        }
        // The same in small.
        let line = line.replace("-n 5", "-n 1").replace("--paths 100", "--paths 5");
        let output = Command::new("bash")
            .args(["-c", &line])
            .current_dir(place.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        ran += 1;
    }
    assert_eq!((ran, unused), (6, Vec::new()));
    assert!(place.path().join("sweep/front.svg").exists());
}

/// The kernel whose runs are compared.
const KERNEL: &str = "6.12";

#[test]
fn a_copy_exits_over_kernel_tcp_with_the_same_ack_at_the_same_window_as_the_one_of_the_tree() {
    let is_kept = |one: &serde_json::Value| one["series"] == KERNEL && one["release"].is_string();
    if !json("lab kernel list")["kernels"].as_array().unwrap().iter().any(is_kept) {
        return skip("no kernel is kept: `onramp lab kernel fetch`");
    }
    let place = tempdir().unwrap();
    let (_, object) = copy(&place, "hystart", "kernel");
    let result = json(&format!(
        "-q lab compare --kernel {KERNEL} --profile geo --arms hystart,{} --bytes 2M -n 1 -o {}",
        object.display(),
        place.path().join("run").display()
    ));
    let exit = |arm: usize| &result["arms"][arm]["runs"][0]["exit"];
    // Digests differ: a guest with the object has executed other instructions before, so times do by a microsecond.
    for field in ["acks", "window_bytes", "reason", "source"] {
        assert_eq!(exit(0)[field], exit(1)[field], "{field}: {result}");
    }
    assert_eq!(exit(0)["reason"], "algorithm", "{result}");
}

#[test]
fn whatever_an_object_has_been_changed_to_is_read_or_refused() {
    let place = tempdir().unwrap();
    let (_, object) = copy(&place, "search", "changed");
    let bytes = fs::read(&object).unwrap();
    // The host's part is an object of its own in it.
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\x7fELF"));
    let check = |bytes: &[u8]| algorithm::outside::check(bytes, &object);
    let host = starts.map(|at| &bytes[at..]).find(|part| check(part).is_ok()).unwrap();
    let mut seed = 11u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut refused, end) = (0, 20_000.min(host.len()));
    for _ in 0..3_000 {
        let mut changed = host[..end].to_vec();
        for _ in 0..=random(4) {
            let at = random(end);
            changed[at] = [0, 1, 127, 255, random(256) as u8][random(5)];
        }
        refused += u32::from(check(&changed).is_err());
    }
    assert!((300..3_000).contains(&refused), "{refused}");
}
