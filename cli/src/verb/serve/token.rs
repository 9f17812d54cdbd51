//! Who may read, and who may change something.

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use onramp_files::bounded;
use serde::{Deserialize, Serialize};

use crate::failure::Usage;

/// Shorter ones can be guessed.
const CHARACTERS_MIN: usize = 16;

/// A secret that reading or writing takes. Only the broker has that of writing.
#[derive(Serialize, Deserialize)]
pub(super) struct Token(String);

impl Token {
    /// Reads it from a file that only its owner can read.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = bounded::name(path);
        only_for_its_owner("token file", path)?;
        let text = bounded::read_text(path).with_context(|| format!("cannot read the token file {name}"))?;
        Self::new(text.trim()).ok_or_else(|| {
            Usage::error(format!(
                "the token in {name} is not one line of at least {CHARACTERS_MIN} printable characters without spaces: `openssl rand -hex 32 > {name}` makes one"
            ))
        })
    }

    /// `None`: it could be guessed, or would not go into a header.
    pub fn new(text: &str) -> Option<Self> {
        let good = text.len() >= CHARACTERS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        good.then(|| Self(text.to_owned()))
    }

    /// Whether this is it, in a time that does not depend on how much of it is right.
    pub fn is(&self, given: &str) -> bool {
        let (ours, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = ours.iter().zip(given).fold(0, |sum, (one, other)| black_box(sum | (one ^ other)));
        ours.len() == given.len() && differing == 0
    }
}

/// Refuses a file with a secret that others than its owner can use. What is no regular file is left to its reader.
pub(super) fn only_for_its_owner(what: &str, path: &Path) -> anyhow::Result<()> {
    if bounded::is_standard(path) {
        return Ok(());
    }
    let name = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("cannot look at the {what} {name}"))?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        return Err(Usage::error(format!("the {what} {name} can be used by others: `chmod 600 {name}`")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, mode: u32) -> anyhow::Result<Token> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Token::read(&path)
    }

    #[test]
    fn what_is_no_regular_file_is_named_and_no_advice_is_given_to_change_it() {
        for (path, what) in [("/dev/null", "it is a device"), ("/tmp", "it is a directory")] {
            let error = crate::failure::sentence(&Token::read(path.as_ref()).err().unwrap());
            assert!(error.contains(what) && !error.contains("chmod"), "{error}");
        }
        only_for_its_owner("token file", Path::new(bounded::STANDARD)).unwrap();
    }

    #[test]
    fn a_token_is_long_private_and_compared_whole() {
        let token = read("0123456789abcdef0123\n", 0o600).unwrap();
        assert!(token.is("0123456789abcdef0123"));
        for wrong in ["", "0", "0123456789abcdef012", "0123456789abcdef0124", "0123456789abcdef01233"] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert!(read("0123456789abcdef0123\n", 0o644).err().unwrap().to_string().contains("chmod 600"));
        for weak in ["short\n", "", "two words that are long enough\n"] {
            assert!(read(weak, 0o600).err().unwrap().to_string().contains("openssl rand"), "{weak:?}");
        }
    }
}
