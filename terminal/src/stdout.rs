// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether standard output is open. Rust opens /dev/null in the place of a closed one before `main`, after which what is
//! written seems to arrive; so this is asked before.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls what stands in this section before `main`, with one thread, as functions of this form.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was closed when this process began.
pub(crate) fn was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
