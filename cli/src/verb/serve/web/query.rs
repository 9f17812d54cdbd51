//! Which flows, in which order.

use std::cmp::Reverse;
use std::fmt;

use onramp_loader::algorithm;
use onramp_net::Prefix;
use serde::{Deserialize, Serialize};

use super::hub::HubState;
use crate::filter::Filter;
use crate::verb::serve::row::{FlowSummary, network};

/// Flows that are sent at once, at most.
const LIMIT_MAX: usize = 10_000;
const LIMIT: usize = 1_000;

/// As in the address of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Query {
    /// In the syntax of ss(8).
    filter: String,
    /// Only of this algorithm.
    algorithm: String,
    /// Only with this reason of the exit or, without one, in this state.
    reason: String,
    sort: Sort,
    reverse: bool,
    group: Option<Group>,
    limit: Option<i64>,
    /// Flows before the first that is sent.
    offset: usize,
    /// Live: report all flows together, too.
    pub population: bool,
    /// A flow to be reported in detail, live.
    pub flow: Option<u64>,
    /// Of a recording that was opened; else those that are live.
    pub recording: Option<String>,
}

/// A column; words from A to Z, quantities from the largest.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Remote,
    Local,
    Algorithm,
    State,
    Cwnd,
    Rtt,
    Rate,
    #[default]
    Delivered,
    Retransmitted,
    Started,
    ExitBdp,
    /// What the exit cost, the worst first: time lost, else queue.
    Lost,
}

/// What flows are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Group {
    Algorithm,
    Reason,
    /// The network of the remote end.
    Prefix,
}

/// What the flows of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Common<'a> {
    Word(&'a str),
    Network(Prefix),
}

impl fmt::Display for Common<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => formatter.write_str(word),
            Self::Network(prefix) => prefix.fmt(formatter),
        }
    }
}

/// A query that is understood.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    filter: Filter,
    pub query: Query,
    limit: usize,
}

/// Flows of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub name: String,
    pub flows: usize,
    /// Of these, how many are among those that are listed. They follow one another, as the groups do.
    pub listed: usize,
}

/// What a query finds.
pub(super) struct Found<'a> {
    pub matched: usize,
    pub groups: Vec<Count>,
    /// From the offset on, not more than the limit.
    pub rows: Vec<&'a FlowSummary>,
}

impl Query {
    /// What is wrong with it is said.
    pub fn wanted(self) -> Result<Wanted, String> {
        let limit = match self.limit {
            None => LIMIT,
            Some(limit) => usize::try_from(limit)
                .ok()
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
                .ok_or_else(|| format!("limit={limit} is out of range: give 1 to {LIMIT_MAX}"))?,
        };
        let filter = Filter::parse(std::slice::from_ref(&self.filter))?;
        let mut query = self;
        if let Some(known) = algorithm::find(&query.algorithm) {
            known.name().clone_into(&mut query.algorithm);
        }
        Ok(Wanted { filter, query, limit })
    }
}

impl Wanted {
    /// All that are wanted, in the order of their numbers.
    pub fn passing<'a>(&self, state: &'a HubState) -> impl Iterator<Item = &'a FlowSummary> {
        let query = &self.query;
        let passes = |row: &&FlowSummary| {
            (query.algorithm.is_empty() || query.algorithm == row.algorithm)
                && (query.reason.is_empty() || query.reason == row.reason())
                && self.filter.matches(row.local(), row.remote())
        };
        state.flows.values().map(|known| &known.row).filter(passes)
    }

    /// Those that are sent, in their order: flows that have ended come last.
    pub fn find<'a>(&self, state: &'a HubState) -> Found<'a> {
        let query = &self.query;
        let mut rows: Vec<&FlowSummary> = self.passing(state).collect();
        // The newest first.
        rows.reverse();
        self.sort(&mut rows);
        if query.reverse {
            rows.reverse();
        }
        // Stable: the order within stays.
        rows.sort_by_cached_key(|row| (self.group(row), row.ended()));
        let groups = if query.group.is_some() { self.groups(&rows) } else { Vec::new() };
        let matched = rows.len();
        rows.truncate(query.offset.saturating_add(self.limit));
        rows.drain(..query.offset.min(rows.len()));
        Found { matched, groups, rows }
    }

    /// Of flows in their order.
    fn groups(&self, rows: &[&FlowSummary]) -> Vec<Count> {
        let mut before = 0;
        let of_group = |rows: &[&FlowSummary]| {
            let (begin, end) = (self.query.offset, self.query.offset.saturating_add(self.limit));
            let group = before..before + rows.len();
            before = group.end;
            let listed = group.end.min(end).saturating_sub(group.start.max(begin));
            Count { name: self.group(rows[0]).to_string(), flows: rows.len(), listed }
        };
        rows.chunk_by(|one, other| self.group(one) == self.group(other)).map(of_group).collect()
    }

    fn group<'a>(&self, row: &'a FlowSummary) -> Common<'a> {
        match self.query.group {
            None => Common::Word(""),
            Some(Group::Algorithm) => Common::Word(&row.algorithm),
            Some(Group::Reason) => Common::Word(row.reason()),
            Some(Group::Prefix) => Common::Network(network(row.remote().ip())),
        }
    }

    fn sort(&self, rows: &mut [&FlowSummary]) {
        match self.query.sort {
            Sort::Remote => rows.sort_by_cached_key(|row| row.remote()),
            Sort::Local => rows.sort_by_cached_key(|row| row.local()),
            Sort::Algorithm => rows.sort_by_cached_key(|row| &*row.algorithm),
            Sort::State => rows.sort_by_cached_key(|row| row.reason()),
            Sort::Cwnd => rows.sort_by_cached_key(|row| Reverse(row.cwnd_segments)),
            Sort::Rtt => rows.sort_by_cached_key(|row| Reverse(row.rtt_us)),
            Sort::Rate => rows.sort_by_cached_key(|row| Reverse(row.rate_bps)),
            Sort::Delivered => rows.sort_by_cached_key(|row| Reverse(row.acknowledged_bytes)),
            Sort::Retransmitted => rows.sort_by_cached_key(|row| Reverse(row.retransmitted_bytes)),
            Sort::Started => rows.sort_by_cached_key(|row| Reverse(row.started_us)),
            Sort::ExitBdp => rows.sort_by_cached_key(|row| Reverse(row.exit_permille_of_bdp())),
            Sort::Lost => {
                rows.sort_by_cached_key(|row| Reverse(row.regret.map(|one| (one.early_us, one.queue_us))))
            }
        }
    }
}
