// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A stream to a terminal, in which nothing from outside can act.

use std::io::{self, Write};

use crate::output::printable;

/// Passes lines on as [`printable`]: for what comes as a stream, and may have strings from outside in it.
pub struct Terminal<W: Write> {
    to: W,
    /// What has come of the current line.
    line: Vec<u8>,
}

impl<W: Write> Terminal<W> {
    /// Lines go to this.
    pub fn new(to: W) -> Self {
        Self { to, line: Vec::new() }
    }

    /// Writes the current line as far as it has come.
    fn pass(&mut self) -> io::Result<()> {
        let text = printable(&String::from_utf8_lossy(&self.line));
        self.line.clear();
        self.to.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.pass()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // A sign that has come in part only waits for the rest; lines end with a whole one.
        self.to.flush()
    }
}

impl<W: Write> Drop for Terminal<W> {
    fn drop(&mut self) {
        let _ = self.pass();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_the_terminal_is_shown_however_it_is_cut() {
        let text = "flow,name\n1,\u{1b}[2J\u{9b}31m\u{202e}b\u{fc}\u{7}\n2,plain";
        for size in 1..text.len() {
            let mut shown = Vec::new();
            let mut terminal = Terminal::new(&mut shown);
            for part in text.as_bytes().chunks(size) {
                terminal.write_all(part).unwrap();
                terminal.flush().unwrap();
            }
            drop(terminal);
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, "flow,name\n1,\\u001b[2J\\u009b31m\\u202eb\u{fc}\\u0007\n2,plain", "{size}");
        }
    }
}
