//! Data on stdout, as text or as JSON.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

use crate::global::Global;

/// Version of the JSON documents; raised when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

/// Where and how a verb prints.
#[derive(Debug)]
pub(crate) struct Output {
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
    pub fn new(global: &Global) -> Self {
        Self {
            json: global.json || global.pretty,
            pretty: global.pretty,
            quiet: global.quiet,
            color: global.color.applies_to(&io::stdout()),
        }
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
        let document = Document { schema: SCHEMA, body };
        if self.pretty {
            serde_json::to_writer_pretty(&mut *to, &document)?;
        } else {
            serde_json::to_writer(&mut *to, &document)?;
        }
        to.write_all(b"\n")
    }

    /// An object as the text of a JSON document.
    pub fn json_text<T: Serialize>(body: &T) -> serde_json::Result<String> {
        serde_json::to_string(&Document { schema: SCHEMA, body })
    }

    /// Prints data that was asked for.
    pub fn data<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if !self.json {
            return self.raw(text().as_bytes());
        }
        self.document(&Document { schema: SCHEMA, body })
    }

    /// Prints data that carries a schema number of its own.
    pub fn versioned<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { self.document(body) } else { self.raw(text().as_bytes()) }
    }

    fn document<T: Serialize>(&self, document: &T) -> anyhow::Result<()> {
        let mut bytes =
            if self.pretty { serde_json::to_vec_pretty(document)? } else { serde_json::to_vec(document)? };
        bytes.push(b'\n');
        self.raw(&bytes)
    }

    /// Prints what a change did; as text not with --quiet.
    pub fn report<T: Serialize>(&self, body: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.quiet && !self.json {
            return Ok(());
        }
        self.data(body, text)
    }

    /// Says on stderr how far something is; not with --quiet.
    pub fn progress(&self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }

    /// Prints as it is. A reader that has gone away is not an error: it has seen what it wanted.
    pub fn raw(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to stdout"),
        }
    }

    /// Text in bold where colours are on.
    pub fn bold(&self, text: &str) -> String {
        if self.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Named values as a JSON object, in their order.
#[derive(Debug)]
pub(crate) struct Named<T>(pub Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
