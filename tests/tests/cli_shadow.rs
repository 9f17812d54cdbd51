//! `onramp shadow`: what it sees of a flow is what the kernel's shell sees, on whichever control, and nothing is left.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use nix::libc::linger;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use onramp_loader::abi::ExitRecord;
use onramp_loader::algorithm::{Ack, Flow, Parameters, ack_flag, all, find, outcome};
use onramp_loader::shadow::{Follower, Shadow, Step};
use onramp_loader::telemetry::{Event, Level, What};
use onramp_loader::{AttachOptions, ExitReason, Phase};
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::cli::{self, host_state, json, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::{eventually, namespace};
use onramp_tests::wire::{Data, Fate, Wire};
use onramp_tests::{Attachments, guest};
use serde_json::Value;

/// One way; the RTT is twice this and the queue.
const DELAY: Duration = Duration::from_millis(50);
/// Bytes per second, and segments of the queue: slow start overflows it.
const RATE: u32 = 1_500_000;
const QUEUE: u32 = 300;
/// Flows whose every acknowledgment is compared.
const FLOWS: usize = 2;

/// A shadow in progress; killed when dropped.
struct Watch(Option<Child>);

impl Watch {
    /// Starts it and waits until it watches.
    fn start(arguments: &str) -> Self {
        let mut command = cli::command(["--json", "shadow"]);
        let command = command.args(arguments.split_whitespace());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("watching"), "{line}");
        Self(Some(child))
    }

    fn pid(&self) -> i32 {
        self.0.as_ref().unwrap().id() as i32
    }

    /// Ends it as Ctrl-C does.
    fn report(mut self) -> Value {
        kill(Pid::from_raw(self.pid()), Signal::SIGINT).unwrap();
        let mut child = self.0.take().unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A slow start into a queue that overflows, and some more.
fn transfer(control: &str) -> String {
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, QUEUE)), control);
    sender.deliver(2_000_000);
    sender.stream.local_addr().unwrap().to_string()
}

/// Parameters with which most algorithms leave on this wire before the loss.
fn parameters() -> Vec<Parameters> {
    let parameters = all().map(|algorithm| {
        let mut parameters = algorithm.parameters();
        match algorithm.name() {
            "fixed" => parameters.set("exit_window_bytes", "200000").unwrap(),
            "best" => parameters.set("min_rate_bytes_per_s", "100000").unwrap(),
            _ => {}
        }
        parameters
    });
    parameters.collect()
}

/// Number of the acknowledgment on which an algorithm leaves, as a replay counts.
fn exit(parameters: &Parameters, acks: &[Ack]) -> Option<usize> {
    let mut flow = Flow::new(parameters.clone());
    acks.iter().position(|ack| {
        let verdict = flow.on_ack(ack);
        verdict.outcome == outcome::EXIT || verdict.ssthresh != 0 && verdict.ssthresh <= ack.cwnd
    })
}

/// The acknowledgments of a flow's first slow start, as its algorithm was asked about them.
fn asked(events: &[&Event]) -> Vec<Ack> {
    let until_loss = events.iter().take_while(|event| !matches!(event.what, What::Loss(_)));
    until_loss
        .filter_map(
            |event| if let What::Ack(ack) = &event.what { ack.answer().map(|_| ack.ack) } else { None },
        )
        .collect()
}

/// Fields of an acknowledgment that differ. Times may by what lies between two calls, and the RTT sample where the
/// acknowledgment is also a selective one: then the kernel has two.
fn differences(exact: &Ack, seen: &Ack) -> Option<(Ack, Ack)> {
    let close = exact.now_us.abs_diff(seen.now_us) < 1_000;
    let selective = u64::from(exact.delivered - 1) * u64::from(exact.mss) > exact.bytes_acked;
    let rtt_us = if selective { exact.rtt_us } else { seen.rtt_us };
    let same = Ack { now_us: exact.now_us, rtt_us, ..*seen };
    (!close || same != *exact).then_some((*exact, *seen))
}

