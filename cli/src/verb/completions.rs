//! `onramp completions`.

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp completions bash > /etc/bash_completion.d/onramp
  onramp completions zsh  > /usr/local/share/zsh/site-functions/_onramp
  onramp completions fish > ~/.config/fish/completions/onramp.fish")]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Known,
}

/// Shells that are tested.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        let mut command = visible();
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "onramp", &mut script);
        if shell == Shell::Fish {
            script.extend(fish_positionals(&command).into_bytes());
        }
        output.raw(&script)?;
        Ok(0)
    }
}

/// The command line without what is hidden.
pub(super) fn visible() -> Command {
    let all = Arguments::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new("onramp").args(all.get_arguments().cloned()).subcommands(verbs)
}

/// clap_complete offers fish no values of positional arguments.
fn fish_positionals(command: &Command) -> String {
    let mut script = String::new();
    for verb in command.get_subcommands() {
        for value in verb.get_positionals().flat_map(clap::Arg::get_possible_values) {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default().replace('\'', "\\'");
            let verb = verb.get_name();
            script += &format!(
                "complete -c onramp -n \"__fish_onramp_using_subcommand {verb}\" -f -a {} -d '{help}'\n",
                value.get_name()
            );
        }
    }
    script
}
