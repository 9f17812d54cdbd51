//! The order of the table.

use std::cmp::Ordering;

use crate::live::Flow;

/// A column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    Remote,
    Algorithm,
    State,
    Cwnd,
    Rtt,
    Rate,
    #[default]
    Delivered,
}

impl Sort {
    /// In the order of the table.
    pub const ALL: [Self; 7] =
        [Self::Remote, Self::Algorithm, Self::State, Self::Cwnd, Self::Rtt, Self::Rate, Self::Delivered];

    pub fn title(self) -> &'static str {
        match self {
            Self::Remote => "REMOTE",
            Self::Algorithm => "ALGORITHM",
            Self::State => "STATE",
            Self::Cwnd => "CWND",
            Self::Rtt => "RTT",
            Self::Rate => "RATE",
            Self::Delivered => "ACKED",
        }
    }

    pub fn before(self) -> Self {
        self.moved(Self::ALL.len() - 1)
    }

    pub fn after(self) -> Self {
        self.moved(1)
    }

    fn moved(self, steps: usize) -> Self {
        Self::ALL[(self as usize + steps) % Self::ALL.len()]
    }

    /// Words from A to Z, quantities from the largest; where they are equal the newest flow first.
    pub fn compare(self, one: &Flow, other: &Flow) -> Ordering {
        let order = match self {
            Self::Remote => one.remote.cmp(&other.remote),
            Self::Algorithm => one.algorithm.name().cmp(other.algorithm.name()),
            Self::State => one.state().cmp(&other.state()),
            Self::Cwnd => other.now.cwnd.cmp(&one.now.cwnd),
            Self::Rtt => other.now.rtt_us.cmp(&one.now.rtt_us),
            Self::Rate => other.now.rate_bps.cmp(&one.now.rate_bps),
            Self::Delivered => other.acknowledged_bytes().cmp(&one.acknowledged_bytes()),
        };
        order.then(other.id.cmp(&one.id))
    }
}
