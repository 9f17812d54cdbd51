//! `onramp list`.

use clap::Args;
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm::{self, AfterExit, Algorithm, Parameter, StartPolicy};
use onramp_loader::kernel;
use serde::Serialize;

use crate::output::Output;
use crate::settings::{AlgorithmName, Value};

/// List the algorithms: what they do, where they come from, their parameters, and whether they are attached
///
/// A parameter is shown with its default, what may be given (a range with its unit, or names), and what it does.
/// Needs no privilege; the base of what is attached is shown only to root.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp list\n  onramp list search\n  onramp list --json | jq '.algorithms[].name'"
)]
pub(crate) struct List {
    /// Only this one
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Listing {
    algorithms: Vec<AlgorithmRow>,
    /// Of the base, by `attach --after-exit`.
    after_exit: Vec<BaseOption>,
    /// Of the start, by `attach --start`.
    start: Vec<BaseOption>,
}

#[derive(Serialize)]
struct BaseOption {
    name: &'static str,
    bases: &'static [&'static str],
    help: &'static str,
}

impl Listing {
    /// What algorithms there are, as far as this process may know.
    pub fn read(algorithms: impl IntoIterator<Item = Algorithm>) -> Result<Self, onramp_loader::Error> {
        let registered = kernel::registered()?;
        // As far as this process may know.
        let base = |algorithm| Some(onramp_loader::attached_state(algorithm).ok()??.base.name());
        Ok(Self::new(algorithms, |control| registered.iter().any(|one| one == control), base))
    }

    /// What algorithms there are, which of their controls are registered, and with which base.
    pub fn new(
        algorithms: impl IntoIterator<Item = Algorithm>,
        registered: impl Fn(&str) -> bool,
        base: impl Fn(Algorithm) -> Option<&'static str>,
    ) -> Self {
        let row = |one: Algorithm| describe(one, registered(&one.congestion_control()), base(one));
        let option = |one: AfterExit| BaseOption { name: one.name(), bases: one.bases(), help: one.help() };
        let policy = |one: StartPolicy| BaseOption { name: one.name(), bases: one.bases(), help: one.help() };
        Self {
            algorithms: algorithms.into_iter().map(row).collect(),
            after_exit: AfterExit::ALL.map(option).into(),
            start: StartPolicy::ALL.map(policy).into(),
        }
    }
}

#[derive(Serialize)]
struct AlgorithmRow {
    name: &'static str,
    congestion_control: String,
    about: &'static str,
    source: &'static str,
    attached: bool,
    base: Option<&'static str>,
    /// Of a flow: the algorithm's own, what only flows with some parameters have of it besides, and what all algorithms
    /// keep before it.
    state_bytes: usize,
    extra_state_bytes: usize,
    header_bytes: usize,
    parameters: Vec<Declaration>,
    outcomes: Vec<Described>,
    exports: Vec<Described>,
}

#[derive(Serialize)]
struct Declaration {
    name: &'static str,
    unit: &'static str,
    default: Value,
    allowed: String,
    minimum: u64,
    maximum: u64,
    choices: Vec<&'static str>,
    help: &'static str,
}

#[derive(Serialize)]
struct Described {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    help: &'static str,
}

impl List {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let algorithms: Vec<Algorithm> = match &self.algorithm {
            Some(name) => vec![onramp_loader::find(name)?],
            None => algorithm::all().collect(),
        };
        let listing = Listing::read(algorithms)?;
        output.data(&listing, || {
            let mut blocks: Vec<_> = listing.algorithms.iter().map(|row| text(row, output)).collect();
            blocks.push(options_text(
                "options of the base after slow start (attach --after-exit)",
                &listing.after_exit,
            ));
            blocks.push(options_text("how connections start (attach --start)", &listing.start));
            blocks.join("\n")
        })?;
        Ok(0)
    }
}

fn describe(algorithm: Algorithm, attached: bool, base: Option<&'static str>) -> AlgorithmRow {
    AlgorithmRow {
        name: algorithm.name(),
        about: algorithm.about(),
        source: algorithm.source(),
        attached,
        base,
        congestion_control: algorithm.congestion_control(),
        state_bytes: algorithm.kept_size(),
        extra_state_bytes: algorithm.state_size() - algorithm.kept_size(),
        header_bytes: size_of::<FlowHeader>(),
        parameters: algorithm.declarations().map(declaration).collect(),
        outcomes: algorithm
            .outcomes()
            .filter(|outcome| !outcome.name.is_empty())
            .map(|outcome| Described { name: outcome.name, unit: None, help: outcome.help })
            .collect(),
        exports: algorithm
            .exports()
            .map(|export| Described { name: export.name, unit: Some(export.unit), help: export.help })
            .collect(),
    }
}

fn declaration(parameter: Parameter) -> Declaration {
    Declaration {
        name: parameter.name,
        unit: parameter.unit,
        default: Value::new(&parameter, parameter.default),
        allowed: parameter.allowed(),
        minimum: parameter.minimum,
        maximum: parameter.maximum,
        help: parameter.help,
        choices: parameter.choices,
    }
}

fn text(row: &AlgorithmRow, output: &Output) -> String {
    let attached = match (row.attached, row.base) {
        (false, _) => "not attached".to_owned(),
        (true, None) => "attached".to_owned(),
        (true, Some(base)) => format!("attached, base {base}"),
    };
    let mut text = format!("{}  {}\n", output.bold(row.name), row.about);
    text += &format!("  {attached} as {}; from {}\n", row.congestion_control, row.source);
    for one in &row.parameters {
        text += &format!("    {}={}  ({})  {}\n", one.name, one.default, one.allowed, one.help);
    }
    text
}

fn options_text(title: &str, options: &[BaseOption]) -> String {
    let mut text = format!("{title}\n");
    for one in options {
        text += &format!("    {}  {}\n", one.name, one.help);
    }
    text
}
