//! The command line as a whole.

use clap::Parser;
use onramp_terminal::program::CommandLine;

use crate::failure;
use crate::global::Global;
use crate::output::Output;
use crate::verb::Verb;

/// Decides when TCP stops doubling: attaches slow-start algorithms to this host's kernel, tunes them under running
/// flows and shows what each flow did.
#[derive(Debug, Parser)]
#[command(
    name = "onramp",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 asked for wrongly, 3 this kernel cannot, 4 a privilege is missing, \
                  5 done in part.\n\nExamples:\n  onramp list\n  onramp attach search --for 10m\n  onramp flows dst 198.51.100.0/24\n  onramp detach --all"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

impl CommandLine for Arguments {
    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, output: &Output) -> anyhow::Result<u8> {
        self.verb.run(output)
    }

    fn exit_code(error: &anyhow::Error) -> u8 {
        exit_code(error)
    }
}

/// The exit code of an error: that of wrong usage, or the loader's.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    failure::code(error, onramp_loader::Error::exit_code)
}

#[cfg(test)]
mod examples;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use clap::{Command, CommandFactory};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Every verb with the words that lead to it and the options that it has.
    fn verbs(command: &Command, before: &[String], all: &mut Vec<(Vec<String>, Vec<String>)>) {
        let options = command.get_arguments().filter_map(|argument| {
            let long = argument.get_long().map(|name| format!("--{name}"));
            long.or_else(|| argument.get_short().map(|letter| format!("-{letter}")))
        });
        all.push((before.to_vec(), options.collect()));
        for verb in command.get_subcommands() {
            verbs(verb, &[before, &[verb.get_name().to_owned()]].concat(), all);
        }
    }

    /// What options take, right for some of them.
    fn value() -> impl Strategy<Value = OsString> {
        let right = vec![
            "search",
            "plain",
            "geo",
            "10m",
            "80M",
            "150mbit",
            "1/4",
            "2",
            "10.0.0.0/8",
            "exit",
            "threshold_pct=20",
            "csv",
            "goodput=-10%",
            "20%",
            "dst",
            "auto",
            "6.12",
            "a.toml",
            "unix:/run/x",
            "127.0.0.1:80",
            "--",
            "-",
            "--help",
        ];
        prop_oneof![
            4 => select(right).prop_map(OsString::from),
            3 => onramp_mutation::fragment().prop_map(OsString::from),
            3 => onramp_mutation::text(&["1h30m", "80MiB", "2.5Gbit/s", "3/8", "goodput=-10%,retransmit_ratio=2%", "0.0.0.0:80"])
                .prop_map(OsString::from),
            1 => vec(any::<u8>(), 0..6).prop_map(OsString::from_vec),
        ]
    }

    #[test]
    fn whatever_is_typed_behind_a_verb_is_understood_or_refused() {
        let mut all = Vec::new();
        verbs(&Arguments::command(), &[], &mut all);
        assert!(all.len() > 40, "{}", all.len());
        let word = (any::<prop::sample::Index>(), value(), 0..3_u8);
        let (understood, refused) = (Cell::new(0), Cell::new(0));
        onramp_mutation::check(1, 12_000, (select(all), vec(word, 0..6)), |((verb, options), words)| {
            let mut line: Vec<OsString> = vec!["onramp".into()];
            line.extend(verb.iter().map(OsString::from));
            for (option, value, kind) in words {
                if kind > 0 && !options.is_empty() {
                    line.push(option.get(&options).into());
                }
                if kind < 2 {
                    line.push(value);
                }
            }
            let counter = match Arguments::try_parse_from(&line) {
                Ok(_) => &understood,
                Err(error) => {
                    prop_assert!(!error.to_string().is_empty());
                    &refused
                }
            };
            counter.set(counter.get() + 1);
            Ok(())
        });
        assert!(understood.get() > 500 && refused.get() > 500, "{} {}", understood.get(), refused.get());
    }
}
