//! The shell over a plain sender: what it does in addition to calling the algorithm.

mod common;

use common::pairs::Rounds;
use onramp_algorithm::shell::{Policy, Reduction, Shell, describe};
use onramp_algorithm::{
    Ack, AfterExit, AfterExitOptions, CongestionState, ExitReason, Flow, INITIAL_WINDOW, MIN_WINDOW,
    NO_THRESHOLD, OpenLoop, Sock, Stage, TRAIT_PACES, Verdict, ack_flag, find, outcome,
};

const MSS: u32 = 1_000;
const RTT_US: u32 = 100_000;

/// Answers each acknowledgment with one verdict.
#[derive(Default)]
struct Always {
    verdict: Verdict,
    calls: u32,
    restarts: u32,
}

impl Policy for Always {
    fn restart(&mut self) {
        self.restarts += 1;
    }

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        self.calls += 1;
        self.verdict
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// In slow start, with more given to send than an initial window.
fn sender() -> Sock {
    Sock {
        now_us: 1_000_000,
        max_pacing_rate: u64::MAX,
        bytes_unsent: 100 * MSS,
        in_flight: 20,
        lost_out: 1,
        srtt_eighths_us: 8 * RTT_US,
        min_rtt_us: RTT_US,
        cwnd_clamp: 1_000,
        mss: MSS,
        cwnd: 40,
        ssthresh: NO_THRESHOLD,
        ..Sock::default()
    }
}

fn acked(shell: &mut Shell, sock: &mut Sock, verdict: Verdict) -> Option<Verdict> {
    shell.acked(sock, 1, Some(RTT_US), &mut Always { verdict, ..Always::default() })
}

#[test]
fn the_algorithm_is_called_once_more_than_an_initial_window_was_given_to_send() {
    let (mut shell, mut sock, mut policy) = (Shell::new(0), sender(), Always::default());
    sock.bytes_unsent = INITIAL_WINDOW * MSS;
    assert!(shell.acked(&mut sock, 1, None, &mut policy).is_none());
    assert_eq!((policy.calls, policy.restarts, shell.slow_starts()), (0, 0, 0));
    sock.bytes_unsent += 1;
    assert!(shell.acked(&mut sock, 1, None, &mut policy).is_some());
    assert_eq!((policy.calls, policy.restarts, shell.slow_starts()), (1, 1, 1));
}

#[test]
fn a_window_stays_between_the_smallest_and_what_the_socket_allows() {
    for (asked, set) in [(1, MIN_WINDOW), (30, 30), (2_000, 1_000)] {
        let (mut shell, mut sock) = (Shell::new(0), sender());
        acked(&mut shell, &mut sock, Verdict { cwnd: asked, ..Verdict::default() });
        assert_eq!(sock.cwnd, set);
    }
}

#[test]
fn a_pacing_rate_is_not_above_what_the_application_allows() {
    let (mut shell, mut sock) = (Shell::new(TRAIT_PACES), sender());
    sock.max_pacing_rate = 640_000;
    acked(&mut shell, &mut sock, Verdict { pacing_rate: 1_000_000, ..Verdict::default() });
    shell.pace(&mut sock);
    assert_eq!((sock.paced, sock.pacing_rate), (1, 640_000));
}

#[test]
fn pacing_that_the_shell_began_ends_once_the_last_burst_has_left() {
    let (mut shell, mut sock) = (Shell::new(TRAIT_PACES), sender());
    acked(&mut shell, &mut sock, Verdict { pacing_rate: 1_000_000, ..Verdict::default() });
    sock.stamped_ahead = 1;
    acked(&mut shell, &mut sock, Verdict::default());
    assert_eq!(sock.paced, 1);
    sock.stamped_ahead = 0;
    acked(&mut shell, &mut sock, Verdict::default());
    assert_eq!(sock.paced, 0);
}

#[test]
fn after_a_paced_slow_start_a_window_leaves_per_rtt_until_it_is_filled_and_for_an_rtt_at_most() {
    let (mut shell, mut sock) = (Shell::new(TRAIT_PACES), sender());
    acked(&mut shell, &mut sock, Verdict { pacing_rate: 500_000, ..Verdict::default() });
    let exit = Verdict { outcome: outcome::EXIT, ssthresh: 40, pacing_rate: 500_000, ..Verdict::default() };
    acked(&mut shell, &mut sock, exit);
    let (reason, record) = shell.exit().expect("an exit");
    assert_eq!((reason, record.window, record.window_after), (ExitReason::Algorithm, 40, 40));
    shell.pace(&mut sock);
    assert_eq!((sock.paced, sock.pacing_rate), (1, 40 * u64::from(MSS) * 10));
    sock.now_us += u64::from(RTT_US) - 1;
    shell.pace(&mut sock);
    assert_eq!(sock.paced, 1, "half of it is in flight");
    sock.now_us += 1;
    shell.pace(&mut sock);
    assert_eq!(sock.paced, 0);
}

#[test]
fn the_state_after_a_reduction_names_the_exit_and_an_undo_takes_it_back() {
    let cases = [
        (CongestionState::Recovery, 0, ExitReason::Loss),
        (CongestionState::Loss, 0, ExitReason::Timeout),
        (CongestionState::Cwr, 0, ExitReason::LocalCongestion),
        (CongestionState::Cwr, 1, ExitReason::Ecn),
    ];
    for (state, ecn, reason) in cases {
        let (mut shell, mut sock) = (Shell::new(0), sender());
        sock.ecn = ecn;
        acked(&mut shell, &mut sock, Verdict::default());
        let reduction = shell.reduced(&mut sock, 28, &mut Always::default());
        assert_eq!(reduction, Reduction { ssthresh: 28, called: true });
        shell.state(&mut sock, state as u32);
        assert_eq!(shell.exit().map(|(reason, exit)| (reason, exit.window_after)), Some((reason, 28)));
        assert_eq!(shell.undo(&mut sock, 40), 40);
        assert!(shell.exit().is_none());
    }
}

#[test]
fn a_tail_loss_that_a_probe_has_repaired_is_a_loss_and_a_mark_is_none() {
    for ecn in [0, 1] {
        let mark = [ExitReason::LocalCongestion, ExitReason::Ecn][ecn as usize];
        for (later_us, then, reason) in [
            (0, CongestionState::Open, ExitReason::Loss),
            (0, CongestionState::Disorder, ExitReason::Loss),
            (u64::from(RTT_US), CongestionState::Open, mark),
            (u64::from(RTT_US), CongestionState::Recovery, mark),
            (u64::from(RTT_US), CongestionState::Loss, mark),
        ] {
            let (mut shell, mut sock) = (Shell::new(0), sender());
            sock.ecn = ecn;
            acked(&mut shell, &mut sock, Verdict::default());
            shell.reduced(&mut sock, 28, &mut Always::default());
            shell.state(&mut sock, CongestionState::Cwr as u32);
            sock.state = CongestionState::Cwr as u32;
            sock.now_us += later_us;
            shell.state(&mut sock, then as u32);
            assert_eq!(shell.exit().map(|(reason, _)| reason), Some(reason), "{then:?} {later_us}");
        }
    }
}

#[test]
fn an_undo_in_a_later_slow_start_takes_back_no_exit_and_goes_on_with_it() {
    let (mut shell, mut sock, mut policy) = (Shell::new(0), sender(), Always::default());
    shell.acked(&mut sock, 1, Some(RTT_US), &mut policy);
    shell.reduced(&mut sock, 28, &mut policy);
    shell.state(&mut sock, CongestionState::Recovery as u32);
    shell.idle();
    shell.acked(&mut sock, 1, Some(RTT_US), &mut policy);
    assert_eq!((policy.restarts, shell.slow_starts()), (2, 2));
    shell.reduced(&mut sock, 20, &mut policy);
    shell.state(&mut sock, CongestionState::Recovery as u32);
    shell.undo(&mut sock, 40);
    assert_eq!(shell.exit().map(|(reason, exit)| (reason, exit.undone)), Some((ExitReason::Loss, 0)));
    shell.acked(&mut sock, 1, Some(RTT_US), &mut policy);
    assert_eq!((policy.restarts, shell.slow_starts()), (2, 2));
}

#[test]
fn after_a_timeout_slow_start_begins_anew_once_that_has_not_proved_spurious() {
    let timed_out = || {
        let (mut shell, mut sock, mut policy) = (Shell::new(0), sender(), Always::default());
        shell.acked(&mut sock, 1, Some(RTT_US), &mut policy);
        shell.reduced(&mut sock, 28, &mut policy);
        shell.state(&mut sock, CongestionState::Loss as u32);
        (sock.cwnd, sock.ssthresh, sock.state, sock.in_doubt) = (1, 28, CongestionState::Loss as u32, 1);
        assert!(shell.acked(&mut sock, 1, Some(RTT_US), &mut policy).is_none());
        assert_eq!(policy.restarts, 1);
        (shell, sock, policy)
    };
    let (mut shell, mut sock, mut policy) = timed_out();
    sock.in_doubt = 0;
    assert!(shell.acked(&mut sock, 1, Some(RTT_US), &mut policy).is_some());
    assert_eq!((policy.restarts, shell.slow_starts()), (2, 2));
    let (mut shell, mut sock, mut policy) = timed_out();
    sock.cwnd = shell.undo(&mut sock, 40);
    (sock.ssthresh, sock.state) = (NO_THRESHOLD, CongestionState::Open as u32);
    assert!(shell.acked(&mut sock, 1, Some(RTT_US), &mut policy).is_some());
    assert_eq!((policy.restarts, shell.slow_starts()), (1, 1));
}

#[test]
fn whose_threshold_the_window_reaches_is_the_reason() {
    let reason = |verdict: Verdict, ssthresh: u32| {
        let (mut shell, mut sock) = (Shell::new(0), sender());
        sock.ssthresh = ssthresh;
        acked(&mut shell, &mut sock, verdict);
        shell.grow(&mut sock, 10, |sock, acked| sock.cwnd += acked);
        shell.exit().map(|(reason, _)| reason)
    };
    assert_eq!(reason(Verdict::default(), 50), Some(ExitReason::CachedSsthresh));
    assert_eq!(
        reason(Verdict { ssthresh: 45, ..Verdict::default() }, NO_THRESHOLD),
        Some(ExitReason::Algorithm)
    );
    assert_eq!(reason(Verdict::default(), NO_THRESHOLD), None);
}

#[test]
fn what_a_sender_shows_of_an_acknowledgment_is_that_acknowledgment() {
    let ack = Ack {
        now_us: 5,
        bytes_acked: 6,
        bytes_sent: 7,
        pacing_rate: 8,
        bytes_outstanding: 9,
        delivered: 10,
        acked: 11,
        rtt_us: 12,
        smoothed_rtt_us: 13,
        min_rtt_us: 14,
        cwnd: 15,
        ssthresh: 16,
        in_flight: 17,
        mss: 18,
        gso_max_size: 19,
        flags: 15,
        receiver_clock: 20,
        receive_window: 21,
    };
    assert_eq!(describe(&Sock::seen(&ack), ack.acked, Some(12)), ack);
}

/// Acknowledgments whose window grows by a segment each, through an algorithm that is attached to observe.
fn observed(settings: &[&str], stages: &[(u32, Stage)]) -> (OpenLoop, Vec<bool>) {
    let mut parameters = find("fixed").expect("an algorithm").parameters();
    parameters.assign(settings).expect("settings of it");
    let mut replayed = OpenLoop::new(Flow::new(parameters), 0);
    let mut called = Vec::new();
    for (number, (slow_starts, stage)) in stages.iter().enumerate() {
        let cwnd = 10 + number as u32;
        let ack = Ack {
            now_us: 1_000 + u64::from(cwnd),
            rtt_us: 10,
            cwnd,
            ssthresh: 20,
            mss: MSS,
            ..Ack::default()
        };
        replayed.grow(cwnd);
        called.push(replayed.ack(&ack, *slow_starts, *stage).is_some());
    }
    (replayed, called)
}

#[test]
fn a_recorded_flow_is_called_below_its_threshold_until_the_algorithm_would_have_left() {
    let by = (1, Stage::ByThreshold);
    let (replayed, called) = observed(&["exit_window_bytes=13000"], &[by; 12]);
    assert_eq!(called, [vec![true; 4], vec![false; 8]].concat());
    let exit = replayed.exit().unwrap();
    assert_eq!((exit.reason, exit.window), (ExitReason::Algorithm as u8, 13));
    assert_eq!(replayed.exit_us(), Some(1_013));
    // Without an exit it is called until the flow comes to its own threshold.
    let (replayed, called) = observed(&["exit_window_bytes=90000"], &[by; 12]);
    assert_eq!(called, [vec![true; 10], vec![false; 2]].concat());
    assert!(replayed.exit().is_none());
}

#[test]
fn a_recorded_flow_is_past_slow_start_or_in_it_as_its_rows_say() {
    let stages = [(1, Stage::SlowStart), (1, Stage::Past), (2, Stage::SlowStart)];
    let (_, called) = observed(&["exit_window_bytes=90000"], &stages);
    assert_eq!(called, [true, false, true]);
    let (_, called) = observed(&["exit_window_bytes=90000"], &[(1, Stage::SlowStart); 15]);
    assert_eq!(called, [true; 15]);
}

/// What the flow's own exit is, if it has one before its window comes to the algorithm's threshold.
#[derive(Clone, Copy)]
enum OwnExit {
    None,
    ByThreshold,
    ByLoss,
}

#[test]
fn a_threshold_above_the_window_is_dropped_at_the_flows_own_exit() {
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = 300;
    rounds.rounds(10_000_000);
    let at = |cwnd| Ack { cwnd, acked: 1, ..rounds.ack };
    let exit_window = |own_exit: OwnExit| {
        let mut replayed = OpenLoop::new(rounds.flow.clone(), 1);
        let verdict = replayed.ack(&at(999), 1, Stage::SlowStart);
        assert_eq!(verdict.map(|verdict| verdict.ssthresh), Some(1_000));
        let slow_starts = match own_exit {
            OwnExit::None => 1,
            OwnExit::ByThreshold => {
                assert_eq!(replayed.ack(&at(500), 1, Stage::Past), None);
                2
            }
            OwnExit::ByLoss => {
                replayed.loss(&at(999), 700);
                2
            }
        };
        replayed.grow(1_000);
        replayed.ack(&at(1_000), slow_starts, Stage::SlowStart);
        replayed.exit().map(|exit| exit.window)
    };
    assert_eq!(exit_window(OwnExit::None), Some(1_000));
    assert_eq!(exit_window(OwnExit::ByThreshold), None);
    assert_eq!(exit_window(OwnExit::ByLoss), None);
}

/// The window that the base was made to level off at; 0: none.
fn plateau(option: Option<AfterExit>, end: impl FnOnce(&mut Shell, &mut Sock)) -> u32 {
    let options: AfterExitOptions = option.into_iter().collect();
    let (mut shell, mut sock) = (Shell::new(0), Sock { options: options.bits(), ..sender() });
    acked(&mut shell, &mut sock, Verdict::default());
    end(&mut shell, &mut sock);
    assert!(shell.exit().is_some());
    sock.plateau
}

#[test]
fn an_exit_by_the_algorithm_sets_the_plateau_and_no_other_exit_does() {
    let verdict = |shell: &mut Shell, sock: &mut Sock| {
        let exit = Verdict { outcome: outcome::EXIT, ssthresh: 40, ..Verdict::default() };
        acked(shell, sock, exit);
    };
    let ahead = |shell: &mut Shell, sock: &mut Sock| {
        acked(shell, sock, Verdict { ssthresh: 45, ..Verdict::default() });
        shell.grow(sock, 10, |sock, acked| sock.cwnd += acked);
    };
    let cached = |shell: &mut Shell, sock: &mut Sock| {
        sock.ssthresh = 45;
        shell.grow(sock, 10, |sock, acked| sock.cwnd += acked);
    };
    let loss = |shell: &mut Shell, sock: &mut Sock| {
        shell.reduced(sock, 28, &mut Always::default());
    };
    let loss_before_the_target = |shell: &mut Shell, sock: &mut Sock| {
        acked(shell, sock, Verdict { ssthresh: 45, ..Verdict::default() });
        shell.reduced(sock, 28, &mut Always::default());
    };
    let on = Some(AfterExit::Plateau);
    assert_eq!((plateau(on, verdict), plateau(on, ahead)), (40, 50));
    assert_eq!((plateau(on, cached), plateau(on, loss), plateau(on, loss_before_the_target)), (0, 0, 0));
    assert_eq!((plateau(None, verdict), plateau(Some(AfterExit::Floor), ahead)), (0, 0));
}

/// The threshold where the base would have 28 of 40 segments, with what the sender's rate sample says.
fn threshold_with(options: AfterExitOptions, change: impl FnOnce(&mut Sock)) -> u32 {
    let mut shell = Shell::new(0);
    let mut sock = Sock { options: options.bits(), rate_delivered: 40, rate_interval_us: RTT_US, ..sender() };
    acked(&mut shell, &mut sock, Verdict::default());
    change(&mut sock);
    let in_slow_start = shell.reduced(&mut sock, 28, &mut Always::default());
    let after = shell.reduced(&mut sock, 28, &mut Always::default());
    assert_eq!((in_slow_start.called, after.called), (true, false));
    assert_eq!(in_slow_start.ssthresh, after.ssthresh, "after the exit as well");
    after.ssthresh
}

#[test]
fn a_reduction_leaves_what_the_path_delivers_in_a_minimum_rtt_and_never_less_than_the_base_would() {
    let floor: AfterExitOptions = [AfterExit::Floor].into_iter().collect();
    let with = |change: fn(&mut Sock)| threshold_with(floor, change);
    assert_eq!(threshold_with(AfterExitOptions::default(), |_| ()), 28, "off: as the base has it");
    assert_eq!(with(|_| ()), 38, "95 % of 40 segments in an RTT");
    assert_eq!(with(|sock| sock.rate_interval_us *= 2), 28, "a standing queue of a BDP: the base decides");
    assert_eq!(with(|sock| sock.rate_delivered = 400), 40, "no more than the window");
    assert_eq!(with(|sock| sock.rate_interval_us = 0), 28, "no sample yet");
    assert_eq!(with(|sock| sock.min_rtt_us = 0), 28, "no RTT yet");
    assert_eq!(with(|sock| sock.limited_by = ack_flag::RATE_APP_LIMITED), 28, "the application's rate");
    assert_eq!(with(|sock| sock.limited_by = ack_flag::APP_LIMITED), 38, "the sample is from before");
    assert_eq!(with(|sock| sock.lost_out = 0), 28, "a mark: nothing is lost");
    let largest = |sock: &mut Sock| {
        (sock.rate_delivered, sock.min_rtt_us, sock.rate_interval_us) = (u32::MAX, u32::MAX, 1);
    };
    assert_eq!(with(largest), 40);
}

#[test]
fn a_reduction_that_meets_more_than_a_third_of_the_largest_queue_is_the_bases() {
    let floor: AfterExitOptions = [AfterExit::Floor].into_iter().collect();
    let mut shell = Shell::new(0);
    let mut sock = Sock { options: floor.bits(), rate_delivered: 40, rate_interval_us: RTT_US, ..sender() };
    acked(&mut shell, &mut sock, Verdict::default());
    let mut with = |queue_us: u32| {
        sock.srtt_eighths_us = (sock.min_rtt_us + queue_us) << 3;
        shell.reduced(&mut sock, 28, &mut Always::default()).ssthresh
    };
    assert_eq!(
        (with(RTT_US / 64), with(RTT_US / 64 + 1)),
        (38, 28),
        "the first queue that is met may be full"
    );
    assert_eq!((with(9_000), with(3_001), with(3_000)), (28, 28, 38));
    assert_eq!((with(12_000), with(4_000), with(4_001)), (28, 38, 28), "a larger one is full from then on");
    assert_eq!(with(0), 38);
}

#[test]
fn the_queue_that_a_mark_meets_is_one_that_a_reduction_has_met() {
    let floor: AfterExitOptions = [AfterExit::Floor].into_iter().collect();
    let mut shell = Shell::new(0);
    let mut sock = Sock { options: floor.bits(), rate_delivered: 40, rate_interval_us: RTT_US, ..sender() };
    acked(&mut shell, &mut sock, Verdict::default());
    let mut with = |lost_out: u32, queue_us: u32| {
        (sock.lost_out, sock.srtt_eighths_us) = (lost_out, (sock.min_rtt_us + queue_us) << 3);
        shell.reduced(&mut sock, 28, &mut Always::default()).ssthresh
    };
    assert_eq!((with(0, 9_000), with(1, 3_000)), (28, 38));
}

#[test]
fn without_options_of_the_base_what_they_read_changes_nothing() {
    let verdicts = [
        Verdict::default(),
        Verdict { ssthresh: 45, ..Verdict::default() },
        Verdict { outcome: outcome::EXIT, ssthresh: 40, ..Verdict::default() },
    ];
    for seed in 0..500_u32 {
        let senders = [(0, 0), (400, RTT_US)].map(|(rate_delivered, rate_interval_us)| {
            let limited_by = ack_flag::CWND_LIMITED;
            let mut sock = Sock { rate_delivered, rate_interval_us, limited_by, ..sender() };
            let (mut shell, mut random) = (Shell::new(TRAIT_PACES), seed);
            for _ in 0..40 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let pick = random >> 16;
                sock.now_us += u64::from(RTT_US / 8);
                sock.bytes_acked += u64::from(5 * MSS);
                sock.bytes_outstanding = sock.cwnd * MSS;
                match pick % 8 {
                    0 => {
                        sock.ssthresh = shell.reduced(&mut sock, 28, &mut Always::default()).ssthresh;
                        sock.cwnd = sock.ssthresh;
                    }
                    1 => shell.idle(),
                    2 => sock.cwnd = shell.undo(&mut sock, 40),
                    _ => {
                        acked(&mut shell, &mut sock, verdicts[pick as usize / 8 % verdicts.len()]);
                        shell.grow(&mut sock, 5, |sock, acked| sock.cwnd += acked);
                        shell.pace(&mut sock);
                    }
                }
            }
            assert_eq!(sock.plateau, 0);
            Sock { rate_delivered: 0, rate_interval_us: 0, ..sock }
        });
        assert_eq!(format!("{:?}", senders[0]), format!("{:?}", senders[1]), "seed {seed}");
    }
}

