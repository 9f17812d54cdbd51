//! What there is: attachments, flows, costs, and what decides about connections.

pub mod cost;
pub(crate) mod deciders;
pub(crate) mod doctor;
pub(crate) mod flows;
pub(crate) mod status;
pub(crate) mod yardstick;
