//! What verbs that follow telemetry share: levels on the command line, opening, and which flows are wanted.

use std::collections::BTreeMap;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onramp_loader::telemetry::{Event, Level, Subscription, What};
use onramp_loader::{LOCK_TIMEOUT, WaitWhile};
pub(crate) use onramp_terminal::signals::Signals;

use crate::failure::Usage;
use crate::filter::Filter;
use crate::units;

/// Flows that are remembered; beyond that the oldest are forgotten, and their later events are not reported.
const FLOWS_MAX: usize = 1 << 20;

/// Reads a level of telemetry, from `least` on.
pub(crate) fn level_from(least: Level) -> impl TypedValueParser<Value = Level> {
    let levels = Level::ALL.into_iter().filter(move |level| *level >= least);
    let values = levels.map(|level| {
        PossibleValue::new(level.name()).help(match level {
            Level::Off => "Nothing",
            Level::Exit => "Flows and exits",
            Level::Round => "Also rounds, losses, congestion states",
            Level::Ack => "Also every acknowledgment",
        })
    });
    PossibleValuesParser::new(values).try_map(|name| Level::find(&name).ok_or("no such level"))
}

/// Which flows to follow, on the command line.
#[derive(Args, Debug)]
pub(crate) struct Selection {
    /// Of one flow in N, all its events
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::number(1..=u32::MAX))]
    pub sample: u32,
    /// Only these flows
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

impl Selection {
    pub fn wanted(&self) -> anyhow::Result<Wanted> {
        Ok(Wanted::new(self.filter()?, self.sample))
    }

    pub fn filter(&self) -> anyhow::Result<Filter> {
        Filter::parse(&self.filter).map_err(Usage::error)
    }
}

/// What `open` opens; it is called with the condition to wait for other commands, which ends with a signal. `None`: one came
/// meanwhile.
pub(crate) fn open<T>(
    signals: &Signals,
    open: impl FnOnce(WaitWhile<'_>) -> Result<T, onramp_loader::Error>,
) -> Result<Option<T>, onramp_loader::Error> {
    match open(&|waited| waited < LOCK_TIMEOUT && !signals.came()) {
        Err(onramp_loader::Error::Locked { .. }) if signals.came() => Ok(None),
        opened => opened.map(Some),
    }
}

/// Which flows are wanted. The kernel samples and checks most of the filter; a prefix of the local address and repeated
/// conditions are checked here.
pub(crate) struct Wanted {
    filter: Filter,
    sampling: u32,
    flows: BTreeMap<u64, bool>,
}

impl Wanted {
    pub fn new(filter: Filter, sampling: u32) -> Self {
        Self { filter, sampling, flows: BTreeMap::new() }
    }

    /// What to ask the kernel for.
    pub fn subscription(&self, level: Level) -> Subscription {
        Subscription { level, sampling: self.sampling, filter: self.filter.in_kernel() }
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_kernel_is_asked_for_no_more_than_is_wanted() {
        let selection = Selection { sample: 100, filter: vec!["dst 192.0.2.0/24 and dport = :443".into()] };
        let subscription = selection.wanted().unwrap().subscription(Level::Round);
        assert_eq!(
            (subscription.level, subscription.sampling, subscription.filter.remote_port),
            (Level::Round, 100, Some(443))
        );
        assert_eq!(subscription.filter.remote, Some(("192.0.2.0".parse().unwrap(), 24)));
        let everything = Wanted::new(Filter::default(), 1).subscription(Level::Ack);
        assert_eq!(everything, Subscription::new(Level::Ack));
        let wrong = Selection { sample: 1, filter: vec!["colour".into(), "red".into()] };
        assert!(wrong.wanted().err().unwrap().to_string().contains("not understood"));
    }

    #[test]
    fn levels_are_read_from_the_least_on() {
        let command = clap::Command::new("test");
        let read = |least, name: &str| level_from(least).parse_ref(&command, None, OsStr::new(name));
        for level in Level::ALL {
            assert_eq!(read(Level::Off, level.name()).unwrap(), level);
        }
        assert!(read(Level::Exit, "off").is_err());
        assert!(read(Level::Off, "all").is_err());
    }
}
