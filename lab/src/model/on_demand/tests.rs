// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The closed forms of Gotta et al. 2006 against its figures and against numerical integration.

use super::*;

const RTT: f64 = 0.75;
/// 2.112 Mb/s in packets of 1500 bytes.
const CAPACITY: f64 = 176.0;

fn skyplex(factor: f64, initial_window: u64) -> Startup {
    let delay = allocation_delay_seconds(RTT, 0.273, 0.819);
    Startup::new(RTT, delay, factor, initial_window, CAPACITY).unwrap()
}

fn all() -> impl Iterator<Item = Startup> {
    [0.0, 0.1, 0.75, 1.296, 6.0].into_iter().flat_map(|delay| {
        [0.5, 1.0, 2.0, 4.8, 8.0].into_iter().flat_map(move |factor| {
            [1, 2, 3, 10].map(|window| Startup::new(RTT, delay, factor, window, CAPACITY).unwrap())
        })
    })
}

fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one / other - 1.0).abs() < tolerance
}

/// dw/dt = k·w(t − T)/τ with w = 0 before the start, by steps of T/`STEPS`, trapezoidal: window at each step.
fn delay_equation(startup: &Startup, seconds: f64) -> (f64, Vec<f64>) {
    const STEPS: usize = 4_000;
    let step = startup.delay / STEPS as f64;
    let mut window = vec![startup.initial_window];
    for at in 0..(seconds / step) as usize {
        let past = |at: usize| if at < STEPS { 0.0 } else { window[at - STEPS] };
        let arriving = f64::midpoint(past(at), if at + 1 == STEPS { 0.0 } else { past(at + 1) });
        window.push(window[at] + step * startup.factor / startup.rtt * arriving);
    }
    (step, window)
}

#[test]
fn the_measured_platform_gives_the_ratio_and_the_best_factor_of_004() {
    let startup = skyplex(1.0, 1);
    assert!((startup.delay_ratio() - 2.73).abs() < 0.005, "{}", startup.delay_ratio());
    let best = best_factor(startup.delay_ratio());
    assert!((best - 4.8).abs() < 0.05, "{best}");
    let (_, s2) = skyplex(best, 1).roots();
    assert!(close((s2 * startup.delay).exp(), best, 1e-12));
}

#[test]
fn the_roots_solve_the_approximated_equation() {
    for startup in all() {
        let (s1, s2) = startup.roots();
        assert!(s1 < 0.0 && s2 > 0.0);
        let k_over_tau = startup.factor / startup.rtt;
        for s in [s1, s2] {
            // s = k/τ (1 − sT/2)/(1 + sT/2), multiplied out.
            let half = s * startup.delay / 2.0;
            let (left, right) = (s * (1.0 + half), k_over_tau * (1.0 - half));
            assert!((left - right).abs() < 1e-9 * (left.abs() + right.abs()), "{startup:?} {s}");
        }
    }
}

#[test]
fn small_ratios_keep_their_digits() {
    // s2·T → ρk as ρk → 0.
    for rho_k in [1e-6, 1e-9, 1e-12] {
        assert!(close(growth_in_delay(rho_k), rho_k, 3.0 * rho_k), "{rho_k}");
    }
    assert!(growth_in_delay(1e12) < 2.0 && growth_in_delay(1e12) > 1.999);
}

#[test]
fn the_window_follows_the_approximated_system_integrated_step_by_step() {
    // (6) as a system: u is the delayed window as the fraction sees it, u + T/2·u' = w − T/2·w', w' = k·u/τ, and the
    // jump of w to W0 at the start takes u to −W0.
    for startup in all() {
        let (gain, half) = (startup.factor / startup.rtt, startup.delay / 2.0);
        let slope = |w: f64, u: f64| (gain * u, (w - half * gain * u - u) / half);
        let (mut w, mut u, mut at) = (startup.initial_window, -startup.initial_window, 0.0);
        let step = startup.delay / 2_000.0;
        while at < 3.0 * startup.delay {
            let (w1, u1) = slope(w, u);
            let (w2, u2) = slope(w + step / 2.0 * w1, u + step / 2.0 * u1);
            let (w3, u3) = slope(w + step / 2.0 * w2, u + step / 2.0 * u2);
            let (w4, u4) = slope(w + step * w3, u + step * u3);
            w += step / 6.0 * (w1 + 2.0 * w2 + 2.0 * w3 + w4);
            u += step / 6.0 * (u1 + 2.0 * u2 + 2.0 * u3 + u4);
            at += step;
            let closed = startup.window_packets(at);
            assert!((closed - w).abs() < 1e-6 * w.abs().max(1.0), "{startup:?} at {at}: {closed} {w}");
        }
    }
}

