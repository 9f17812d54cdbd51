//! The start of a base that sets the window itself, as BBR does.

use onramp_algorithm::shell::{Policy, Shell, grown, has_raised};
use onramp_algorithm::{
    Ack, CongestionState, ExitReason, NO_THRESHOLD, Sock, StartupStep, Verdict, outcome, startup,
};

const MSS: u32 = 1_000;
const RTT_US: u32 = 100_000;

/// Answers each acknowledgment with this verdict.
struct Answers(Verdict);

impl Policy for Answers {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        self.0
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// A flow in that start, with a window of 400 segments.
fn begun(verdict: Verdict) -> (Shell, Sock) {
    let mut sock = Sock {
        now_us: 1_000_000,
        max_pacing_rate: u64::MAX,
        bytes_unsent: 1_000 * MSS,
        in_flight: 400,
        srtt_eighths_us: 8 * RTT_US,
        min_rtt_us: RTT_US,
        cwnd_clamp: 1_000_000,
        mss: MSS,
        controls: 1,
        startup: startup::ON,
        paced: 1,
        cwnd: 400,
        prior_cwnd: 400,
        ssthresh: NO_THRESHOLD,
        ..Sock::default()
    };
    let mut shell = Shell::new(0);
    assert!(!shell.starts(), "it has no state");
    shell.acked(&mut sock, 1, Some(RTT_US), &mut Answers(verdict));
    assert!(shell.starts());
    (shell, sock)
}

fn step() -> StartupStep {
    StartupStep { before: 400, window: 400, lost: 0, left: 0, recovering: 0 }
}

#[test]
fn until_the_exit_the_window_is_what_it_was_and_grows_for_the_algorithm() {
    let (mut shell, mut sock) = begun(Verdict::default());
    sock.cwnd = 150;
    assert!(shell.startup(&mut sock, &step()));
    assert_eq!((sock.cwnd, sock.startup), (400, startup::ON));
}

#[test]
fn an_exit_leaves_the_start_to_be_measured_at_five_quarters_of_a_window_per_rtt() {
    let exit = Verdict { outcome: outcome::EXIT, ssthresh: 400, ..Verdict::default() };
    let (mut shell, mut sock) = begun(exit);
    assert_eq!(sock.startup, startup::LEFT);
    assert_eq!(shell.exit().map(|(reason, _)| reason), Some(ExitReason::Algorithm));
    sock.startup = startup::NONE;
    assert!(!shell.startup(&mut sock, &StartupStep { left: 1, ..step() }));
    assert_eq!((sock.cwnd, sock.pacing_rate), (400, 400 * u64::from(MSS) * 10 * 5 / 4));
    // A larger round has yet to be filled.
    sock.in_flight = 300;
    assert!(!shell.startup(&mut sock, &StartupStep { left: 1, window: 450, ..step() }));
    assert!(sock.cwnd == 450 && !shell.is_filled(&sock));
    sock.now_us += u64::from(RTT_US);
    assert!(shell.is_filled(&sock));
    // The last has not raised the rate.
    assert!(!shell.startup(&mut sock, &StartupStep { left: 1, window: 0, ..step() }));
    assert_eq!(sock.startup, startup::FULL);
}

#[test]
fn a_round_raises_the_rate_by_a_sixteenth_and_the_next_is_larger() {
    assert!(!has_raised(1_600, 1_700) && has_raised(1_600, 1_701));
    let grow = |raised| grown(800, raised, u32::MAX);
    assert_eq!([grow(1), grow(2), grow(3), grow(4)], [900, 900, 1_000, 1_000]);
    assert_eq!(grown(800, 1, 850), 850);
}

#[test]
fn losses_end_the_start_above_a_fiftieth_of_the_window_and_six_segments() {
    let after = |lost, prior_cwnd| {
        let (mut shell, mut sock) = begun(Verdict::default());
        sock.state = CongestionState::Recovery as u32;
        (sock.cwnd, sock.prior_cwnd) = (350, prior_cwnd);
        let grows = shell.startup(&mut sock, &StartupStep { lost, recovering: 1, ..step() });
        assert!(!grows, "the window is the base's");
        assert_eq!(sock.cwnd, 350.min(prior_cwnd));
        (sock.startup, shell.exit().map(|(reason, record)| (reason, record.window)))
    };
    assert_eq!(after(8, 400), (startup::ON, None));
    assert_eq!(after(9, 400), (startup::FULL, Some((ExitReason::Loss, 400))));
    assert_eq!(after(6, 20), (startup::ON, None));
    assert_eq!(after(7, 20).0, startup::FULL);
}

#[test]
fn a_timeout_has_it_begin_anew_and_a_loss_that_was_none_go_on() {
    let (mut shell, mut sock) = begun(Verdict::default());
    shell.state(&mut sock, CongestionState::Loss as u32);
    assert_eq!(sock.startup, startup::AGAIN);
    assert_eq!(shell.exit().map(|(reason, _)| reason), Some(ExitReason::Timeout));
    shell.undo(&mut sock, 400);
    assert_eq!((sock.startup, shell.exit()), (startup::AGAIN, None));
}

#[test]
fn a_base_that_finds_its_pipe_full_by_itself_has_left() {
    let (mut shell, mut sock) = begun(Verdict::default());
    sock.ssthresh = 300;
    sock.startup = startup::NONE;
    shell.full(&mut sock);
    assert_eq!(
        shell.exit().map(|(reason, record)| (reason, record.window)),
        Some((ExitReason::CachedSsthresh, 400))
    );
}
