//! The kernel's BBR as the base: how its start ends, cause by cause, on a wire whose packets have scripted fates, and
//! that it is the kernel's own otherwise.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module};
use onramp_loader::algorithm;
use onramp_loader::{AttachOptions, Base, Changes, ExitReason, Flow, Phase};
use onramp_net::Namespace;
use onramp_tests::bottleneck::{SEGMENT, bottleneck};
use onramp_tests::sender::Sender;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, Fate, Wire};
use onramp_tests::{Attachments, cli};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
/// Of the bottleneck, bytes of payload per second: 27 segments in an RTT.
const RATE: u32 = 1_000_000;
/// Where the guest has its modules.
const MODULE: &str = "/modules/tcp_bbr.ko";

fn left(flow: &Flow) -> bool {
    matches!(flow.phase(), Phase::Left(..))
}

fn options(algorithm: &str, settings: &[&str]) -> AttachOptions {
    let mut parameters = onramp_loader::find(algorithm).unwrap().parameters();
    parameters.assign(settings).unwrap();
    AttachOptions { base: Some(Base::Bbr), ..AttachOptions::new(parameters) }
}

/// Attaches an algorithm with base BBR for one test.
fn attached(algorithm: &str, settings: &[&str]) -> Attachments {
    let attachments = Attachments::lock();
    attachments.attach(&options(algorithm, settings));
    attachments
}

fn slow_starts(flow: &Flow) -> u32 {
    flow.header.unwrap().slow_starts.into()
}

/// Every algorithm that decides an exit goes over a bottleneck with a queue of sixteen times the path. After its exit the
/// rate and the window are those of BBR's model of the path: not of the half that slow start has measured when it ends,
/// and not of the queue.
#[test]
#[ignore = "in a guest: make test"]
fn after_the_exit_bbr_has_the_rate_of_the_path() {
    for (name, settings) in [
        ("fixed", &["exit_window_bytes=60000"][..]),
        ("ramp", &[]),
        // The rate of this wire is their least by default.
        ("spacing", &["min_rate_bytes_per_s=100000"]),
        ("best", &["min_rate_bytes_per_s=100000"]),
        ("search", &[]),
        ("hystart", &[]),
        ("hystartpp", &[]),
    ] {
        let attachments = attached(name, settings);
        let control = onramp_loader::find(name).unwrap().congestion_control();
        let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, 16 * 27)), &control);
        sender.send(2_000_000);
        let flow = sender.flow_when(left);
        let Phase::Left(reason, record) = flow.phase() else { panic!("{name}: {:?}", flow.phase()) };
        assert_eq!(reason, ExitReason::Algorithm, "{name}: {record:?}");
        sender.deliver(1_000_000);
        let flow = sender.flow();
        let rate = flow.info.pacing_rate_bytes_per_s.expect("BBR paces");
        let wire = u64::from(RATE / SEGMENT * 1500);
        assert!((wire / 2..wire * 3 / 2).contains(&rate), "{name}: {rate} bytes per second, {:?}", flow.info);
        assert!(flow.info.snd_cwnd < 4 * 27, "{name}: {:?}", flow.info);
        assert_eq!(flow.info.retrans_total, 0, "{name}: nothing was lost: {record:?}, {:?}", flow.info);
        assert_eq!(slow_starts(&flow), 1, "{name}");
        drop(sender);
        drop(attachments);
    }
}

/// Slow start was left far below what the path carries, as the rate shows that rises with each larger window: it goes on, by an
/// eighth after the first two such rounds and by a quarter after each further one.
#[test]
#[ignore = "in a guest: make test"]
fn after_an_early_exit_the_window_grows_for_as_long_as_the_rate_does() {
    let _attached = attached("fixed", &["exit_window_bytes=60000"]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    let mut windows = Vec::new();
    for _ in 0..500 {
        // A write returns once there is room in the buffer, so something always waits to be sent.
        sender.send(20_000);
        let flow = sender.flow();
        let Phase::Left(_, record) = flow.phase() else { continue };
        windows.extend(windows.is_empty().then_some(record.window_after));
        windows.extend((windows.last() != Some(&flow.info.snd_cwnd)).then_some(flow.info.snd_cwnd));
        if windows.len() == 7 {
            break;
        }
    }
    assert_eq!(windows.len(), 7, "{windows:?}");
    for (step, part) in windows.windows(2).zip([8, 8, 4, 4, 4, 4]) {
        assert_eq!(step[1], step[0] + step[0] / part, "{windows:?}");
    }
}

/// BBR goes through losses that a path has at random, and so does its start under an algorithm.
#[test]
#[ignore = "in a guest: make test"]
fn a_lost_segment_does_not_end_the_start() {
    let _attached = attached("fixed", &["exit_window_bytes=400000"]);
    let wire = Wire::lay(DELAY, |data| if data.number == 60 { Fate::Drop } else { Fate::Deliver });
    let mut sender = Sender::connect(wire, "onramp_fixed");
    sender.send(3_000_000);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Algorithm, "{record:?}");
    assert!(record.window_bytes() >= 400_000, "{record:?}");
    assert_eq!((flow.info.retrans_total, slow_starts(&flow)), (1, 1), "{:?}", flow.info);
}