#[test]
fn the_delay_equation_grows_at_its_own_rate_and_the_closed_form_less_than_5_percent_slower_at_k_1() {
    for delay in [0.0, 0.75, 1.296] {
        let startup = Startup::new(RTT, delay, 1.0, 1, CAPACITY).unwrap();
        let span = 10.0 * startup.delay;
        let (step, window) = delay_equation(&startup, span);
        let before = window.len() - 1 - (startup.delay / step).round() as usize;
        let grown = (window[window.len() - 1] / window[before]).ln() / startup.delay;
        assert!(close(grown, startup.delay_equation_growth(), 1e-3), "{grown}");
        let ratio = startup.roots().1 / grown;
        assert!((0.95..1.0).contains(&ratio), "{delay}: {ratio}");
    }
}

#[test]
fn saturation_comes_where_the_delay_equation_has_it_within_a_tenth_at_k_1() {
    for delay in [0.0, 0.75, 1.296] {
        for window in [1, 2, 3] {
            let startup = Startup::new(RTT, delay, 1.0, window, CAPACITY).unwrap();
            let closed = startup.saturation_seconds();
            let (step, windows) = delay_equation(&startup, 2.0 * closed);
            let at = windows.iter().position(|window| *window >= CAPACITY * RTT).unwrap() as f64 * step;
            assert!(close(closed, at, 0.1), "{delay} {window}: {closed} {at}");
        }
    }
}

#[test]
fn completion_is_within_a_tenth_of_the_delay_equation_at_k_1_and_later_by_up_to_two_fifths_at_k_4_8() {
    let excess = |factor: f64, packets: f64| {
        let startup = skyplex(factor, 1);
        let (step, window) = delay_equation(&startup, 10.0 * startup.delay);
        let mut sent = 0.0;
        let done = window.iter().position(|window| {
            sent += step * (window / RTT).min(CAPACITY);
            sent >= packets
        });
        startup.completion_seconds(packets).unwrap() / (done.unwrap() as f64 * step) - 1.0
    };
    for packets in [10.0, 100.0, 1_000.0] {
        assert!((0.0..0.1).contains(&excess(1.0, packets)), "{}", excess(1.0, packets));
        assert!((0.1..0.4).contains(&excess(4.8, packets)), "{}", excess(4.8, packets));
    }
}

#[test]
fn the_best_factor_of_the_delay_equation_balances_grant_and_throughput_and_that_of_16_grants_too_little() {
    let rho = skyplex(1.0, 1).delay_ratio();
    let granted_share = |factor: f64| {
        let startup = skyplex(factor, 1);
        let (step, window) = delay_equation(&startup, 20.0 * startup.delay);
        let back = (startup.delay / step).round() as usize;
        factor * window[window.len() - 1 - back] / window[window.len() - 1]
    };
    let exact = granted_share(delay_equation_best_factor(rho));
    assert!(close(exact, 1.0, 2e-3), "{exact}");
    let approximate = granted_share(best_factor(rho));
    assert!((0.6..0.8).contains(&approximate), "{approximate}");
}

#[test]
fn a_preassigned_channel_has_its_own_round_trip_time_and_delay_makes_it_longer() {
    for factor in [0.5, 1.0, 4.8] {
        let equivalents = [0.0, 0.1, 0.75, 1.296, 6.0]
            .map(|delay| Startup::new(RTT, delay, factor, 1, CAPACITY).unwrap().equivalent_rtt_seconds());
        assert!(close(equivalents[0], RTT, 1e-12));
        assert!(equivalents.is_sorted_by(|one, next| one < next), "{equivalents:?}");
    }
    // The meaning of (11): the same growth on a channel assigned in advance with that round-trip time.
    let startup = skyplex(2.0, 1);
    let alike = Startup::new(startup.equivalent_rtt_seconds(), 0.0, 2.0, 1, CAPACITY).unwrap();
    assert!(close(startup.roots().1, alike.roots().1, 1e-12));
}

