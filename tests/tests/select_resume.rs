//! Starts from memory, by rules that say what is known of a path (RFC 9959): the first window, the jump, the retreat.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::SndBuf};
use onramp_loader::algorithm::{StartEnd, StartPhase};
use onramp_loader::telemetry::{Level, What};
use onramp_tests::Attachments;
use onramp_tests::cli::{self, json, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, FAR, Fate, Wire};

/// One way.
const DELAY: Duration = Duration::from_millis(100);
/// Segments of 1,448 bytes that 64 kB hold, in pairs.
const FIRST_MAX: usize = 44;

fn rule(resume: &str, control: &str) {
    onramp(&format!("select add --replace --to {FAR} --use {control} {resume}")).ok();
}

/// Data packets that leave before anything is acknowledged: none ever is.
fn first_flight() -> usize {
    let counter = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&counter);
    let wire = Wire::lay(DELAY, move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Fate::Drop
    });
    let to = wire.far.run(|| TcpListener::bind((FAR, 0)).unwrap()).unwrap();
    let address = to.local_addr().unwrap();
    let mut stream = wire.near.run(|| TcpStream::connect(address).unwrap()).unwrap();
    setsockopt(&stream, SndBuf, &4_000_000).unwrap();
    stream.set_nonblocking(true).unwrap();
    assert!(stream.write(&vec![0; 200_000]).unwrap() > FIRST_MAX * 1_448);
    // A probe of new data comes after two round trips at the earliest.
    thread::sleep(Duration::from_millis(350));
    counter.load(Ordering::Relaxed)
}

#[test]
#[ignore = "in a guest: make test"]
fn the_first_window_is_half_of_the_known_path_and_no_more_than_a_receiver_can_offer() {
    let _attachments = Attachments::lock();
    onramp("attach plain --start resume").ok();
    onramp("attach ramp").ok();
    for control in ["plain", "ramp"] {
        for (resume, segments) in [
            ("", 10),
            // 2 Mbit/s over 200 ms are 50,000 bytes, 34 segments; they come in pairs.
            ("--resume 2mbit,200ms", 16),
            ("--resume 100mbit,200ms", FIRST_MAX),
            // Less than what everybody gets.
            ("--resume 500kbit,200ms", 10),
            // The handshake says that it is another path.
            ("--resume 2mbit,50ms", 10),
            ("--resume 2mbit,900ms", 10),
        ] {
            rule(resume, control);
            assert_eq!(first_flight(), segments, "{control} {resume}");
        }
    }
}

/// A connection by the rules, over a wire that asks `fate`.
fn connected(fate: impl FnMut(Data) -> Fate + Send + 'static) -> Sender {
    Sender::connect_by_default(Wire::lay(DELAY, fate))
}

