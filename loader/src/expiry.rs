//! Attachments that end by themselves: the time is in the kernel with the attachment, whoever watches the clock reads
//! it there.

use onramp_algorithm::Algorithm;

use crate::detach::{Detached, detach_locked};
use crate::error::Error;
use crate::kernel;
use crate::pins::{Lock, Pins};

/// When an attachment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Id of the attachment.
    pub generation: u64,
    /// Wall clock, microseconds since 1970.
    pub expires_at_us: u64,
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
    kernel::require_privilege("attach")?;
    let _lock = Lock::take()?;
    let pins = crate::tune::attached(algorithm)?;
    let expiry = read(algorithm)?;
    if expiry.is_some() {
        let mut attachment = pins.attachment()?;
        attachment.expires_at_us = 0;
        pins.array("attachment")?.set(0, attachment, 0).map_err(pins.failed("write", "attachment"))?;
    }
    Ok(expiry)
}

/// Detaches an algorithm if it is still this attachment and still to end; `None`: it is another, or stays.
///
/// # Errors
/// What [`crate::detach`] fails with.
pub fn detach_expired(algorithm: Algorithm, generation: u64) -> Result<Option<Detached>, Error> {
    kernel::require_privilege("detach")?;
    let _lock = Lock::take()?;
    match read(algorithm)? {
        Some(expiry) if expiry.generation == generation => detach_locked(algorithm, false).map(Some),
        _ => Ok(None),
    }
}

fn read(algorithm: Algorithm) -> Result<Option<Expiry>, Error> {
    let pins = Pins::of(algorithm);
    // Half attached is not attached: `status` and `detach` deal with it.
    if !pins.exist() || !kernel::registered()?.contains(&algorithm.congestion_control()) {
        return Ok(None);
    }
    let attachment = pins.attachment()?;
    let Some(expires_at_us) = Some(attachment.expires_at_us).filter(|at| *at != 0) else { return Ok(None) };
    Ok(Some(Expiry { generation: attachment.generation, expires_at_us }))
}
