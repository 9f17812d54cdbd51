// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The digest that a source must have.

use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::error::SourceError;
use crate::digest::hex;

/// A SHA-256 digest, as 64 small hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256Digest(String);

impl FromStr for Sha256Digest {
    type Err = SourceError;

    /// 64 hexadecimal digits, with or without `sha256:` before them.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(digits.to_ascii_lowercase()))
        } else {
            Err(SourceError::NotADigest { text: text.to_owned() })
        }
    }
}

impl Sha256Digest {
    /// Its digits.
    pub(super) fn digits(&self) -> &str {
        &self.0
    }

    /// That these bytes, which are at `at`, have it.
    ///
    /// # Errors
    /// [`SourceError::Digest`] with both.
    pub(super) fn require(&self, bytes: &[u8], at: &str) -> Result<(), SourceError> {
        let found = hex(&Sha256::digest(bytes));
        if found == self.0 {
            return Ok(());
        }
        Err(SourceError::Digest { at: at.to_owned(), expected: self.0.clone(), found })
    }
}
