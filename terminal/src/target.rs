// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that verbs write: `-` is standard output.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use onramp_files::bounded;

use crate::terminal::Terminal;

/// Has `write` fill a file, which is made anew; none or `-`: standard output. A reader that has gone away has seen what it
/// wanted.
pub fn write(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let path = path.filter(|path| !bounded::is_standard(path));
    let name = || path.map_or("to stdout".into(), |path| path.display().to_string());
    let mut target: Box<dyn Write> = match path {
        Some(path) => Box::new(File::create(path).with_context(|| format!("cannot write {}", name()))?),
        // Strings of a recording may come from anywhere; into files and pipes they go as they are.
        None if io::stdout().is_terminal() => Box::new(Terminal::new(io::stdout())),
        None => Box::new(io::stdout()),
    };
    let mut buffered = io::BufWriter::new(&mut target);
    match write(&mut buffered).and_then(|()| buffered.flush()) {
        Err(error) if path.is_none() && error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.with_context(|| format!("cannot write {}", name())),
    }
}

/// Reads the name of a directory that is to be written.
pub fn directory(text: &str) -> Result<PathBuf, String> {
    if text == bounded::STANDARD {
        return Err(
            "`-` is standard output, and this is a directory: give its name, `./-` if it is that".into()
        );
    }
    Ok(text.into())
}
