//! Events out of the bytes of a ring.

use aya::Pod;
use onramp_algorithm::{Algorithm, CongestionState, EventKind, ExitReason, Parameters};

use super::event::{EndEvent, Event, ExitEvent, FlowEvent, RoundEvent, StateEvent, What};
use crate::object::abi::{self, ABI_VERSION, address, read, text};
use crate::object::algorithms;
use crate::system::error::Error;

/// An event, and the losses of its reader when it was written.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Event, u64), Error> {
    let (head, _) = read::<abi::Event>(bytes).ok_or_else(|| short(bytes.len(), "an event's head"))?;
    if u32::from(head.version) != ABI_VERSION {
        return Err(bad(format!(
            "it is of ABI {}, this onramp reads {ABI_VERSION}: detach what another version attached, and attach it anew",
            head.version
        )));
    }
    if head.size as usize != bytes.len() {
        return Err(bad(format!("it says {} bytes and has {}", head.size, bytes.len())));
    }
    let control = text(&head.control);
    let algorithm = algorithms::find_control(&control)
        .ok_or_else(|| bad(format!("this onramp does not know the congestion control {control:?}")))?;
    let event = Event {
        time_ns: head.time_ns,
        flow: head.flow,
        sequence: head.sequence,
        netns: head.netns,
        algorithm,
        what: what(head.kind.into(), algorithm, bytes)?,
    };
    Ok((event, head.lost))
}

fn bad(why: String) -> Error {
    Error::Event { why }
}

fn short(have: usize, what: &str) -> Error {
    bad(format!("{have} bytes are too few for {what}"))
}

fn part<'a, T: Pod>(bytes: &'a [u8], what: &str) -> Result<(T, &'a [u8]), Error> {
    read::<T>(bytes).ok_or_else(|| short(bytes.len(), what))
}

fn what(number: u32, algorithm: Algorithm, bytes: &[u8]) -> Result<What, Error> {
    let kind =
        EventKind::from_number(number).ok_or_else(|| bad(format!("there is no event kind {number}")))?;
    Ok(match kind {
        EventKind::Flow => What::Flow(Box::new(flow(algorithm, bytes)?)),
        EventKind::End => {
            let (raw, _) = part::<abi::EndEvent>(bytes, "the end of a flow")?;
            What::End(Box::new(EndEvent { payload: raw.payload, header: raw.header, outcomes: raw.outcomes }))
        }
        EventKind::Exit => {
            let (raw, _) = part::<abi::ExitEvent>(bytes, "an exit")?;
            let reason = ExitReason::from_number(raw.record.reason.into())
                .ok_or_else(|| bad(format!("there is no exit reason {}", raw.record.reason)))?;
            let observed = Some(raw.observed).filter(|record| record.reason != 0);
            What::Exit(ExitEvent { reason, record: raw.record, observed })
        }
        EventKind::Undo => What::Undo(part::<abi::UndoEvent>(bytes, "an undo")?.0.payload),
        EventKind::Round => What::Round(Box::new(round(algorithm, bytes)?)),
        EventKind::Loss => What::Loss(part::<abi::LossEvent>(bytes, "a loss")?.0.payload),
        EventKind::State => {
            let payload = part::<abi::StateEvent>(bytes, "a congestion state")?.0.payload;
            What::State(StateEvent { from: state(payload.from)?, to: state(payload.to)?, payload })
        }
        EventKind::Restart => What::Restart(part::<abi::RestartEvent>(bytes, "a restart")?.0.payload),
        EventKind::Ack => What::Ack(part::<abi::AckEvent>(bytes, "an acknowledgment")?.0.payload),
    })
}

fn flow(algorithm: Algorithm, bytes: &[u8]) -> Result<FlowEvent, Error> {
    let (raw, state) = part::<abi::FlowEvent>(bytes, "a flow")?;
    Ok(FlowEvent {
        local: address(raw.payload.local, raw.payload.local_port),
        remote: address(raw.payload.remote, raw.payload.remote_port),
        again: raw.payload.again != 0,
        cookie: (raw.payload.cookie != 0).then_some(raw.payload.cookie),
        netns_cookie: raw.payload.netns_cookie,
        parameters: Parameters::from_words(algorithm, &raw.parameters)
            .ok_or_else(|| bad(format!("it lacks parameters of {}", algorithm.name())))?,
        profile: raw.header.profile.into(),
        generation: raw.payload.generation,
        header: raw.header,
        state: of_size(algorithm, state)?,
    })
}

fn round(algorithm: Algorithm, bytes: &[u8]) -> Result<RoundEvent, Error> {
    let (raw, state) = part::<abi::RoundEvent>(bytes, "a round")?;
    Ok(RoundEvent { payload: raw.payload, state: of_size(algorithm, state)? })
}

/// An algorithm's state, unless another build laid it out differently.
fn of_size(algorithm: Algorithm, state: &[u8]) -> Result<Vec<u8>, Error> {
    if state.len() == algorithm.state_size() {
        return Ok(state.to_vec());
    }
    Err(bad(format!(
        "it carries {} bytes of {}'s state, which has {} here: another build of onramp attached it",
        state.len(),
        algorithm.name(),
        algorithm.state_size()
    )))
}

fn state(number: u32) -> Result<CongestionState, Error> {
    CongestionState::from_number(number).ok_or_else(|| bad(format!("there is no congestion state {number}")))
}
