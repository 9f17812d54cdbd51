// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Completion scripts and manual pages, from a program's command line.

use std::path::Path;

use anyhow::Context;
use clap::{Command, ValueEnum};
use clap_complete::Shell;

/// Shells that are tested.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Known {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// The script that completes this command line in a shell.
pub fn script(name: &'static str, all: &Command, shell: Known) -> Vec<u8> {
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

/// Writes the manual pages of all verbs into a directory, which is made if it is not there.
///
/// # Errors
/// If they cannot be written.
pub fn pages(name: &'static str, all: &Command, about: &'static str, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut command = visible(name, all).version(env!("CARGO_PKG_VERSION")).about(about);
    command.build();
    clap_mangen::generate_to(command, directory)
        .with_context(|| format!("cannot write manual pages into {}", directory.display()))
}

/// The command line without what is hidden.
fn visible(name: &'static str, all: &Command) -> Command {
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
