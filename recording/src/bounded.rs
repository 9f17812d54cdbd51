// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files from outside, read whole up to a size: what has no end fills no memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Largest text that is read whole, bytes: profiles, rules, traces, results.
pub const TEXT_BYTES: u64 = 1 << 26;

/// The bytes of a file.
///
/// # Errors
/// Those of reading; [`ErrorKind::FileTooLarge`] with the limit.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let reason = format!("it has more than {most_bytes} bytes, which is the most that is read");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// The text of a file of [`TEXT_BYTES`] at most.
///
/// # Errors
/// Those of [`read`]; [`ErrorKind::InvalidData`] with the line and byte that is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, TEXT_BYTES)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        io::Error::new(ErrorKind::InvalidData, format!("line {line} is not UTF-8, at byte {at} of the file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_not_read() {
        let error = read(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("more than 1000 bytes"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap(), b"0123456789");
        assert!(read(&path, 9).is_err());
    }

    #[test]
    fn what_is_no_text_is_named_by_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"one\ntwo\n\xff").unwrap();
        assert_eq!(read_text(&path).unwrap_err().to_string(), "line 3 is not UTF-8, at byte 8 of the file");
        std::fs::write(&path, "gr\u{fc}n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "gr\u{fc}n");
    }
}
