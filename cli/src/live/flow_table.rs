//! All flows, from events alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onramp_loader::telemetry::{Event, Item, What};

use super::flow::Flow;

/// All flows, and how much could not be reported.
#[derive(Debug)]
pub(crate) struct FlowTable {
    pub flows: BTreeMap<u64, Flow>,
    /// Events that came too fast.
    pub lost: u64,
    /// Time in which nothing was reported.
    pub unobserved: Duration,
    /// Flows that have ended, by number.
    ended: BTreeSet<u64>,
    flows_max: usize,
    buckets_max: usize,
}

impl FlowTable {
    /// Of at most so many flows: beyond that the oldest go, those that have ended first. Each has its past in at most so
    /// many buckets.
    pub fn new(flows_max: usize, buckets_max: usize) -> Self {
        Self {
            flows: BTreeMap::new(),
            lost: 0,
            unobserved: Duration::ZERO,
            ended: BTreeSet::new(),
            flows_max,
            buckets_max,
        }
    }

    pub fn add(&mut self, item: &Item) {
        match item {
            Item::Lost(lost) => {
                self.lost = self.lost.saturating_add(lost.events);
                self.unobserved = self.unobserved.saturating_add(lost.unobserved);
            }
            Item::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) {
        if let What::Flow(flow) = &event.what {
            let room = self.buckets_max;
            self.flows.entry(event.flow).or_insert_with(|| Flow::new(event, flow, room)).report(flow);
            self.forget();
        } else if let Some(flow) = self.flows.get_mut(&event.flow) {
            flow.event(event);
            if flow.ended {
                self.ended.insert(event.flow);
            }
        }
    }

    fn forget(&mut self) {
        if self.flows.len() > self.flows_max
            && let Some(id) = self.ended.first().or_else(|| self.flows.keys().next()).copied()
        {
            self.remove(id);
        }
    }

    /// What flows without events do by now (monotonic clock).
    pub fn rest(&mut self, now_us: u64) {
        for flow in self.flows.values_mut() {
            flow.rest(now_us);
        }
    }

    /// Forgets a flow, and hands it out.
    pub fn remove(&mut self, id: u64) -> Option<Flow> {
        self.ended.remove(&id);
        self.flows.remove(&id)
    }

    /// Forgets the flows that have ended.
    pub fn clear_ended(&mut self) {
        while let Some(id) = self.ended.pop_first() {
            self.flows.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::ExitReason;
    use onramp_loader::abi::{ExitRecord, FlowHeader};
    use onramp_loader::algorithm::{self, Ack, RoundPayload};
    use onramp_loader::telemetry::{
        AckPayload, CongestionState, ExitEvent, FlowEvent, RoundEvent, StateEvent, StatePayload,
    };

    use super::*;

    fn observe(model: &mut FlowTable, what: What) {
        let algorithm = algorithm::find("plain").unwrap();
        let (time_ns, flow, sequence, netns) = (1_000_000_000, 7, 0, 1);
        model.add(&Item::Event(Event { time_ns, flow, sequence, netns, algorithm, what }));
    }

    /// With a flow that begins, as the kernel reports it.
    fn begun() -> FlowTable {
        let mut model = FlowTable::new(1, 16);
        let payload = FlowEvent {
            local: ([192, 0, 2, 1], 1).into(),
            remote: ([192, 0, 2, 2], 2).into(),
            again: false,
            cookie: None,
            netns_cookie: 1,
            parameters: algorithm::find("plain").unwrap().parameters(),
            profile: 0,
            generation: 0,
            header: FlowHeader::default(),
            state: Vec::new(),
        };
        observe(&mut model, What::Flow(Box::new(payload)));
        model
    }

    fn acknowledged(ack: Ack, receive_window: u32) -> What {
        What::Ack(AckPayload { ack: Ack { receive_window, ..ack }, ..AckPayload::default() })
    }

    #[test]
    fn a_flow_began_a_round_trip_before_its_first_acknowledgment() {
        let mut model = begun();
        let ack = Ack { now_us: 1_000_000, rtt_us: 600_000, smoothed_rtt_us: 600_000, ..Ack::default() };
        observe(&mut model, acknowledged(ack, 0));
        observe(&mut model, acknowledged(ack, 0));
        let exit = ExitRecord { at_us: 600_000, min_rtt_us: 600_000, ..ExitRecord::default() };
        let reason = ExitReason::Algorithm;
        observe(&mut model, What::Exit(ExitEvent { reason, record: exit, observed: None }));
        let flow = &model.flows[&7];
        assert_eq!((flow.start_us, flow.exit_us()), (400_000, Some(1_000_000)));
    }

    #[test]
    fn a_download_that_is_over_and_not_closed_is_idle() {
        let mut model = begun();
        let of = |model: &FlowTable| (model.flows[&7].state(), model.flows[&7].idle);
        model.rest(9_000_000);
        assert_eq!(of(&model), ("no slow start".into(), false), "nothing was sent yet");
        let (loss, open) = (CongestionState::Loss, CongestionState::Open);
        let state = |from, to| {
            let payload = StatePayload { cwnd: 1, ssthresh: 7, ..StatePayload::default() };
            What::State(StateEvent { from, to, payload })
        };
        let round = |in_flight| {
            let payload =
                RoundPayload { duration_us: 1, mss: 1_000, in_flight, cwnd: 1, ..RoundPayload::default() };
            What::Round(Box::new(RoundEvent { payload, state: Vec::new() }))
        };
        let exit =
            ExitRecord { at_us: 600_000, min_rtt_us: 600_000, window_after: 5, ..ExitRecord::default() };
        observe(&mut model, What::Exit(ExitEvent { reason: ExitReason::Loss, record: exit, observed: None }));
        // Events are of the first second.
        for (what, idle) in [
            (round(3), false),
            // A timeout: all that was sent is taken for lost.
            (state(open, loss), false),
            (round(0), true),
            (state(loss, open), true),
            (round(1), false),
        ] {
            observe(&mut model, what);
            model.rest(1_999_999);
            assert_eq!(of(&model).0, "loss", "a request may follow at once");
            model.flows.get_mut(&7).unwrap().changed = false;
            model.rest(2_000_000);
            assert_eq!(of(&model), (if idle { "idle" } else { "loss" }.into(), idle));
            assert_eq!(model.flows[&7].changed, idle, "it is reported again");
        }
    }

    #[test]
    fn a_rounds_pacing_rate_is_shown_until_every_acknowledgement_has_one() {
        let mut model = begun();
        let payload =
            RoundPayload { pacing_rate: 1_000, duration_us: 1, mss: 1_000, ..RoundPayload::default() };
        let round = What::Round(Box::new(RoundEvent { payload, state: Vec::new() }));
        observe(&mut model, round.clone());
        assert_eq!(model.flows[&7].now.pacing_bps, Some(8_000));
        observe(&mut model, acknowledged(Ack { pacing_rate: 2_000, mss: 1_000, ..Ack::default() }, 0));
        observe(&mut model, round);
        assert_eq!(model.flows[&7].now.pacing_bps, Some(16_000), "rounds are read ahead of acknowledgements");
    }

    #[test]
    fn the_receive_window_ends_so_many_bytes_behind_what_is_acknowledged() {
        let mut model = begun();
        assert_eq!(model.flows[&7].now.window_end_bytes, None);
        let round = |receive_window| {
            let payload = RoundPayload {
                bytes: 20_000,
                duration_us: 1,
                mss: 1_000,
                receive_window,
                ..RoundPayload::default()
            };
            What::Round(Box::new(RoundEvent { payload, state: Vec::new() }))
        };
        observe(&mut model, round(65_000));
        assert_eq!(model.flows[&7].now.window_end_bytes, Some(85_000));
        observe(&mut model, round(0));
        assert_eq!(model.flows[&7].now.window_end_bytes, None, "none, or not known");
        let ack = Ack { bytes_acked: 50_000, mss: 1_000, ..Ack::default() };
        observe(&mut model, acknowledged(ack, 30_000));
        let flow = &model.flows[&7];
        assert_eq!(flow.now.window_end_bytes, Some(flow.now.acknowledged_bytes + 30_000));
        let end = flow.now.window_end_bytes;
        observe(&mut model, round(0));
        assert_eq!(
            model.flows[&7].now.window_end_bytes, end,
            "rounds that are made of acknowledgments have none"
        );
    }
}
