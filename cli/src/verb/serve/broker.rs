//! The part that reads and tunes by BPF, and tells the web part.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use onramp_loader::cost::Meter;
use onramp_loader::{Changes, Kind};

use super::evidence::{Evidence, Shadow};
use super::row::Row;
use super::token::Token;
use super::wire::{Detail, Histories, LENGTH, Lost, News, REQUEST_MAX, Refusal, Request, Tuning};
use super::wire::{decode, encode_in, length};
use crate::consumer::Signals;
use crate::live::{Cursor, Model, Shadows, Source};
use crate::output::Output;
use crate::verb::select::Glimpse;
use crate::verb::{status, tune};

/// Flows that are kept: beyond that the oldest go, those that have ended first.
const FLOWS_MAX: usize = 10_000;
/// Buckets of a flow's beginning, and of its life.
const BUCKETS_MAX: usize = 160;
/// Flows whose every acknowledgement is told at once. Each takes one of the eight places for consumers of telemetry.
const FOLLOWED_MAX: usize = 3;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks between two lists of changed flows, and between two of what is attached.
const LOOKS_PER_LIST: u64 = 5;
const LOOKS_PER_STATUS: u64 = 10;
/// Rules may be many.
const LOOKS_PER_SELECTION: u64 = 100;
/// Rules that are told.
const RULES_MAX: usize = 100;
/// How long the web part may not read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The socket to the web part.
pub(super) struct Channel {
    stream: UnixStream,
    heard: Vec<u8>,
    /// What was said last.
    frame: Vec<u8>,
}

impl Channel {
    pub fn new(stream: UnixStream) -> anyhow::Result<Self> {
        stream.set_write_timeout(Some(PATIENCE)).context("cannot set a timeout")?;
        Ok(Self { stream, heard: Vec::new(), frame: Vec::new() })
    }

    pub fn say(&mut self, news: &News) -> anyhow::Result<()> {
        self.frame = encode_in(news, std::mem::take(&mut self.frame)).context("cannot encode")?;
        self.stream.write_all(&self.frame).context("the web part does not take what it is told")
    }

    /// Waits at most so long for something to be said.
    fn wait(&self, time: Duration) {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        // Interrupted or failed: one look too many.
        let _ = poll(&mut fds, PollTimeout::from(time.as_millis() as u16));
    }

    /// What has been said whole.
    fn requests(&mut self) -> anyhow::Result<Vec<Request>> {
        let mut requests = Vec::new();
        let mut buffer = [0; 4096];
        while self.readable() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(anyhow!("it has closed its socket")),
                Ok(bytes) => self.heard.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot hear the web part"),
            }
            while let Some((head, rest)) = self.heard.split_first_chunk::<LENGTH>() {
                let length = length(*head, REQUEST_MAX).ok_or_else(|| anyhow!("it asks for too much"))?;
                let Some(frame) = rest.get(..length) else { break };
                requests.push(decode(frame).context("it asks for what nobody understands")?);
                self.heard.drain(..LENGTH + length);
            }
        }
        Ok(requests)
    }

    fn readable(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1..))
    }
}

/// How far the web part knows a flow that it follows.
#[derive(Default)]
struct Followed {
    every_ack: bool,
    rounds_only: Option<String>,
    known: Histories<Cursor>,
    /// How many things that happened it knows.
    happened: usize,
    /// JSON: what other algorithms would have done, as far as it knows.
    shadow: Option<String>,
    /// Told since it ended.
    end_told: bool,
}

/// What the web part knows of all flows.
#[derive(Default)]
pub(super) struct Told {
    mask: bool,
    /// By number.
    flows: Vec<u64>,
    lost: Lost,
}

