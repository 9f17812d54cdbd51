//! Levels of telemetry.

use crate::object::abi::telemetry_level;

/// How much is reported of flows; each level includes those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Level {
    /// Nothing.
    Off = telemetry_level::OFF,
    /// Flows beginning and ending, exits, exits undone.
    Exit = telemetry_level::EXIT,
    /// Also rounds, losses, congestion states, restarts.
    Round = telemetry_level::ROUND,
    /// Also every acknowledgment.
    Ack = telemetry_level::ACK,
}

impl Level {
    /// All of them, from the lowest.
    pub const ALL: [Self; 4] = [Self::Off, Self::Exit, Self::Round, Self::Ack];

    /// Name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exit => "exit",
            Self::Round => "round",
            Self::Ack => "ack",
        }
    }

    /// The level of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// From its number; what is higher than all is the highest.
    pub(crate) fn from_number(number: u32) -> Self {
        Self::ALL.into_iter().find(|level| *level as u32 == number).unwrap_or(Self::Ack)
    }

    /// Its bits and those of the levels before, in `struct telemetry.wanted`.
    pub(crate) fn bits(self) -> u64 {
        (1 << self as u32) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_includes_those_before() {
        assert_eq!(Level::ALL.map(Level::bits), [0, 1, 3, 7]);
        assert_eq!(Level::ALL.map(|level| Level::find(level.name())), Level::ALL.map(Some));
    }
}
