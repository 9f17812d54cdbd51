// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Recordings of flows: written while they run, read back, and replayed through the host build of the
//! algorithms that also run in the kernel.
//!
//! * [`Writer`], [`Recording`]: a directory of Parquet files and a manifest; tables are declared in [`rows`].
//! * [`table!`], [`write_rows`], [`read_rows`]: tables of others in the same form, a file each.
//! * [`replay`]: recorded acknowledgments through other algorithms and parameters; [`replay_csv`] for plain CSV.
#![forbid(unsafe_code)]

mod batch;
mod budget;
mod capture;
mod column;
mod csv;
mod error;
mod file;
#[cfg(test)]
mod fixtures;
mod input;
mod manifest;
mod monotone;
mod pages;
mod qlog;
mod reader;
mod replace;
pub mod replay;
mod round_trips;
pub mod rows;
mod sample;
mod single;
mod table;
mod thrift;
mod writer;

pub use batch::Batch;
pub use budget::Budget;
pub use column::{Column, Kind, Sense, Shown, Spec, TEXT_BYTES, Text, Value};
pub use csv::{CsvReport, replay_csv};
pub use error::{ACKS_ARE_RECORDED, Error};
pub use input::{Input, input};
pub use manifest::{Attached, FileEntry, Manifest, SCHEMA};
use onramp_files::{bounded, kind};
pub use reader::{Origin, Recording};
pub use round_trips::RoundTrips;
pub use sample::{Event, Run, Sample, each_run};
pub use single::{read_rows, write_rows};
pub use table::{Row, serialize_columns};
pub use writer::{Limits, Writer};

#[cfg(test)]
mod tests;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: onramp_mutation::memory::Counting = onramp_mutation::memory::Counting;