impl Told {
    /// What it does not know yet, and then does.
    pub fn news(&mut self, model: &mut Model) -> Option<News> {
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
                rows.push(Row::of(flow, self.mask));
            }
        }
        gone.extend(known);
        let lost = Lost { lost_events: model.lost, unobserved_us: model.unobserved.as_micros() as u64 };
        if rows.is_empty() && gone.is_empty() && lost == self.lost {
            return None;
        }
        self.lost = lost;
        Some(News::Flows { rows, gone, lost })
    }
}

pub(super) struct Broker {
    /// `None`: nothing is live.
    source: Option<Source>,
    shadows: Option<Shadows>,
    model: Model,
    channel: Channel,
    token: Option<Token>,
    told: Told,
    followed: BTreeMap<u64, Followed>,
    attached: String,
    selection: Option<Glimpse>,
    /// What acknowledgements cost, if it is measured.
    pub meter: Option<Meter>,
}

impl Broker {
    pub fn new(
        source: Option<Source>,
        shadows: Option<Shadows>,
        channel: Channel,
        token: Option<Token>,
        mask: bool,
    ) -> Self {
        Self {
            source,
            shadows,
            model: Model::new(FLOWS_MAX, BUCKETS_MAX),
            channel,
            token,
            told: Told { mask, ..Told::default() },
            followed: BTreeMap::new(),
            attached: String::new(),
            selection: None,
            meter: None,
        }
    }

    /// Waits until the web part listens, which it says by asking for nothing.
    pub fn until_ready(&mut self) -> anyhow::Result<()> {
        self.channel.wait(PATIENCE);
        match self.channel.requests()?.as_slice() {
            [Request::Leave(0)] => Ok(()),
            [] => Err(anyhow!("the web part does not begin")),
            other => Err(anyhow!("the web part begins with {} requests", other.len())),
        }
    }

