//! Why slow start ended: one set of words for the kernel's record, events, recordings, listings, the simulator and the lab.

use serde::{Deserialize, Serialize};

use crate::contract::exit_reason;

/// Why the first slow start of a flow ended. The numbers are those of `enum exit_reason` in `bpf/abi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
#[repr(u32)]
pub enum ExitReason {
    /// The algorithm's verdict; under one of the kernel's own controls, what that decided (HyStart, BBR).
    Algorithm = exit_reason::ALGORITHM,
    /// Fast recovery.
    Loss = exit_reason::LOSS,
    /// An ECN mark.
    Ecn = exit_reason::ECN,
    /// Retransmission timeout.
    Timeout = exit_reason::TIMEOUT,
    /// A queue of this host refused a packet.
    LocalCongestion = exit_reason::LOCAL,
    /// An ssthresh that another control or an earlier slow start has set.
    Ssthresh = exit_reason::SSTHRESH,
    /// An ssthresh that the connection had from its begin: cached metrics of its peer, or its route's.
    CachedSsthresh = exit_reason::CACHED_SSTHRESH,
}

impl ExitReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Algorithm,
        Self::Loss,
        Self::Ecn,
        Self::Timeout,
        Self::LocalCongestion,
        Self::Ssthresh,
        Self::CachedSsthresh,
    ];

    /// From the number in an exit record; `None`: slow start has not ended.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u32 == u32::from(number))
    }

    /// From its name; `None`: there is no such reason. Files of earlier builds have `threshold` for `ssthresh`, and
    /// `heuristic` for `algorithm`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "threshold" => Some(Self::Ssthresh),
            "heuristic" => Some(Self::Algorithm),
            name => Self::ALL.into_iter().find(|reason| reason.name() == name),
        }
    }

    /// Name in listings, JSON and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Algorithm => "algorithm",
            Self::Loss => "loss",
            Self::Ecn => "ecn",
            Self::Timeout => "timeout",
            Self::LocalCongestion => "local_congestion",
            Self::Ssthresh => "ssthresh",
            Self::CachedSsthresh => "cached_ssthresh",
        }
    }
}

impl From<ExitReason> for &'static str {
    fn from(reason: ExitReason) -> Self {
        reason.name()
    }
}

impl TryFrom<String> for ExitReason {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("exit reason {name:?} is unknown: expected one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_number_and_a_name_of_its_own() {
        for reason in ExitReason::ALL {
            assert_eq!(ExitReason::from_number(reason as u8), Some(reason));
            assert_eq!(ExitReason::from_name(reason.name()), Some(reason));
            assert_eq!(ExitReason::try_from(reason.name().to_owned()), Ok(reason));
        }
        assert_eq!(ExitReason::ALL.len() as u32, exit_reason::REASONS - 1);
        assert_eq!(ExitReason::from_number(0), None);
    }

    #[test]
    fn words_of_earlier_builds_are_read_and_others_refused() {
        assert_eq!(ExitReason::from_name("threshold"), Some(ExitReason::Ssthresh));
        assert_eq!(ExitReason::from_name("heuristic"), Some(ExitReason::Algorithm));
        assert_eq!(ExitReason::from_name("verdict"), None);
        assert!(ExitReason::try_from("verdict".to_owned()).unwrap_err().contains("local_congestion"));
    }
}
