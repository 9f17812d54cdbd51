//! Words of `onramp-lab`: that program is executed in the place of this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use clap::Args;
use onramp_terminal::companion;

use crate::output::Output;

/// The laboratory's program, and its package.
const PROGRAM: &str = "onramp-lab";

/// What follows the word.
#[derive(Args, Debug)]
pub(crate) struct LabArguments {
    /// Verb of onramp-lab with its arguments
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl LabArguments {
    /// Executes it with the options of every verb that stand before, its verb and the rest. Returns only if that fails.
    pub fn execute(self, verb: Option<&str>, output: &Output) -> anyhow::Result<u8> {
        let program = companion::find(PROGRAM)?;
        let mut command = Command::new(&program);
        command.args(output.options()).args(verb).args(self.words);
        Err(command.exec()).with_context(|| format!("cannot execute {}", program.display()))
    }
}

/// The laboratory's program with its words, where those up to the one to be completed are.
pub(crate) fn completing(words: &[OsString]) -> Option<Command> {
    let word = words.iter().position(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    let own = match words[word].to_str()? {
        "lab" => word + 1,
        "sim" => word,
        _ => return None,
    };
    // The word itself is this program's.
    if word + 1 == words.len() {
        return None;
    }
    let mut command = Command::new(companion::find(PROGRAM).ok()?);
    command.args(&words[own..]);
    Some(command)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::arguments::Arguments;
    use crate::verb::Verb;

    #[test]
    fn what_follows_the_word_is_passed_on_as_it_is() {
        let line = "onramp --json lab compare --arms cubic,search -n 1 --help -- --color x";
        let Ok(Arguments { global, verb: Verb::Lab(words) }) = Arguments::try_parse_from(line.split(' '))
        else {
            panic!("{line}")
        };
        assert!(global.json);
        assert_eq!(words.words, line.split(' ').skip(3).collect::<Vec<_>>());
        for line in ["onramp lab --help", "onramp sim -h", "onramp lab", "onramp lab --kernel 6.1 --version"]
        {
            let read = Arguments::try_parse_from(line.split(' ')).unwrap();
            let (Verb::Lab(words) | Verb::Sim(words)) = read.verb else { panic!("{line}") };
            assert_eq!(words.words, line.split(' ').skip(2).collect::<Vec<_>>(), "{line}");
        }
    }
}
