//! The verbs, one file or folder each, and what some of them share.

mod apply;
mod attach;
mod confirm;
mod detach;
mod doctor;
mod elsewhere;
mod ends;
mod expire;
mod explain;
mod finding;
mod flows;
pub(crate) mod lab;
mod list;
mod others;
mod paths;
mod plan;
mod record;
mod replay;
mod run;
mod select;
mod serve;
mod shadow;
mod status;
mod stragglers;
mod top;
mod tune;
mod undo;
mod upgrade;
mod watch;
mod why;

use clap::{Command, Subcommand};
use onramp_terminal::completions::Completions;
use onramp_terminal::manual::{Man, Manual};

use crate::output::Output;

/// A verb with its arguments; what `--help` says of it stands with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(list::List),
    Attach(attach::Attach),
    Confirm(confirm::Confirm),
    Tune(tune::Tune),
    Detach(detach::Detach),
    Upgrade(upgrade::Upgrade),
    Undo(undo::Undo),
    Status(status::Status),
    Run(run::Run),
    Select(select::Select),
    Paths(paths::Paths),
    Apply(apply::Apply),
    Flows(flows::Flows),
    Watch(watch::Watch),
    Top(top::Top),
    Serve(serve::Serve),
    Record(record::Record),
    Replay(replay::Replays),
    Shadow(shadow::Shadow),
    Explain(explain::Explain),
    Doctor(doctor::Doctor),
    /// Measure with real kernel TCP over an emulated link, by onramp-lab
    #[command(
        disable_help_flag = true,
        disable_version_flag = true,
        after_help = "Examples:\n  onramp lab compare --arms cubic,plain,search --repetitions 5\n  onramp lab --help"
    )]
    Lab(lab::LabArguments),
    /// Simulate modelled TCP over thousands of paths, by onramp-lab
    #[command(
        disable_help_flag = true,
        disable_version_flag = true,
        after_help = "Examples:\n  onramp sim compare --arms cubic,search --bytes 20M\n  onramp sim --help"
    )]
    Sim(lab::LabArguments),
    #[command(hide = true)]
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Expire(expire::Expire),
    #[command(hide = true)]
    ServeWeb(serve::ServeWeb),
}

/// What its manual pages have in common.
const MANUAL: Manual = Manual {
    name: "onramp",
    about: env!("CARGO_PKG_DESCRIPTION"),
    section: "8",
    see_also: "onramp-lab(1), tcp(7), ss(8)",
};

impl Verb {
    /// Does it; returns the exit code. `line` is the whole command line.
    pub fn run(self, line: fn() -> Command, output: &Output) -> anyhow::Result<u8> {
        match self {
            Self::List(verb) => verb.run(output),
            Self::Attach(verb) => verb.run(output),
            Self::Confirm(verb) => verb.run(output),
            Self::Tune(verb) => verb.run(output),
            Self::Detach(verb) => verb.run(output),
            Self::Upgrade(verb) => verb.run(output),
            Self::Undo(verb) => verb.run(output),
            Self::Status(verb) => verb.run(output),
            Self::Run(verb) => verb.run(output),
            Self::Select(verb) => verb.run(output),
            Self::Paths(verb) => verb.run(output),
            Self::Apply(verb) => verb.run(output),
            Self::Flows(verb) => verb.run(output),
            Self::Watch(verb) => verb.run(output),
            Self::Top(verb) => verb.run(output),
            Self::Serve(verb) => verb.run(output),
            Self::Record(verb) => verb.run(output),
            Self::Replay(verb) => verb.run(output),
            Self::Shadow(verb) => verb.run(output),
            Self::Explain(verb) => verb.run(output),
            Self::Doctor(verb) => verb.run(output),
            Self::Lab(words) => words.execute(None, output),
            Self::Sim(words) => words.execute(Some("sim"), output),
            Self::Completions(verb) => verb.run("onramp", output),
            Self::Man(verb) => verb.run(MANUAL, &line(), output),
            Self::Expire(verb) => verb.run(),
            Self::ServeWeb(verb) => verb.run(),
        }
    }
}
