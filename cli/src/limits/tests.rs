use onramp_loader::ExitReason;
use onramp_net::sock_diag::{SocketMemory, TcpInfo};
use proptest::prelude::*;

use super::*;

/// Interval of made-up samples, microseconds.
const STEP_US: u64 = 20_000;
const MSS: u32 = 1_448;

/// A flow over 100 ms that fills its window and has more to send.
fn flowing() -> Sample {
    let info = TcpInfo {
        snd_mss: MSS,
        snd_cwnd: 100,
        unacked: 100,
        notsent_bytes: 1_000_000,
        rtt_us: 100_000,
        rttvar_us: 1_000,
        min_rtt_us: Some(100_000),
        bytes_acked: 1,
        ..TcpInfo::default()
    };
    Sample { info, ..Sample::default() }
}

/// The account of a flow that `change` changes from sample to sample, which are busy all the time.
fn account(count: u64, change: impl Fn(u64, &mut Sample)) -> Account {
    let sample = |number: u64| {
        let mut sample = flowing();
        sample.at_us = number * STEP_US;
        sample.info.busy_time_us = number * STEP_US;
        sample.info.delivered = number as u32 * 20;
        sample.info.bytes_acked = 1 + number * 20 * u64::from(MSS);
        change(number, &mut sample);
        sample
    };
    let mut account = Account::new(sample(0));
    (1..=count).for_each(|number| account.add(sample(number)));
    account
}

fn of(count: u64, control: &str, change: impl Fn(u64, &mut Sample)) -> (Limit, u64, Option<ExitReason>) {
    let verdict = verdict(&account(count, change), control).unwrap();
    (verdict.limited, verdict.percent, verdict.cause)
}

#[test]
fn each_limit_is_named_by_what_the_kernel_shows() {
    let limit = |change: fn(&mut Sample)| {
        let mut sample = flowing();
        change(&mut sample);
        sample.limit()
    };
    assert_eq!(limit(|_| {}), Limit::SlowStart);
    assert_eq!(limit(|one| one.info.snd_ssthresh = Some(90)), Limit::CongestionAvoidance);
    assert_eq!(limit(|one| one.info.ca_state = 3), Limit::Recovery);
    assert_eq!(limit(|one| (one.info.ca_state, one.info.rtt_us) = (3, 150_000)), Limit::Path);
    assert_eq!(limit(|one| (one.info.ca_state, one.info.rtt_us) = (4, 150_000)), Limit::Recovery);
    assert_eq!(limit(|one| (one.info.unacked, one.info.notsent_bytes) = (20, 0)), Limit::Application);
    // In slow start a round's own burst is no queue.
    assert_eq!(limit(|one| one.info.rtt_us = 130_000), Limit::SlowStart);
    assert_eq!(limit(|one| one.info.rtt_us = 150_000), Limit::Path);
    let later = |rtt_us, rttvar_us| {
        let mut sample = flowing();
        sample.info = TcpInfo { snd_ssthresh: Some(90), rtt_us, rttvar_us, ..sample.info };
        sample.limit()
    };
    assert_eq!(later(112_000, 1_000), Limit::Path);
    assert_eq!(later(112_000, 10_000), Limit::CongestionAvoidance, "jitter is no queue");
    let full = SocketMemory { queued_bytes: 70_000, send_buffer_bytes: 100_000, in_host_queue_bytes: 0 };
    let mut sample = flowing();
    (sample.info.unacked, sample.info.notsent_bytes, sample.memory) = (20, 0, full);
    assert_eq!(sample.limit(), Limit::SendBuffer);
    // Room in the window, and data to send.
    let held = |pacing_rate: u64, delivery_rate: u64, in_host_queue_bytes: u32| {
        let mut sample = flowing();
        sample.info.unacked = 20;
        sample.info.pacing_rate_bytes_per_s = Some(pacing_rate);
        sample.info.delivery_rate_bytes_per_s = delivery_rate;
        sample.memory.in_host_queue_bytes = in_host_queue_bytes;
        sample
    };
    assert_eq!(held(1_000_000, 900_000, 0).limit(), Limit::Pacing);
    assert_eq!(held(3_000_000, 900_000, 20_000).limit(), Limit::HostQueue);
    assert_eq!(held(3_000_000, 900_000, 0).limit(), Limit::SlowStart);
    let bbr = |ssthresh| {
        let mut sample = Sample { models_path: true, ..held(1_000_000, 900_000, 0) };
        sample.info.snd_ssthresh = ssthresh;
        sample.limit()
    };
    // Its window may be below its ssthresh past its startup.
    assert_eq!((bbr(Some(1_000)), bbr(None)), (Limit::Path, Limit::Pacing));
    let mut offered = Sample { models_path: true, ..held(1_000_000, 900_000, 0) };
    (offered.info.snd_ssthresh, offered.info.snd_wnd_bytes) = (Some(1_000), 20 * MSS);
    assert_eq!(offered.limit(), Limit::ReceiveWindow);
    // Whose rate the application limits.
    let mut capped = Sample { models_path: true, ..held(1_000_000, 900_000, 0) };
    (capped.info.snd_ssthresh, capped.info.max_pacing_rate_bytes_per_s) = (Some(1_000), Some(1_000_000));
    assert_eq!(capped.limit(), Limit::Pacing);
}

