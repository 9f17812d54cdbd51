//! What the web part knows, from the broker alone, and what it asks of it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ErrorKind};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::guard::Policy;
use super::kept::Kept;
use super::metrics::Exits;
use crate::live::{Change, Cursor, History, Incident};
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::{
    self, BrokerMessage, Detail, Histories, LENGTH, Lost, Refusal, Request, Tuning,
};

/// Requests to the broker that wait.
const WAITING_MAX: usize = 64;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Browsers that get live events.
pub(super) const LIVE_MAX: usize = 64;
/// Buckets of a whole life and of the newest past; the broker has no more.
const BUCKETS_MAX: usize = 512;

/// A flow, and when it was last reported.
pub(super) struct FlowEntry {
    pub row: FlowSummary,
    pub version: u64,
}

/// A flow that a client looks at.
pub(super) struct Open {
    watchers: usize,
    acks: bool,
    pub version: u64,
    pub rounds_only: Option<String>,
    pub evidence: String,
    pub histories: Histories<History>,
    pub incidents: Vec<Incident>,
    /// JSON, and how often it has changed.
    pub shadow: Option<String>,
    pub shadow_version: u64,
}

/// How far a client knows a flow.
#[derive(Default)]
pub(super) struct ClientCursor {
    pub histories: Histories<Cursor>,
    pub incidents: usize,
    pub shadow_version: u64,
}

/// All that is known.
#[derive(Default)]
pub(super) struct HubState {
    /// Raised with every message.
    pub version: u64,
    pub flows: BTreeMap<u64, FlowEntry>,
    /// When flows were last reported.
    pub flows_version: u64,
    pub lost: Lost,
    pub attached: String,
    pub attached_version: u64,
    /// When the broker last read the status, by the wall clock in microseconds.
    pub status_read_us: Option<u64>,
    pub open: BTreeMap<u64, Open>,
    pub exits: Exits,
    waiting: BTreeMap<u64, oneshot::Sender<Result<String, Refusal>>>,
    number: u64,
}

struct Inner {
    state: Mutex<HubState>,
    changed: watch::Sender<u64>,
    requests: mpsc::Sender<Request>,
    asked: Mutex<Option<mpsc::Receiver<Request>>>,
}

/// Shared by all connections.
#[derive(Clone)]
pub(super) struct Hub {
    inner: Arc<Inner>,
    pub policy: Arc<Policy>,
    pub writable: bool,
    /// It shows nothing but what is opened in the page.
    pub offline: bool,
    /// Differs between two runs of the server.
    pub epoch: u64,
    pub live: Arc<Semaphore>,
    pub recordings: Arc<Kept<Hub>>,
}

impl Hub {
    pub fn new(policy: Policy, writable: bool) -> Self {
        let (requests, asked) = mpsc::channel(WAITING_MAX);
        let inner = Inner {
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            requests,
            asked: Mutex::new(Some(asked)),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            inner: Arc::new(inner),
            policy: Arc::new(policy),
            writable,
            offline: false,
            epoch: now.as_micros() as u64,
            live: Arc::new(Semaphore::new(LIVE_MAX)),
            recordings: Arc::default(),
        }
    }

    /// Of flows that are over, and all of which a client looks at: a broker that sends no more.
    pub fn from_messages(messages: impl IntoIterator<Item = BrokerMessage>) -> Self {
        let hub = Self::new(Policy::default(), false);
        for message in messages {
            if let BrokerMessage::Detail(detail) = &message {
                let mut open = Open::new();
                // Another reader is left.
                open.watchers = 1;
                hub.state().open.insert(detail.flow, open);
            }
            hub.receive(message);
        }
        hub
    }

    /// What is known now. Not to be held while waiting.
    pub fn state(&self) -> MutexGuard<'_, HubState> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with every message.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// Hears the broker and asks it, until it closes its socket.
    pub async fn follow_broker(&self, broker: StdUnixStream) -> anyhow::Result<()> {
        broker.set_nonblocking(true)?;
        let (mut from, mut to) = UnixStream::from_std(broker)?.into_split();
        let asked = self.inner.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut asked = asked.ok_or_else(|| anyhow!("there is one broker only"))?;
        // The server listens by now.
        to.write_all(&wire::encode(&Request::Leave(0))?).await?;
        let ask = async move {
            while let Some(request) = asked.recv().await {
                to.write_all(&wire::encode(&request)?).await?;
            }
            anyhow::Ok(())
        };
        let hear = async {
            let mut frame = Vec::new();
            loop {
                let mut head = [0; LENGTH];
                match from.read_exact(&mut head).await {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                    other => other.context("cannot read from the broker")?,
                };
                let length = wire::length(head, wire::MESSAGE_MAX)
                    .ok_or_else(|| anyhow!("the broker says too much"))?;
                frame.resize(length, 0);
                from.read_exact(&mut frame).await.context("cannot read from the broker")?;
                self.receive(wire::decode(&frame).context("the broker is not understood")?);
            }
        };
        tokio::select! {
            ended = ask => ended,
            ended = hear => ended,
        }
    }

