//! How slow start ends in the kernel, cause by cause: each is staged on a wire whose packets have scripted fates, and
//! the record that the flow keeps is read back.

use std::thread;
use std::time::{Duration, Instant};

use onramp_loader::{AttachOptions, Base, ExitReason, Flow, Phase};
use onramp_tests::Attachments;
use onramp_tests::sender::Sender;
use onramp_tests::wire::{Data, Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);

fn left(flow: &Flow) -> bool {
    matches!(flow.phase(), Phase::Left(..))
}

/// Attaches an algorithm for one test.
fn attached(algorithm: &str, settings: &[&str]) -> Attachments {
    attached_with(algorithm, settings, "none")
}

/// The same with options of the base.
fn attached_with(algorithm: &str, settings: &[&str], after_exit: &str) -> Attachments {
    let attachments = Attachments::lock();
    let mut parameters = onramp_loader::find(algorithm).unwrap().parameters();
    parameters.assign(settings).unwrap();
    let after_exit = Some(after_exit.parse().unwrap());
    attachments.attach(&AttachOptions { after_exit, ..AttachOptions::new(parameters) });
    attachments
}

/// Sends half a megabyte over a wire with scripted fates and returns the flow once slow start is over.
fn exit_of(fate: impl FnMut(Data) -> Fate + Send + 'static, ecn: bool) -> (Sender, Flow) {
    let wire = Wire::lay(DELAY, fate);
    wire.sysctl("net.ipv4.tcp_ecn", if ecn { "1" } else { "0" });
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.send(500_000);
    let flow = sender.flow_when(left);
    (sender, flow)
}

