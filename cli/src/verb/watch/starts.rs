//! Starts from memory, for people: a line when one comes to another phase.

use std::collections::HashMap;

use onramp_loader::algorithm::{StartEnd, StartPhase};
use onramp_loader::telemetry::{Event, What};

use super::text::head;

/// Flows whose starts are followed at once.
const FLOWS: usize = 10_000;

/// How far a start has come, and how it ended.
type Stand = (Option<StartPhase>, Option<StartEnd>);

/// Where the starts of flows stand, as far as events have said.
#[derive(Default)]
pub(super) struct Starts(HashMap<u64, Stand>);

impl Starts {
    /// The line on what an event says that those before it did not.
    pub fn changed(&mut self, event: &Event) -> Option<String> {
        let (phase, end, jump) = match &event.what {
            What::Ack(ack) => (ack.start_phase.into(), ack.start_end.into(), ack.jump),
            What::Round(round) => (round.start_phase.into(), round.start_end.into(), 0),
            // It is over with the flow, whatever it has come to.
            What::End(end) => (0, end.start_end, end.jump),
            _ => return None,
        };
        let ends = matches!(event.what, What::End(_));
        let stand = (StartPhase::from_number(phase), StartEnd::from_number(end));
        let known = if ends { self.0.remove(&event.flow) } else { self.0.get(&event.flow).copied() };
        let new = if ends {
            stand.1.is_some() && known.is_none_or(|known| known.1 != stand.1)
        } else {
            known != Some(stand)
        };
        if !new || (stand.0.is_none() && stand.1.is_none()) {
            return None;
        }
        if !ends && (self.0.len() < FLOWS || known.is_some()) {
            self.0.insert(event.flow, stand);
        }
        Some(format!("{} {}", head(event, "start"), said(stand, jump)))
    }
}

/// `unvalidated, jump to 402`, `over: retreat (a loss, mark or timeout in what the jump sent)`.
fn said((phase, end): Stand, jump: u32) -> String {
    let jump = if jump > 0 { format!(", jump to {jump}") } else { String::new() };
    match end {
        Some(end) => format!("over{jump}: {} ({})", end.name().replace('_', " "), end.help()),
        None => format!("{}{jump}", phase.map_or("unknown", StartPhase::name)),
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::abi::FlowHeader;
    use onramp_loader::algorithm::{EndPayload, OUTCOME_MAX, RoundPayload, find};
    use onramp_loader::telemetry::{AckPayload, EndEvent, RoundEvent};

    use super::*;

    fn lines(events: Vec<What>) -> Vec<Option<String>> {
        let mut starts = Starts::default();
        let algorithm = find("plain").unwrap();
        let event = |what| Event { time_ns: 1, flow: 7, sequence: 1, netns: 1, algorithm, what };
        events.into_iter().map(|what| starts.changed(&event(what))).collect()
    }

    fn ack(phase: Option<StartPhase>, end: Option<StartEnd>, jump: u32) -> What {
        let start_phase = phase.map_or(0, |phase| phase as u8);
        let start_end = end.map_or(0, |end| end as u8);
        What::Ack(AckPayload { start_phase, start_end, jump, ..AckPayload::default() })
    }

    fn end(end: StartEnd, jump: u32) -> What {
        let payload = EndPayload { start_end: end as u32, jump, ..EndPayload::default() };
        What::End(Box::new(EndEvent { payload, header: FlowHeader::default(), outcomes: [0; OUTCOME_MAX] }))
    }

    #[test]
    fn a_line_comes_with_each_phase_and_once() {
        use StartPhase::{Over, Reconnaissance, Unvalidated, Validating};
        let said = lines(vec![
            ack(Some(Reconnaissance), None, 0),
            ack(Some(Reconnaissance), None, 0),
            ack(Some(Unvalidated), None, 402),
            ack(Some(Validating), None, 402),
            ack(Some(Over), Some(StartEnd::Retreat), 402),
            ack(Some(Over), Some(StartEnd::Retreat), 402),
            end(StartEnd::Retreat, 402),
        ]);
        let there: Vec<_> = said.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, false, true, true, true, false, false]);
        assert!(said[2].as_ref().unwrap().contains("unvalidated, jump to 402"), "{said:?}");
        assert!(said[4].as_ref().unwrap().contains("retreat"), "{said:?}");
    }

    #[test]
    fn the_end_of_a_flow_says_what_no_event_before_has_and_nothing_of_flows_without_memory() {
        let payload = RoundPayload { start_phase: StartPhase::Unvalidated as u8, ..RoundPayload::default() };
        let round = What::Round(Box::new(RoundEvent { payload, state: Vec::new() }));
        let said = lines(vec![round, end(StartEnd::Validated, 402)]);
        assert!(said[0].is_some() && said[1].as_ref().unwrap().contains("validated"), "{said:?}");
        assert_eq!(lines(vec![ack(None, None, 0)]), [None]);
        assert!(lines(vec![end(StartEnd::NoGain, 0)])[0].is_some());
    }
}
