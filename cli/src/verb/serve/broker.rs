//! The part that reads and tunes by BPF, and reports to the web part. It never waits for other commands: telemetry is drained
//! and signals are answered while another process holds the lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use onramp_loader::cost::Meter;
use onramp_loader::telemetry::{Item, Lost};
use onramp_loader::{Changes, Error, Kind, WaitWhile};

use super::channel::Channel;
use super::evidence::{Evidence, Shadow};
use super::others::Watch;
use super::row::FlowSummary;
use super::status::Status;
use super::token::Token;
use super::wire::{self, BrokerMessage, Detail, Histories, Refusal, Request, Tuning};
use crate::consumer::{Signals, Wanted};
use crate::filter::Filter;
use crate::live::{Cursor, FlowTable, Shadows, Source};
use crate::output::Output;
use crate::verb::select::RulesSummary;
use crate::verb::tune;

/// Flows that are kept: beyond that the oldest go, those that have ended first.
const FLOWS_MAX: usize = 10_000;
/// Buckets of a flow's beginning, and of its life.
const BUCKETS_MAX: usize = 160;
/// Flows of which every ACK is reported at once. Each takes one of the eight places for consumers of telemetry.
const FOLLOWED_MAX: usize = 3;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks between two lists of changed flows, and between two of what is attached.
const LOOKS_PER_LIST: u64 = 5;
const LOOKS_PER_STATUS: u64 = 10;
/// Rules may be many.
const LOOKS_PER_SELECTION: u64 = 100;
/// Rules that are shown.
const RULES_MAX: usize = 100;
/// Flows that are followed with or without every acknowledgment, and changes that wait for the lock.
const FOLLOWERS_MAX: usize = 256;
const TUNINGS_MAX: usize = 64;
/// How long a change waits for the lock; the web part waits for ten seconds.
const TUNING_TIMEOUT: Duration = Duration::from_secs(8);
/// How long the web part may take to begin.
const BEGINNING: Duration = Duration::from_secs(30);

/// How far the web part knows a flow that it follows.
#[derive(Default)]
struct Followed {
    every_ack: bool,
    /// It is asked for, and another command has the lock.
    waits: bool,
    rounds_only: Option<String>,
    known: Histories<Cursor>,
    /// How many things that happened it knows.
    incidents: usize,
    /// JSON: what other algorithms would have done, as far as it knows.
    shadow: Option<String>,
    /// Reported since it ended.
    end_reported: bool,
}

/// What the web part knows of all flows.
#[derive(Default)]
pub(super) struct Reporter {
    mask: bool,
    /// By number.
    flows: Vec<u64>,
    lost: wire::Lost,
}

impl Reporter {
    /// What it does not know yet, and then does.
    pub fn message(&mut self, model: &mut FlowTable) -> Option<BrokerMessage> {
        // Half a second may change all of them.
        let mut rows = Vec::with_capacity(model.flows.len());
        let mut gone = Vec::new();
        // Both in the order of their numbers, so that one pass finds who is gone.
        let there = Vec::with_capacity(model.flows.len());
        let mut known = std::mem::replace(&mut self.flows, there).into_iter().peekable();
        for (&id, flow) in &mut model.flows {
            gone.extend(std::iter::from_fn(|| known.next_if(|known| *known < id)));
            known.next_if_eq(&id);
            self.flows.push(id);
            if std::mem::take(&mut flow.changed) {
                rows.push(FlowSummary::new(flow, self.mask));
            }
        }
        gone.extend(known);
        let lost = wire::Lost { lost_events: model.lost, unobserved_us: model.unobserved.as_micros() as u64 };
        if rows.is_empty() && gone.is_empty() && lost == self.lost {
            return None;
        }
        self.lost = lost;
        Some(BrokerMessage::Flows { rows, gone, lost })
    }
}

/// A change of parameters that another command has held up so far.
struct Waiting {
    number: u64,
    token: String,
    tuning: Tuning,
    until: Instant,
}

