//! What ends the slow starts of a control.

use onramp_loader::ExitReason;
use onramp_loader::algorithm::{find_control, of_cubic};

/// Its algorithm: a model of HyStart for the kernel's CUBIC. `None`: it has none of a name.
pub(crate) fn algorithm_of(control: &str) -> Option<&'static str> {
    if control == "cubic" {
        return Some(of_cubic().name());
    }
    find_control(control).map(|algorithm| algorithm.name())
}

/// The same in text; without an algorithm it is the control itself.
pub(crate) fn exiting(control: &str) -> &str {
    match algorithm_of(control) {
        Some(name) if name == of_cubic().name() => "HyStart",
        Some(name) => name,
        None if control.is_empty() => "the congestion control",
        None => control,
    }
}

/// Why a slow start ended, in text: the reason by its name, and an algorithm by its own.
pub(crate) fn exited_by(reason: &str, control: &str) -> String {
    if reason == ExitReason::Algorithm.name() {
        exiting(control).to_owned()
    } else {
        reason.replace('_', " ")
    }
}
