//! Tests that take a kernel: they load BPF, act as root, or look at times and losses of a transfer. They are marked
//! `#[ignore = "in a guest: make test"]`, so that `cargo test` leaves them out and says where they run, and
//! `tests/guests.sh` runs exactly them in guests whose kernel and clock are theirs alone.

use std::env;

/// Set to anything in a guest; by hand on a machine whose congestion controls, namespaces and time may suffer.
const VARIABLE: &str = "ONRAMP_GUEST";

/// Fails a test that takes a kernel and was given one that others use.
///
/// # Panics
/// Outside of a guest, and without root.
pub fn required() {
    assert!(
        env::var_os(VARIABLE).is_some(),
        "this test takes the whole kernel: `make test` gives it one in a guest ({VARIABLE}=1 gives it the running one)"
    );
    assert!(nix::unistd::geteuid().is_root(), "this test needs root, in a guest too");
}

/// Whether this kernel registers controls by links (Linux 6.4). Before, a registration outlives whatever stands for it.
pub fn has_links() -> bool {
    let release = onramp_lab::experiment::Clock::Machine.origin().kernel;
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(4))
}
