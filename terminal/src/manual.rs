// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The hidden verb `man` of each program, which packages call: a page for the program and one for each verb, from its command
//! line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::completions::visible;
use crate::output::Output;

/// Write manual pages of all verbs into a directory
///
/// The pages are what --help says: one for the program, and one for each verb. The directory is made if it is not there, and
/// pages in it are written anew.
#[derive(Args, Debug)]
pub struct Man {
    /// Directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// What the pages of one program have in common.
#[derive(Clone, Copy, Debug)]
pub struct Manual {
    /// Name of the program.
    pub name: &'static str,
    /// What the program is, in a few words.
    pub about: &'static str,
    /// 8 for administrators, 1 for all users.
    pub section: &'static str,
    /// Pages of the other program.
    pub see_also: &'static str,
}

/// How the text after the help names what a manual page has a section for.
const SECTIONS: [(&str, &str); 3] =
    [("Examples:", "EXAMPLES"), ("Undo:", "UNDO"), ("Exit codes:", "EXIT STATUS")];

impl Man {
    /// Writes the pages of a program with this command line.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn run(self, manual: Manual, line: &Command, output: &Output) -> anyhow::Result<u8> {
        let directory = self.directory;
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let after = line.get_after_help().cloned().unwrap_or_default();
        let mut command = without_help(visible(manual.name, line))
            .version(env!("CARGO_PKG_VERSION"))
            .about(manual.about)
            .after_help(after);
        command.build();
        let codes = part(&command, "Exit codes:");
        manual
            .write(&command, None, &codes, &directory)
            .with_context(|| format!("cannot write manual pages into {}", directory.display()))?;
        output.progress(&format!("written to {}", directory.display()));
        Ok(0)
    }
}

impl Manual {
    /// The page of a command, and those of its verbs. `codes`: the exit codes of all.
    fn write(
        self,
        command: &Command,
        parent: Option<&str>,
        codes: &str,
        directory: &Path,
    ) -> std::io::Result<()> {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let file = directory.join(format!("{name}.{}", self.section));
        fs::write(file, self.page(command.clone(), parent, codes)?)?;
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            self.write(verb, Some(name), codes, directory)?;
        }
        Ok(())
    }

    fn page(self, mut command: Command, parent: Option<&str>, codes: &str) -> std::io::Result<Vec<u8>> {
        let usage = command.render_usage().to_string();
        let bin = command.get_bin_name().unwrap_or(self.name).to_owned();
        let page = Page::new(command.clone())
            .section(self.section)
            .source(format!("onramp {}", env!("CARGO_PKG_VERSION")))
            .manual("onramp");
        let mut text = Vec::new();
        page.render_title(&mut text)?;
        page.render_name_section(&mut text)?;
        let mut roff = Roff::new();
        roff.control("SH", ["SYNOPSIS"]);
        let usage = usage.trim_start_matches("Usage: ").trim();
        roff.text([bold(bin.as_str()), roman(usage.strip_prefix(&bin).unwrap_or(usage))]);
        roff.to_writer(&mut text)?;
        page.render_description_section(&mut text)?;
        if command.get_arguments().any(|one| !one.is_hide_set()) {
            page.render_options_section(&mut text)?;
        }
        if command.has_subcommands() {
            page.render_subcommands_section(&mut text)?;
        }

        let mut roff = Roff::new();
        for (mark, heading) in SECTIONS {
            let own = part(&command, mark);
            let written = if own.is_empty() && heading == "EXIT STATUS" { codes } else { &own };
            if written.is_empty() {
                continue;
            }
            roff.control("SH", [heading]);
            let literal = heading == "EXAMPLES";
            if literal {
                roff.control("nf", []);
            }
            for line in written.lines() {
                roff.text([roman(line.trim())]);
            }
            if literal {
                roff.control("fi", []);
            }
        }
        let parent = parent.map(|name| format!("{name}({})", self.section));
        let others: Vec<_> = parent.into_iter().chain([self.see_also.to_owned()]).collect();
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(others.join(", "))]);
        roff.to_writer(&mut text)?;
        Ok(text)
    }
}

/// The paragraph after the help that begins with these words, without them; empty: there is none.
fn part(command: &Command, mark: &str) -> String {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    after
        .split("\n\n")
        .find_map(|paragraph| paragraph.trim().strip_prefix(mark))
        .map(str::trim)
        .unwrap_or_default()
        .to_owned()
}

/// The command line without the verb `help`, at any depth.
fn without_help(command: Command) -> Command {
    let names: Vec<_> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.into_iter().fold(command.disable_help_subcommand(true), |command, name| {
        command.mut_subcommand(name, without_help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_sections_of_the_text_after_the_help_and_no_verb_help() {
        let verb = Command::new("do")
            .after_help("Examples:\n  one do --all\n  .one do\n\nUndo: by hand")
            .subcommand(Command::new("it"));
        let line = Command::new("one").after_help("Exit codes: 0 done, 1 failed").subcommand(verb);
        let directory = tempfile::tempdir().unwrap();
        let manual = Manual { name: "one", about: "Does", section: "8", see_also: "other(1)" };
        let mut built = without_help(line);
        built.build();
        let codes = part(&built, "Exit codes:");
        manual.write(&built, None, &codes, directory.path()).unwrap();
        let mut files: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["one-do-it.8", "one-do.8", "one.8"]);
        let page = fs::read_to_string(directory.path().join("one-do.8")).unwrap();
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}: {page}"));
        assert!(at(".TH one-do 8") < at(".SH SYNOPSIS"), "{page}");
        assert!(
            at(".SH EXAMPLES\n.nf\none do \\-\\-all\n\\&.one do\n.fi") < at(".SH UNDO\nby hand"),
            "{page}"
        );
        assert!(
            at(".SH \"EXIT STATUS\"\n0 done, 1 failed") < at(".SH \"SEE ALSO\"\none(8), other(1)"),
            "{page}"
        );
    }
}