#[test]
#[ignore = "in a guest: make test"]
fn every_acknowledgment_and_every_exit_is_as_in_the_kernel() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(find("plain").unwrap().parameters()));
    let (mut compared, mut late, mut exits, mut moved) = (0, 0, 0, 0);
    for _ in 0..FLOWS {
        let mut exact = stream(Level::Ack);
        let mut shadow = Shadow::open(onramp_loader::shadow::Watch::default()).unwrap();
        let local = transfer("onramp_plain");
        let items = until_ended(&mut exact, 1);
        let (mut follower, mut seen) = (Follower::default(), Vec::new());
        while let Some(snapshot) = shadow.next_within(Duration::from_millis(300)) {
            if snapshot.local().to_string() == local {
                seen.extend(follower.take(&snapshot).into_iter().filter_map(|step| match step {
                    Step::Ack { ack, .. } => Some(ack),
                    Step::Loss { .. } | Step::Past { .. } => None,
                }));
            }
        }
        let asked = asked(&events(&items));
        assert!(asked.len() > 200, "{}", asked.len());
        assert_eq!(asked.len(), seen.len());
        for (one, other) in asked.iter().zip(&seen) {
            assert_eq!(differences(one, other), None);
            late = late.max(one.now_us.abs_diff(other.now_us));
        }
        compared += seen.len();
        let at_the_same_time = |(one, other): (&Ack, &Ack)| Ack { now_us: one.now_us, ..*other };
        let retimed: Vec<_> = asked.iter().zip(&seen).map(at_the_same_time).collect();
        for parameters in parameters() {
            let (kernel, here) = (exit(&parameters, &asked), exit(&parameters, &seen));
            assert_eq!(kernel, exit(&parameters, &retimed), "{parameters:?}");
            exits += usize::from(kernel.is_some());
            moved += usize::from(kernel != here);
        }
        assert_eq!(follower.exit().map(|(reason, _)| reason), Some(ExitReason::Loss));
        assert_eq!(follower.lost, 0);
    }
    println!("{compared} acknowledgments, times by {late} us at most, {exits} exits, {moved} on another one");
    assert!(exits > 3 * FLOWS, "most algorithms leave on this wire");
    // An acknowledgment some microseconds later may fall into the next bin of `search` or end a train of `hystart`.
    assert!(moved * 4 < exits, "{moved} of {exits} exits moved by their times");
}

/// The row of the flow with this local address.
fn row<'a>(report: &'a Value, local: &str) -> Option<&'a Value> {
    report["flows"].as_array().unwrap().iter().find(|flow| flow["local"] == local)
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_of_stock_controls_are_evaluated_next_to_what_they_do() {
    guest::required();
    let registered = onramp_loader::kernel::registered().unwrap();
    let watch = Watch::start(
        "--algorithm plain,best,fixed --set best.min_rate_bytes_per_s=100000 --sweep fixed.exit_window_bytes=100000,200000",
    );
    let flows =
        ["cubic", "reno", "bbr"].into_iter().filter(|name| registered.iter().any(|have| have == name));
    let flows: Vec<_> = flows.map(|control| (control, transfer(control))).collect();
    let report = watch.report();
    assert_eq!(report["dropped"], 0, "{report}");
    for (control, local) in flows {
        let flow = row(&report, &local).unwrap_or_else(|| panic!("no {local}: {report}"));
        assert_eq!(flow["congestion_control"], control);
        assert_eq!((&flow["ended"], &flow["established"]), (&true.into(), &false.into()), "{flow}");
        let [plain, _, early, later] = &flow["findings"].as_array().unwrap()[..] else { panic!("{flow}") };
        assert!(plain["exit"].is_null() && plain["evaluated"].as_u64().unwrap() > 20, "{flow}");
        // Slow start passes the initial window before the second, in every control.
        let at = |finding: &Value| finding["exit"]["since_start_us"].as_u64();
        assert!(at(early).unwrap() < at(later).unwrap_or(u64::MAX), "{flow}");
        assert!(early["exit"]["window_bytes"].as_u64().unwrap() >= 100_000, "{flow}");
        println!("{control}: {} {} {}", flow["exit"], flow["acks"], early["exit"]["since_start_us"]);
        if control == "reno" {
            assert_eq!(flow["exit"]["reason"], "loss", "{flow}");
            assert!(at(early).unwrap() < flow["exit"]["since_start_us"].as_u64().unwrap(), "{flow}");
        }
    }
}

/// As the words of `--set`.
fn settings(parameters: &Parameters) -> String {
    let name = parameters.algorithm().name();
    let defaults: Vec<_> = parameters.algorithm().parameters().shown().collect();
    let set = parameters.shown().filter(|one| !defaults.contains(one));
    set.map(|(key, value)| format!(" --set {name}.{key}={value}")).collect()
}