#[test]
#[ignore = "in a guest: make test"]
fn once_its_first_window_is_acknowledged_a_connection_goes_to_half_of_the_known_path() {
    let _attachments = Attachments::lock();
    onramp("attach plain --start resume").ok();
    // 40 Mbit/s over 200 ms are 1,000,000 bytes; half of them 345 segments. Bytes acknowledged by then:
    let reached = |resume: &str| {
        rule(resume, "plain");
        let wire = Wire::lay(DELAY, |_| Fate::Deliver);
        // A receiver that has the room at once, where its kernel offers it.
        wire.sysctl("net.ipv4.tcp_rmem", "4096 8388608 8388608");
        wire.sysctl("net.ipv4.tcp_wmem", "4096 8388608 8388608");
        let mut sender = Sender::connect_by_default(wire);
        sender.send(2_000_000);
        let mut acknowledged = 0;
        assert!(eventually(|| {
            let info = sender.info();
            acknowledged = info.bytes_acked;
            info.snd_cwnd >= 345
        }));
        acknowledged
    };
    let (with, without) = (reached("--resume 40mbit,200ms"), reached(""));
    assert!(with * 2 < without, "{with} bytes acknowledged by then, {without} without");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_loss_in_the_jump_takes_it_back_and_ends_the_start() {
    let _attachments = Attachments::lock();
    onramp("attach plain --start resume").ok();
    rule("--resume 40mbit,200ms", "plain");
    // The hundredth packet is of the jump.
    let mut sender = connected(|data| if data.number == 100 { Fate::Drop } else { Fate::Deliver });
    sender.deliver(400_000);
    let info = sender.info();
    let threshold = info.snd_ssthresh.unwrap();
    assert!(info.retrans_total >= 1, "{info:?}");
    // Half of what was delivered since the jump began: far below CUBIC's 0.7 of 345.
    assert!(threshold < 150, "{info:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn acknowledgments_rounds_and_the_end_say_how_far_the_start_has_come() {
    use StartPhase::{Over, Reconnaissance, Unvalidated, Validating};
    let _attachments = Attachments::lock();
    onramp("attach plain --start resume").ok();
    rule("--resume 40mbit,200ms", "plain");
    for (lost, end) in [(None, StartEnd::Validated), (Some(100), StartEnd::Retreat)] {
        let mut stream = stream(Level::Ack);
        let mut sender =
            connected(move |data| if lost == Some(data.number) { Fate::Drop } else { Fate::Deliver });
        sender.deliver(2_000_000);
        drop(sender);
        let items = until_ended(&mut stream, 1);
        let (mut phases, mut ends, mut rounds, mut jumps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for event in events(&items) {
            match &event.what {
                What::Ack(ack) => {
                    phases.push(StartPhase::from_number(ack.start_phase.into()).unwrap());
                    ends.push(StartEnd::from_number(ack.start_end.into()));
                    jumps.push(ack.jump);
                }
                What::Round(round) => rounds.push(StartPhase::from_number(round.start_phase.into()).unwrap()),
                What::End(last) => assert_eq!(StartEnd::from_number(last.start_end), Some(end)),
                _ => {}
            }
        }
        phases.dedup();
        rounds.dedup();
        let jumped = phases.starts_with(&[Reconnaissance, Unvalidated]) && phases.last() == Some(&Over);
        assert!(jumped && phases.is_sorted(), "{phases:?}");
        assert!(lost.is_some() || phases.contains(&Validating), "{phases:?}");
        assert!(rounds.contains(&Unvalidated) && rounds.is_sorted(), "{rounds:?}");
        assert_eq!(ends.last(), Some(&Some(end)));
        // At most half of the path: less where the first ACKs came slower.
        assert!(jumps[0] == 0 && (21..=345).contains(jumps.last().unwrap()), "{jumps:?}");
    }
    // Without memory nothing is said.
    onramp(&format!("select add --replace --to {FAR} --use plain")).ok();
    let mut stream = stream(Level::Ack);
    let mut sender = connected(|_| Fate::Deliver);
    sender.deliver(100_000);
    drop(sender);
    let items = until_ended(&mut stream, 1);
    assert!(events(&items).iter().all(|event| match &event.what {
        What::Ack(ack) => (ack.start_phase, ack.start_end, ack.jump) == (0, 0, 0),
        _ => true,
    }));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_rule_is_refused_over_code_that_cannot_pace_and_said_to_be_without_effect_where_it_becomes_such() {
    let _attachments = Attachments::lock();
    let add = "select add --replace --port 7 --use plain --resume 40mbit,200ms";
    onramp("attach plain").ok();
    assert!(onramp(add).refused(2).contains("onramp upgrade plain --start resume"));
    onramp("upgrade plain --start resume").ok();
    onramp(add).ok();
    let listed = || onramp("select list").ok();
    assert!(!listed().contains("--start resume"));
    rule("--resume 2mbit,200ms", "plain");
    assert_eq!(first_flight(), 16);
    onramp("upgrade plain --start double").ok();
    assert!(listed().contains("--start resume"));
    assert_eq!(cli::row(&cli::doctor_of_root(), "known paths of select")["verdict"], "warning");
    assert_eq!(first_flight(), 10);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_known_of_a_path_is_listed_and_undone_as_it_was_given() {
    let _attachments = Attachments::lock();
    onramp("attach ramp").ok();
    rule("--resume 50mbit,600ms", "ramp");
    let listed = json("select list");
    let row = &listed["rules"][0];
    assert_eq!(row["resume_rate_bits_per_s"], 50_000_000);
    assert_eq!(row["resume_rtt_us"], 600_000);
    let undo = json("select del --all")["undo"].as_str().unwrap().to_owned();
    onramp(undo.strip_prefix("onramp ").unwrap()).ok();
    assert_eq!(json("select list"), listed);
    for (wrong, named) in [
        ("--use cubic --resume 50mbit,600ms", "50mbit,600ms"),
        ("--use ramp --resume 50mbit", "50mbit"),
        ("--use ramp --resume 0mbit,600ms", "0mbit"),
        ("--use ramp --resume 50mbit,600s", "600s"),
    ] {
        let said = onramp(&format!("select add --port 7 {wrong}")).refused(2);
        assert!(said.contains(named), "{said}");
    }
}