#[test]
fn what_the_kernel_counts_is_charged_to_it_and_the_rest_to_the_sampled_limit() {
    let account = account(100, |number, sample| {
        sample.info.busy_time_us = number * STEP_US / 2;
        sample.info.rwnd_limited_us = number * STEP_US / 4;
        sample.info.sndbuf_limited_us = number * STEP_US / 8;
    });
    let total = 100 * STEP_US;
    let of = |limit| account.parts.of(limit);
    assert_eq!(of(Limit::Application), total / 2);
    assert_eq!((of(Limit::ReceiveWindow), of(Limit::SendBuffer)), (total / 4, total / 8));
    assert_eq!((of(Limit::SlowStart), account.parts.total()), (total / 8, total));
}

#[test]
fn counters_that_go_in_jiffies_lose_nothing() {
    // Four milliseconds each, by samples that are 20.3 ms apart.
    let account = account(1_000, |number, sample| {
        sample.at_us = number * 20_300;
        sample.info.busy_time_us = sample.at_us / 4_000 * 4_000;
        sample.info.rwnd_limited_us = sample.info.busy_time_us;
    });
    let idle_us = account.parts.of(Limit::Application);
    assert!(idle_us <= 4_000, "{idle_us}");
    assert_eq!(account.parts.of(Limit::ReceiveWindow), 20_300_000 - idle_us);
}

#[test]
fn the_cause_of_a_small_window_is_the_exit_or_the_loss() {
    let ends = |at: u64| {
        move |number: u64, sample: &mut Sample| sample.info.snd_ssthresh = (number >= at).then_some(100)
    };
    assert_eq!(of(100, "cubic", ends(20)), (Limit::CongestionAvoidance, 100, Some(ExitReason::Algorithm)));
    let loses = |number: u64, sample: &mut Sample| {
        ends(20)(number, sample);
        sample.info.retrans_total = u32::from(number >= 20);
        sample.info.ca_state = if (20..25).contains(&number) { 3 } else { 0 };
    };
    assert_eq!(of(100, "cubic", loses), (Limit::CongestionAvoidance, 100, Some(ExitReason::Loss)));
    let cached = |_: u64, sample: &mut Sample| sample.info.snd_ssthresh = Some(14);
    assert_eq!(of(100, "reno", cached), (Limit::CongestionAvoidance, 100, Some(ExitReason::CachedSsthresh)));
    // In its middle, where that cannot be known.
    let known_late = |number: u64, sample: &mut Sample| {
        cached(number, sample);
        sample.info.bytes_acked += 1 << 20;
    };
    assert_eq!(of(100, "reno", known_late), (Limit::CongestionAvoidance, 100, None));
    assert_eq!(of(100, "reno", |_, _| {}), (Limit::SlowStart, 100, None));
    let timeout = |number: u64, sample: &mut Sample| {
        ends(20)(number, sample);
        sample.info.total_rto = u16::from(number >= 20);
    };
    assert_eq!(of(100, "cubic", timeout).2, Some(ExitReason::Timeout));
}

