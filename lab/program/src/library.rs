//! What verbs compute, for callers in the same process: options in as words of the command line, so that names, ranges and
//! sentences are those of the program; nothing is printed.

use std::path::Path;

use clap::{Args, CommandFactory, Parser};
use onramp_lab::experiment::{Arm, Comparison, Flow, Run};
use onramp_lab::population::Population;
use onramp_lab::sim::SimError;
use onramp_lab::sim::sweep::{RunRow, Store, Sweep as Summary};

use crate::failure::Usage;
use crate::verb::{result, sim};

#[derive(Parser)]
struct Words<V: Args> {
    #[command(flatten)]
    verb: V,
}

fn parse<V: Args>(verb: &str, words: &[String]) -> anyhow::Result<V> {
    let words = [verb].into_iter().chain(words.iter().map(String::as_str));
    let parsed = Words::<V>::try_parse_from(words);
    parsed.map(|words| words.verb).map_err(|error| {
        let text = error.to_string();
        // What follows is for whoever types.
        let sentence = text.split("\n\n").next().unwrap_or_default();
        Usage::error(sentence.strip_prefix("error: ").unwrap_or(sentence))
    })
}

/// `onramp sim compare` with these options; shows `each` every run once it is over, with the number of its repetition and what
/// was seen of its first flow every 10 ms.
///
/// # Errors
/// Those of the verb, and of `each`.
pub fn compare(
    words: &[String],
    each: impl FnMut(&Arm, u32, &Run, &Flow) -> Result<(), SimError>,
) -> anyhow::Result<Comparison> {
    parse::<sim::Compare>("compare", words)?.simulated(each)
}

/// `onramp sim sweep` with these options, by what simulates in the file `program`; `wanted` is asked before each path.
///
/// # Errors
/// Those of the verb, and of `wanted`.
pub fn sweep(
    words: &[String],
    program: &Path,
    wanted: impl Fn() -> Result<(), SimError> + Sync,
) -> anyhow::Result<(Summary, Vec<RunRow>)> {
    let swept = parse::<sim::Sweep>("sweep", words)?.swept(program, wanted)?;
    Ok((swept.summary, swept.rows))
}

/// Names of the options of `compare` or `sweep`, for callers that have a parameter for each.
pub fn options(verb: &str) -> Vec<String> {
    let command = match verb {
        "compare" => Words::<sim::Compare>::command(),
        _ => Words::<sim::Sweep>::command(),
    };
    command.get_arguments().filter_map(|option| option.get_long().map(str::to_owned)).collect()
}

/// Whether a directory holds a sweep.
pub fn is_sweep(directory: &Path) -> bool {
    Store::is_at(directory)
}

/// A sweep's directory: what came of the paths that are there, and their runs.
///
/// # Errors
/// It holds none, or a file of it cannot be read.
pub fn read_sweep(directory: &Path) -> anyhow::Result<(Summary, Vec<RunRow>)> {
    let (store, definition) = Store::read(directory)?;
    let population = Population::parse(&definition.population, "the population of the sweep")?;
    let (rows, _) = store.rows()?;
    Ok((Summary::new(&population.name, definition.seed, &rows), rows))
}

/// Whether a directory, or what lies in it, has a result of the lab, or a file may be one.
pub fn is_result(given: &Path) -> bool {
    result::is_at(given)
}

/// A result of the lab: its file, the directory that it is in, or the manifest next to it.
///
/// # Errors
/// It is none.
pub fn read_result(given: &Path) -> anyhow::Result<Comparison> {
    result::read(given)
}
