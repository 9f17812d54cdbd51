//! Command lines that a program is tested with: the examples of its help, those of the project's pages, and random ones.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use clap::{Command, Parser};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Longer lines are wrapped where help has no terminal, and what is wrapped cannot be pasted.
const COLUMNS: usize = 100;

/// A command line, and where it stands: the words of a verb, or a page.
struct Example {
    place: String,
    line: String,
}

/// Has a program parse the examples of its help and the commands of the project's pages below `root`, of which at least so
/// many are its own, and whatever is typed; each of its verbs must have an example. `own` turns the words of a command into
/// those that the program gets, or says that the command is another program's.
///
/// # Panics
/// With the first that is not as it is to be.
pub fn check<P: Parser>(root: &Path, pages: usize, own: impl Fn(&[String]) -> Option<Vec<String>>) {
    let examples = of_help::<P>();
    let parsed = parse::<P>(&examples, &own);
    assert!(examples.len() > 60 && parsed >= examples.len() - 5, "{parsed} of {}", examples.len());
    let parsed = parse::<P>(&of_pages(root), &own);
    assert!(parsed >= pages, "{parsed} commands of pages");
    assert_eq!(without_example::<P>(), [""; 0], "verbs without an example");
    parse_at_random::<P>();
}

/// The examples of a program's help, of all its verbs, each a line of its own.
///
/// # Panics
/// If one is not, or is longer than 100 columns.
fn of_help<P: Parser>() -> Vec<Example> {
    let mut all = Vec::new();
    each_verb(&P::command(), "", &mut |place, verb| {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.split_once("Examples:\n").map_or("", |(_, lines)| lines);
        for line in lines.lines().take_while(|line| !line.is_empty()) {
            assert!(line.chars().count() <= COLUMNS, "{place}: {line:?} is longer than {COLUMNS} columns");
            let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            let line = line.unwrap_or_else(|| panic!("{place}: an example is not a line of its own"));
            all.push(Example { place: place.to_owned(), line: line.to_owned() });
        }
    });
    all
}

/// The commands of a page: the lines of its fenced blocks that begin with a program of the project, without a prompt and without
/// what stands next to them.
pub fn of_page(text: &str) -> Vec<String> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    let lines = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let own = lines.filter(|line| line.starts_with("onramp ") || line.starts_with("onramp-lab "));
    own.map(|line| line.split("  ").next().unwrap_or(line).to_owned()).collect()
}

/// README.md and the pages of docs/ below `root`, each with its path from there.
///
/// # Panics
/// If a page cannot be read.
pub fn pages(root: &Path) -> Vec<(PathBuf, String)> {
    let mut left = vec![root.join("README.md"), root.join("docs")];
    let mut all = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path()),
            );
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("a page");
            all.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
        }
    }
    all
}

/// The [commands](of_page) of [`pages`].
fn of_pages(root: &Path) -> Vec<Example> {
    let examples = |(path, text): (PathBuf, String)| {
        let place = path.display().to_string();
        of_page(&text).into_iter().map(move |line| Example { place: place.clone(), line })
    };
    pages(root).into_iter().flat_map(examples).collect()
}

/// Has a program parse what its own commands are in these lines: `own` turns the words of a command into those that the
/// program gets, or says that the command is another program's. The result is how many it has taken.
///
/// # Panics
/// With the first that it refuses.
fn parse<P: Parser>(examples: &[Example], own: impl Fn(&[String]) -> Option<Vec<String>>) -> usize {
    let mut taken = 0;
    for Example { place, line } in examples {
        let commands = split(line).unwrap_or_else(|| panic!("{place}: a quote is open in {line:?}"));
        for words in commands.iter().filter_map(|words| own(words)) {
            taken += 1;
            if let Err(error) = P::command().try_get_matches_from(words) {
                panic!("{place}: {line:?}: {error}");
            }
        }
    }
    taken
}

/// The verbs that do something and have no example.
fn without_example<P: Parser>() -> Vec<String> {
    let mut all = Vec::new();
    each_verb(&P::command(), "", &mut |place, verb| {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let leads_on = verb.get_subcommands().any(|verb| !verb.is_hide_set());
        if !leads_on && !verb.is_hide_set() && !help.contains("Examples:\n") {
            all.push(place.to_owned());
        }
    });
    all
}

/// Calls with the words that lead to each verb, and the verb.
fn each_verb(command: &Command, before: &str, call: &mut impl FnMut(&str, &Command)) {
    let place = format!("{before} {}", command.get_name()).trim().to_owned();
    call(&place, command);
    for verb in command.get_subcommands() {
        each_verb(verb, &place, call);
    }
}

/// The commands of a line as a shell reads it, without redirections; `None` for what it does not read.
fn split(line: &str) -> Option<Vec<Vec<String>>> {
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

/// Has a program parse random words behind each of its verbs, hidden ones too: each line is taken, or refused with a message.
///
/// # Panics
/// If one is refused without a message, or fewer than 500 of 12,000 are taken or refused.
fn parse_at_random<P: Parser>() {
    let mut all = Vec::new();
    verbs(&P::command(), &[], &mut all);
    let word = (any::<Index>(), value(), 0..3_u8);
    let (taken, refused) = (Cell::new(0), Cell::new(0));
    crate::check(1, 12_000, (select(all), vec(word, 0..6)), |((verb, options), words)| {
        let mut line: Vec<OsString> = vec!["program".into()];
        line.extend(verb.iter().map(OsString::from));
        for (option, value, kind) in words {
            if kind > 0 && !options.is_empty() {
                line.push(option.get(&options).into());
            }
            if kind < 2 {
                line.push(value);
            }
        }
        let counter = match P::try_parse_from(&line) {
            Ok(_) => &taken,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                &refused
            }
        };
        counter.set(counter.get() + 1);
        Ok(())
    });
    assert!(taken.get() > 500 && refused.get() > 500, "{} {}", taken.get(), refused.get());
}

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
    let changed = ["1h30m", "80MiB", "2.5Gbit/s", "3/8", "goodput=-10%,retransmit_ratio=2%", "0.0.0.0:80"];
    prop_oneof![
        4 => select(right).prop_map(OsString::from),
        3 => crate::fragment().prop_map(OsString::from),
        3 => crate::text(&changed).prop_map(OsString::from),
        1 => vec(any::<u8>(), 0..6).prop_map(OsString::from_vec),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_a_shell_reads_it() {
        let read = |line| split(line).unwrap();
        assert_eq!(read("  onramp list --json | jq '.a[] | .b'")[1], ["jq", ".a[] | .b"]);
        assert_eq!(read("onramp completions bash > /etc/x; onramp list")[1], ["onramp", "list"]);
        assert_eq!(read("onramp attach   # ramp, `x` | y"), [["onramp", "attach"]]);
        assert_eq!(split("onramp 'x"), None);
    }
}