    /// Until a signal comes.
    pub fn run(&mut self, signals: &Signals) -> anyhow::Result<()> {
        for look in 0_u64.. {
            let next = Instant::now() + LOOK;
            for request in self.channel.requests()? {
                self.answer(request)?;
            }
            if let Some(source) = &mut self.source {
                source.drain(&mut self.model)?;
            }
            if let Some(shadows) = &mut self.shadows {
                shadows.drain();
            }
            if look % LOOKS_PER_LIST == 0 {
                self.list()?;
            }
            if self.source.is_some() && look % LOOKS_PER_SELECTION == 0 {
                self.selection = Glimpse::read(RULES_MAX);
            }
            if look % LOOKS_PER_STATUS == 0 {
                self.status()?;
            }
            self.details(look % LOOKS_PER_STATUS == 0)?;
            if signals.came() {
                break;
            }
            self.channel.wait(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn list(&mut self) -> anyhow::Result<()> {
        self.told.news(&mut self.model).map_or(Ok(()), |news| self.channel.say(&news))
    }

    fn status(&mut self) -> anyhow::Result<()> {
        let brief = match self.source {
            Some(_) => status::Brief::read(self.selection.as_ref(), self.meter.as_ref())?,
            None => status::Brief::default(),
        };
        let text = Output::document_text(&brief).context("cannot encode")?;
        if text != self.attached {
            self.attached.clone_from(&text);
            self.channel.say(&News::Attached(text))?;
        }
        Ok(())
    }

    /// What is new of the flows that are followed, and from time to time what others would have done.
    fn details(&mut self, others: bool) -> anyhow::Result<()> {
        for (id, followed) in &mut self.followed {
            let Some(flow) = self.model.flows.get(id) else { continue };
            if std::mem::replace(&mut followed.end_told, flow.ended) {
                continue;
            }
            let shadow = match &self.shadows {
                Some(shadows) if others || flow.ended => {
                    let findings = shadows.of(flow);
                    let text = findings.map(|all| Output::document_text(&Shadow::of(flow.given(), &all)));
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
                evidence: Output::document_text(&Evidence::of(flow)).context("cannot encode")?,
                histories: followed.known.advance(&flow.beginning, &flow.life, flow.recent.as_ref()),
                happened: flow.happened.get(followed.happened..).unwrap_or_default().to_vec(),
                shadow,
            };
            followed.happened = flow.happened.len();
            self.channel.say(&News::Detail(Box::new(detail)))?;
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
                let answer = self.tune(&token, &tuning);
                self.channel.say(&News::Answer(number, answer))?;
                // Shown at once.
                self.status()?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, id: u64, acks: bool) {
        let Some(flow) = self.model.flows.get_mut(&id) else { return };
        let others = self.followed.values().filter(|other| other.every_ack).count();
        let followed = self.followed.entry(id).or_default();
        if !acks || followed.every_ack {
            return;
        }
        let opened = match &mut self.source {
            _ if flow.ended => Err("it has ended".to_owned()),
            _ if others == FOLLOWED_MAX => Err(format!("{FOLLOWED_MAX} other flows are open")),
            Some(source) => source.follow(flow).map_err(|error| error.to_string()),
            None => Err("nothing is live".to_owned()),
        };
        followed.every_ack = opened.is_ok();
        followed.rounds_only = opened.err();
        if followed.every_ack {
            flow.open();
        }
    }

    fn tune(&self, given: &str, tuning: &Tuning) -> Result<String, Refusal> {
        let token = self.token.as_ref().ok_or(Refusal::ReadOnly)?;
        if !token.is(given) {
            return Err(Refusal::Token);
        }
        let Tuning { algorithm, profile, settings, dry_run } = tuning;
        if settings.is_empty() {
            return Err(Refusal::Usage("give \"settings\": [\"name=value\", ...]".into()));
        }
        let refused = |error: onramp_loader::Error| match error.kind() {
            Kind::Usage => Refusal::Usage(error.to_string()),
            _ => Refusal::Failure(error.to_string()),
        };
        let found = onramp_loader::find(algorithm).map_err(refused)?;
        let changes = Changes { settings, telemetry_max: None };
        let tuned = onramp_loader::tune(found, profile.as_deref(), &changes, *dry_run).map_err(refused)?;
        let report = tune::report(found.name(), profile.as_deref(), *dry_run, &tuned);
        Output::document_text(&report).map_err(|error| Refusal::Failure(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::abi::FlowHeader;
    use onramp_loader::algorithm::{OUTCOME_MAX, find};
    use onramp_loader::telemetry::{EndEvent, Event, FlowEvent, Item, What};

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
            bytes_acked: 1,
            bytes_sent: 1,
            bytes_retransmitted: 0,
            smoothed_rtt_us: 0,
            min_rtt_us: 0,
            cwnd: 10,
            ssthresh: 0,
            header: FlowHeader::default(),
            outcomes: [0; OUTCOME_MAX],
        };
        event(flow, What::End(Box::new(end)))
    }

    #[test]
    fn a_flow_is_told_whenever_it_has_changed_and_once_that_it_is_gone() {
        let (mut model, mut told) = (Model::new(3, 16), Told::default());
        let mut news = |items: &[Item]| {
            items.iter().for_each(|item| model.add(item));
            match told.news(&mut model) {
                Some(News::Flows { rows, gone, .. }) => {
                    (rows.iter().map(|row| row.flow).collect::<Vec<_>>(), gone)
                }
                _ => Default::default(),
            }
        };
        assert_eq!(news(&[begin(5), begin(3), begin(9)]), (vec![3, 5, 9], vec![]));
        assert_eq!(news(&[]), (vec![], vec![]));
        assert_eq!(news(&[begin(5)]), (vec![5], vec![]));
        // There is room for three: the oldest go, those that have ended first.
        assert_eq!(news(&[begin(7), begin(8)]), (vec![7, 8], vec![3, 5]));
        assert_eq!(news(&[end(9)]), (vec![9], vec![]));
        assert_eq!(news(&[begin(2)]), (vec![2], vec![9]));
        assert_eq!(news(&[]), (vec![], vec![]));
    }
}
