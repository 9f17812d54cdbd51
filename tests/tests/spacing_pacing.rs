//! How a control paces, and what of it stays: bursts of an application that meet an open window show the rate at which
//! a socket lets data out.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use onramp_loader::{AttachOptions, ExitReason, Phase};
use onramp_tests::Attachments;
use onramp_tests::capture::{Capture, fastest};
use onramp_tests::sender::Sender;
use onramp_tests::wire::{Fate, Wire};

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(50);
/// Spacing rate of the tests, bytes per second.
const RATE: f64 = 1e6;
/// Segments of a burst.
const BURST: usize = 20;
/// Segment size, bytes.
const MSS: usize = 1448;

/// A wire on which the next data packet can be lost, a sender on it that spaces at [`RATE`], and a capture where they
/// leave.
struct Stage {
    sender: Sender,
    capture: Capture,
    lose: Arc<AtomicBool>,
}

impl Stage {
    /// A sender in slow start, with a window larger than a burst.
    fn in_slow_start(prepare: impl Fn(&Sender)) -> Self {
        let lose = Arc::new(AtomicBool::new(false));
        let losing = Arc::clone(&lose);
        let fate = move |_| if losing.swap(false, Ordering::Relaxed) { Fate::Drop } else { Fate::Deliver };
        let wire = Wire::lay(DELAY, fate);
        wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
        let capture = Capture::start(&wire.near);
        let sender = Sender::connect(wire, "onramp_spacing");
        prepare(&sender);
        let mut stage = Self { sender, capture, lose };
        stage.sender.deliver(200_000);
        assert!(matches!(stage.sender.flow().phase(), Phase::SlowStart));
        stage
    }

    /// Bursts leave at this rate, within ten percent. The first ones after an exit may still fill the window: one of
    /// five has to.
    fn assert_paced(&mut self, expected: f64) {
        let rates: Vec<f64> = (0..5).map(|_| self.burst_rate()).collect();
        assert!(rates.iter().any(|rate| near(*rate, expected)), "{rates:?} bytes/s, expected {expected}");
    }

    /// Ends slow start by a loss.
    fn leave(&mut self) {
        self.lose.store(true, Ordering::Relaxed);
        self.sender.deliver(300_000);
        let flow = self.sender.flow();
        assert!(matches!(flow.phase(), Phase::Left(ExitReason::Loss, _)), "{:?}", flow.phase());
    }

    /// Bytes per second at which bursts leave: the fastest of three, which a late machine slows.
    fn burst_rate(&mut self) -> f64 {
        let bursts = (0..3).map(|_| self.burst());
        bursts.max_by(f64::total_cmp).expect("three")
    }

    /// Bytes per second of a burst no packet of which is lost or sent twice.
    fn burst(&mut self) -> f64 {
        for _ in 0..5 {
            self.capture.data();
            self.sender.deliver(BURST * MSS);
            let packets = self.capture.data();
            // A machine that stands still for two round trips has the kernel send a probe of its own.
            if packets.len() == BURST {
                // Segments leave in pairs, of which the kernel lets the second come early after a pause.
                return fastest(&packets[4..], BURST - 6);
            }
        }
        panic!("packets of five bursts in a row were sent twice");
    }

    fn max_pacing_rate(&self) -> u64 {
        let (mut rate, mut length) = (0_u64, 8);
        let fd = self.sender.stream.as_raw_fd();
        // SAFETY: the kernel writes at most the eight bytes that it is given.
        let result = unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw mut rate).cast(),
                &raw mut length,
            )
        };
        assert_eq!((result, length), (0, 8));
        rate
    }
}

fn attached() -> Attachments {
    let attachments = Attachments::lock();
    let mut parameters = onramp_loader::find("spacing").expect("spacing").parameters();
    parameters.assign([format!("rate_bytes_per_s={RATE}")]).expect("parameters");
    attachments.attach(&AttachOptions::new(parameters));
    attachments
}

/// Within ten percent.
fn near(rate: f64, expected: f64) -> bool {
    (0.9..1.1).contains(&(rate / expected))
}

/// Faster than anything that paces here.
fn assert_unpaced(rate: f64) {
    assert!(rate > 10.0 * RATE, "{rate} bytes/s");
}

#[test]
#[ignore = "in a guest: make test"]
fn slow_start_is_spaced_and_what_follows_is_not() {
    let _attached = attached();
    let mut stage = Stage::in_slow_start(|_| {});
    // The first ten segments of a connection are never paced by the kernel.
    let first = stage.capture.data();
    let rate = fastest(&first[20..], 20);
    assert!(near(rate, RATE), "{rate} bytes/s, expected {RATE}");
    stage.assert_paced(RATE);
    // What `ss` shows while there is something to send.
    stage.sender.send(200_000);
    thread::sleep(DELAY * 3);
    assert_eq!(stage.sender.flow().info.pacing_rate_bytes_per_s, Some(RATE as u64));
    stage.leave();
    assert_unpaced(stage.burst_rate());
    assert_eq!(stage.max_pacing_rate(), u64::MAX);
}

#[test]
#[ignore = "in a guest: make test"]
fn another_control_in_mid_slow_start_does_not_pace() {
    let _attached = attached();
    let mut stage = Stage::in_slow_start(|_| {});
    stage.sender.choose("reno");
    assert_unpaced(stage.burst_rate());
}

#[test]
#[ignore = "in a guest: make test"]
fn detaching_in_mid_slow_start_ends_pacing() {
    let _attached = attached();
    let mut stage = Stage::in_slow_start(|_| {});
    onramp_loader::detach(onramp_loader::find("spacing").expect("spacing"), false).expect("detach");
    assert_unpaced(stage.burst_rate());
}

#[test]
#[ignore = "in a guest: make test"]
fn an_applications_lower_cap_holds_before_and_after() {
    let _attached = attached();
    let mut stage = Stage::in_slow_start(|sender| sender.pace(500_000));
    stage.assert_paced(500_000.0);
    stage.leave();
    stage.assert_paced(500_000.0);
    assert_eq!(stage.max_pacing_rate(), 500_000);
}

#[test]
#[ignore = "in a guest: make test"]
fn an_applications_higher_cap_holds_after() {
    let _attached = attached();
    let mut stage = Stage::in_slow_start(|sender| sender.pace(1_500_000));
    stage.assert_paced(RATE);
    stage.leave();
    stage.assert_paced(1_500_000.0);
    assert_eq!(stage.max_pacing_rate(), 1_500_000);
}

#[test]
#[ignore = "in a guest: make test"]
fn an_applications_cap_set_in_slow_start_holds_from_then_on() {
    let _attached = attached();
    for (rate, spaced) in [(500_000, 500_000.0), (1_500_000, RATE)] {
        let mut stage = Stage::in_slow_start(|_| {});
        stage.sender.pace(rate);
        stage.assert_paced(spaced);
        stage.leave();
        stage.assert_paced(rate as f64);
        assert_eq!(stage.max_pacing_rate(), rate);
    }
}
