//! Attachments that end by themselves. The deadline is in the kernel with the attachment: past it new flows and those
//! under way run the base alone, whatever has become of user space. Whoever watches the clock reads it there, and only
//! tidies up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use onramp_algorithm::Algorithm;

use crate::detach::{Detached, detach_locked};
use crate::error::Error;
use crate::pins::{Lock, Pins};
use crate::{kernel, tune};

/// When an attachment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Id of the attachment.
    pub generation: u64,
    /// What is left until then; 0: its time is over.
    pub left: Duration,
}

/// Time since boot, suspended time included, as `bpf_ktime_get_boot_ns`: no step of the wall clock changes it.
fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap_or_else(|_| TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The deadline of what is attached now for a time.
pub(crate) fn deadline_ns(time: Duration) -> u64 {
    boot_ns() + time.as_nanos() as u64
}

/// A deadline by the wall clock as it is set now, microseconds since 1970; `None`: there is none.
pub(crate) fn wall_clock_us(deadline_ns: u64) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    let left_us = (deadline_ns as i64 - boot_ns() as i64) / 1_000;
    (deadline_ns != 0).then(|| now.saturating_add_signed(left_us))
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
    let (_lock, pins) = tune::hold(algorithm)?;
    let expiry = read(algorithm)?;
    if expiry.is_some() {
        let mut attachment = pins.attachment()?;
        attachment.deadline_ns = 0;
        pins.array("attachment")?.set(0, attachment, 0).map_err(pins.failed("write", "attachment"))?;
    }
    Ok(expiry)
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
    let pins = Pins::of(algorithm);
    // Half attached is not attached: `status` and `detach` deal with it.
    if !pins.are_attached()? {
        return Ok(None);
    }
    let attachment = pins.attachment()?;
    let left = Duration::from_nanos(attachment.deadline_ns.saturating_sub(boot_ns()));
    Ok((attachment.deadline_ns != 0).then_some(Expiry { generation: attachment.generation, left }))
}