    /// Takes over what the broker says.
    pub fn receive(&self, message: BrokerMessage) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        state.take(message);
        drop(state);
        self.inner.changed.send_replace(version);
    }

    /// Asks for a change of parameters.
    pub async fn tune(&self, token: String, tuning: Tuning) -> Result<String, Refusal> {
        let failed = |text: &str| Refusal::Failure(text.into());
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut state = self.state();
            if state.waiting.len() >= WAITING_MAX {
                return Err(failed("too many changes are waiting: try again"));
            }
            state.number += 1;
            let number = state.number;
            state.waiting.insert(number, sender);
            number
        };
        let request = Request::Tune { number, token, tuning };
        let answered = tokio::time::timeout(TIMEOUT, async {
            self.inner.requests.send(request).await.ok()?;
            answer.await.ok()
        });
        let answered = answered.await;
        self.state().waiting.remove(&number);
        match answered {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(failed("the server is ending")),
            Err(_) => {
                Err(failed("the change takes too long: it may still be made; look before trying again"))
            }
        }
    }

    /// Looks at a flow, and at every acknowledgment of it, until what is returned is dropped; `None`: there is no such
    /// flow.
    pub fn look_at(&self, flow: u64, acks: bool) -> Option<Look> {
        let mut state = self.state();
        if !state.flows.contains_key(&flow) {
            return None;
        }
        let open = state.open.entry(flow).or_insert_with(Open::new);
        open.watchers += 1;
        if open.watchers == 1 || (acks && !open.acks) {
            open.acks |= acks;
            self.ask(Request::Follow { flow, acks });
        }
        Some(Look { hub: self.clone(), flow })
    }

    fn ask(&self, request: Request) {
        // A broker that does not take 64 requests in a second is about to be given up.
        let _ = self.inner.requests.try_send(request);
    }
}

/// A reader looks at a flow.
pub(super) struct Look {
    hub: Hub,
    pub flow: u64,
}

impl Drop for Look {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        let Some(open) = state.open.get_mut(&self.flow) else { return };
        open.watchers -= 1;
        if open.watchers == 0 {
            state.open.remove(&self.flow);
            self.hub.ask(Request::Leave(self.flow));
        }
    }
}

impl Open {
    fn new() -> Self {
        let whole = History::whole(BUCKETS_MAX);
        let histories = Histories { beginning: whole.clone(), life: whole, recent: None };
        Self {
            watchers: 0,
            acks: false,
            version: 0,
            rounds_only: None,
            evidence: String::new(),
            histories,
            incidents: Vec::new(),
            shadow: None,
            shadow_version: 0,
        }
    }

    fn take(&mut self, detail: Detail, version: u64) {
        self.version = version;
        self.rounds_only = detail.rounds_only;
        self.evidence = detail.evidence;
        self.incidents.extend(detail.incidents);
        if detail.shadow.is_some() {
            self.shadow = detail.shadow;
            self.shadow_version += 1;
        }
        let Histories::<Change> { beginning, life, recent } = detail.histories;
        self.histories.beginning.apply(beginning);
        self.histories.life.apply(life);
        match recent {
            Some(change) => {
                self.histories.recent.get_or_insert_with(|| History::recent(BUCKETS_MAX)).apply(change);
            }
            None => self.histories.recent = None,
        }
    }
}

impl HubState {
    fn take(&mut self, message: BrokerMessage) {
        let version = self.version;
        match message {
            BrokerMessage::Flows { rows, gone, lost } => {
                for row in rows {
                    match self.flows.entry(row.flow) {
                        Entry::Occupied(mut known) => {
                            self.exits.observe(Some(&known.get().row), &row);
                            known.insert(FlowEntry { row, version });
                        }
                        Entry::Vacant(place) => {
                            self.exits.observe(None, &row);
                            place.insert(FlowEntry { row, version });
                        }
                    }
                }
                for flow in gone {
                    self.flows.remove(&flow);
                }
                self.lost = lost;
                self.flows_version = version;
            }
            BrokerMessage::Detail(detail) => {
                // A flow that was just left may still be reported.
                if let Some(open) = self.open.get_mut(&detail.flow) {
                    open.take(*detail, version);
                }
            }
            BrokerMessage::Attached(attached) => {
                self.attached = attached;
                self.attached_version = version;
            }
            BrokerMessage::StatusRead(at_us) => self.status_read_us = Some(at_us),
            BrokerMessage::Answer(number, answer) => {
                if let Some(waiting) = self.waiting.remove(&number) {
                    let _ = waiting.send(answer);
                }
            }
        }
    }
}
