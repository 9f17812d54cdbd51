// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The frame of a program: it reads its command line, has its verb run, and ends with an exit code.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use tracing_subscriber::EnvFilter;

use crate::completions::{self, Candidate};
use crate::failure;
use crate::global::Global;
use crate::output::{self, Output};
use crate::terminal::Terminal;

/// A command line: what [`run`] has to know of it.
pub trait CommandLine: Parser {
    /// Verbs and options of earlier versions, and what replaced them.
    const GONE: &'static [(&'static str, &'static str)];

    /// The options of every verb.
    fn global(&self) -> &Global;

    /// Runs the verb; the result is the exit code.
    ///
    /// # Errors
    /// What is printed as one sentence; [`CommandLine::exit_code`] is its code.
    fn run(self, output: &Output) -> anyhow::Result<u8>;

    /// The exit code of an error.
    fn exit_code(error: &anyhow::Error) -> u8;

    /// What can be given where help has the value `name`, of which this much is typed, the last of these words. What does not
    /// begin with it is left out by the caller; a list's values are asked for one at a time.
    fn values(name: &str, words: &[String], typed: &str) -> Vec<Candidate>;

    /// Where these words are another program's: it, to complete them.
    fn other_program(_words: &[OsString]) -> Option<process::Command> {
        None
    }
}

/// The whole of a program with these arguments, the first of which is its name.
pub fn run<C: CommandLine>(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if completions::is_asked() {
        if let Some(mut other) = C::other_program(arguments.get(1..).unwrap_or_default()) {
            // It returns only if it cannot be executed; there is nothing to offer then.
            let _ = other.exec();
        } else {
            completions::answer(&C::command(), C::values, &arguments);
        }
        return ExitCode::SUCCESS;
    }
    let line = match C::try_parse_from(&arguments) {
        Ok(line) => line,
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            output::say(&format!("error: {}", no_text(&arguments)));
            return failure::USAGE.into();
        }
        Err(error) => return report(of_value::<C>(error, &arguments), C::GONE, &C::command()),
    };
    log_to_stderr(line.global());
    let output = Output::new(line.global());
    match line.run(&output) {
        Ok(code) => code.into(),
        Err(error) => {
            output::say(&format!("error: {}", failure::sentence(&error)));
            C::exit_code(&error).into()
        }
    }
}

/// Help and version as they are; what is wrong with the command line, which it quotes, as errors are.
fn report(mut error: clap::Error, gone: &[(&str, &str)], command: &clap::Command) -> ExitCode {
    if error.use_stderr() {
        name_successor(&mut error, gone);
        offer_set(&mut error, command);
        offer_no_hidden(&mut error, command);
        output::say(error.to_string().trim_end());
        return failure::USAGE.into();
    }
    // A reader that has gone away has seen what it wanted.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// What is below 0 is taken for an option that does not exist. As the value of the option before it, it is refused with what
/// belongs there.
fn of_value<C: CommandLine>(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let below_0 = |word: &str| {
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let text = |at: usize| arguments.get(at).and_then(|argument| argument.to_str()).unwrap_or_default();
    let is_option = |word: &str| word.starts_with('-') && !below_0(word);
    let at = (1..arguments.len()).find(|at| below_0(text(*at)) && is_option(text(at - 1)));
    match at {
        Some(at) if error.kind() == ErrorKind::UnknownArgument => {
            let option = OsString::from(format!("{}={}", text(at - 1), text(at)));
            let joined = [&arguments[..at - 1], &[option], &arguments[at + 1..]].concat();
            C::try_parse_from(joined).err().unwrap_or(error)
        }
        _ => error,
    }
}

/// Which argument is not text, where only text can be taken.
fn no_text(arguments: &[OsString]) -> String {
    let number = arguments.iter().position(|argument| argument.to_str().is_none()).unwrap_or_default();
    format!(
        "argument {number}, {}, is not UTF-8: give a file by a name that is, by a link to it, or on standard input (-)",
        arguments[number].display()
    )
}

/// `NAME=VALUE` that a verb does not take is a setting where it has `--set`.
fn offer_set(error: &mut clap::Error, command: &clap::Command) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return };
    let is_setting = !word.starts_with('-') && word.contains('=');
    if error.kind() != ErrorKind::UnknownArgument || !is_setting {
        return;
    }
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let below = |verb: &clap::Command, word: &str| verb.find_subcommand(word).cloned();
    let verb =
        usage.split_whitespace().fold(command.clone(), |verb, word| below(&verb, word).unwrap_or(verb));
    if verb.get_arguments().any(|option| option.get_long() == Some("set")) {
        let tip = format!("to set a parameter, write --set {word}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// What is gone is named with what replaced it, in place of what is spelt alike.
fn name_successor(error: &mut clap::Error, gone: &[(&str, &str)]) {
    let word = error.get(ContextKind::InvalidSubcommand).or_else(|| error.get(ContextKind::InvalidArg));
    let Some(ContextValue::String(word)) = word else { return };
    let Some((word, successor)) = gone.iter().find(|(name, _)| name == word) else { return };
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::SuggestedArg);
    let tip = format!("{word} was replaced: {successor}");
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Verbs that help does not list are no suggestion.
fn offer_no_hidden(error: &mut clap::Error, command: &clap::Command) {
    let Some(ContextValue::Strings(alike)) = error.remove(ContextKind::SuggestedSubcommand) else { return };
    let hidden = |name: &String| command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    let shown: Vec<_> = alike.into_iter().filter(|name| !hidden(name)).collect();
    if !shown.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
    }
}

/// Warnings; with -v also what the program does; with -vv libbpf's messages too.
fn log_to_stderr(global: &Global) {
    let levels = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "debug,libbpf=warn",
        (false, _) => "debug",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(levels))
        // What is logged quotes names and messages of others: all of it goes through the same sieve as errors.
        .with_writer(|| Terminal::new(io::stderr()))
        // It would be said on stderr, by a panic if that cannot be written.
        .log_internal_errors(false)
        .with_ansi(false)
        .without_time()
        .with_target(global.verbose > 0)
        .init();
}
