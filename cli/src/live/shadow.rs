//! What algorithms would have done on flows that are under way, from their first data on: `onramp shadow`, beside telemetry.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use onramp_loader::shadow::{Follower, Glimpse, Shadow as Source, Step};
use onramp_recording::replay::{Candidate, Finding, Generations, Known, Options, Replay};
use onramp_recording::{Event, Run, Sample};

use super::model::Flow;

/// Flows whose findings are kept; beyond that those that were met first go.
const FLOWS_MAX: usize = 10_000;
/// Glimpses that are taken before other things are looked at.
const BATCH: u32 = 100_000;

/// A flow by its ends and the inode of its network namespace.
type Ends = (u32, SocketAddr, SocketAddr);

/// Algorithms beside flows.
pub(crate) struct Shadows {
    source: Source,
    candidates: Vec<Candidate>,
    /// In their slow start, by number.
    watched: BTreeMap<u64, Watched>,
    /// Past it.
    findings: HashMap<Ends, Vec<Finding>>,
    order: VecDeque<Ends>,
}

struct Watched {
    ends: Ends,
    follower: Follower,
    replay: Replay,
}

impl Shadows {
    /// Watches TCP flows that begin from now on.
    pub fn open(candidates: Vec<Candidate>) -> Result<Self, onramp_loader::Error> {
        let source = Source::open(false, 1)?;
        let (watched, findings, order) = (BTreeMap::new(), HashMap::new(), VecDeque::new());
        Ok(Self { source, candidates, watched, findings, order })
    }

    /// Takes what there is.
    pub fn drain(&mut self) {
        for _ in 0..BATCH {
            let Some(glimpse) = self.source.try_next() else { return };
            self.take(&glimpse);
        }
    }

    fn take(&mut self, glimpse: &Glimpse) {
        let number = glimpse.flow();
        if self.watched.len() == FLOWS_MAX && !self.watched.contains_key(&number) {
            // Those that were met first may have gone without a word.
            self.watched.pop_first();
        }
        let candidates = &self.candidates;
        let watched = self.watched.entry(number).or_insert_with(|| Watched {
            ends: (glimpse.netns(), glimpse.local(), glimpse.remote()),
            follower: Follower::default(),
            // Without regrets: slow start alone does not tell what the path gives in the end.
            replay: Replay::new(candidates.clone(), Options::default()),
        });
        for step in watched.follower.take(glimpse) {
            watched.judge(step);
        }
        if glimpse.is_last()
            && let Some(watched) = self.watched.remove(&number)
            && let Some(report) = watched.replay.finish().pop()
        {
            if self.findings.insert(watched.ends, report.findings).is_none() {
                self.order.push_back(watched.ends);
            }
            if self.order.len() > FLOWS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.findings.remove(&oldest);
            }
        }
    }

    /// Of a flow; `None`: its beginning was not seen.
    pub fn of(&self, flow: &Flow) -> Option<Vec<Finding>> {
        let ends = (flow.netns, flow.local, flow.remote);
        let watched = self.watched.values().find(|watched| watched.ends == ends);
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
    fn judge(&mut self, step: Step) {
        let sample = match step {
            Step::Ack { ack, slow_starts } => Sample { ack, slow_starts, ..Sample::default() },
            Step::Loss { ack, ssthresh } => Sample { ack, event: Event::Loss(ssthresh), ..Sample::default() },
        };
        let run = Run { flow: 0, samples: &[sample], verdicts: &[] };
        self.replay.feed(&run, &Known::default(), &Generations::default());
    }
}