/// A queue that overflows loses more than 2 % of the window: BBR's start is over, and its model is of the bottleneck.
#[test]
#[ignore = "in a guest: make test"]
fn a_queue_that_overflows_ends_the_start_by_loss() {
    let _attached = attached("plain", &[]);
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, 27)), "onramp_plain");
    sender.send(2_000_000);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Loss, "{record:?}");
    assert!(record.window >= 2 * 27, "the window before the loss: {record:?}");
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 1_500_000);
    assert_eq!(slow_starts(&flow), 1);
    assert!(flow.info.snd_cwnd < 4 * 27, "{:?}", flow.info);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_congestion_mark_ends_the_start_by_ecn() {
    let _attached = attached("plain", &[]);
    let wire = Wire::lay(DELAY, |data| if data.number == 60 { Fate::Mark } else { Fate::Deliver });
    wire.sysctl("net.ipv4.tcp_ecn", "1");
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.send(500_000);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Ecn, "{record:?}");
    assert_eq!(flow.info.retrans_total, 0);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_silent_wire_is_a_timeout_after_which_slow_start_begins_anew() {
    let _attached = attached("fixed", &["exit_window_bytes=400000"]);
    let mut dead_until = None;
    let dead = move |data: Data| {
        if data.number == 100 {
            dead_until = Some(Instant::now() + Duration::from_millis(900));
        }
        if dead_until.is_some_and(|until| Instant::now() < until) { Fate::Drop } else { Fate::Deliver }
    };
    let mut sender = Sender::connect(Wire::lay(DELAY, dead), "onramp_fixed");
    sender.send(1_500_000);
    let flow = sender.flow_when(|flow| slow_starts(flow) > 1);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Timeout, "{record:?}");
    assert_eq!(slow_starts(&flow), 2, "counted, not recorded");
    assert!(record.window >= 10, "the window before the timeout: {record:?}");
}

/// More than a tenth of a window arrives late, is taken for lost and retransmitted, which ends the start; the receiver says that it
/// had it all, and the start goes on until the algorithm ends it.
#[test]
#[ignore = "in a guest: make test"]
fn losses_that_were_none_take_the_exit_back() {
    let _attached = attached("fixed", &["exit_window_bytes=400000"]);
    let late = |data: Data| {
        let held = (60..68).contains(&data.number) && !data.retransmission;
        if held { Fate::HoldBack(Duration::from_millis(45)) } else { Fate::Deliver }
    };
    let mut sender = Sender::connect(Wire::lay(DELAY, late), "onramp_fixed");
    sender.send(3_000_000);
    let flow = sender.flow_when(|flow| flow.header.unwrap().exit.undone > 0);
    let header = flow.header.unwrap();
    assert_eq!(header.exit.undone, 1, "{header:?} {:?}", flow.info);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Algorithm, "{record:?}");
}

/// With cong_control the kernel restarts nothing after an idle time, and BBR paces instead: the window and the slow
/// start are as they were, and an application that sends little does not make the window grow.
#[test]
#[ignore = "in a guest: make test"]
fn idle_times_and_small_requests_neither_restart_nor_end_the_start() {
    let _attached = attached("plain", &[]);
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "1");
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.deliver(100_000);
    let before = sender.flow();
    thread::sleep(Duration::from_millis(1200));
    for _ in 0..8 {
        sender.deliver(4_000);
    }
    let after = sender.flow();
    assert!(matches!(after.phase(), Phase::SlowStart), "{:?}", after.phase());
    assert_eq!((slow_starts(&before), slow_starts(&after)), (1, 1));
    assert_eq!(after.info.snd_cwnd, before.info.snd_cwnd);
}

/// BBR looks for the minimum RTT after ten seconds. If it does so in the round in which what slow start ended with is measured,
/// it may see the rate rise by more than a quarter: then its pipe is not full, and slow start goes on, and doubles from the
/// window that it had reached. In which round it looks depends on when the connection gets to send, and on the kernel.
#[test]
#[ignore = "in a guest: make test"]
fn a_start_that_bbr_takes_up_again_doubles() {
    let taken_up_again = |small_requests| {
        let _attached = attached("fixed", &["exit_window_bytes=50000"]);
        // No sample is as low as the handshake's, which is ten seconds old then.
        let held = |_| Fate::HoldBack(Duration::from_millis(2));
        let mut sender = Sender::connect(Wire::lay(Duration::from_millis(500), held), "onramp_fixed");
        for _ in 0..small_requests {
            sender.send(SEGMENT as usize);
            thread::sleep(Duration::from_millis(200));
        }
        sender.send(100_000);
        let flow = sender.flow_when(left);
        assert_eq!(slow_starts(&flow), 1, "{:?}", flow.phase());
        let further = Changes { settings: &["exit_window_bytes=400000".to_owned()], ..Changes::default() };
        onramp_loader::tune(onramp_loader::find("fixed").unwrap(), None, &further, false).expect("tuned");
        sender.send(1_500_000);
        Some(sender.flow()).filter(|flow| slow_starts(flow) == 2)
    };
    let flow = (34..42).find_map(taken_up_again).expect("BBR has looked while a round was measured");
    assert!(flow.info.snd_cwnd > 4 * 50_000 / SEGMENT, "{:?}", flow.info);
}

