//! Work that Ctrl-C stops, and errors as Python has them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use onramp_loader::algorithm::outside;
use onramp_terminal::failure::sentence;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// From one look at signals to the next.
const PERIOD: Duration = Duration::from_millis(50);

/// Does the work on another thread, without the interpreter. A signal whose handler raises ends the wait at once and sets the
/// flag, at which the work is to end when it next looks.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> anyhow::Result<T> + Send + 'static,
) -> PyResult<T> {
    let stopped = Arc::new(AtomicBool::new(false));
    let (send, mut receive) = mpsc::channel();
    let flag = Arc::clone(&stopped);
    std::thread::spawn(move || {
        // Nobody waits for what was stopped.
        let _ = send.send(outside::caught(|| work(&flag)).unwrap_or_else(|broken| Err(broken.into())));
    });
    loop {
        let waiting = &mut receive;
        match py.detach(move || waiting.recv_timeout(PERIOD)) {
            Ok(made) => return made.map_err(|error| raised(&error)),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("onramp has failed: what it said is on stderr"));
            }
        }
    }
}

/// `FileNotFoundError` and `OSError` for what the system refused, `ValueError` for everything else, with the programs' sentence.
fn raised(error: &anyhow::Error) -> PyErr {
    let text = sentence(error);
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    match refused.map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => PyFileNotFoundError::new_err(text),
        // Of what is in a file, not of the system.
        None | Some(io::ErrorKind::InvalidData) => PyValueError::new_err(text),
        Some(_) => PyOSError::new_err(text),
    }
}
