// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Completion of command lines. The hidden verb `completions` prints a script of a shell, which packages install; the script
//! calls the program with `ONRAMP_COMPLETE` set and the words so far, and the program prints what the last can become: a line
//! each, the value, and after a tab what it means.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::sync::Arc;

use clap::{Arg, Args, Command, ValueEnum, ValueHint};
use clap_complete::ArgValueCompleter;
pub use clap_complete::CompletionCandidate as Candidate;
use clap_complete::engine::complete;

use crate::output::Output;

/// What can be given for a value, by its name in help, the words so far, and how much of the last is typed.
pub(crate) type Values = fn(&str, &[String], &str) -> Vec<Candidate>;

/// Environment variable by which a script asks what a word can become.
const VARIABLE: &str = "ONRAMP_COMPLETE";

/// Print a completion script for a shell, such as /usr/share/bash-completion/completions/onramp
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Shells that are tested.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

impl Completions {
    /// Prints the script for the program of this name.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self, name: &str, output: &Output) -> anyhow::Result<u8> {
        let script = match self.shell {
            Shell::Bash => include_str!("script.bash"),
            Shell::Zsh => include_str!("script.zsh"),
            Shell::Fish => include_str!("script.fish"),
        };
        let function = name.replace('-', "_");
        let script =
            script.replace("VARIABLE", VARIABLE).replace("FUNCTION", &function).replace("PROGRAM", name);
        output.raw(script.as_bytes())?;
        Ok(0)
    }
}

/// The command line without what is hidden.
pub(crate) fn visible(name: &'static str, all: &Command) -> Command {
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new(name).args(all.get_arguments().cloned()).subcommands(verbs)
}

/// Whether a script has asked what the last of these words can become: there is an answer then.
pub(crate) fn is_asked() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Answers. `arguments`: the program, and the words up to the one to be completed.
pub(crate) fn answer(line: &Command, values: Values, arguments: &[OsString]) {
    for one in candidates(line, values, arguments) {
        let help = one.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        // A shell that has gone away needs no answer.
        let _ = writeln!(io::stdout(), "{}\t{help}", one.get_value().to_string_lossy());
    }
}

/// What the last word can become.
fn candidates(line: &Command, values: Values, arguments: &[OsString]) -> Vec<Candidate> {
    let typed: Arc<[String]> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut words = arguments.to_vec();
    if words.len() < 2 {
        words.resize(2, OsString::new());
    }
    let last = words.len() - 1;
    // The library would look the user up, which static programs cannot (tests/tests/cli_output.rs); shells know what it means.
    if words[last].as_encoded_bytes().starts_with(b"~") {
        return Vec::new();
    }
    let mut command = with_values(visible("onramp", line), values, &typed);
    complete(&mut command, words, last, env::current_dir().ok().as_deref()).unwrap_or_default()
}

/// The command line with what its values can be, by the names that help has for them.
fn with_values(command: Command, values: Values, words: &Arc<[String]>) -> Command {
    let command = command.mut_args(|argument| with_values_of(argument, values, words));
    command.mut_subcommands(|verb| with_values(verb, values, words))
}

fn with_values_of(argument: Arg, values: Values, words: &Arc<[String]>) -> Arg {
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let Some(name) = name.filter(|_| argument.get_possible_values().is_empty()) else { return argument };
    let name = name.trim_end_matches(",…").to_owned();
    match name.as_str() {
        "FILE" | "NAME.h" | "PATH" | "PATH[:PATH]" | "RECORDING" | "RESULT" | "SOURCE" => {
            argument.value_hint(ValueHint::AnyPath)
        }
        "DIR" => argument.value_hint(ValueHint::DirPath),
        _ => {
            let words = words.clone();
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                let typed = typed.to_string_lossy();
                let mut all = values(&name, &words, &typed);
                all.retain(|one| one.get_value().to_string_lossy().starts_with(&*typed));
                all
            }))
        }
    }
}
