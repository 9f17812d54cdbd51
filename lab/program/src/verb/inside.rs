//! `onramp-lab inside`: the first process of a guest.

use clap::Args;
use onramp_lab::guest;

use crate::failure::FAILURE;
use crate::output::say;

/// Be the first process of a guest; not for calls by hand
#[derive(Args, Debug)]
pub(crate) struct Inside {}

/// Ends the guest, so that it returns only where this is no guest.
pub(crate) fn run() -> u8 {
    if std::process::id() == 1 {
        guest::inside::run();
    }
    say("error: `onramp lab inside` is the first process of a guest: use `onramp lab guest`");
    FAILURE
}
