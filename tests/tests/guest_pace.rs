//! A guest's processor is as fast as its two clocks have been set.

use std::arch::asm;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use onramp_lab::guest::INSTRUCTIONS_PER_NANOSECOND;
use onramp_tests::guest;

/// Executes that many instructions, and a few more.
fn execute(instructions: u64) {
    // SAFETY: the loop changes the register that it is given, and flags.
    unsafe {
        asm!("2: dec {left}", "jnz 2b", left = inout(reg) instructions / 2 => _, options(nomem, nostack))
    };
}

/// Interrupts of the timer since the guest's boot.
fn timer_interrupts() -> u64 {
    let all = fs::read_to_string("/proc/interrupts").unwrap();
    let timer = all.lines().find(|line| line.ends_with("timer")).expect("a line of the timer");
    timer.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn instructions_take_the_time_that_the_pace_gives_them() {
    guest::required();
    let begin = Instant::now();
    execute(INSTRUCTIONS_PER_NANOSECOND * 20_000_000);
    let took = begin.elapsed();
    // Ticks of the kernel come in between.
    assert!((20.0..20.4).contains(&(took.as_secs_f64() * 1e3)), "{took:?}, not 20 ms");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_timer_interrupts_once_and_when_it_was_set_for() {
    const SLEEPS: u32 = 100;
    guest::required();
    let before = timer_interrupts();
    for _ in 0..SLEEPS {
        let begin = Instant::now();
        thread::sleep(Duration::from_millis(10));
        let late = begin.elapsed() - Duration::from_millis(10);
        assert!(late < Duration::from_micros(200), "{late:?} late");
    }
    // A timer that is slower or faster than the time that is read would come again and again, or late. The rest is the
    // kernel's own.
    let each = (timer_interrupts() - before) as f64 / f64::from(SLEEPS);
    assert!((1.0..3.0).contains(&each), "{each} interrupts for each sleep");
}