/// The kernel records how a flow exited. The shadow of the same algorithm with the same parameters reports the same exit, but where
/// microseconds decide it; and where the flow exited first, that it does not know.
#[test]
#[ignore = "in a guest: make test"]
fn the_shadow_of_what_drives_a_flow_exits_where_the_kernel_has_recorded_it() {
    let attachments = Attachments::lock();
    let (mut by_algorithm, mut moved) = (0, 0);
    for parameters in parameters() {
        let algorithm = parameters.algorithm();
        let words = format!("--regret --algorithm {}{}", algorithm.name(), settings(&parameters));
        attachments.attach(&AttachOptions::new(parameters));
        let mut truth = stream(Level::Ack);
        let watch = Watch::start(&words);
        let local = transfer(&algorithm.congestion_control());
        let items = until_ended(&mut truth, 1);
        let exits = events(&items).into_iter().filter_map(|event| match &event.what {
            What::Exit(exit) => Some(*exit),
            _ => None,
        });
        let exits: Vec<_> = exits.collect();
        let flow = row(&watch.report(), &local).expect("the flow").clone();
        let [finding] = &flow["findings"].as_array().unwrap()[..] else { panic!("{flow}") };
        onramp_loader::detach(algorithm, false).unwrap();
        let exit = match exits[..] {
            [exit] => exit,
            // One that bounds its growth may stay below the queue.
            [] => {
                assert!(flow["exit"].is_null() && finding["exit"].is_null(), "{flow}");
                assert_eq!(finding["flow_left_first"], false, "{flow}");
                continue;
            }
            _ => panic!("{exits:?} of {}", algorithm.name()),
        };
        let is_the_same = |as_shown: &Value| {
            let at_us = as_shown["since_start_us"].as_u64();
            at_us.is_some_and(|at_us| at_us.abs_diff(exit.record.at_us) < 1_000)
                && as_shown["cwnd_segments"] == exit.record.window
                && as_shown["acknowledged_bytes"] == exit.record.bytes_acked
        };
        assert_eq!(flow["exit"]["reason"], exit.reason.name(), "{flow}");
        assert!(is_the_same(&flow["exit"]), "{exit:?} {flow}");
        assert_eq!(finding["flow_left_first"], finding["exit"].is_null(), "{flow}");
        if exit.reason == ExitReason::Algorithm {
            assert_eq!(flow["exit"]["algorithm"], algorithm.name(), "{flow}");
            by_algorithm += 1;
            moved += usize::from(!is_the_same(&finding["exit"]));
        } else {
            assert!(finding["exit"].is_null(), "{flow}");
        }
    }
    assert!(by_algorithm >= 4, "{by_algorithm} exits by algorithms");
    // The shadow is asked some microseconds later: see the test above.
    assert!(moved * 4 <= by_algorithm, "{moved} of {by_algorithm} exits moved by their times");
}

/// HyStart takes a longer way for a queue, and CUBIC leaves long before its window carries the path.
#[test]
#[ignore = "in a guest: make test"]
fn an_early_exit_of_cubic_is_reported_by_hystarts_name_with_its_cost_and_never_as_a_bare_no() {
    guest::required();
    let watch = Watch::start("--regret");
    let longer = |data: Data| match data.number {
        0..=30 => Fate::Deliver,
        _ => Fate::HoldBack(Duration::from_millis(40)),
    };
    let mut sender = Sender::connect(Wire::lay(DELAY, longer), "cubic");
    sender.deliver(4_000_000);
    let local = sender.stream.local_addr().unwrap().to_string();
    let flow = row(&watch.report(), &local).expect("the flow").clone();
    let exit = &flow["exit"];
    assert_eq!((&exit["reason"], &exit["algorithm"]), (&"algorithm".into(), &"hystart".into()), "{flow}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{flow}"));
    assert!(number(&flow["regret"]["window_to_bdp"]) < 0.7, "{flow}");
    assert!(number(&flow["regret"]["early_us"]) > 0.0, "{flow}");
    let [ramp] = &flow["findings"].as_array().unwrap()[..] else { panic!("{flow}") };
    assert_eq!(ramp["algorithm"], "ramp");
    assert_eq!(ramp["exit"].is_null(), ramp["flow_left_first"] == true, "{flow}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_threshold_kept_from_an_earlier_connection_has_a_row_in_doctor_and_a_reason_of_its_own() {
    guest::required();
    let wire = Wire::lay(DELAY, |data| if data.number == 60 { Fate::Drop } else { Fate::Deliver });
    wire.sysctl("net.ipv4.tcp_no_metrics_save", "0");
    wire.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", "0");
    let kept = cli::row(&cli::doctor(&wire.near, ""), "net.ipv4.tcp_no_ssthresh_metrics_save");
    assert_eq!(kept["verdict"], "warning", "{kept}");
    let mut first = Sender::connect(wire, "reno");
    first.deliver(500_000);
    let Sender { wire, stream, .. } = first;
    drop(stream);
    std::thread::sleep(DELAY * 10);
    let watch = Watch::start("--algorithm ramp");
    let mut second = Sender::connect(wire, "reno");
    second.deliver(500_000);
    let local = second.stream.local_addr().unwrap().to_string();
    let report = watch.report();
    assert_eq!(row(&report, &local).expect("the flow")["exit"]["reason"], "cached_ssthresh", "{report}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_open_flows_is_passed_over_unless_asked_for() {
    guest::required();
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, QUEUE)), "reno");
    sender.deliver(30_000);
    let local = sender.stream.local_addr().unwrap().to_string();
    let filter = format!("src {local}");
    let without = Watch::start(&format!("--algorithm search {filter}"));
    let with = Watch::start(&format!("--algorithm search --established {filter}"));
    let other = Watch::start("--algorithm search --established src 203.0.113.1");
    sender.deliver(100_000);
    let (without, with, other) = (without.report(), with.report(), other.report());
    assert!(without["skipped_established"].as_u64().unwrap() >= 1, "{without}");
    assert_eq!(without["flows"], Value::Array(Vec::new()));
    assert_eq!(row(&with, &local).unwrap()["established"], true, "{with}");
    assert_eq!(other["flows"], Value::Array(Vec::new()), "the filter");
}

