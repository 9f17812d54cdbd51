//! Events as rows of a recording.

use std::collections::HashMap;

use onramp_loader::abi::flow_flag;
use onramp_loader::telemetry::{Event, FlowEvent, Item, What};
use onramp_recording::rows::{AckRow, DropRow, ExitRow, FlowRow, ParameterRow};
use onramp_recording::{Error, Writer};

use crate::event_rows;

/// Turns events into rows.
pub(super) struct Rows {
    pub writer: Writer,
    /// For each flow, how often slow start has begun, which its later rows have, too.
    slow_starts: HashMap<u64, u32>,
    /// Parameters that are recorded: algorithm, profile, generation.
    generations: Vec<(&'static str, u32, u32)>,
    last_us: u64,
}

impl Rows {
    pub fn new(writer: Writer) -> Self {
        Self { writer, slow_starts: HashMap::new(), generations: Vec::new(), last_us: 0 }
    }

    /// Adds what the item says.
    pub fn add(&mut self, item: &Item) -> Result<(), Error> {
        match item {
            Item::Lost(lost) => {
                self.writer.dropped(lost.events);
                let unobserved_us = lost.unobserved.as_micros() as u64;
                self.writer.push(DropRow { at_us: self.last_us, events: lost.events, unobserved_us })
            }
            Item::Event(event) => {
                self.last_us = event.time_ns / 1_000;
                if let What::Flow(flow) = &event.what {
                    self.slow_starts.insert(event.flow, flow.header.slow_starts.into());
                }
                // Without its beginning nothing can be made of a flow.
                match self.slow_starts.get(&event.flow).copied() {
                    Some(slow_starts) => self.event(event, slow_starts),
                    None => Ok(()),
                }
            }
        }
    }

    fn event(&mut self, event: &Event, slow_starts: u32) -> Result<(), Error> {
        let (at_us, flow, sequence) = (event.time_ns / 1_000, event.flow, event.sequence);
        match &event.what {
            What::Flow(known) => {
                self.parameters(event, known)?;
                self.writer.push(flow_row(event, known))
            }
            What::End(end) => {
                self.slow_starts.remove(&flow);
                let slow_starts = end.header.slow_starts.into();
                let mut row = FlowRow { event: "end".into(), slow_starts, ..identity(event) };
                row.set_end_payload(end);
                self.writer.push(row)
            }
            What::Exit(exit) => self.writer.push(event_rows::exit(event, exit)),
            What::Undo(undo) if undo.exit_undone != 0 => self.writer.push(ExitRow {
                at_us,
                flow,
                sequence,
                event: "undone".into(),
                ..ExitRow::default()
            }),
            What::Undo(_) => Ok(()),
            What::Round(round) => self.writer.push(event_rows::round(event, round)),
            What::Loss(loss) if loss.called != 0 => {
                self.writer.push(AckRow { slow_starts, ..event_rows::loss(event, loss) })
            }
            What::Loss(_) => Ok(()),
            What::State(state) => self.writer.push(event_rows::state(event, state)),
            What::Restart(restart) => {
                self.slow_starts.insert(flow, restart.slow_starts);
                Ok(())
            }
            What::Ack(ack) => self.writer.push(AckRow { slow_starts, ..event_rows::ack(event, ack) }),
        }
    }

    /// The flow's parameters, if they are new.
    fn parameters(&mut self, event: &Event, flow: &FlowEvent) -> Result<(), Error> {
        let key = (event.algorithm.name(), flow.profile, flow.generation);
        if self.generations.contains(&key) {
            return Ok(());
        }
        self.generations.push(key);
        for (name, value) in flow.parameters.shown() {
            self.writer.push(ParameterRow {
                at_us: event.time_ns / 1_000,
                algorithm: key.0.into(),
                parameter_set: key.1,
                parameters_generation: key.2,
                name: name.into(),
                value: value.into(),
            })?;
        }
        Ok(())
    }
}

fn identity(event: &Event) -> FlowRow {
    FlowRow {
        at_us: event.time_ns / 1_000,
        flow: event.flow,
        sequence: event.sequence,
        algorithm: event.algorithm.name().into(),
        netns: event.netns,
        ..FlowRow::default()
    }
}

fn flow_row(event: &Event, flow: &FlowEvent) -> FlowRow {
    FlowRow {
        event: if flow.header.has(flow_flag::STARTED) { "again" } else { "start" }.into(),
        local_address: flow.local.ip().to_string().into(),
        local_port: flow.local.port().into(),
        remote_address: flow.remote.ip().to_string().into(),
        remote_port: flow.remote.port().into(),
        parameter_set: flow.profile,
        parameters_generation: flow.generation,
        adopted: flow.header.has(flow_flag::ADOPTED).into(),
        started_us: flow.header.start_us,
        slow_starts: flow.header.slow_starts.into(),
        cookie: flow.cookie.unwrap_or(0),
        state: flow.state.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
        ..identity(event)
    }
}
