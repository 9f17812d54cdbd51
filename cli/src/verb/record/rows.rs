//! Events as rows of a recording.

use std::collections::HashMap;

use onramp_loader::abi::flow_flag;
use onramp_loader::telemetry::{Event, FlowEvent, Item, What};
use onramp_recording::rows::{AckRow, DropRow, ExitRow, FlowRow, ParameterRow, RoundRow, StateRow};
use onramp_recording::{Error, Writer};

/// Turns events into rows.
pub(super) struct Rows {
    pub writer: Writer,
    /// Of each flow, how often slow start has begun, which its later rows tell too.
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
                    self.slow_starts.insert(event.flow, flow.header.slow_starts);
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
                self.writer.push(FlowRow {
                    event: "end".into(),
                    slow_starts: end.header.slow_starts,
                    bytes_acked: end.bytes_acked,
                    bytes_sent: end.bytes_sent,
                    bytes_retransmitted: end.bytes_retransmitted,
                    ..identity(event)
                })
            }
            What::Exit(exit) => {
                let record = &exit.record;
                self.writer.push(ExitRow {
                    at_us,
                    flow,
                    sequence,
                    event: "exit".into(),
                    reason: exit.reason.name().into(),
                    since_start_us: record.at_us,
                    bytes_acked: record.bytes_acked,
                    window: record.window,
                    window_after: record.window_after,
                    in_flight: record.in_flight,
                    mss: record.mss,
                    rtt_us: record.rtt_us,
                    min_rtt_us: record.min_rtt_us,
                    undone: record.undone,
                })
            }
            What::Undo(undo) if undo.exit_undone => self.writer.push(ExitRow {
                at_us,
                flow,
                sequence,
                event: "undone".into(),
                ..ExitRow::default()
            }),
            What::Undo(_) => Ok(()),
            What::Round(round) => self.writer.push(RoundRow::new(at_us, flow, sequence, &round.told)),
            What::Loss(loss) if loss.asked => self.writer.push(AckRow {
                sequence,
                event: "loss".into(),
                slow_starts,
                verdict_ssthresh: loss.ssthresh,
                base_ssthresh: loss.base_ssthresh,
                ..AckRow::new(flow, &loss.ack, &Default::default(), "".into())
            }),
            What::Loss(_) => Ok(()),
            What::State(state) => self.writer.push(StateRow {
                at_us,
                flow,
                sequence,
                from_state: state.from.name().into(),
                to_state: state.to.name().into(),
                cwnd: state.cwnd,
                ssthresh: state.ssthresh,
                in_flight: state.in_flight,
                bytes_retransmitted: state.bytes_retransmitted,
            }),
            What::Restart(restart) => {
                self.slow_starts.insert(flow, restart.slow_starts);
                Ok(())
            }
            What::Ack(ack) => {
                let verdict = ack.verdict.unwrap_or_default();
                let outcome = ack.verdict.map_or("", |verdict| event.algorithm.outcome_name(verdict.outcome));
                self.writer.push(AckRow {
                    sequence,
                    asked: ack.verdict.is_some().into(),
                    slow_starts,
                    generation: ack.generation,
                    ..AckRow::new(flow, &ack.ack, &verdict, outcome.into())
                })
            }
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
                profile: key.1,
                generation: key.2,
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
        event: if flow.header.flags & flow_flag::STARTED != 0 { "again" } else { "start" }.into(),
        local_address: flow.local.ip().to_string().into(),
        local_port: flow.local.port().into(),
        remote_address: flow.remote.ip().to_string().into(),
        remote_port: flow.remote.port().into(),
        profile: flow.profile,
        generation: flow.generation,
        adopted: (flow.header.flags & flow_flag::ADOPTED != 0).into(),
        start_us: flow.header.start_us,
        slow_starts: flow.header.slow_starts,
        cookie: flow.cookie.unwrap_or(0),
        state: flow.state.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
        ..identity(event)
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::ExitReason;
    use onramp_recording::Row;

    use super::*;

    #[test]
    fn reasons_of_exits_are_described_by_the_names_that_are_written() {
        let reason = ExitRow::COLUMNS.iter().find(|column| column.name == "reason").unwrap();
        for name in ExitReason::ALL.map(ExitReason::name) {
            assert!(reason.help.contains(&format!("`{name}`")), "{name}: {}", reason.help);
        }
    }
}
