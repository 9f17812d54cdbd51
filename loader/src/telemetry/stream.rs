//! The reading end of a consumer.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use aya::maps::{MapData, RingBuf};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::decode::decode;
use super::event::{Event, Item, Lost};
use super::registration::Registration;
use super::subscription::{Options, Subscription};
use crate::pins::{LOCK_TIMEOUT, WaitWhile};
use crate::system::error::Error;

/// Longest time that a written event waits for a reader who is idle: the kernel wakes him only for events of
/// [`Level::Exit`] and when much is waiting.
const LOOK: Duration = Duration::from_millis(100);

/// Events of all flows on all attached algorithms, also of those attached later. Nothing is buffered but in the ring:
/// the reader's pace decides what is lost. Ends when dropped.
pub struct Stream {
    ring: RingBuf<MapData>,
    registration: Registration,
    /// Losses that have been reported.
    reported: Lost,
    /// What comes after a report of losses.
    next: Option<Event>,
}

impl Stream {
    /// Becomes a consumer. Nothing needs to be attached yet.
    ///
    /// # Errors
    /// [`Error::Privilege`], [`Error::Subscription`], [`Error::TooManyConsumers`], [`Error::OtherTelemetry`],
    /// [`Error::OtherBuild`], or what the kernel refuses; nothing is left then.
    pub fn open(options: &Options) -> Result<Self, Error> {
        Self::open_while(options, &|waited| waited < LOCK_TIMEOUT)
    }

    /// [`Stream::open`], but waits for other commands as long as the caller is patient.
    ///
    /// # Errors
    /// As [`Stream::open`], and [`Error::Locked`].
    pub fn open_while(options: &Options, wait: WaitWhile<'_>) -> Result<Self, Error> {
        let (registration, ring) = Registration::new(options, wait)?;
        Ok(Self { ring, registration, reported: Lost::default(), next: None })
    }

    /// Changes the subscription, from the next event on. Every flow is reported again.
    ///
    /// # Errors
    /// [`Error::Subscription`]; nothing changes then.
    pub fn set(&mut self, subscription: &Subscription) -> Result<(), Error> {
        self.registration.subscribe(subscription)
    }

    /// Once this process has given up privileges: the one behind this consumer that frees its place gives them up, too.
    ///
    /// # Errors
    /// [`Error::Io`]: no process can be started; nothing changes then.
    pub fn keep_anew(&mut self) -> Result<(), Error> {
        self.registration.keep_anew()
    }

    /// The next item if there is one now.
    ///
    /// # Errors
    /// [`Error::Event`]: an event of another version, or broken; it has been skipped.
    pub fn try_next(&mut self) -> Result<Option<Item>, Error> {
        if let Some(event) = self.next.take() {
            return Ok(Some(Item::Event(event)));
        }
        let Some(bytes) = self.ring.next() else {
            let total = self.registration.mine().lost.load(Relaxed);
            return Ok(self.losses(total).map(Item::Lost));
        };
        let (event, lost) = decode(&bytes)?;
        drop(bytes);
        Ok(Some(match self.losses(lost) {
            Some(report) => {
                self.next = Some(event);
                Item::Lost(report)
            }
            None => Item::Event(event),
        }))
    }

    /// Waits for the next item at most so long, blocking this thread; `None`: there was none.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Item>, Error> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(item) = self.try_next()? {
                return Ok(Some(item));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.registration.check()?;
            let wait = left.min(LOOK).as_micros().div_ceil(1000) as u16;
            let mut fds = [PollFd::new(self.ring.as_fd(), PollFlags::POLLIN)];
            // Interrupted or failed: one look too many.
            let _ = poll(&mut fds, PollTimeout::from(wait));
        }
    }

    /// Waits for the next item. Must be called within a tokio runtime with I/O and time enabled. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// [`Error::Event`] as [`Self::try_next`], after which the stream goes on; [`Error::LeaseLost`], after which it does
    /// not.
    pub async fn next(&mut self) -> Result<Item, Error> {
        loop {
            if let Some(item) = self.try_next()? {
                return Ok(item);
            }
            self.registration.check()?;
            // SAFETY: the ring outlives this registration, which ends with this turn or with the future, and its
            // descriptor never changes.
            let waiting =
                unsafe { AsyncFd::register_with_interest(self.ring.as_fd(), Interest::READABLE) }
                    .map_err(|error| Error::io("wait for", "a ring buffer")(std::io::Error::from(error)))?;
            let _ = tokio::time::timeout(LOOK, waiting.readable()).await;
        }
    }

    /// Events lost since it was opened.
    pub fn lost(&self) -> u64 {
        self.registration.mine().lost.load(Relaxed)
    }

    /// What is not reported yet of losses that come to `events`.
    fn losses(&mut self, events: u64) -> Option<Lost> {
        let unobserved = Duration::from_nanos(self.registration.mine().expired_ns.load(Relaxed));
        let report = Lost {
            events: events.saturating_sub(self.reported.events),
            unobserved: unobserved.saturating_sub(self.reported.unobserved),
        };
        self.reported.events += report.events;
        self.reported.unobserved += report.unobserved;
        (report != Lost::default()).then_some(report)
    }
}

impl AsFd for Stream {
    /// Becomes readable when [`Level::Exit`](super::Level::Exit) events or many others are waiting: look also without it,
    /// ten times a second.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
