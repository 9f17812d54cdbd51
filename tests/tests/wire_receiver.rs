//! What receivers may do in a slow start: close their window (RFC 9293, section 3.8.6.1), and forget what they have
//! acknowledged selectively (RFC 2018, section 8).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::SndBufForce};
use onramp_loader::{AttachOptions, Base, ExitReason, Flow, Phase};
use onramp_tests::Attachments;
use onramp_tests::connection::Connection;
use onramp_tests::counted::{by_kernel, ends};
use onramp_tests::sender::{Came, Sender};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Ack, Data, Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
const ALGORITHMS: [&str; 3] = ["plain", "ramp", "search"];

/// Sends to a reader who rests for three seconds, while the window is closed. That it is open again is reported once, which
/// is lost: only a probe can find it out.
fn over_a_closed_window(control: &str) -> (Sender, Came) {
    let lost = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lost);
    let mut closed = false;
    let back = move |ack: Ack| {
        closed |= ack.window == 0;
        if closed && ack.window > 0 && counted.swap(1, Ordering::Relaxed) == 0 {
            return Fate::Drop;
        }
        Fate::Deliver
    };
    let connection = Connection { receive_buffer: Some(40_000), ..Connection::default() };
    let mut sender = Sender::connect_as(Wire::lay_both(DELAY, |_| Fate::Deliver, back), &connection);
    setsockopt(&sender.stream, SndBufForce, &1_000_000).unwrap();
    sender.choose(control);
    sender.reader.rest(true);
    sender.send(300_000);
    let is_closed = || {
        let info = sender.info();
        info.snd_wnd_bytes == 0 && info.unacked == 0 && info.notsent_bytes > 0
    };
    assert!(eventually(is_closed), "{control}: {:?}", sender.info());
    thread::sleep(Duration::from_secs(3));
    assert_eq!(lost.load(Ordering::Relaxed), 0);
    sender.reader.rest(false);
    let came = sender.bring(0);
    assert_eq!(lost.load(Ordering::Relaxed), 1);
    (sender, came)
}

fn slow_starts(flow: &Flow) -> u16 {
    flow.header.unwrap().slow_starts
}

#[test]
#[ignore = "in a guest: make test"]
fn a_window_that_closes_ends_no_slow_start_and_is_found_open_again_by_a_probe() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let (stock, came) = over_a_closed_window("cubic");
    assert_eq!((came.read, came.retransmitted), (300_000, 0));
    for algorithm in ALGORITHMS {
        let (sender, as_well) = over_a_closed_window(&format!("onramp_{algorithm}"));
        assert_eq!(as_well, came, "{algorithm}");
        let flow = sender.flow();
        assert!(matches!(flow.phase(), Phase::SlowStart), "{algorithm}: {:?}", flow.phase());
        // To the kernel it is an idle time, after which the window is an initial one and grows again.
        assert_eq!(slow_starts(&flow), 2, "{algorithm}");
        assert_eq!(flow.info.snd_cwnd, stock.info().snd_cwnd, "{algorithm}");
        drop(sender);
        assert_eq!(ends(algorithm), [("slow start", 1)].into());
    }
}

/// Segment 40 is lost; the receiver says that it has the next five, and does not give them out when 40 has come.
fn forgetting(data: Data) -> Fate {
    match data.number {
        40 => Fate::Drop,
        41..46 => Fate::Forget,
        _ => Fate::Deliver,
    }
}

/// Sends to a receiver who forgets.
fn forgotten(control: &str) -> (Sender, Came) {
    let mut sender = Sender::connect(Wire::lay(DELAY, forgetting), control);
    let came = sender.bring(300_000);
    assert_eq!(by_kernel(&sender.wire.near, "TcpExt", "TCPSACKReneging"), 1, "{control}");
    assert!(came.retransmitted >= 6, "{control}: {came:?}");
    println!("{control}: {came:?}, threshold {:?}", sender.info().snd_ssthresh);
    (sender, came)
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_receiver_forgets_is_retransmitted_after_a_timeout_in_a_new_slow_start() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let (_, stock) = forgotten("cubic");
    for algorithm in ALGORITHMS {
        let (sender, came) = forgotten(&format!("onramp_{algorithm}"));
        // A segment more or less is taken for lost before what is on its way has arrived.
        assert!(came.retransmitted.abs_diff(stock.retransmitted) <= 2, "{algorithm}: {came:?}, {stock:?}");
        assert_eq!((came.read, came.unacked, came.state), (stock.read, stock.unacked, stock.state));
        let flow = sender.flow();
        println!("{algorithm}: {:?}, {} slow starts", flow.phase(), slow_starts(&flow));
        let Phase::Left(ExitReason::Timeout, record) = flow.phase() else { panic!("{algorithm}: {flow:?}") };
        assert!(record.window_after < record.window, "{algorithm}: {record:?}");
        assert!(slow_starts(&flow) >= 2, "{algorithm}: {:?}", flow.header);
        drop(sender);
        assert_eq!(ends(algorithm), [("timeout", 1)].into(), "{algorithm}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn over_bbr_a_window_that_closes_ends_no_start() {
    let attachments = Attachments::lock();
    let ramp = onramp_loader::find("ramp").unwrap();
    attachments.attach(&AttachOptions { base: Some(Base::Bbr), ..AttachOptions::new(ramp.parameters()) });
    let (_, came) = over_a_closed_window("bbr");
    let (sender, as_well) = over_a_closed_window("onramp_ramp");
    assert_eq!(as_well, came);
    let flow = sender.flow();
    assert!(matches!(flow.phase(), Phase::SlowStart), "{:?} {:?}", flow.phase(), flow.info);
    // BBR takes no idle time for a reason to start anew.
    assert_eq!(slow_starts(&flow), 1);
    drop(sender);
    assert_eq!(ends("ramp"), [("slow start", 1)].into());
}
