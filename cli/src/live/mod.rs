//! Flows as they are now, and what they did, from telemetry alone: what `top` and `serve` show.

mod history;
mod model;
mod picture;
mod source;

pub(crate) use history::{Bucket, Change, Cursor, History, Point};
pub(crate) use model::{Flow, Model, threshold};
pub(crate) use picture::{Gauge, Picture, picture};
pub(crate) use source::Source;
