//! What algorithms would have done on open flows, from their first data on: `onramp shadow`, next to telemetry.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use onramp_loader::shadow::{Follower, Shadow as Source, SocketSnapshot, Step, Watch};
use onramp_recording::replay::{Candidate, Finding, Generations, Known, Options, Replay};
use onramp_recording::{Event, Run, Sample};

use super::flow::Flow;

/// Flows whose findings are kept; beyond that those that were met first go.
const FLOWS_MAX: usize = 10_000;
/// Snapshots that are taken before other things are looked at.
const BATCH: u32 = 100_000;

/// A flow by its ends and the inode of its network namespace.
type Ends = (u32, SocketAddr, SocketAddr);

/// Algorithms times flows.
pub(crate) struct Shadows {
    source: Source,
    candidates: Vec<Candidate>,
    /// In their slow start.
    watched: Flows<Watched>,
    /// Past it.
    findings: HashMap<Ends, Vec<Finding>>,
    order: VecDeque<Ends>,
}

struct Watched {
    follower: Follower,
    replay: Replay,
}

/// What is kept of flows, found by their numbers and by their ends.
struct Flows<T> {
    by_number: BTreeMap<u64, (Ends, T)>,
    /// The newest of these.
    numbers: HashMap<Ends, u64>,
}

impl<T> Flows<T> {
    /// What is kept of a flow; of one that is met first, what is made now. Where there are as many as may be, those that
    /// were met first go: they may have ended without a word.
    fn meet(&mut self, number: u64, ends: impl FnOnce() -> Ends, make: impl FnOnce() -> T) -> &mut T {
        if self.by_number.len() == FLOWS_MAX
            && !self.by_number.contains_key(&number)
            && let Some((oldest, _)) = self.by_number.first_key_value()
        {
            self.remove(*oldest);
        }
        &mut self
            .by_number
            .entry(number)
            .or_insert_with(|| {
                let ends = ends();
                self.numbers.insert(ends, number);
                (ends, make())
            })
            .1
    }

    fn remove(&mut self, number: u64) -> Option<(Ends, T)> {
        let (ends, kept) = self.by_number.remove(&number)?;
        // Another connection may have the same ends by now.
        if self.numbers.get(&ends) == Some(&number) {
            self.numbers.remove(&ends);
        }
        Some((ends, kept))
    }

    /// Of the newest flow with these ends.
    fn with(&self, ends: &Ends) -> Option<&T> {
        self.by_number.get(self.numbers.get(ends)?).map(|(_, kept)| kept)
    }
}

impl Shadows {
    /// Watches TCP flows that begin from now on.
    pub fn open(candidates: Vec<Candidate>) -> Result<Self, onramp_loader::Error> {
        let source = Source::open(Watch::default())?;
        let watched = Flows { by_number: BTreeMap::new(), numbers: HashMap::new() };
        let (findings, order) = (HashMap::new(), VecDeque::new());
        Ok(Self { source, candidates, watched, findings, order })
    }

    /// Takes what there is.
    pub fn drain(&mut self) {
        for _ in 0..BATCH {
            let Some(snapshot) = self.source.try_next() else { return };
            self.take(&snapshot);
        }
    }

    fn take(&mut self, snapshot: &SocketSnapshot) {
        let number = snapshot.flow();
        let candidates = &self.candidates;
        let watched = self.watched.meet(
            number,
            || (snapshot.netns(), snapshot.local(), snapshot.remote()),
            || Watched {
                follower: Follower::default(),
                // Without regrets: slow start alone does not show the BDP of the path.
                replay: Replay::new(candidates.clone(), Options::default()),
            },
        );
        for step in watched.follower.take(snapshot) {
            watched.evaluate(step);
        }
        if snapshot.is_last()
            && let Some((ends, watched)) = self.watched.remove(number)
            && let Some(report) = watched.replay.finish().pop()
        {
            if self.findings.insert(ends, report.findings).is_none() {
                self.order.push_back(ends);
            }
            if self.order.len() > FLOWS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.findings.remove(&oldest);
            }
        }
    }

    /// Of a flow; `None`: its beginning was not seen.
    pub fn findings(&self, flow: &Flow) -> Option<Vec<Finding>> {
        let ends = (flow.netns, flow.local, flow.remote);
        let watched = self.watched.with(&ends);
        let now = watched.and_then(|watched| Some(watched.replay.clone().finish().pop()?.findings));
        let mut findings = now.or_else(|| self.findings.get(&ends).cloned())?;
        let given = flow.given();
        for finding in &mut findings {
            finding.regret = given.zip(finding.exit.as_ref()).map(|(given, exit)| given.regret_of(exit));
        }
        Some(findings)
    }
}

impl Watched {
    fn evaluate(&mut self, step: Step) {
        let sample = match step {
            Step::Ack { ack, slow_starts } => Sample { ack, slow_starts, ..Sample::default() },
            Step::Past { ack } => Sample { ack, event: Event::NotCalled, ..Sample::default() },
            Step::Loss { ack, ssthresh } => Sample { ack, event: Event::Loss(ssthresh), ..Sample::default() },
        };
        let run = Run { flow: 0, samples: &[sample], verdicts: &[] };
        self.replay.feed(&run, &Known::default(), &Generations::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_found_by_its_ends_until_it_goes_also_where_another_had_them_before() {
        let mut flows = Flows { by_number: BTreeMap::new(), numbers: HashMap::new() };
        let ends = |port: u16| (1, ([192, 0, 2, 1], port).into(), ([192, 0, 2, 2], 443).into());
        let meet = |flows: &mut Flows<u64>, number: u64, port: u16| {
            *flows.meet(number, || ends(port), || number * 10)
        };
        assert_eq!(meet(&mut flows, 1, 1_000), 10);
        assert_eq!((flows.with(&ends(1_000)), flows.with(&ends(2_000))), (Some(&10), None));
        // The same ends again, while the first connection is not known to be over.
        assert_eq!((meet(&mut flows, 2, 1_000), meet(&mut flows, 1, 1_000)), (20, 10));
        assert_eq!(flows.with(&ends(1_000)), Some(&20));
        assert_eq!((flows.remove(1), flows.with(&ends(1_000))), (Some((ends(1_000), 10)), Some(&20)));
        assert_eq!((flows.remove(2), flows.with(&ends(1_000))), (Some((ends(1_000), 20)), None));
        assert_eq!(flows.remove(2), None);
        // Beyond the most that are kept those that were met first go, by their ends too.
        for number in 0..=FLOWS_MAX as u64 {
            meet(&mut flows, number, number as u16);
        }
        assert_eq!((flows.by_number.len(), flows.numbers.len()), (FLOWS_MAX, FLOWS_MAX));
        assert_eq!((flows.with(&ends(0)), flows.with(&ends(1))), (None, Some(&10)));
    }
}