#[test]
#[ignore = "in a guest: make test"]
fn of_many_flows_a_sample_is_followed_and_none_is_passed_over_for_want_of_room() {
    guest::required();
    let place = namespace();
    let all = Watch::start("--algorithm search");
    let some = Watch::start("--algorithm search --sample 10");
    place
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            for _ in 0..500 {
                let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (mut far, _) = listener.accept().unwrap();
                far.write_all(&[0; 5_000]).unwrap();
                near.read_exact(&mut [0; 5_000]).unwrap();
            }
        })
        .unwrap();
    let (all, some) = (all.report(), some.report());
    let followed = |report: &Value| report["flows"].as_array().unwrap().len();
    assert_eq!((&all["sample"], followed(&all)), (&1.into(), 500));
    // Of 1,000 ends; those that send nothing have no slow start.
    let share = followed(&some);
    assert!(some["sample"] == 10 && (25..=75).contains(&share), "{share} of 500");
    assert_eq!(some["skipped_too_many"], 0);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_has_ended_with_a_reset_takes_no_place_next_to_its_own() {
    guest::required();
    let place = namespace();
    let watch = Watch::start("--algorithm search");
    place
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            for _ in 0..10_400 {
                let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (far, _) = listener.accept().unwrap();
                for (mut from, mut to) in [(&near, &far), (&far, &near)] {
                    from.write_all(b"word").unwrap();
                    to.read_exact(&mut [0; 4]).unwrap();
                }
                // Its end is a reset, which disconnects it.
                setsockopt(&near, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 }).unwrap();
            }
        })
        .unwrap();
    let report = watch.report();
    assert_eq!(report["flows"].as_array().unwrap().len(), 10_000, "as many as are kept");
    // Of the other ends, some of which had nothing acknowledged.
    assert!(
        (400..=10_800).contains(&report["skipped_too_many"].as_u64().unwrap()),
        "{}",
        report["skipped_too_many"]
    );
}

/// Programs and maps of shadows on this host.
fn objects() -> Vec<(&'static str, u32)> {
    let ours = |name: &str| name.starts_with("shadow_");
    let programs = ProgInfoIter::default().filter(|one| ours(&one.name.to_string_lossy()));
    let maps = MapInfoIter::default().filter(|one| ours(&one.name.to_string_lossy()));
    programs.map(|one| ("program", one.id)).chain(maps.map(|one| ("map", one.id))).collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn nothing_is_left_of_a_killed_shadow_and_its_flows_go_on() {
    let _attachments = Attachments::lock();
    let (before, state) = (objects(), host_state(&[]));
    let added = || objects().iter().filter(|one| !before.contains(one)).count();
    let watch = Watch::start("--algorithm search,best");
    assert!(added() >= 6, "three programs and three maps");
    assert_eq!(host_state(&[]), state, "nothing is pinned or registered");
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, QUEUE)), "reno");
    sender.send(100_000);
    kill(Pid::from_raw(watch.pid()), Signal::SIGKILL).unwrap();
    drop(watch);
    sender.deliver(100_000);
    assert!(eventually(|| added() == 0), "{:?}", objects());
    assert_eq!(host_state(&[]), state);
}

