// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Options of every verb.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::{Args, ValueEnum};

/// Options of every verb.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every verb")]
pub struct Global {
    /// Print JSON: one object with "schema": 1, units in the names of its fields
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Print JSON over several lines
    #[arg(short, long, global = true)]
    pub pretty: bool,
    /// Print no report of a change, and of the log only errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log what is done to stderr; twice: libbpf's messages too
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Colours; auto: on a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
}

impl Global {
    /// These options as they are written.
    pub fn words(&self) -> Vec<OsString> {
        let switches = [("--json", self.json), ("--pretty", self.pretty), ("--quiet", self.quiet)];
        let given = switches.into_iter().filter(|(_, given)| *given).map(|(word, _)| OsString::from(word));
        let verbose = std::iter::repeat_n(OsString::from("-v"), self.verbose.into());
        let color = match self.color {
            Color::Auto => None,
            Color::Always => Some("--color=always"),
            Color::Never => Some("--color=never"),
        };
        given.chain(verbose).chain(color.map(OsString::from)).collect()
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether what goes to this stream has colours.
    pub fn applies_to(self, stream: &impl IsTerminal) -> bool {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Auto => stream.is_terminal() && !refused,
            Self::Always => true,
            Self::Never => false,
        }
    }
}