pub(super) struct Broker<'a> {
    /// `None`: nothing is live.
    source: Option<Source>,
    /// Since when the kernel has written nothing, having taken this consumer for dead.
    unkept: Option<Instant>,
    shadows: Option<Shadows>,
    model: FlowTable,
    channel: Channel<'a>,
    token: Option<Token>,
    reporter: Reporter,
    followed: BTreeMap<u64, Followed>,
    waiting: VecDeque<Waiting>,
    attached: String,
    status: Status,
    selection: Option<RulesSummary>,
    /// What acknowledgments cost, if it is measured.
    pub meter: Option<Meter>,
    /// Flows of other controls; `None`: nothing is live.
    pub others: Option<Watch>,
}

impl<'a> Broker<'a> {
    pub fn new(
        source: Option<Source>,
        shadows: Option<Shadows>,
        channel: Channel<'a>,
        token: Option<Token>,
        mask: bool,
    ) -> Self {
        Self {
            source,
            unkept: None,
            shadows,
            model: FlowTable::new(FLOWS_MAX, BUCKETS_MAX),
            channel,
            token,
            reporter: Reporter { mask, ..Reporter::default() },
            followed: BTreeMap::new(),
            waiting: VecDeque::new(),
            attached: String::new(),
            status: Status::default(),
            selection: None,
            meter: None,
            others: None,
        }
    }

