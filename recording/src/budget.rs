// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much a recording may unpack to, and whether it is still wanted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// What reading may take.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Bytes that the columns of one file may unpack to: they are in memory at once.
    pub file_bytes: u64,
    /// Set from elsewhere: what is read is not wanted any more, and reading ends at the next column.
    pub cancelled: Arc<AtomicBool>,
}

impl Default for Budget {
    /// 256 MiB: eight times what the largest file of a recorder's acknowledgments unpacks to.
    fn default() -> Self {
        Self { file_bytes: 1 << 28, cancelled: Arc::default() }
    }
}

impl Budget {
    pub(crate) fn wanted(&self, path: &Path) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled { path: path.to_owned() });
        }
        Ok(())
    }
}