/// The window that the connection has is kept for the round that BBR needs to measure; BBR does not start anew, which
/// would be up to 2.9 times what the path holds.
#[test]
#[ignore = "in a guest: make test"]
fn a_connection_taken_over_in_mid_life_is_past_its_start() {
    let _attached = attached("plain", &[]);
    let wire = Wire::lay(DELAY, bottleneck(RATE, 16 * 27));
    let mut sender = Sender::connect(wire, "reno");
    sender.deliver(100_000);
    sender.choose("onramp_plain");
    let flow = sender.flow();
    assert!(matches!(flow.phase(), Phase::Adopted), "{:?}", flow.phase());
    let window = flow.info.snd_cwnd;
    sender.send(1_000_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 900_000);
    assert_eq!(slow_starts(&flow), 0, "it is not evaluated as if it had just begun");
    assert!(flow.info.snd_cwnd <= window.max(3 * 27), "{window} segments before, {:?}", flow.info);
}

/// Attached to observe, everything is the kernel's BBR, called through ours: over a path whose queue BBR's start
/// overflows, its start, recovery and drain take as long as the kernel's own, and lose as many segments. What follows
/// depends on the phase of probing that BBR draws at random.
#[test]
#[ignore = "in a guest: make test"]
fn called_through_ours_bbr_is_the_kernels() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions { observe: true, ..options("plain", &[]) });
    // BBR begins to probe in a phase that it draws at random, which moves the time of one flow by a tenth.
    const FLOWS: u32 = 6;
    let [stock, ours] = ["bbr", "onramp_plain"].map(|control| {
        let (mut elapsed, mut again, mut drained) = (Duration::ZERO, 0, 0);
        for _ in 0..FLOWS {
            let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(RATE, 27)), control);
            let begin = Instant::now();
            sender.deliver(300_000);
            elapsed += begin.elapsed();
            let info = sender.info();
            again += info.retrans_total;
            drained += u32::from(info.snd_ssthresh.is_some());
        }
        (elapsed / FLOWS, again, drained)
    });
    println!("mean time, retransmitted, flows that drained: {stock:?}, through ours {ours:?}");
    assert!(stock.1 > 0, "BBR's start overflows this queue");
    assert!(ours.0.abs_diff(stock.0) * 10 < stock.0, "{ours:?} and {stock:?}");
    assert!(ours.1.abs_diff(stock.1) * 5 <= stock.1, "{ours:?} and {stock:?}");
    assert_eq!(stock.2, ours.2, "all have drained, or none");
    drop(attachments);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_goes_on_after_the_exit_is_refused() {
    let attachments = Attachments::lock();
    for one in algorithm::all().filter(|one| one.is_always_called()) {
        let error = onramp_loader::attach(&options(one.name(), &[])).unwrap_err().to_string();
        assert!(error.contains(one.name()) && error.contains("base bbr"), "{error}");
    }
    drop(attachments);
}

/// Where BBR is a module that is not loaded, nothing loads it, and the error has the command.
#[test]
#[ignore = "in a guest: make test"]
fn without_its_module_bbr_is_refused() {
    let attachments = Attachments::lock();
    // Programs and sockets of the tests before are freed in the kernel's own time.
    let unloaded = eventually(|| delete_module(c"tcp_bbr", DeleteModuleFlags::O_NONBLOCK).is_ok());
    assert!(unloaded, "a connection uses the module");
    let error = onramp_loader::attach(&options("plain", &[])).unwrap_err();
    let doctor = cli::doctor(&Namespace::current().unwrap(), "");
    let again = File::open(MODULE).expect(MODULE);
    finit_module(&again, c"", ModuleInitFlags::empty()).expect("the module");
    assert!(error.to_string().contains("modprobe tcp_bbr"), "{error}");
    let check = cli::row(&doctor, "BBR callable from BPF");
    let (found, advice) = (check["found"].as_str().unwrap(), check["advice"].as_str().unwrap());
    assert!(found.contains("not loaded") && advice.contains("modprobe tcp_bbr"), "{check}");
    onramp_loader::attach(&options("plain", &[])).expect("the module is there again");
    drop(attachments);
}
