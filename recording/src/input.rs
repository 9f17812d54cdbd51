// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What there is to replay under a path: a recording, a packet capture, or acknowledgments as text.

use std::io::{Cursor, Read};
use std::path::Path;

use crate::bounded;
use crate::capture;
use crate::error::Error;
use crate::file::{FILE_BYTES, MAGIC};
use crate::kind;
use crate::manifest;
use crate::qlog;
use crate::reader::Recording;

/// What a path stands for.
pub enum Input {
    /// A recording, a file of one, or a packet capture.
    Recording(Box<Recording>),
    /// Anything else, from its beginning.
    Text(Box<dyn Read>),
}

/// Opens a recording's directory, its manifest or a file of it, a packet capture, or text; `-` is standard input.
///
/// # Errors
/// [`Error::Read`], [`Error::NotARecording`].
pub fn input(path: &Path) -> Result<Input, Error> {
    if path.is_dir() {
        return Recording::of_directory(path).map(recording);
    }
    if path.file_name().is_some_and(|name| name == manifest::FILE) {
        return Recording::of_directory(path.parent().unwrap_or(path)).map(recording);
    }
    let mut source = bounded::source(path).map_err(Error::read(path))?;
    let mut begin = Vec::new();
    source.by_ref().take(kind::HEAD as u64).read_to_end(&mut begin).map_err(Error::read(path))?;
    if kind::is_capture(&begin) {
        return capture::recording(Box::new(Cursor::new(begin).chain(source)), path).map(recording);
    }
    if !begin.starts_with(MAGIC) && path.extension().is_none_or(|extension| extension != "parquet") {
        return Ok(Input::Text(Box::new(Cursor::new(begin).chain(source))));
    }
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(recording(Recording::of_file(path)));
    }
    // It cannot be read again.
    let most = (FILE_BYTES + 1).saturating_sub(begin.len() as u64);
    source.take(most).read_to_end(&mut begin).map_err(Error::read(path))?;
    if begin.len() as u64 > FILE_BYTES {
        return Err(Error::damaged(path, format!("it has more than {FILE_BYTES} bytes")));
    }
    Ok(recording(Recording::of_files([(path.to_owned(), begin)])))
}

fn recording(recording: Recording) -> Input {
    Input::Recording(Box::new(recording))
}

impl Recording {
    /// Opens a recording's directory, its manifest, one Parquet file of it, or a packet capture; `-` is standard input. A manifest that cannot
    /// be read, or that lists files which are not there, is a problem and no error.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::NotARecording`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_or(path, |begin, _| Err(no_recording(path, begin)))
    }

    /// The same, and qlog, which has what explains a flow, and too little for an algorithm.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_explain(path: &Path) -> Result<Self, Error> {
        Self::open_or(path, |begin, rest| match kind::is_qlog(begin) {
            true => qlog::recording(Box::new(Cursor::new(begin.to_vec()).chain(rest)), path),
            false => Err(no_recording(path, begin)),
        })
    }

    /// `text` has the begin of what is text, and the rest.
    fn open_or(
        path: &Path,
        text: impl FnOnce(&[u8], Box<dyn Read>) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        match input(path)? {
            Input::Recording(recording) => Ok(*recording),
            Input::Text(mut rest) => {
                let mut begin = Vec::new();
                let head = rest.by_ref().take(kind::HEAD as u64).read_to_end(&mut begin);
                head.map_err(Error::read(path))?;
                text(&begin, rest)
            }
        }
    }
}

fn no_recording(path: &Path, begin: &[u8]) -> Error {
    Error::NotARecording { path: path.to_owned(), reason: format!("it is {}", kind::not_parquet(begin)) }
}
