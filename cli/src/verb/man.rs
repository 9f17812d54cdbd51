//! `onramp man`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::completions;
use crate::output::Output;

/// Write manual pages of all verbs into a directory
///
/// The pages are what --help says: onramp.1, onramp-attach.1, onramp-lab-run.1 and so on. The directory is made if it is not
/// there, pages in it are written anew.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp man /usr/local/share/man/man1
  onramp man /tmp/onramp-man && man -l /tmp/onramp-man/onramp-attach.1")]
pub(crate) struct Man {
    /// Directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let directory = &self.directory;
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let mut command =
            completions::visible().version(env!("CARGO_PKG_VERSION")).about(env!("CARGO_PKG_DESCRIPTION"));
        command.build();
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write manual pages into {}", directory.display()))?;
        output.progress(&format!("written to {}", directory.display()));
        Ok(0)
    }
}
