// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Data on stdout, as text or as JSON.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, anyhow};
use serde::Serialize;

use crate::failure::sentence;
use crate::global::Global;
use crate::stdout;

/// Version of all JSON documents; raised when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// What a terminal shows in bold lies between these.
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Text as it may go to a terminal. Names and paths from outside may have anything in them; what would move the cursor,
/// retitle the window or turn the order of signs round is shown as `\u001b` and the like instead. Ends of lines, tabs
/// and our own bold stay.
pub fn printable(text: &str) -> String {
    let pieces = text.split(BOLD).map(|piece| {
        let plain = piece
            .split(PLAIN)
            .map(|piece| escaped(piece, |sign| is_terminal_control(sign) && sign != '\n' && sign != '\t'));
        plain.collect::<Vec<_>>().join(PLAIN)
    });
    pieces.collect::<Vec<_>>().join(BOLD)
}

/// The same of a name or a sentence that is to stay in its line: also what would end it is shown.
pub fn escape_line(text: &str) -> String {
    escaped(text, is_terminal_control)
}

/// Whether a terminal acts on a sign instead of showing it: controls (C0, DEL, C1), and those of the direction of text.
pub fn is_terminal_control(sign: char) -> bool {
    sign.is_control() || matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// As in a JSON string.
fn escaped(text: &str, which: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        if which(sign) {
            safe += &format!("\\u{:04x}", u32::from(sign));
        } else {
            safe.push(sign);
        }
    }
    safe
}

/// Prints a line on stderr, as [`printable`]. What follows the end of a line is indented, so that no name can begin one.
/// Where stderr cannot be written, nothing is left to report.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", said(line));
}

/// [Says](say) what could not be used, and how the rest was read.
pub fn say_of_input(problems: &[impl Display], notes: &[String]) {
    problems.iter().for_each(|problem| say(&format!("warning: {problem}")));
    notes.iter().for_each(|note| say(&format!("note: {note}")));
}

fn said(line: &str) -> String {
    let safe = printable(line);
    let mut lines = safe.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        text += if line.is_empty() { "\n" } else { "\n  " };
        text += line;
    }
    text
}

/// Where and how a verb prints.
#[derive(Debug)]
pub struct Output {
    /// The options that made it.
    options: Vec<OsString>,
    json: bool,
    pretty: bool,
    quiet: bool,
    color: bool,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

impl Output {
    /// As the options of every verb say.
    pub fn new(global: &Global) -> Self {
        Self {
            options: global.words(),
            json: global.json || global.pretty,
            pretty: global.pretty,
            quiet: global.quiet,
            color: global.color.applies_to(&io::stdout()),
        }
    }

    /// Text without colours.
    pub fn plain() -> Self {
        Self { options: Vec::new(), json: false, pretty: false, quiet: false, color: false }
    }

    /// The options of every verb that it was made of, for another program.
    pub fn options(&self) -> &[OsString] {
        &self.options
    }

    /// Whether JSON is asked for.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether colours are on.
    pub fn color(&self) -> bool {
        self.color
    }

    /// One object of a stream of them: a line, or several with --pretty.
    pub fn line<T: Serialize>(&self, to: &mut impl Write, body: &T) -> io::Result<()> {
        let mut text = self.json_text(&Document { schema: SCHEMA, body })?;
        text.push('\n');
        to.write_all(text.as_bytes())
    }

    /// An object as the text of a JSON document.
    pub fn document_text<T: Serialize>(body: &T) -> serde_json::Result<String> {
        serde_json::to_string(&Document { schema: SCHEMA, body })
    }

    /// Prints data that was asked for.
    pub fn data<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if !self.json {
            return self.raw(printable(&text()).as_bytes());
        }
        self.document(&Document { schema: SCHEMA, body })
    }

    /// Prints data that carries a schema number of its own.
    pub fn versioned<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { self.document(body) } else { self.raw(printable(&text()).as_bytes()) }
    }

    fn json_text<T: Serialize>(&self, document: &T) -> serde_json::Result<String> {
        let text = if self.pretty {
            serde_json::to_string_pretty(document)?
        } else {
            serde_json::to_string(document)?
        };
        // JSON escapes the controls of ASCII only, and has none of the others outside of strings.
        Ok(escaped(&text, |sign| sign > '\x7e' && is_terminal_control(sign)))
    }

    fn document<T: Serialize>(&self, document: &T) -> anyhow::Result<()> {
        let mut text = self.json_text(document)?;
        text.push('\n');
        self.raw(text.as_bytes())
    }

    /// Prints what a change did; as text not with --quiet. The change is made, and the exit code says so: where the report
    /// cannot be written, that is a warning.
    pub fn report<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) {
        if self.quiet && !self.json {
            return;
        }
        if let Err(error) = self.data(body, text) {
            say(&format!("warning: done, but not reported: {}", sentence(&error)));
        }
    }

    /// Whether only what was asked for is printed.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Says on stderr what is done next; on a terminal only, and not with --quiet.
    pub fn step(&self, line: &str) {
        if !self.quiet && io::stderr().is_terminal() {
            say(line);
        }
    }

    /// Says on stderr what came of something; not with --quiet.
    pub fn progress(&self, line: &str) {
        if !self.quiet {
            say(line);
        }
    }

    /// Prints as it is. A reader that has gone away is not an error: it has seen what it wanted.
    pub fn raw(&self, bytes: &[u8]) -> anyhow::Result<()> {
        if stdout::was_closed() {
            return Err(anyhow!("cannot write to stdout: it is closed"));
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to stdout"),
        }
    }

    /// Text in bold where colours are on.
    pub fn bold(&self, text: &str) -> String {
        if self.color { format!("{BOLD}{text}{PLAIN}") } else { text.to_owned() }
    }
}

/// Named values as a JSON object, in their order.
#[derive(Debug)]
pub struct Named<T>(pub Vec<(&'static str, T)>);

impl<T> Named<T> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_our_own_bold_stays() {
        let hostile = "a\x1b]0;title\x07b\x1b[2Jc\r\u{9b}31md\u{202e}e\x7f";
        let safe = printable(hostile);
        assert_eq!(safe, r"a\u001b]0;title\u0007b\u001b[2Jc\u000d\u009b31md\u202ee\u007f");
        let own = format!("{BOLD}name{PLAIN}\tgrüße 漢字\nnext\n");
        assert_eq!(printable(&own), own);
    }

    #[test]
    fn what_is_to_stay_in_a_line_does_and_what_is_said_begins_none() {
        let hostile = "a\nerror: b\r\tc\x1b[1m\u{2066}\x07";
        assert_eq!(escape_line(hostile), r"a\u000aerror: b\u000d\u0009c\u001b[1m\u2066\u0007");
        assert_eq!(said("cannot read a\nerror: b\x07"), "cannot read a\n  error: b\\u0007");
    }

    #[test]
    fn json_means_the_same_and_steers_nothing() {
        #[derive(Serialize)]
        struct Named {
            name: &'static str,
        }
        let output = Output { options: Vec::new(), json: true, pretty: false, quiet: false, color: false };
        let name = "a\u{9b}31m\x1b[2J\u{202e}\x7fü";
        let mut bytes = Vec::new();
        output.line(&mut bytes, &Named { name }).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.trim_end().chars().any(is_terminal_control), "{text:?}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["name"], name);
    }
}
