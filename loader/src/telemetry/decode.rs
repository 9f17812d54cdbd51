//! Events out of the bytes of a ring.

use aya::Pod;
use onramp_algorithm::{Algorithm, ExitReason, Parameters};

use super::event::{
    AckEvent, CongestionState, EndEvent, Event, ExitEvent, FlowEvent, LossEvent, RestartEvent, RoundEvent,
    StateEvent, UndoEvent, What,
};
use crate::object::abi::{self, ABI_VERSION, address, event_kind as kind, read, text};
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
    let algorithm = onramp_algorithm::find_control(&control)
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
    Ok(match number {
        kind::FLOW => What::Flow(Box::new(flow(algorithm, bytes)?)),
        kind::END => {
            let (raw, _) = part::<abi::EndEvent>(bytes, "the end of a flow")?;
            What::End(Box::new(EndEvent {
                bytes_acked: raw.told.bytes_acked,
                bytes_sent: raw.told.bytes_sent,
                bytes_retransmitted: raw.told.bytes_retransmitted,
                smoothed_rtt_us: raw.told.smoothed_rtt_us,
                min_rtt_us: raw.told.min_rtt_us,
                cwnd: raw.told.cwnd,
                ssthresh: raw.told.ssthresh,
                header: raw.header,
                outcomes: raw.outcomes,
            }))
        }
        kind::EXIT => {
            let (raw, _) = part::<abi::ExitEvent>(bytes, "an exit")?;
            let reason = ExitReason::from_number(raw.record.reason)
                .ok_or_else(|| bad(format!("there is no exit reason {}", raw.record.reason)))?;
            let observed = Some(raw.observed).filter(|record| record.reason != 0);
            What::Exit(ExitEvent { reason, record: raw.record, observed })
        }
        kind::UNDO => {
            let (raw, _) = part::<abi::UndoEvent>(bytes, "an undo")?;
            What::Undo(UndoEvent {
                cwnd: raw.told.cwnd,
                restored: raw.told.restored,
                exit_undone: raw.told.exit_undone != 0,
            })
        }
        kind::ROUND => What::Round(Box::new(round(algorithm, bytes)?)),
        kind::LOSS => {
            let (raw, _) = part::<abi::LossEvent>(bytes, "a loss")?;
            What::Loss(LossEvent {
                ack: raw.told.ack,
                base_ssthresh: raw.told.base_ssthresh,
                ssthresh: raw.told.ssthresh,
                asked: raw.told.asked != 0,
            })
        }
        kind::STATE => {
            let (raw, _) = part::<abi::StateEvent>(bytes, "a congestion state")?;
            What::State(StateEvent {
                from: state(raw.told.from)?,
                to: state(raw.told.to)?,
                cwnd: raw.told.cwnd,
                ssthresh: raw.told.ssthresh,
                in_flight: raw.told.in_flight,
                bytes_retransmitted: raw.told.bytes_retransmitted,
            })
        }
        kind::RESTART => {
            let (raw, _) = part::<abi::RestartEvent>(bytes, "a restart")?;
            What::Restart(RestartEvent {
                slow_starts: raw.told.slow_starts,
                cwnd: raw.told.cwnd,
                ssthresh: raw.told.ssthresh,
            })
        }
        kind::ACK => {
            let (raw, _) = part::<abi::AckEvent>(bytes, "an acknowledgement")?;
            What::Ack(AckEvent {
                ack: raw.told.ack,
                verdict: (raw.told.asked != 0).then_some(raw.told.verdict),
                flags: raw.told.flags,
                generation: raw.told.generation,
                receive_window: raw.told.receive_window,
            })
        }
        other => return Err(bad(format!("there is no event kind {other}"))),
    })
}

fn flow(algorithm: Algorithm, bytes: &[u8]) -> Result<FlowEvent, Error> {
    let (raw, state) = part::<abi::FlowEvent>(bytes, "a flow")?;
    Ok(FlowEvent {
        local: address(raw.told.local, raw.told.local_port),
        remote: address(raw.told.remote, raw.told.remote_port),
        again: raw.told.again != 0,
        cookie: (raw.told.cookie != 0).then_some(raw.told.cookie),
        netns_cookie: raw.told.netns_cookie,
        parameters: Parameters::from_words(algorithm, &raw.parameters)
            .ok_or_else(|| bad(format!("it lacks parameters of {}", algorithm.name())))?,
        profile: raw.header.profile.into(),
        generation: raw.told.generation,
        header: raw.header,
        state: of_size(algorithm, state)?,
    })
}

fn round(algorithm: Algorithm, bytes: &[u8]) -> Result<RoundEvent, Error> {
    let (raw, state) = part::<abi::RoundEvent>(bytes, "a round")?;
    Ok(RoundEvent { told: raw.told, state: of_size(algorithm, state)? })
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
    let found = CongestionState::ALL.get(number as usize).copied();
    found.ok_or_else(|| bad(format!("there is no congestion state {number}")))
}