fn assert_left(flow: &Flow, expected: ExitReason) {
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, expected);
    assert!(record.window >= 10, "the window at detection is whole: {record:?}");
    assert!(record.window_after < record.window, "reduced by the base: {record:?}");
    assert!(record.at_us >= DELAY.as_micros() as u64, "{record:?}");
    assert!(record.mss > 1000 && record.min_rtt_us >= 2 * DELAY.as_micros() as u32, "{record:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_lost_segment_ends_slow_start_by_loss() {
    let _attached = attached("plain", &[]);
    let lost = |data: Data| if data.number == 60 { Fate::Drop } else { Fate::Deliver };
    let (_sender, flow) = exit_of(lost, false);
    assert_left(&flow, ExitReason::Loss);
    assert_eq!(flow.header.unwrap().slow_starts, 1);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_congestion_mark_ends_slow_start_by_ecn() {
    let _attached = attached("plain", &[]);
    let marked = |data: Data| if data.number == 60 { Fate::Mark } else { Fate::Deliver };
    let (_sender, flow) = exit_of(marked, true);
    assert_left(&flow, ExitReason::Ecn);
    assert_eq!(flow.info.retrans_total, 0);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_silent_wire_ends_slow_start_by_timeout_and_slow_start_begins_anew() {
    let _attached = attached("plain", &[]);
    let mut dead_until = None;
    let dead = move |data: Data| {
        if data.number == 100 {
            dead_until = Some(Instant::now() + Duration::from_millis(900));
        }
        if dead_until.is_some_and(|until| Instant::now() < until) { Fate::Drop } else { Fate::Deliver }
    };
    let (sender, flow) = exit_of(dead, false);
    assert_left(&flow, ExitReason::Timeout);
    let flow = sender.flow_when(|flow| flow.header.unwrap().slow_starts > 1);
    assert_eq!(
        flow.header.unwrap().slow_starts,
        2,
        "the slow start after the timeout is counted, not recorded"
    );
    assert_left(&flow, ExitReason::Timeout);
}

#[test]
#[ignore = "in a guest: make test"]
fn an_idle_restart_begins_slow_start_anew_without_ending_it() {
    let _attached = attached("search", &[]);
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "1");
    let mut sender = Sender::connect(wire, "onramp_search");
    sender.send(100_000);
    let before = sender.flow_when(|flow| flow.info.unacked == 0 && flow.info.bytes_acked > 90_000);
    assert_eq!(before.header.unwrap().slow_starts, 1);
    thread::sleep(Duration::from_millis(1200));
    sender.send(20_000);
    let after = sender.flow_when(|flow| flow.header.unwrap().slow_starts == 2);
    assert_eq!(after.header.unwrap().slow_starts, 2);
    assert!(matches!(after.phase(), Phase::SlowStart), "{:?}", after.phase());
    assert_eq!(
        after.export("first_rtt_us"),
        before.export("first_rtt_us"),
        "what was seen of the path stays"
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_taken_over_in_mid_life_is_past_its_start() {
    let _attached = attached("plain", &[]);
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    // A pause between the two sendings that is as long as a timeout would start it anew.
    wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
    let mut sender = Sender::connect(wire, "reno");
    sender.send(200_000);
    thread::sleep(DELAY * 12);
    sender.choose("onramp_plain");
    let flow = sender.flow();
    assert!(matches!(flow.phase(), Phase::Adopted), "{:?}", flow.phase());
    assert!(
        flow.info.snd_ssthresh.is_some_and(|threshold| threshold <= flow.info.snd_cwnd),
        "{:?}",
        flow.info
    );
    sender.send(200_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 390_000);
    assert_eq!(flow.header.unwrap().slow_starts, 0, "it is not evaluated as if it had just begun");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_connection_that_has_sent_little_is_still_at_its_start() {
    let _attached = attached("plain", &[]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "reno");
    sender.send(1_000);
    thread::sleep(DELAY * 4);
    sender.choose("onramp_plain");
    sender.send(50_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 50_000);
    assert!(matches!(flow.phase(), Phase::SlowStart), "{:?}", flow.phase());
}

/// Kept alive for small requests: it has sent more than an initial window, and its window has never had to grow.
#[test]
#[ignore = "in a guest: make test"]
fn a_connection_whose_window_has_not_grown_starts_when_it_is_taken_over() {
    let _attached = attached("plain", &[]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "reno");
    for _ in 0..8 {
        sender.send(4_000);
        thread::sleep(DELAY * 3);
    }
    sender.choose("onramp_plain");
    assert!(sender.flow().info.snd_cwnd <= 20, "{:?}", sender.flow().info);
    sender.send(200_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 230_000);
    assert_eq!(flow.header.unwrap().slow_starts, 1);
    assert!(flow.info.snd_cwnd > 40, "{:?}", flow.info);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_loss_that_was_none_takes_the_exit_back() {
    let _attached = attached("plain", &[]);
    let late = |data: Data| {
        if data.number == 60 { Fate::HoldBack(Duration::from_millis(45)) } else { Fate::Deliver }
    };
    let wire = Wire::lay(DELAY, late);
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.send(900_000);
    let flow = sender.flow_when(|flow| flow.header.unwrap().exit.undone > 0);
    let header = flow.header.unwrap();
    assert_eq!(header.exit.undone, 1, "{header:?} {:?}", flow.info);
    let bytes = flow.info.bytes_acked + 100_000;
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > bytes);
    assert!(matches!(flow.phase(), Phase::SlowStart), "slow start goes on: {:?}", flow.phase());
    assert_eq!((flow.info.snd_ssthresh, flow.header.unwrap().slow_starts), (None, 1), "and begins not anew");
}

/// The last segment is lost, of which no ACK can say so; a probe repeats it (RFC 8985, section 7), and the first ACK of what
/// follows says that it was lost.
#[test]
#[ignore = "in a guest: make test"]
fn a_tail_loss_that_a_probe_repairs_ends_slow_start_by_loss() {
    let _attached = attached("plain", &[]);
    for ecn in ["0", "1"] {
        let mut sent = 0;
        let fate = move |data: Data| {
            sent += u32::from(!data.syn && !data.retransmission);
            if sent == 60 && !data.retransmission { Fate::Drop } else { Fate::Deliver }
        };
        let wire = Wire::lay(DELAY, fate);
        wire.sysctl("net.ipv4.tcp_ecn", ecn);
        let mut sender = Sender::connect(wire, "onramp_plain");
        sender.deliver(60 * 1_448);
        sender.send(20_000);
        let flow = sender.flow_when(left);
        assert_left(&flow, ExitReason::Loss);
        assert_eq!((flow.info.retrans_total, flow.header.unwrap().slow_starts), (1, 1));
    }
}

/// After an idle time slow start begins anew, up to the threshold that the first loss has left.
#[test]
#[ignore = "in a guest: make test"]
fn a_loss_that_was_none_in_a_later_slow_start_takes_back_no_exit() {
    let _attached = attached("plain", &[]);
    let (mut last, mut again) = (Instant::now(), None);
    let fate = move |data: Data| {
        if data.number > 200 && last.elapsed() > Duration::from_secs(1) {
            again.get_or_insert(data.number);
        }
        last = Instant::now();
        match (data.number, again) {
            (200, _) => Fate::Drop,
            (number, Some(first)) if number == first + 20 => Fate::HoldBack(Duration::from_millis(45)),
            _ => Fate::Deliver,
        }
    };
    let wire = Wire::lay(DELAY, fate);
    wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "1");
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.send(600_000);
    let before = sender.flow_when(|flow| left(flow) && flow.info.unacked == 0);
    assert_left(&before, ExitReason::Loss);
    let sent_again = before.info.retrans_total;
    thread::sleep(Duration::from_millis(1_500));
    sender.send(300_000);
    let after = sender.flow_when(|flow| flow.info.bytes_acked > 890_000);
    assert!(after.info.retrans_total > sent_again, "there was a loss that was none: {:?}", after.info);
    assert_eq!(after.header.unwrap().slow_starts, 2);
    assert_left(&after, ExitReason::Loss);
    assert_eq!(after.header.unwrap().exit, before.header.unwrap().exit);
}

/// The path stands still for once, for longer than the timeout, and loses nothing (RFC 5682, RFC 3522).
#[test]
#[ignore = "in a guest: make test"]
fn a_timeout_that_was_none_takes_the_exit_back() {
    let _attached = attached("plain", &[]);
    let [stock, ours] = ["cubic", "onramp_plain"].map(|control| {
        let mut until = None;
        let late = move |data: Data| {
            if data.number == 60 {
                until = Some(Instant::now() + Duration::from_millis(400));
            }
            // One after the other, so that none overtakes another.
            until = until.map(|until: Instant| until + Duration::from_micros(100));
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(more) if !more.is_zero() => Fate::HoldBack(more),
                _ => Fate::Deliver,
            }
        };
        let mut sender = Sender::connect(Wire::lay(DELAY, late), control);
        let came = sender.bring(500_000);
        assert!((1..=2).contains(&came.retransmitted), "the timeout's, and a probe's: {control}, {came:?}");
        (sender, came)
    });
    assert_eq!((ours.1.read, ours.1.unacked, ours.1.state), (stock.1.read, stock.1.unacked, stock.1.state));
    let flow = ours.0.flow();
    assert!(matches!(flow.phase(), Phase::SlowStart), "slow start goes on: {:?}", flow.phase());
    assert_eq!(flow.header.unwrap().exit.undone, 1, "{:?} {:?}", flow.header, flow.info);
    assert_eq!(flow.header.unwrap().slow_starts, 1, "and begins not anew");
    assert_eq!(flow.info.snd_ssthresh, stock.0.info().snd_ssthresh);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_threshold_that_was_there_before_ends_slow_start_as_such() {
    let _attached = attached("plain", &[]);
    // The kernel remembers the threshold of a connection that lost something, and gives it to the next.
    let wire = Wire::lay(DELAY, |data| if data.number == 60 { Fate::Drop } else { Fate::Deliver });
    wire.sysctl("net.ipv4.tcp_no_metrics_save", "0");
    wire.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", "0");
    let mut first = Sender::connect(wire, "onramp_plain");
    first.send(500_000);
    first.flow_when(|flow| left(flow) && flow.info.unacked == 0);
    let Sender { wire, stream, .. } = first;
    drop(stream);
    thread::sleep(DELAY * 10);
    let mut sender = Sender::connect(wire, "onramp_plain");
    assert!(sender.flow().info.snd_ssthresh.is_some(), "the kernel gave it the remembered threshold");
    sender.send(900_000);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::CachedSsthresh);
    assert!(record.window >= 20 && record.window_after >= record.window, "{record:?}");
    assert_eq!(flow.info.retrans_total, 0);
}

#[test]
#[ignore = "in a guest: make test"]
fn the_algorithms_exit_keeps_the_window_and_is_recorded() {
    let _attached = attached("fixed", &["exit_window_bytes=100000"]);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.send(900_000);
    let flow = sender.flow_when(left);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!(reason, ExitReason::Algorithm);
    assert_eq!(record.window_after, record.window);
    let window = record.window_bytes();
    // One ACK may acknowledge many segments, but no more than the window.
    assert!((100_000..200_000).contains(&window), "left at the first ACK with that window: {window}");
}

/// An exit at 100 kB over a wire without a queue, and the window once so many bytes are acknowledged.
fn exit_and_window_at(bytes: u64, after_exit: &str) -> (u32, u32) {
    let _attached = attached_with("fixed", &["exit_window_bytes=100000"], after_exit);
    let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.send(bytes as usize + 1_000_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked >= bytes);
    let Phase::Left(reason, record) = flow.phase() else { panic!("{:?}", flow.phase()) };
    assert_eq!((reason, flow.info.retrans_total), (ExitReason::Algorithm, 0));
    (record.window_after, flow.info.snd_cwnd)
}

#[test]
#[ignore = "in a guest: make test"]
fn with_a_plateau_growth_levels_off_at_the_window_of_the_exit() {
    let (exit, without) = exit_and_window_at(4_000_000, "none");
    assert!(without * 10 > exit * 17, "a twentieth per RTT: {exit}, {without}");
    let (exit, with) = exit_and_window_at(4_000_000, "plateau");
    assert!(with >= exit && with * 10 < exit * 14, "{exit}, {with}");
}

/// The threshold after the loss of one segment, long after the exit. A window that leaves as one burst is acknowledged as one,
/// and the rate samples within it are of a part of it: so it is spread over most of the RTT, as a bottleneck spreads it.
fn threshold_after_a_loss(after_exit: &str) -> u32 {
    let _attached = attached_with("fixed", &["exit_window_bytes=100000"], after_exit);
    let lost = |data: Data| if data.number == 400 { Fate::Drop } else { Fate::Deliver };
    // So long that the time which a guest takes for a window of packets is no queue beside it.
    let mut sender = Sender::connect(Wire::lay(10 * DELAY, lost), "onramp_fixed");
    sender.pace(260_000);
    sender.send(2_000_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 900_000);
    assert_eq!(flow.info.retrans_total, 1);
    flow.info.snd_ssthresh.unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn with_a_floor_a_loss_without_a_queue_leaves_what_the_path_delivers_in_a_minimum_rtt() {
    let (stock, floor) = (threshold_after_a_loss("plateau"), threshold_after_a_loss("plateau,floor"));
    // 0.95 of the window, for CUBIC's 0.7.
    assert!(floor * 10 > stock * 12 && floor * 10 < stock * 14, "{stock}, {floor}");
}

/// The window some fifteen rounds after an exit at 100 kB, over Reno, which grows by a segment in each.
fn window_after_rounds(after_exit: &str) -> u32 {
    let attachments = Attachments::lock();
    let mut parameters = onramp_loader::find("fixed").unwrap().parameters();
    parameters.assign(["exit_window_bytes=100000"]).unwrap();
    let (base, after_exit) = (Some(Base::Reno), Some(after_exit.parse().unwrap()));
    attachments.attach(&AttachOptions { base, after_exit, ..AttachOptions::new(parameters) });
    let mut sender = Sender::connect(Wire::lay(10 * DELAY, |_| Fate::Deliver), "onramp_fixed");
    sender.send(2_500_000);
    let flow = sender.flow_when(|flow| flow.info.bytes_acked > 1_800_000);
    assert_eq!((flow.info.retrans_total, flow.header.unwrap().slow_starts), (0, 1));
    assert!(left(&flow), "{:?}", flow.phase());
    flow.info.snd_cwnd
}

#[test]
#[ignore = "in a guest: make test"]
fn with_a_probe_the_window_grows_by_a_quarter_where_no_queue_stands() {
    let (without, with) = (window_after_rounds("none"), window_after_rounds("probe"));
    assert!(with * 100 > without * 115, "{without}, {with}");
}