#[test]
fn a_flow_without_state_is_reduced_by_the_base_alone() {
    let floor: AfterExitOptions = [AfterExit::Floor].into_iter().collect();
    let mut sock = Sock { options: floor.bits(), rate_delivered: 40, rate_interval_us: RTT_US, ..sender() };
    assert_eq!(Shell::new(0).reduced(&mut sock, 28, &mut Always::default()).ssthresh, 28);
}

/// Rounds after an exit at 40 segments until the threshold is above the window again, of at most thirty; `change` sees the
/// sender before each.
fn rounds_until_a_probe(options: AfterExitOptions, change: impl Fn(&mut Sock, u32)) -> Option<(u32, u32)> {
    let (mut shell, mut sock) = (Shell::new(0), Sock { options: options.bits(), ..sender() });
    acked(&mut shell, &mut sock, Verdict { outcome: outcome::EXIT, ssthresh: 40, ..Verdict::default() });
    (sock.rate_delivered, sock.rate_interval_us) = (40, RTT_US);
    sock.limited_by = ack_flag::CWND_LIMITED;
    for round in 1..=30 {
        sock.bytes_acked += u64::from(40 * MSS) + 1;
        sock.bytes_outstanding = 40 * MSS;
        change(&mut sock, round);
        // The algorithm is not called: this is no slow start of its.
        assert!(acked(&mut shell, &mut sock, Verdict::default()).is_none());
        if sock.ssthresh > sock.cwnd {
            shell.grow(&mut sock, 20, |sock, acked| sock.cwnd = (sock.cwnd + acked).min(sock.ssthresh));
            assert!(acked(&mut shell, &mut sock, Verdict::default()).is_none());
            return Some((round, sock.cwnd));
        }
    }
    None
}

