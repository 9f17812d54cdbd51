// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The hidden verb `completions` of each program, which packages call: what it writes comes from the command line.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::output::Output;

/// Print a completion script for a shell, such as /etc/bash_completion.d/onramp
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Known,
}

impl Completions {
    /// Prints the script for the program of this name.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self, name: &'static str, line: &Command, output: &Output) -> anyhow::Result<u8> {
        output.raw(&script(name, line, self.shell))?;
        Ok(0)
    }
}

/// Shells that are tested.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Known {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// The script that completes this command line in a shell.
fn script(name: &'static str, all: &Command, shell: Known) -> Vec<u8> {
    let shell = match shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut command = visible(name, all);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    if shell == Shell::Fish {
        script.extend(fish_positionals(name, &command).into_bytes());
    }
    script
}

/// The command line without what is hidden.
pub(crate) fn visible(name: &'static str, all: &Command) -> Command {
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new(name).args(all.get_arguments().cloned()).subcommands(verbs)
}

/// clap_complete offers fish no values of positional arguments.
fn fish_positionals(name: &str, command: &Command) -> String {
    let function = name.replace('-', "_");
    let mut script = String::new();
    for verb in command.get_subcommands() {
        for value in verb.get_positionals().flat_map(clap::Arg::get_possible_values) {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default().replace('\'', "\\'");
            let verb = verb.get_name();
            script += &format!(
                "complete -c {name} -n \"__fish_{function}_using_subcommand {verb}\" -f -a {} -d '{help}'\n",
                value.get_name()
            );
        }
    }
    script
}
