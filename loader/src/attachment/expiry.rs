//! Attachments that end by themselves. The deadline is in the kernel with the attachment: past it new flows and those
//! in progress run the base alone, whatever has become of user space. A process that watches the clock reads it there, and only
//! tidies up.

use std::fs::File;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use onramp_algorithm::Algorithm;

use crate::attachment::detach::{Detached, detach_locked};
use crate::pins::parameters;
use crate::pins::{Lock, Pins};
use crate::system::error::Error;
use crate::system::{clock, kernel};
use crate::telemetry::Shared;

/// When an attachment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Id of the attachment.
    pub generation: u64,
    /// What is left until then; 0: its time is over.
    pub left: Duration,
}

/// When an algorithm's attachment ends; `None`: it is not attached, or stays.
///
/// # Errors
/// [`Error::Privilege`], [`Error::OtherBuild`], or a map that cannot be read.
pub fn expiry(algorithm: Algorithm) -> Result<Option<Expiry>, Error> {
    kernel::require_privilege("attach")?;
    let _lock = Lock::take()?;
    read(algorithm)
}

/// Lets an attachment stay; returns when it would have ended, `None` if it stays already.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::Interrupted`], [`Error::Privilege`], or a map that cannot be written.
pub fn confirm(algorithm: Algorithm) -> Result<Option<Expiry>, Error> {
    kernel::require_privilege("confirm")?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    let expiry = read(algorithm)?;
    if expiry.is_some() {
        write(&pins, 0)?;
    }
    Ok(expiry)
}

/// Has an attachment end after this time, counted from now; returns when it would have ended, `None` if it would have
/// stayed. A process has to [`watch`] it, or it ends in the kernel only.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::Interrupted`], [`Error::AttachedForRun`], [`Error::Privilege`], or a map that cannot
/// be written.
pub fn expire_after(algorithm: Algorithm, time: Duration) -> Result<Option<Expiry>, Error> {
    kernel::require_privilege("attach")?;
    let (_lock, pins) = parameters::hold(algorithm)?;
    pins.require_no_run()?;
    let before = read(algorithm)?;
    let telemetry = Shared::of_attached()?;
    write(&pins, clock::deadline_ns(time))?;
    telemetry.announce();
    Ok(before)
}

fn write(pins: &Pins, deadline_ns: u64) -> Result<(), Error> {
    let mut attachment = pins.attachment()?;
    attachment.deadline_ns = deadline_ns;
    pins.array("attachment")?.set(0, attachment, 0).map_err(pins.failed("write", "attachment"))
}

/// Held by the process that watches the clock for an attachment.
#[derive(Debug)]
pub struct Watching {
    _directory: Flock<File>,
}

/// Begins to watch the clock for what is attached now; `None`: another process does already.
///
/// # Errors
/// [`Error::Io`] if it is not attached.
pub fn watch(algorithm: Algorithm) -> Result<Option<Watching>, Error> {
    // Of the attachment: its pins' directory goes with it.
    let path = Pins::new(algorithm).directory;
    let directory = File::open(&path).map_err(Error::io("open", &path))?;
    match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(Error::io("lock", path)(errno.into())),
        Ok(directory) => Ok(Some(Watching { _directory: directory })),
    }
}

/// Detaches an algorithm if it is still this attachment and its time is over; `None`: it is another, or stays.
///
/// # Errors
/// What [`crate::detach`] fails with.
pub fn detach_expired(algorithm: Algorithm, generation: u64) -> Result<Option<Detached>, Error> {
    kernel::require_privilege("detach")?;
    let _lock = Lock::take()?;
    match read(algorithm)? {
        Some(expiry) if expiry.generation == generation && expiry.left.is_zero() => {
            detach_locked(algorithm, false).map(Some)
        }
        _ => Ok(None),
    }
}

fn read(algorithm: Algorithm) -> Result<Option<Expiry>, Error> {
    let pins = Pins::new(algorithm);
    // Half attached is not attached: `status` and `detach` deal with it.
    if !pins.are_attached()? {
        return Ok(None);
    }
    let attachment = pins.attachment()?;
    Ok(clock::left(attachment.deadline_ns).map(|left| Expiry { generation: attachment.generation, left }))
}