#[test]
fn what_comes_after_a_long_slow_start_has_not_made_the_window_small() {
    let ends = |at: u64, ca_state: u8| {
        move |number: u64, sample: &mut Sample| {
            let has_ended = number >= at;
            sample.info.snd_ssthresh = has_ended.then_some(100);
            sample.info.ca_state = if has_ended { ca_state } else { 0 };
        }
    };
    for ca_state in [0, 3] {
        let verdict = verdict(&account(100, ends(90, ca_state)), "cubic").unwrap();
        assert_eq!((verdict.limited, verdict.cause), (Limit::SlowStart, None));
        assert!(verdict.command.is_some_and(|command| command.contains("--start")), "{verdict:?}");
    }
    assert_eq!(of(100, "cubic", ends(40, 3)).2, Some(ExitReason::Loss));
    // Lost while it lasts, which the kernel took back.
    let undone = |number: u64, sample: &mut Sample| {
        sample.info.ca_state = if (50..55).contains(&number) { 3 } else { 0 };
    };
    assert_eq!(of(100, "cubic", undone), (Limit::SlowStart, 100, None));
}

#[test]
fn a_transfer_that_is_over_soon_gets_no_command() {
    let commands = |rtt_us: u32, step_us: u64, exits: bool| {
        let account = account(10, |number, sample| {
            (sample.at_us, sample.info.busy_time_us) = (number * step_us, number * step_us);
            (sample.info.rtt_us, sample.info.min_rtt_us) = (rtt_us, Some(rtt_us));
            sample.info.snd_ssthresh = (exits && number >= 2).then_some(100);
        });
        verdict(&account, "cubic").unwrap().command.is_some()
    };
    for exits in [false, true] {
        assert!(!commands(50, 500, exits), "loopback, 5 ms");
        assert!(commands(50, 500_000, exits), "loopback, 5 s");
        assert!(!commands(100_000, 15_000, exits), "less than two round trips");
        assert!(commands(100_000, 50_000, exits), "five round trips");
    }
}

#[test]
fn a_recorded_exit_counts_and_not_what_samples_show_of_it() {
    let recorded = Exit {
        reason: ExitReason::Timeout,
        at_us: 5 * STEP_US,
        resolution_us: 0,
        window_segments: 77,
        window_bytes: 77_000,
    };
    let mut account = Account::new(flowing());
    account.recorded_exit(recorded);
    for number in 1..=10 {
        assert_eq!(matches!(account.slow_start(), SlowStart::Ended(_)), number > 5);
        let mut sample = Sample { at_us: number * STEP_US, ..flowing() };
        sample.info.snd_ssthresh = (number == 2).then_some(50);
        account.add(sample);
    }
    assert_eq!(account.slow_start(), SlowStart::Ended(recorded));
}

#[test]
fn an_exit_is_known_to_an_interval_and_costs_what_a_full_pipe_would_have_spared() {
    // Half the rate for a second and a half after the exit, then all of it.
    let account = account(400, |number, sample| {
        let slow = number.min(125) + 2 * number.saturating_sub(125);
        sample.info.delivered = slow as u32 * 20;
        sample.info.snd_ssthresh = (number >= 50).then_some(100);
    });
    let SlowStart::Ended(exit) = account.slow_start() else { panic!("{:?}", account.slow_start()) };
    assert_eq!((exit.reason, exit.at_us, exit.resolution_us), (ExitReason::Algorithm, 50 * STEP_US, STEP_US));
    assert_eq!((exit.window_segments, exit.window_bytes), (100, 144_800));
    let given = account.given().unwrap();
    assert_eq!((given.rate_bytes_per_second, given.at_least), (2_000 * u64::from(MSS), false));
    assert_eq!(account.lost_at_least_us(), Some(75 * STEP_US / 2));
    // The exit was at the window that carries the rate, and the rate came a second and a half later, within a round.
    let regret = account.regret().unwrap();
    assert!((0.5..=1.0).contains(&regret.window_to_bdp), "{regret:?}");
    assert!(regret.early_us.abs_diff(75 * STEP_US) <= 200_000, "{regret:?}");
}

