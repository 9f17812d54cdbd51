//! The limits, and time that is divided among them.

use serde::{Serialize, Serializer};

/// What a flow waits for, as opposed to sending more now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// It has given nothing more to send.
    Application,
    /// The window that the receiver advertises is full.
    ReceiveWindow,
    /// The application waits for room in it, while everything in it is sent.
    SendBuffer,
    /// The congestion window is full, in slow start.
    SlowStart,
    /// The congestion window is full, past slow start.
    CongestionAvoidance,
    /// The window is reduced: recovery after a loss or a timeout, or CWR.
    Recovery,
    /// The pacing rate holds back what the window allows.
    Pacing,
    /// A queue of this host holds what was sent, so that TCP hands over no more (TSQ).
    HostQueue,
    /// The path is full: a standing queue, or under BBR its rate. A larger window would only wait.
    Path,
}

impl Limit {
    pub const ALL: [Self; 9] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::SlowStart,
        Self::CongestionAvoidance,
        Self::Recovery,
        Self::Pacing,
        Self::HostQueue,
        Self::Path,
    ];

    /// As in JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::SendBuffer => "send_buffer",
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::Pacing => "pacing",
            Self::HostQueue => "host_queue",
            Self::Path => "path",
        }
    }

    /// In text.
    pub fn title(self) -> String {
        self.name().replace('_', " ")
    }

    /// In a line of time.
    pub fn letter(self) -> char {
        match self {
            Self::Application => 'a',
            Self::ReceiveWindow => 'R',
            Self::SendBuffer => 'B',
            Self::SlowStart => 's',
            Self::CongestionAvoidance => 'c',
            Self::Recovery => 'x',
            Self::Pacing => 'p',
            Self::HostQueue => 'q',
            Self::Path => 'P',
        }
    }

    /// Whether the flow sent as much as its control, or the path, let it.
    pub fn is_of_control(self) -> bool {
        self.is_congestion_window() || matches!(self, Self::Pacing | Self::Path)
    }

    /// Whether it is the congestion window in one of its phases.
    pub fn is_congestion_window(self) -> bool {
        matches!(self, Self::SlowStart | Self::CongestionAvoidance | Self::Recovery)
    }
}

/// Time by limit, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts([u64; Limit::ALL.len()]);

impl Parts {
    pub fn add(&mut self, limit: Limit, us: u64) {
        let part = &mut self.0[limit as usize];
        *part = part.saturating_add(us);
    }

    pub fn add_all(&mut self, other: &Self) {
        Limit::ALL.into_iter().for_each(|limit| self.add(limit, other.of(limit)));
    }

    /// Of each so many of so many microseconds, rounded down.
    pub fn share(&self, us: u64, of_us: u64) -> Self {
        Self(self.0.map(|part| (u128::from(part) * u128::from(us) / u128::from(of_us.max(1))) as u64))
    }

    pub fn take(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(part, taken)| *part = part.saturating_sub(taken));
    }

    pub fn of(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// Of the limits of which this holds.
    pub fn sum(&self, which: impl Fn(Limit) -> bool) -> u64 {
        Limit::ALL.into_iter().filter(|limit| which(*limit)).map(|limit| self.of(limit)).sum()
    }

    pub fn total(&self) -> u64 {
        self.sum(|_| true)
    }

    /// The largest; `None`: there is no time.
    pub fn largest(&self) -> Option<Limit> {
        self.by_size().next()
    }

    /// Those that have time, the largest first.
    pub fn by_size(&self) -> impl Iterator<Item = Limit> + use<> {
        let parts = *self;
        let mut limits: Vec<_> = Limit::ALL.into_iter().filter(|limit| parts.of(*limit) > 0).collect();
        limits.sort_by_key(|limit| std::cmp::Reverse(parts.of(*limit)));
        limits.into_iter()
    }
}

/// `{"application_us": …, …}`.
impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(Limit::ALL.into_iter().map(|limit| (format!("{}_us", limit.name()), self.of(limit))))
    }
}
