//! Flows as they are now, and what they did, from telemetry alone: what `top` and `serve` show.

mod flow;
mod flow_table;
mod history;
mod limited;
mod picture;
mod recorded;
mod shadow;
mod source;
mod track;

pub(crate) use flow::{Flow, Incident, threshold};
pub(crate) use flow_table::FlowTable;
pub(crate) use history::{Bucket, Change, Cursor, History, Point};
pub(crate) use picture::{Gauge, Picture, picture};
pub(crate) use recorded::{Recorded, read, read_csv};
pub(crate) use shadow::Shadows;
pub(crate) use source::Source;
pub(crate) use track::{Track, track};
