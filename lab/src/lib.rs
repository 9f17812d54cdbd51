// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The lab: link models, an emulator that drives them between two network namespaces, and experiments with real
//! kernel TCP over it.
//!
//! * [`link`]: pure models with injected time.
//! * [`emulator`]: carries packets between two TUN devices as the models say.
//! * [`guest`]: virtual machines in which all of this takes the same time on every machine.
//! * [`host`]: the two network namespaces at its ends.
//! * [`experiment`]: downloads over them, congestion control against congestion control, with files and figures.
//! * [`figure`]: curves and regions as SVG; [`plot`]: what arms did over time.
//! * [`page`]: results and reports as documents.
//! * [`matrix`]: every arm on every profile, as one table.
//! * [`qlog`]: recordings in a form that other tools read.
//! * [`model`]: the documents' closed forms.
//! * [`question`]: what experiments are to answer, and by which predicates.
//! * [`evaluate`]: the evaluation that RFC 9743 asks for.
//! * [`sim`]: the same experiments with modelled TCP, thousands of paths in a minute.
//! * [`fit`]: a path that explains a recorded flow.
//! * [`verify`]: whether a result that is made again is the same.
//! * [`population`]: distributions from which paths are drawn.

pub mod clock;
mod digest;
pub mod emulator;
pub mod evaluate;
pub mod experiment;
pub mod figure;
pub mod fit;
pub mod guest;
pub mod host;
#[cfg(test)]
mod hostile;
pub mod link;
pub mod matrix;
pub mod model;
pub mod page;
pub mod plot;
pub mod population;
pub mod qlog;
pub mod question;
pub mod sim;
pub mod stats;
pub mod table;
pub mod verify;

use onramp_profiles as profile;
