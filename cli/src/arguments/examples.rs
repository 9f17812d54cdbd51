//! Every example of every `--help`: a line that can be pasted, and that the command line takes.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};

use super::Arguments;

/// Longer lines are wrapped where help has no terminal, and what is wrapped cannot be pasted.
const COLUMNS: usize = 100;

/// The examples of a command and of those below it, with the words that lead to it.
fn examples(command: &Command, before: &str, all: &mut Vec<(String, String)>) {
    let name = format!("{before} {}", command.get_name()).trim().to_owned();
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.split_once("Examples:\n").map_or("", |(_, lines)| lines);
    let of_command = lines.lines().take_while(|line| !line.is_empty());
    all.extend(of_command.map(|line| (name.clone(), line.to_owned())));
    for verb in command.get_subcommands() {
        examples(verb, &name, all);
    }
}

/// The commands of a line as a shell reads it, without redirections; `None` for what it does not read.
fn commands(line: &str) -> Option<Vec<Vec<String>>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (Some(_), sign) => word.get_or_insert_default().push(sign),
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, '|' | ';' | '&' | '(' | ')' | '>') => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
                if sign == '>' {
                    while signs.next_if_eq(&' ').is_some() {}
                    while signs.next_if(|sign| *sign != ' ').is_some() {}
                }
            }
            (None, sign) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    all.push(words);
    all.retain(|words| !words.is_empty());
    quote.is_none().then_some(all)
}

#[test]
fn every_example_of_every_help_is_one_line_that_the_command_line_takes() {
    let mut all = Vec::new();
    examples(&Arguments::command(), "", &mut all);
    assert!(all.len() > 100, "{}", all.len());
    let mut taken = 0;
    for (name, line) in &all {
        let indented = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
        assert!(indented.is_some(), "{name}: an example has a line of its own: {line:?}");
        assert!(line.chars().count() <= COLUMNS, "{name}: {line:?} is longer than {COLUMNS} columns");
        let commands = commands(line).unwrap_or_else(|| panic!("{name}: a quote is open in {line:?}"));
        assert!(!commands.is_empty(), "{name}: {line:?}");
        for words in commands.iter().filter(|words| words[0] == "onramp") {
            taken += 1;
            if let Err(error) = Arguments::command().try_get_matches_from(words) {
                panic!("{name}: {line:?}: {error}");
            }
        }
    }
    assert!(taken >= all.len() - 5, "{taken} of {} are onramp's", all.len());
}

/// The lines of a page's fenced blocks that begin with `onramp`, without a prompt and without what is said of them beside.
fn commands_of_page(text: &str) -> Vec<&str> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    let lines =
        lines.map(|line| line.strip_prefix("$ ").unwrap_or(line)).filter(|line| line.starts_with("onramp "));
    lines.map(|line| line.split("  ").next().unwrap_or(line)).collect()
}

#[test]
fn every_command_of_a_page_is_one_that_the_command_line_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut directories, mut pages) = (vec![root.join("docs")], vec![root.join("README.md")]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let mut taken = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for line in commands_of_page(&text) {
            let commands =
                commands(line).unwrap_or_else(|| panic!("{}: a quote is open in {line:?}", page.display()));
            for words in commands.iter().filter(|words| words[0] == "onramp") {
                taken += 1;
                if let Err(error) = Arguments::command().try_get_matches_from(words) {
                    panic!("{}: {line:?}: {error}", page.display());
                }
            }
        }
    }
    assert!(taken >= 40, "{taken}");
}

#[test]
fn every_verb_that_does_something_has_an_example() {
    fn without(command: &Command, before: &str, all: &mut Vec<String>) {
        let name = format!("{before} {}", command.get_name()).trim().to_owned();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).peekable();
        if verbs.peek().is_none() && !help.contains("Examples:\n") {
            all.push(name.clone());
        }
        verbs.for_each(|verb| without(verb, &name, all));
    }
    let mut all = Vec::new();
    without(&Arguments::command(), "", &mut all);
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn a_line_is_read_as_a_shell_reads_it() {
    let read = |line| commands(line).unwrap();
    assert_eq!(read("  onramp list --json | jq '.a[] | .b'")[1], ["jq", ".a[] | .b"]);
    assert_eq!(read("onramp completions bash > /etc/x; onramp list")[1], ["onramp", "list"]);
    assert_eq!(read("onramp attach   # ramp, `x` | y"), [["onramp", "attach"]]);
    assert_eq!(commands("onramp 'x"), None);
}
