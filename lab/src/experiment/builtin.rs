// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Downloads with a source and a sink of our own, two threads each. They do what iperf3 does with `-R`, for a fraction
//! of the processor time: what limits a transfer is the window, never they.
//!
//! A transfer has two connections to one port, as iperf3's has. On the first the source says that it begins and the sink
//! that it has all; the data go over the second. The clock is the sink's: from that word to the last byte.

mod sink;
mod sockets;
mod source;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onramp_net::{Namespace, NamespaceError};
use thiserror::Error;

use super::transfer::{Download, POLL, Request};
use crate::host::SENDER;
pub(crate) use sink::may_wait;
use sockets::Sockets;
pub(crate) use source::BLOCK;

/// What can go wrong with a download.
#[derive(Debug, Error)]
pub enum BuiltinError {
    /// A socket did not do what it should.
    #[error("the {side} of the transfer on port {port} cannot {action}: {source}")]
    Socket {
        /// `source` or `sink`.
        side: &'static str,
        /// Its port.
        port: u16,
        /// What it was about to do.
        action: &'static str,
        /// Reason.
        source: io::Error,
    },
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A thread could not be started.
    #[error("cannot start a thread of the transfer: {0}")]
    Thread(#[source] io::Error),
    /// It took too long.
    #[error("the transfer on port {port} did not finish within {seconds} s and was given up")]
    Timeout {
        /// Its port.
        port: u16,
        /// The limit.
        seconds: u64,
    },
    /// The link ended under it.
    #[error("the transfer was given up because the link failed")]
    Interrupted,
    /// A thread panicked.
    #[error("a thread of the transfer ended unexpectedly; this is a bug in onramp")]
    Panicked,
}

/// A transfer whose source is listening, or that is in progress.
struct Transfer {
    request: Request,
    listener: Option<TcpListener>,
    sockets: Arc<Sockets>,
    source: Option<JoinHandle<()>>,
    sink: Option<JoinHandle<Option<Download>>>,
}

impl Transfer {
    fn listen(sender: &Namespace, request: Request) -> Result<Self, BuiltinError> {
        let port = request.port;
        let failed = |source| BuiltinError::Socket { side: "source", port, action: "listen", source };
        let listener = sender.run(|| TcpListener::bind((SENDER, port)))?.map_err(failed)?;
        let sockets = Arc::default();
        Ok(Self { request, listener: Some(listener), sockets, source: None, sink: None })
    }

    /// Begins, if it has not.
    fn begin(&mut self, receiver: &Namespace) -> Result<(), BuiltinError> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let name = |side: &str| std::thread::Builder::new().name(side.into());
        let (request, sockets) = (self.request.clone(), Arc::clone(&self.sockets));
        let source = name("source").spawn(move || source::run(&listener, &request, &sockets));
        self.source = Some(source.map_err(BuiltinError::Thread)?);
        let (request, sockets) = (self.request.clone(), Arc::clone(&self.sockets));
        let receiver = receiver.clone();
        let sink = name("sink").spawn(move || sink::run(&receiver, &request, &sockets));
        self.sink = Some(sink.map_err(BuiltinError::Thread)?);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.sink.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn download(mut self) -> Result<Option<Download>, BuiltinError> {
        if self.request.accompanies {
            return Ok(None);
        }
        let download = self.sink.take().map(|sink| sink.join().map_err(|_| BuiltinError::Panicked));
        let download = download.transpose()?.flatten();
        self.sockets.failure().map_or(Ok(download), Err)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.sockets.end();
        // What they have to say was said through the sockets.
        let _ = self.source.take().map(JoinHandle::join);
        let _ = self.sink.take().map(JoinHandle::join);
    }
}

/// Downloads from `sender` to `receiver`, all requests at their times. `meanwhile` is called every few milliseconds
/// with the time since the beginning and says whether to go on. Returns the downloads of the requests that report, in
/// order.
pub(super) fn download(
    sender: &Namespace,
    receiver: &Namespace,
    requests: &[Request],
    timeout: Duration,
    mut meanwhile: impl FnMut(Duration) -> bool,
) -> Result<Vec<Download>, BuiltinError> {
    let transfers = requests.iter().map(|request| Transfer::listen(sender, request.clone()));
    let mut transfers = transfers.collect::<Result<Vec<_>, _>>()?;
    let begin = Instant::now();
    loop {
        let elapsed = begin.elapsed();
        let mut over = true;
        for transfer in &mut transfers {
            let request = &transfer.request;
            let (start, port) = (request.start, request.port);
            let done = transfer.is_over();
            over &= done || request.accompanies;
            if !done && elapsed.saturating_sub(start) > timeout {
                return Err(BuiltinError::Timeout { port, seconds: timeout.as_secs() });
            }
            if elapsed >= start {
                transfer.begin(receiver)?;
            }
        }
        if over {
            break;
        }
        if !meanwhile(elapsed) {
            return Err(BuiltinError::Interrupted);
        }
        std::thread::sleep(POLL);
    }
    transfers.into_iter().filter_map(|transfer| transfer.download().transpose()).collect()
}
