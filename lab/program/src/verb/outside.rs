// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `onramp-lab new` and `onramp-lab build`: algorithms from outside the tree.

use std::path::PathBuf;

use clap::Args;
use onramp_loader::outside::{self, BuildError};
use serde::Serialize;

use crate::failure::Usage;
use crate::output::{Output, say};
use crate::scratch::Scratch;
use crate::units::count;

/// Begin an algorithm of your own: write NAME.h and its test NAME_test.c
///
/// The header has every part that an algorithm has, with its reason; as it is it exits when a round's RTT has risen.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  onramp-lab new mine\n  onramp-lab build mine.h")]
pub(crate) struct New {
    /// Name: at most 8 lower-case letters, digits and _
    name: String,
    /// Directory of both files
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// What is wrong with a name or a file is wrong with what was asked for.
fn refused(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Name { .. }
        | BuildError::Outside(_)
        | BuildError::NoHeader { .. }
        | BuildError::OtherNames { .. }
        | BuildError::Exists { .. } => Usage::error(error.to_string()),
        other => other.into(),
    }
}

#[derive(Serialize)]
struct Created {
    header: PathBuf,
    test: PathBuf,
}

impl New {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let [header, test] = outside::create(&self.name, &self.output).map_err(refused)?;
        let created = Created { header, test };
        output.data(&created, || {
            let (header, test) = (created.header.display(), created.test.display());
            format!("wrote {header} and {test}; next: onramp-lab build {header}\n")
        })?;
        Ok(0)
    }
}

/// Build an algorithm of your own: make NAME.o of NAME.h, and run NAME_test.c
///
/// All that it takes is clang. `onramp attach`, `run`, `tune`, `detach`, `replay` and `shadow` take the object by its path (with a
/// slash, or ending in .o) where they take an algorithm's name, and so do arms of the laboratory and of `sim`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp-lab build mine.h\n  onramp-lab sim compare --arms cubic,./mine.o:rise_pct=10"
)]
pub(crate) struct Build {
    /// The header; NAME_test.c beside it is run first, where it is there
    #[arg(value_name = "NAME.h")]
    header: PathBuf,
    /// The object [default: NAME.o beside the header]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    algorithm: &'static str,
    congestion_control: String,
    object: PathBuf,
    parameters: Vec<Declared>,
    /// Null: there is no file of them.
    tests: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Declared {
    name: &'static str,
    unit: &'static str,
    default: u64,
    minimum: u64,
    maximum: u64,
}

impl Build {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let work = Scratch::make()?;
        let built = outside::build(&self.header, self.output.as_deref(), work.path()).map_err(refused)?;
        if !built.warnings.is_empty() {
            say(built.warnings.trim_end());
        }
        let algorithm = built.algorithm;
        let declared = algorithm.declarations().map(|one| Declared {
            name: one.name,
            unit: one.unit,
            default: one.default,
            minimum: one.minimum,
            maximum: one.maximum,
        });
        let report = Report {
            algorithm: algorithm.name(),
            congestion_control: algorithm.congestion_control(),
            object: built.object,
            parameters: declared.collect(),
            tests: built.tests,
        };
        output.data(&report, || {
            let (object, name) = (report.object.display(), report.algorithm);
            let tests = match &report.tests {
                Some(tests) => format!("{} passed", count(tests.len(), "test")),
                None => format!("no {name}_test.c"),
            };
            format!("made {object}: {name}, control {}; {tests}\n", report.congestion_control)
        })?;
        Ok(0)
    }
}
