//! `onramp-lab completions`.

use clap::{Args, Command};
use onramp_terminal::completions::{self, Known};

use crate::output::Output;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp-lab completions bash > /etc/bash_completion.d/onramp-lab
  onramp-lab completions zsh  > /usr/local/share/zsh/site-functions/_onramp-lab
  onramp-lab completions fish > ~/.config/fish/completions/onramp-lab.fish")]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Known,
}

impl Completions {
    pub fn run(self, line: &Command, output: &Output) -> anyhow::Result<u8> {
        output.raw(&completions::script("onramp-lab", line, self.shell))?;
        Ok(0)
    }
}