#[test]
fn rounds_that_show_no_queue_let_the_window_grow_by_a_quarter() {
    let probe: AfterExitOptions = [AfterExit::Probe].into_iter().collect();
    let after = |change: fn(&mut Sock, u32)| rounds_until_a_probe(probe, change);
    assert_eq!(rounds_until_a_probe(AfterExitOptions::default(), |_, _| ()), None, "off: never");
    assert_eq!(after(|_, _| ()), Some((8, 50)));
    assert_eq!(after(|sock, _| sock.srtt_eighths_us = 8 * RTT_US * 11 / 10), None, "a queue stands");
    assert_eq!(after(|sock, _| sock.limited_by = 0), None, "the window is not used up");
    assert_eq!(after(|sock, _| sock.rate_delivered = 30), None, "deliveries do not keep pace");
    assert_eq!(after(|sock, _| sock.rate_interval_us = 0), None, "no rate sample");
    let queue_until_12 = |sock: &mut Sock, round| {
        sock.srtt_eighths_us = if round < 12 { 9 * RTT_US } else { 8 * RTT_US };
    };
    assert_eq!(after(queue_until_12), Some((13, 50)), "two rounds in a row without one");
}

#[test]
fn a_window_that_is_reduced_during_a_probe_starts_anew() {
    let probe: AfterExitOptions = [AfterExit::Probe].into_iter().collect();
    let (mut shell, mut sock) = (Shell::new(0), Sock { options: probe.bits(), ..sender() });
    acked(&mut shell, &mut sock, Verdict { outcome: outcome::EXIT, ssthresh: 40, ..Verdict::default() });
    (sock.rate_delivered, sock.rate_interval_us) = (40, RTT_US);
    sock.limited_by = ack_flag::CWND_LIMITED;
    for _ in 0..8 {
        sock.bytes_acked += u64::from(40 * MSS) + 1;
        acked(&mut shell, &mut sock, Verdict::default());
    }
    assert_eq!((sock.cwnd, sock.ssthresh), (40, 50));
    // An idle time.
    sock.cwnd = 10;
    shell.idle();
    assert!(acked(&mut shell, &mut sock, Verdict::default()).is_some());
    assert_eq!(shell.slow_starts(), 2);
}