#[test]
fn what_is_asked_for_wrongly_is_refused_before_anything_is_loaded() {
    for (arguments, said) in [
        ("--algorithm serach", "there is no algorithm"),
        ("--algorithm search --set treshold_pct=3", "treshold_pct"),
        ("--algorithm search --set best.min_rate_bytes_per_s=3", "names no algorithm"),
        ("--algorithm search dst nowhere", "not an address"),
        ("--algorithm search --for 10", "duration"),
    ] {
        let ran = onramp(&format!("shadow {arguments}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
}

/// Where a flow of `transfer`'s kind left, and where it would have; `None`: it would not.
fn observed(control: &str) -> (ExitReason, ExitRecord, Option<ExitRecord>) {
    let mut reported = stream(Level::Ack);
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, QUEUE)), control);
    sender.send(2_000_000);
    let flow = sender.flow_when(|flow| matches!(flow.phase(), Phase::Left(..)));
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    let listed = sender.wire.near.command(cli::binary()).args(["flows", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let in_listing = &listed["flows"][0]["observed"]["since_start_us"];
    assert_eq!(in_listing.as_u64(), flow.observed().map(|record| record.at_us), "{listed}");
    drop(sender);
    let items = until_ended(&mut reported, 1);
    let paced =
        |what: &What| matches!(what, What::Ack(reported) if reported.ack.flags & ack_flag::PACED != 0);
    assert!(!events(&items).iter().any(|event| paced(&event.what)), "{control}");
    let exit = events(&items).into_iter().find_map(|event| match &event.what {
        What::Exit(exit) => Some(*exit),
        _ => None,
    });
    let exit = exit.expect("reported");
    assert_eq!((exit.reason, exit.record.window, exit.observed), (reason, record.window, flow.observed()));
    (reason, record, flow.observed())
}

#[test]
#[ignore = "in a guest: make test"]
fn attached_to_observe_every_algorithm_grows_like_plain_and_says_where_it_would_have_left() {
    let attachments = Attachments::lock();
    let mut plain_window = 0;
    for parameters in parameters() {
        let algorithm = parameters.algorithm();
        let name = algorithm.name();
        attachments.attach(&AttachOptions { observe: true, ..AttachOptions::new(parameters) });
        let (reason, exit, would) = observed(&algorithm.congestion_control());
        println!("{name}: {reason:?} at {} segments, would leave: {would:?}", exit.window);
        assert_eq!(reason, ExitReason::Loss, "{name}");
        plain_window = if plain_window == 0 { exit.window } else { plain_window };
        assert!(exit.window.abs_diff(plain_window) < plain_window / 10, "{name}: {exit:?} {plain_window}");
        assert!(
            would.is_none_or(|would| would.at_us < exit.at_us && would.window <= exit.window),
            "{would:?}"
        );
        match name {
            "plain" | "threshold" => assert_eq!(would, None, "{name}"),
            "fixed" => {
                // The initial window beyond it; an acknowledgment of several segments passes it by several.
                let least = 200_000_u32.div_ceil(exit.mss.into());
                assert!((least..least + 8).contains(&would.unwrap().window), "{would:?}");
            }
            "search" | "best" | "hystart" => assert!(would.is_some(), "{name}"),
            _ => {}
        }
        onramp_loader::detach(algorithm, false).unwrap();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn observing_is_chosen_and_shown_on_the_command_line_and_is_what_keeps_search_from_leaving() {
    let _attachments = Attachments::lock();
    let attached = json("attach search --observe");
    assert_eq!(attached["observe"], true);
    assert_eq!(json("status")["algorithms"][0]["observe"], true);
    let (_, _, would) = observed("onramp_search");
    onramp("detach search").ok();
    assert_eq!(json("attach search")["observe"], false);
    let (reason, exit, none) = observed("onramp_search");
    assert_eq!((reason, none), (ExitReason::Algorithm, None));
    let ratio = f64::from(exit.window) / f64::from(would.unwrap().window);
    assert!((0.7..1.4).contains(&ratio), "left {exit:?}, would have left {would:?}");
    onramp("detach search").ok();
}
