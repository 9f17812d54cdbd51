//! libbpf's own messages: into the log, and the last of them into errors.

use std::sync::{Mutex, Once, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// Lines kept for an error message: the verifier's verdict is at the end.
const KEPT: usize = 12;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static INSTALL: Once = Once::new();

/// Starts a new collection; installs itself as libbpf's printer the first time.
pub(crate) fn capture() {
    INSTALL.call_once(|| {
        set_print(Some((PrintLevel::Debug, keep)));
    });
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The last lines since [`capture`].
pub(crate) fn take() -> String {
    let lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
    lines[lines.len().saturating_sub(KEPT)..].join("\n")
}

fn keep(level: PrintLevel, message: String) {
    match level {
        PrintLevel::Debug | PrintLevel::Info => tracing::debug!(target: "libbpf", "{}", message.trim_end()),
        PrintLevel::Warn => {
            tracing::debug!(target: "libbpf", "{}", message.trim_end());
            let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
            lines.extend(message.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
        }
    }
}