#[test]
fn data_sent_is_the_integral_of_the_window_until_saturation() {
    for startup in all().filter(Startup::holds) {
        let end = startup.saturation_seconds();
        let steps = 20_000;
        let step = end / f64::from(steps);
        let rate = |at: f64| startup.window_packets(at) / startup.rtt;
        let sum: f64 = (0..steps).map(|at| rate((f64::from(at) + 0.5) * step) * step).sum();
        // (13) neglects what is left of the decaying term.
        let (s1, (a, _)) = (startup.roots().0, startup.amplitudes());
        let neglected = a / (s1 * startup.rtt) * (s1 * end).exp();
        assert!(close(startup.sent_at_saturation_packets() + neglected, sum, 1e-5), "{startup:?}");
        assert!(close(startup.sent_packets(end), startup.sent_at_saturation_packets(), 1e-9));
    }
}

#[test]
fn completion_inverts_data_sent_for_every_factor_and_is_continuous_at_saturation() {
    for startup in all() {
        for packets in [20.0, 100.0, 500.0, 5_000.0] {
            if let Some(seconds) = startup.completion_seconds(packets) {
                assert!(close(startup.sent_packets(seconds), packets, 1e-9), "{startup:?} {packets}");
            }
        }
        let edge = startup.sent_at_saturation_packets();
        if startup.holds() {
            let sides = [edge * (1.0 - 1e-9), edge, edge * (1.0 + 1e-9)];
            for packets in sides {
                let seconds = startup.completion_seconds(packets).unwrap();
                assert!(close(seconds, startup.saturation_seconds(), 1e-6), "{startup:?}");
            }
        }
    }
}

#[test]
fn larger_windows_and_factors_and_smaller_delays_finish_sooner() {
    let time = |delay: f64, factor: f64, window: u64| {
        Startup::new(RTT, delay, factor, window, CAPACITY).unwrap().completion_seconds(300.0).unwrap()
    };
    assert!([1, 2, 3].map(|window| time(1.296, 1.0, window)).is_sorted_by(|one, next| one > next));
    assert!([1.296, 0.75, 0.0].map(|delay| time(delay, 1.0, 1)).is_sorted_by(|one, next| one > next));
    let by_factor = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|factor| time(1.296, factor, 1));
    let gains: Vec<f64> = by_factor.windows(2).map(|pair| pair[0] - pair[1]).collect();
    assert!(gains.is_sorted_by(|one, next| one > next) && gains[4] > 0.0, "{gains:?}");
}

#[test]
fn the_equation_for_the_best_factor_has_one_root_above_1_and_below_e_squared() {
    for rho in [1.0, 1.001, 2.0, 2.73, 10.0, 1e6] {
        let best = best_factor(rho);
        assert!(best > 1.0 && best < 2.0_f64.exp(), "{rho}: {best}");
        let excess = |ln_k: f64| growth_in_delay(rho * ln_k.exp()) - ln_k;
        assert!(
            (0..200).map(|at| excess(f64::from(at) / 100.0)).is_sorted_by(|one, next| one > next),
            "{rho}"
        );
    }
}

#[test]
fn too_few_packets_have_no_completion_time() {
    let startup = Startup::new(RTT, 1.296, 1.0, 10, CAPACITY).unwrap();
    assert_eq!(startup.completion_seconds(1.0), None);
    assert!(startup.completion_seconds(100.0).is_some());
}

#[test]
fn values_out_of_range_are_named() {
    for (startup, key) in [
        (Startup::new(0.0, 1.0, 1.0, 1, CAPACITY), "rtt_seconds = 0"),
        (Startup::new(RTT, -0.1, 1.0, 1, CAPACITY), "allocation_delay_seconds = -0.1"),
        (Startup::new(RTT, 61.0, 1.0, 1, CAPACITY), "allocation_delay_seconds = 61"),
        (Startup::new(RTT, 1.0, 0.0, 1, CAPACITY), "factor = 0"),
        (Startup::new(RTT, 1.0, f64::NAN, 1, CAPACITY), "factor = NaN"),
        (Startup::new(RTT, 1.0, 1.0, 0, CAPACITY), "initial_window_packets = 0"),
        (Startup::new(RTT, 1.0, 1.0, 132, CAPACITY), "initial_window_packets = 132"),
        (Startup::new(RTT, 1.0, 1.0, 1, 0.0), "initial_window_packets = 1"),
        (Startup::new(RTT, 1.0, 1.0, 1, f64::INFINITY), "capacity_pps = inf"),
    ] {
        let message = startup.unwrap_err().to_string();
        assert!(message.starts_with(key) && message.contains("expected"), "{message}");
    }
    assert!(Startup::new(RTT, 1.0, 1.0, 131, CAPACITY).is_ok());
}
