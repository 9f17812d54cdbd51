// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sockets of a transfer, so that a thread that waits at one of them can be ended.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{Shutdown, shutdown};

use super::BuiltinError;

/// The sockets of a transfer, which can be shut down from another thread.
#[derive(Default)]
pub(super) struct Sockets(Mutex<State>);

#[derive(Default)]
struct State {
    ended: bool,
    sockets: Vec<OwnedFd>,
    failure: Option<BuiltinError>,
}

impl Sockets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a socket, which is shut down at once if the end has come.
    pub fn add(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        let mut state = self.state();
        if state.ended {
            shut(&socket);
        }
        state.sockets.push(socket);
        Ok(())
    }

    /// Ends whatever waits at a socket.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.sockets.iter().for_each(shut);
    }

    /// Keeps the first failure, unless it comes of the end, and ends the transfer.
    pub fn fail(&self, error: BuiltinError) {
        let mut state = self.state();
        if !state.ended {
            state.failure = Some(error);
        }
        drop(state);
        self.end();
    }

    /// What made the transfer fail.
    pub fn failure(&self) -> Option<BuiltinError> {
        self.state().failure.take()
    }
}

/// Fails only where nothing is connected any more.
fn shut(socket: &OwnedFd) {
    let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
}
