//! The broker's end of the socket to the web part.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::wire::{BrokerMessage, LENGTH, REQUEST_MAX, Request, decode, encode_in, length};
use crate::consumer::Signals;

/// How long the web part may not read.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks for signals while it does not.
const LOOK: Duration = Duration::from_millis(100);
/// Requests that are taken at once; others wait in the socket, and in the end their sender waits.
const REQUESTS_MAX: usize = 64;

/// The socket to the web part.
pub(super) struct Channel<'a> {
    stream: UnixStream,
    signals: &'a Signals,
    /// Never more than a request and a read.
    received: Vec<u8>,
    /// What was said last.
    frame: Vec<u8>,
}

impl<'a> Channel<'a> {
    pub fn new(stream: UnixStream, signals: &'a Signals) -> anyhow::Result<Self> {
        stream.set_write_timeout(Some(LOOK)).context("cannot set a timeout")?;
        Ok(Self { stream, signals, received: Vec::new(), frame: Vec::new() })
    }

    /// Says it whole, unless a signal comes while the web part does not read.
    pub fn say(&mut self, message: &BrokerMessage) -> anyhow::Result<()> {
        self.frame = encode_in(message, std::mem::take(&mut self.frame)).context("cannot encode")?;
        let mut left = self.frame.as_slice();
        let mut taken = Instant::now();
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(bytes) => {
                    left = &left[bytes..];
                    taken = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.signals.came() || taken.elapsed() > TIMEOUT {
                        bail!("the web part does not read its messages");
                    }
                }
                Err(error) => return Err(error).context("the web part does not read its messages"),
            }
        }
        Ok(())
    }

    /// Waits at most so long for something to be said.
    pub fn wait(&self, time: Duration) {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        // Interrupted or failed: one look too many.
        let _ = poll(&mut fds, PollTimeout::from(time.as_millis() as u16));
    }

    /// What has been said whole, at most [`REQUESTS_MAX`].
    pub fn requests(&mut self) -> anyhow::Result<Vec<Request>> {
        let mut requests = Vec::new();
        self.take_whole(&mut requests)?;
        let mut buffer = [0; 4096];
        while requests.len() < REQUESTS_MAX && self.readable() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(anyhow!("it has closed its socket")),
                Ok(bytes) => self.received.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read from the web part"),
            }
            self.take_whole(&mut requests)?;
        }
        Ok(requests)
    }

    fn take_whole(&mut self, requests: &mut Vec<Request>) -> anyhow::Result<()> {
        let mut taken = 0;
        while requests.len() < REQUESTS_MAX
            && let Some((head, rest)) = self.received[taken..].split_first_chunk::<LENGTH>()
        {
            let length = length(*head, REQUEST_MAX).ok_or_else(|| anyhow!("it asks for too much"))?;
            let Some(frame) = rest.get(..length) else { break };
            requests.push(decode(frame).context("its request is not understood")?);
            taken += LENGTH + length;
        }
        self.received.drain(..taken);
        Ok(())
    }

    fn readable(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::wire::encode;
    use super::*;

    #[test]
    fn a_flood_of_requests_is_taken_in_portions_and_all_of_it_arrives() {
        const FLOOD: u64 = 100_000;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let signals = Signals::take().unwrap();
        let mut channel = Channel::new(ours, &signals).unwrap();
        let sender = thread::spawn(move || {
            let frames = (0..FLOOD).flat_map(|flow| encode(&Request::Leave(flow)).unwrap());
            let bytes: Vec<u8> = frames.collect();
            (&theirs).write_all(&bytes).unwrap();
            theirs
        });
        let mut next = 0;
        while next < FLOOD {
            let requests = channel.requests().unwrap();
            assert!(requests.len() <= REQUESTS_MAX, "{}", requests.len());
            assert!(channel.received.len() <= REQUEST_MAX + 4096, "{}", channel.received.len());
            for request in requests {
                assert!(matches!(request, Request::Leave(flow) if flow == next), "{request:?}");
                next += 1;
            }
        }
        drop(sender.join().unwrap());
        assert!(channel.requests().is_err(), "its end is noticed");
    }
}
