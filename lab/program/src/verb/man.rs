//! `onramp-lab man`.

use std::path::PathBuf;

use clap::{Args, Command};
use onramp_terminal::completions;

use crate::output::Output;

/// Write manual pages of all verbs into a directory
///
/// The pages are what --help says: onramp-lab.1, onramp-lab-run.1 and so on. The directory is made if it is not
/// there, pages in it are written anew.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp-lab man /usr/local/share/man/man1
  onramp-lab man /tmp/onramp-man && man -l /tmp/onramp-man/onramp-lab-run.1")]
pub(crate) struct Man {
    /// Directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub fn run(self, line: &Command, output: &Output) -> anyhow::Result<u8> {
        let directory = &self.directory;
        completions::pages("onramp-lab", line, env!("CARGO_PKG_DESCRIPTION"), directory)?;
        output.progress(&format!("written to {}", directory.display()));
        Ok(0)
    }
}
