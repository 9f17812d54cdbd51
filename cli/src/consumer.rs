//! What verbs that follow telemetry share: levels on the command line, signals, and which flows are wanted.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::ValueEnum;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use onramp_loader::telemetry::{Event, Level, What};

use crate::filter::Filter;

/// Flows that are remembered; beyond that the oldest are forgotten, and what still happens to them is not told.
const FLOWS_MAX: usize = 1 << 20;

/// A level of telemetry.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LevelName {
    /// Flows and exits
    Exit,
    /// Also rounds, losses, congestion states
    Round,
    /// Also every acknowledgement
    Ack,
}

impl LevelName {
    pub fn level(self) -> Level {
        match self {
            Self::Exit => Level::Exit,
            Self::Round => Level::Round,
            Self::Ack => Level::Ack,
        }
    }
}

/// SIGINT, SIGTERM and SIGHUP, waiting to be asked about.
pub(crate) struct Signals(SignalFd);

impl Signals {
    /// From here on they do not end the process, nor threads that are started later.
    pub fn take() -> anyhow::Result<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().context("cannot hold back signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&set, flags).context("cannot wait for signals")?))
    }

    pub fn came(&self) -> bool {
        matches!(self.0.read_signal(), Ok(Some(_)))
    }
}

/// Which flows pass a filter. The kernel checks most of it; a prefix of the local address and repeated conditions are
/// checked here.
pub(crate) struct Wanted {
    filter: Filter,
    flows: BTreeMap<u64, bool>,
}

impl Wanted {
    pub fn new(filter: Filter) -> Self {
        Self { filter, flows: BTreeMap::new() }
    }

    /// Whether the event's flow is wanted. One whose `Flow` event was lost is not known to be.
    pub fn has(&mut self, event: &Event) -> bool {
        match &event.what {
            What::Flow(flow) => {
                let wanted = self.filter.matches(flow.local, flow.remote);
                self.flows.insert(event.flow, wanted);
                if self.flows.len() > FLOWS_MAX {
                    self.flows.pop_first();
                }
                wanted
            }
            What::End(_) => self.flows.remove(&event.flow).unwrap_or(false),
            _ => self.flows.get(&event.flow).copied().unwrap_or(false),
        }
    }
}
