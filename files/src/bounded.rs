// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files from outside, read whole up to a size: what has no end fills no memory. The path `-` is standard input.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Display, Path};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::kind;

/// Largest text that is read whole, bytes: profiles, rules, traces, results.
pub const TEXT_BYTES: u64 = 1 << 26;

/// A regular file, opened for reading. Anything else is refused at once: a FIFO without a writer would block for ever, and
/// opening a device may have an effect.
///
/// # Errors
/// Those of opening; [`ErrorKind::InvalidInput`] with what it is instead.
pub fn open(path: &Path) -> io::Result<File> {
    require_regular(fs::metadata(path)?.file_type())?;
    // What has taken its place since blocks neither.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    require_regular(file.metadata()?.file_type())?;
    Ok(file)
}

fn require_regular(kind: FileType) -> io::Result<()> {
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; give a regular file")))
}

/// Stands for standard input, and where something is written for standard output.
pub const STANDARD: &str = "-";

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// How messages name what is read from a path.
pub fn name(path: &Path) -> Display<'_> {
    if is_standard(path) { Path::new("standard input").display() } else { path.display() }
}

/// What a path stands for, opened for reading: standard input, what a shell hands over by `<(…)`, or a regular file.
///
/// # Errors
/// Those of [`open`].
pub fn source(path: &Path) -> io::Result<Box<dyn Read>> {
    if is_standard(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    // Such a pipe has had its writer, so it ends; where that has gone already, opening it otherwise would block.
    if HANDED_OVER.iter().any(|directory| path.starts_with(directory)) {
        let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
        let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
        fcntl(&file, FcntlArg::F_SETFL(flags.difference(OFlag::O_NONBLOCK)))?;
        return Ok(Box::new(file));
    }
    Ok(Box::new(open(path)?))
}

/// Where what the caller has opened for this process has paths.
const HANDED_OVER: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/dev/stdin"];

/// The bytes of what a path stands for.
///
/// # Errors
/// Those of [`source`] and reading; [`ErrorKind::FileTooLarge`] with the limit.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let reason = format!("it has more than {most_bytes} bytes, which is the most that is read");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// The text of a file of [`TEXT_BYTES`] at most, as [`text`] has it.
///
/// # Errors
/// Those of [`read`] and [`text`].
pub fn read_text(path: &Path) -> io::Result<String> {
    text(read(path, TEXT_BYTES)?).map_err(|reason| io::Error::new(ErrorKind::InvalidData, reason))
}

/// Text that a user wrote, without a byte order mark, with lines that end by a line feed.
///
/// # Errors
/// What it is instead, or the line and column that is not UTF-8.
pub fn text(mut bytes: Vec<u8>) -> Result<String, String> {
    if let Some(what) = kind::foreign(&bytes) {
        return Err(format!("it is {what}"));
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        format!("{} is not UTF-8: save it as UTF-8", end(&String::from_utf8_lossy(valid)))
    })?;
    if let Some((before, _)) = text.split_once('\0') {
        return Err(format!("{} is a NUL byte, which text does not have", end(before)));
    }
    Ok(line_feeds(&text).unwrap_or(text))
}

/// The place behind a text.
fn end(text: &str) -> String {
    let text = line_feeds(text).unwrap_or_else(|| text.to_owned());
    let (line, column) =
        (text.split('\n').count(), text.rsplit('\n').next().unwrap_or_default().chars().count() + 1);
    format!("line {line}, column {column}")
}

/// A text whose lines end otherwise, with line feeds.
fn line_feeds(text: &str) -> Option<String> {
    text.contains('\r').then(|| text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// What some programs of Windows write before UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_too_large_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap(), b"0123456789");
        let error = read(&path, 9).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("9 bytes"), "{error}");
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_else_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
        for (path, what) in [
            (at("fifo"), "a FIFO"),
            (at("link"), "a FIFO"),
            (at("socket"), "a socket"),
            (at(""), "a directory"),
            ("/dev/zero".into(), "a device"),
        ] {
            let error = read(&path, 1_000).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(read(&at("missing"), 1).unwrap_err().kind(), ErrorKind::NotFound);
        fs::write(at("f"), "text").unwrap();
        std::os::unix::fs::symlink("f", at("link to f")).unwrap();
        assert_eq!(read_text(&at("link to f")).unwrap(), "text");
    }

    #[test]
    fn a_fifo_that_was_handed_over_ends_once_its_writer_has_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader =
            OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path).unwrap();
        let handed_over = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let (done, result) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(read(handed_over.as_ref(), 10)));
        let read = result.recv_timeout(std::time::Duration::from_secs(60)).expect("it blocks");
        assert_eq!(read.unwrap(), b"");
        // A writer that is there is waited for.
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let handed_over = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let reading = std::thread::spawn(move || super::read(handed_over.as_ref(), 10));
        (&writer).write_all(b"text").unwrap();
        drop(writer);
        assert_eq!(reading.join().unwrap().unwrap(), b"text");
    }

    #[test]
    fn what_is_no_text_is_named_with_its_line_and_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        for (bytes, said) in [
            (&b"one\ntwo\n\xff"[..], "line 3, column 1 is not UTF-8"),
            (b"one\n\xc3\xbc\xfcber", "line 2, column 2 is not UTF-8"),
            (b"one\rtwo\r\n\xff", "line 3, column 1 is not UTF-8"),
            (b"one\ntwo = \0", "line 2, column 7 is a NUL byte"),
            (b"\xff\xfea\0", "UTF-16"),
            (b"\x1f\x8b\x08", "gzip"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = read_text(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn text_comes_without_its_mark_and_with_line_feeds() {
        let read = |bytes: &[u8]| text(bytes.to_vec()).unwrap();
        assert_eq!(read("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(read(b"\xef\xbb\xbfone\r\ntwo\rthree\n"), "one\ntwo\nthree\n");
        assert_eq!(read(b""), "");
    }
}