/// A path of 100 segments, of which 50 were in flight after a second.
#[test]
fn a_start_from_memory_has_half_of_the_path_in_flight_in_the_second_round_trip() {
    let grows = |first_bytes: u64| {
        account(200, move |number, sample| {
            sample.info.unacked = number.min(100) as u32;
            sample.info.bytes_acked += first_bytes;
        })
    };
    let start = grows(0).remembering().unwrap();
    assert_eq!((start.window_bytes, start.at_us), (50 * u64::from(MSS), 200_000));
    let after = start.without_us.unwrap() / STEP_US;
    assert!((50..=50 + 50 / 8).contains(&after) && start.saves(), "{start:?}");
    assert_eq!(grows(100_000).remembering(), None, "its begin was not seen");
}

#[test]
fn an_exit_for_a_loss_that_was_none_is_undone() {
    let account = account(100, |number, sample| {
        sample.info.snd_ssthresh = (20..40).contains(&number).then_some(50);
        sample.info.ca_state = if (20..40).contains(&number) { 3 } else { 0 };
    });
    assert_eq!((account.slow_start(), account.regret()), (SlowStart::Lasts, None));
}

#[test]
fn the_line_of_time_has_at_most_so_many_slices_however_long_it_is() {
    let long = account(100_000, |_, _| {});
    assert!(long.over_time.parts().len() <= 64);
    let sum: u64 = long.over_time.parts().iter().map(Parts::total).sum();
    assert_eq!(sum, long.observed_us());
    assert!(long.over_time.limits().all(|limit| limit == Some(Limit::SlowStart)));
    // Samples that are further apart than a slice is wide leave none empty.
    let rare = account(5, |number, sample| {
        sample.at_us = number * 600_000;
        sample.info.busy_time_us = sample.at_us;
    });
    assert_eq!(rare.over_time.limits().count(), 60);
    assert!(rare.over_time.limits().all(|limit| limit == Some(Limit::SlowStart)));
}

/// A sample of anything, also of what no kernel says.
fn any_sample() -> impl Strategy<Value = Sample> {
    let counters = prop::array::uniform4(0..u64::MAX / 4);
    let small = prop::array::uniform8(any::<u32>());
    (counters, small, 0..6_u8, any::<bool>(), prop::option::of(0..1_000_u32)).prop_map(
        |([at, busy, receive_window, send_buffer], words, ca_state, models_path, ssthresh)| {
            let [cwnd, unacked, unsent, rtt, delivered, in_queue, queued, buffer] = words;
            Sample {
                at_us: at,
                info: TcpInfo {
                    ca_state,
                    snd_mss: MSS,
                    snd_cwnd: cwnd,
                    unacked,
                    notsent_bytes: unsent,
                    rtt_us: rtt,
                    min_rtt_us: Some(rtt / 2),
                    delivered,
                    busy_time_us: busy,
                    rwnd_limited_us: receive_window,
                    sndbuf_limited_us: send_buffer,
                    snd_ssthresh: ssthresh,
                    ..TcpInfo::default()
                },
                memory: SocketMemory {
                    in_host_queue_bytes: in_queue,
                    queued_bytes: queued,
                    send_buffer_bytes: buffer,
                },
                models_path,
            }
        },
    )
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_time_observed_whatever_the_samples_are(
        samples in prop::collection::vec(any_sample(), 1..40)
    ) {
        let mut account = Account::new(samples[0]);
        for sample in &samples[1..] {
            account.add(*sample);
            prop_assert_eq!(account.parts.total(), account.observed_us());
        }
        let sum: u64 = account.over_time.parts().iter().map(Parts::total).sum();
        prop_assert_eq!(sum, account.observed_us());
        let _ = verdict(&account, "cubic");
    }
}