    /// Waits until the web part is ready, which it shows by an empty request, or a signal comes.
    pub fn until_ready(&mut self, signals: &Signals) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            self.channel.wait(LOOK);
            match self.channel.requests()?.as_slice() {
                [Request::Leave(0)] => return Ok(()),
                [] if signals.came() => return Ok(()),
                [] if begin.elapsed() < BEGINNING => {}
                [] => return Err(anyhow!("the web part does not begin")),
                other => return Err(anyhow!("the web part begins with {} requests", other.len())),
            }
        }
    }

    /// Until a signal comes.
    pub fn run(&mut self, signals: &Signals) -> anyhow::Result<()> {
        for look in 0_u64.. {
            let next = Instant::now() + LOOK;
            let looked = self.look(look);
            // What it interrupted is no failure.
            if signals.came() {
                break;
            }
            looked?;
            self.channel.wait(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn look(&mut self, look: u64) -> anyhow::Result<()> {
        for request in self.channel.requests()? {
            self.answer(request)?;
        }
        self.tune_waiting()?;
        self.drain(look.is_multiple_of(LOOKS_PER_STATUS))?;
        if look.is_multiple_of(LOOKS_PER_LIST) {
            self.list()?;
        }
        if self.source.is_some() && look.is_multiple_of(LOOKS_PER_SELECTION) {
            self.selection = RulesSummary::read(RULES_MAX);
        }
        if look.is_multiple_of(LOOKS_PER_STATUS) {
            self.others.iter_mut().for_each(Watch::look);
        }
        if look.is_multiple_of(LOOKS_PER_STATUS) || self.status.is_due() {
            self.status()?;
        }
        self.details(look.is_multiple_of(LOOKS_PER_STATUS))
    }

    /// Takes what telemetry has. It begins anew where the kernel has taken this consumer for dead.
    fn drain(&mut self, again: bool) -> anyhow::Result<()> {
        if let Some(source) = &mut self.source {
            match source.drain(&mut self.model) {
                Err(Error::LeaseLost) => {
                    let ended = *self.unkept.get_or_insert_with(Instant::now);
                    if again && let Ok(opened) = open(&|_| false) {
                        *source = opened;
                        let lost = Lost { events: 0, unobserved: ended.elapsed() };
                        self.model.add(&Item::Lost(lost));
                        self.unkept = None;
                        for followed in self.followed.values_mut() {
                            followed.waits |= std::mem::take(&mut followed.every_ack);
                        }
                        tracing::warn!("telemetry had ended, and has begun again");
                    }
                }
                drained => drained?,
            }
        }
        if let Some(shadows) = &mut self.shadows {
            shadows.drain();
        }
        // What could not be followed under the lock.
        let waiting = self.followed.iter().filter(|(_, one)| one.waits);
        for flow in waiting.map(|(flow, _)| *flow).collect::<Vec<_>>() {
            self.follow(flow, true);
        }
        Ok(())
    }

    fn list(&mut self) -> anyhow::Result<()> {
        self.reporter.message(&mut self.model).map_or(Ok(()), |message| self.channel.say(&message))
    }

    fn status(&mut self) -> anyhow::Result<()> {
        if self.source.is_some()
            && let Some(at_us) = self.status.read()
        {
            self.channel.say(&BrokerMessage::StatusRead(at_us))?;
        }
        let text = self.status.document(
            self.selection.as_ref(),
            self.meter.as_ref(),
            self.others.as_ref().and_then(|watch| watch.found.as_ref()),
        )?;
        if text != self.attached {
            self.attached.clone_from(&text);
            self.channel.say(&BrokerMessage::Attached(text))?;
        }
        Ok(())
    }

    /// What is new of the flows that are followed, and from time to time what others would have done.
    fn details(&mut self, others: bool) -> anyhow::Result<()> {
        for (id, followed) in &mut self.followed {
            let Some(flow) = self.model.flows.get(id) else { continue };
            if std::mem::replace(&mut followed.end_reported, flow.ended) {
                continue;
            }
            let shadow = match &self.shadows {
                Some(shadows) if others || flow.ended => {
                    let findings = shadows.findings(flow);
                    let text = findings.map(|all| Output::document_text(&Shadow::new(flow.given(), &all)));
                    text.transpose()
                        .context("cannot encode")?
                        .filter(|text| followed.shadow.as_ref() != Some(text))
                }
                _ => None,
            };
            if shadow.is_some() {
                followed.shadow.clone_from(&shadow);
            }
            let detail = Detail {
                flow: *id,
                rounds_only: followed.rounds_only.clone(),
                evidence: Output::document_text(&Evidence::new(flow)).context("cannot encode")?,
                histories: followed.known.advance(&flow.beginning, &flow.life, flow.recent.as_ref()),
                incidents: flow.incidents.get(followed.incidents..).unwrap_or_default().to_vec(),
                shadow,
            };
            followed.incidents = flow.incidents.len();
            self.channel.say(&BrokerMessage::Detail(Box::new(detail)))?;
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> anyhow::Result<()> {
        match request {
            Request::Follow { flow, acks } => self.follow(flow, acks),
            Request::Leave(id) => {
                if let Some(source) = &mut self.source {
                    source.leave(id);
                }
                self.followed.remove(&id);
                if let Some(flow) = self.model.flows.get_mut(&id) {
                    flow.close();
                }
            }
            Request::Tune { number, token, tuning } => {
                let until = Instant::now() + TUNING_TIMEOUT;
                if self.waiting.len() < TUNINGS_MAX {
                    self.waiting.push_back(Waiting { number, token, tuning, until });
                } else {
                    let full = Refusal::Failure("too many changes are waiting: try again".into());
                    self.channel.say(&BrokerMessage::Answer(number, Err(full)))?;
                }
            }
        }
        Ok(())
    }

    /// Makes the changes that wait, in their order, unless another command holds the lock.
    fn tune_waiting(&mut self) -> anyhow::Result<()> {
        while let Some(Waiting { number, token, tuning, until }) = self.waiting.front() {
            let answer = match self.tune(token, tuning) {
                Err(Held::Locked(_)) if Instant::now() < *until => return Ok(()),
                Err(Held::Locked(refusal) | Held::Refused(refusal)) => Err(refusal),
                Ok(answer) => Ok(answer),
            };
            let number = *number;
            self.waiting.pop_front();
            self.channel.say(&BrokerMessage::Answer(number, answer))?;
            // Shown at once.
            self.status()?;
        }
        Ok(())
    }

    fn follow(&mut self, id: u64, acks: bool) {
        let Some(flow) = self.model.flows.get_mut(&id) else { return };
        if self.followed.len() >= FOLLOWERS_MAX && !self.followed.contains_key(&id) {
            return;
        }
        let others = self.followed.values().filter(|other| other.every_ack).count();
        let followed = self.followed.entry(id).or_default();
        if !acks || followed.every_ack {
            return;
        }
        let mut waits = false;
        let opened = match &mut self.source {
            _ if flow.ended => Err("it has ended".to_owned()),
            _ if others == FOLLOWED_MAX => Err(format!("{FOLLOWED_MAX} other flows are open")),
            Some(source) => source.follow(flow, &|_| false).map_err(|error| {
                waits = matches!(error, Error::Locked { .. });
                error.to_string()
            }),
            None => Err("nothing is live".to_owned()),
        };
        followed.waits = waits;
        followed.every_ack = opened.is_ok();
        followed.rounds_only = opened.err();
        if followed.every_ack {
            flow.open();
        }
    }

    fn tune(&self, given: &str, tuning: &Tuning) -> Result<String, Held> {
        let token = self.token.as_ref().ok_or(Refusal::ReadOnly)?;
        if !token.is(given) {
            return Err(Refusal::Token.into());
        }
        let Tuning { algorithm, profile, settings, dry_run } = tuning;
        if settings.is_empty() {
            return Err(Refusal::Usage("give \"settings\": [\"name=value\", ...]".into()).into());
        }
        let found = onramp_loader::find(algorithm)?;
        let changes = Changes { settings, lock_timeout: Some(Duration::ZERO), ..Changes::default() };
        let tuned = onramp_loader::tune(found, profile.as_deref(), &changes, *dry_run)?;
        let report = tune::report(found.name(), profile.as_deref(), *dry_run, &tuned);
        Ok(Output::document_text(&report).map_err(|error| Refusal::Failure(error.to_string()))?)
    }
}

/// Why a change is not made.
enum Held {
    /// Another command has the lock now.
    Locked(Refusal),
    Refused(Refusal),
}

impl From<Refusal> for Held {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Held {
    fn from(error: Error) -> Self {
        let refusal = match error.kind() {
            Kind::Usage => Refusal::Usage(error.to_string()),
            _ => Refusal::Failure(error.to_string()),
        };
        if matches!(error, Error::Locked { .. }) { Self::Locked(refusal) } else { Self::Refused(refusal) }
    }
}

/// Becomes the consumer of telemetry that the broker is.
pub(super) fn open(wait: WaitWhile<'_>) -> Result<Source, Error> {
    Source::open("serve", Wanted::new(Filter::default(), 1), wait)
}

#[cfg(test)]
mod tests {
    use onramp_loader::abi::FlowHeader;
    use onramp_loader::algorithm::{OUTCOME_MAX, find};
    use onramp_loader::telemetry::{EndEvent, EndPayload, Event, FlowEvent, Item, What};

    use super::*;

    fn event(flow: u64, what: What) -> Item {
        let algorithm = find("plain").unwrap();
        Item::Event(Event { time_ns: 1_000_000_000, flow, sequence: 0, netns: 1, algorithm, what })
    }

    fn begin(flow: u64) -> Item {
        let begin = FlowEvent {
            local: ([192, 0, 2, 1], 1).into(),
            remote: ([192, 0, 2, 2], 2).into(),
            again: false,
            cookie: None,
            netns_cookie: 1,
            parameters: find("plain").unwrap().parameters(),
            profile: 0,
            generation: 0,
            header: FlowHeader::default(),
            state: Vec::new(),
        };
        event(flow, What::Flow(Box::new(begin)))
    }

    fn end(flow: u64) -> Item {
        let end = EndEvent {
            payload: EndPayload {
                bytes_acked: 1,
                bytes_sent: 1,
                cwnd: 10,
                ssthresh: 0,
                ..EndPayload::default()
            },
            header: FlowHeader::default(),
            outcomes: [0; OUTCOME_MAX],
        };
        event(flow, What::End(Box::new(end)))
    }

    #[test]
    fn a_flow_is_reported_whenever_it_has_changed_and_once_that_it_is_gone() {
        let (mut model, mut reporter) = (FlowTable::new(3, 16), Reporter::default());
        let mut message = |items: &[Item]| {
            items.iter().for_each(|item| model.add(item));
            match reporter.message(&mut model) {
                Some(BrokerMessage::Flows { rows, gone, .. }) => {
                    (rows.iter().map(|row| row.flow).collect::<Vec<_>>(), gone)
                }
                _ => Default::default(),
            }
        };
        assert_eq!(message(&[begin(5), begin(3), begin(9)]), (vec![3, 5, 9], vec![]));
        assert_eq!(message(&[]), (vec![], vec![]));
        assert_eq!(message(&[begin(5)]), (vec![5], vec![]));
        // There is room for three: the oldest go, those that have ended first.
        assert_eq!(message(&[begin(7), begin(8)]), (vec![7, 8], vec![3, 5]));
        assert_eq!(message(&[end(9)]), (vec![9], vec![]));
        assert_eq!(message(&[begin(2)]), (vec![2], vec![9]));
        assert_eq!(message(&[]), (vec![], vec![]));
    }
}
