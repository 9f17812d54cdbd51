//! The verbs, one file each, and what some of them share.

mod apply;
mod attach;
mod bench;
mod compare_arms;
mod completions;
mod confirm;
mod detach;
mod doctor;
mod elsewhere;
mod expire;
mod export;
mod finding;
mod flows;
mod lab;
mod list;
mod man;
mod model;
mod plan;
mod population;
mod profile;
mod record;
mod replay;
mod reproduction;
mod result;
mod run;
mod select;
mod serve;
mod shadow;
mod sim;
mod status;
mod stragglers;
mod sweeping;
mod top;
mod transfer;
mod tune;
mod undo;
mod upgrade;
mod watch;
mod why;

use clap::Subcommand;

use crate::output::Output;

/// A verb with its arguments; what `--help` says of it stands with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(list::List),
    Attach(attach::Attach),
    Confirm(confirm::Confirm),
    Detach(detach::Detach),
    Upgrade(upgrade::Upgrade),
    Undo(undo::Undo),
    Apply(apply::Apply),
    Status(status::Status),
    CompareArms(compare_arms::CompareArms),
    Tune(tune::Tune),
    Run(run::Run),
    Select(select::Select),
    Flows(flows::Flows),
    Watch(watch::Watch),
    Top(top::Top),
    Serve(serve::Serve),
    Doctor(doctor::Doctor),
    Record(record::Record),
    Replay(replay::Replays),
    Export(export::Export),
    Shadow(shadow::Shadow),
    Lab(lab::Lab),
    Sim(sim::Sim),
    Profile(profile::Profile),
    Bench(bench::Bench),
    Model(model::Model),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Expire(expire::Expire),
    #[command(hide = true)]
    ServeWeb(serve::ServeWeb),
}

impl Verb {
    /// Does it; returns the exit code.
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self {
            Self::List(verb) => verb.run(output),
            Self::Attach(verb) => verb.run(output),
            Self::Confirm(verb) => verb.run(output),
            Self::Detach(verb) => verb.run(output),
            Self::Upgrade(verb) => verb.run(output),
            Self::Undo(verb) => verb.run(output),
            Self::Apply(verb) => verb.run(output),
            Self::Status(verb) => verb.run(output),
            Self::CompareArms(verb) => verb.run(output),
            Self::Tune(verb) => verb.run(output),
            Self::Run(verb) => verb.run(output),
            Self::Select(verb) => verb.run(output),
            Self::Flows(verb) => verb.run(output),
            Self::Watch(verb) => verb.run(output),
            Self::Top(verb) => verb.run(output),
            Self::Serve(verb) => verb.run(output),
            Self::Doctor(verb) => verb.run(output),
            Self::Record(verb) => verb.run(output),
            Self::Replay(verb) => verb.run(output),
            Self::Export(verb) => verb.run(),
            Self::Shadow(verb) => verb.run(output),
            Self::Lab(verb) => verb.run(output),
            Self::Sim(verb) => verb.run(output),
            Self::Profile(verb) => verb.run(output),
            Self::Bench(verb) => verb.run(output),
            Self::Model(verb) => verb.run(output),
            Self::Completions(verb) => verb.run(output),
            Self::Man(verb) => verb.run(output),
            Self::Expire(verb) => verb.run(),
            Self::ServeWeb(verb) => verb.run(),
        }
    }
}
