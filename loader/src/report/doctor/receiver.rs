//! What this host costs those who send to it: the window that it offers over a path, measured, as it is and with a larger
//! initial receive buffer.

use std::fs;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};
use onramp_net::namespace::Namespace;
use onramp_net::receiver::{Offered, Plan};

use super::path::{Path, Wanted};
use crate::host::value;
use crate::system::error::Error;

const RMEM: &str = "net.ipv4.tcp_rmem";
/// A first window of no more than this is not opened: kernels before 6.10 offer what an unscaled window holds (RFC 7323,
/// section 2.2), rounded up to a multiple of the scale.
const UNSCALED_BYTES: u64 = 1 << 16;
/// What is transferred, bytes; the last is what is sent, and the first are parts of it.
const TRANSFERS: [u64; 2] = [1_000_000, 5_000_000];
/// A measurement ends after this.
const LIMIT: Duration = Duration::from_secs(30);
/// Initial buffers are raised to multiples of this, bytes.
const STEP_BYTES: u64 = 1 << 16;
/// The window is half of the buffer before anything has come.
const WINDOW_PART: u64 = 2;
/// A raise is advised if it saves more than this part of the time.
const WORTH: f64 = 0.02;
/// `net.ipv4.tcp_rmem` is of 32 bits with a sign.
const MOST_BYTES: u64 = i32::MAX as u64;

/// See the module.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// As this network namespace is.
    pub now: Measured,
    /// With an initial buffer that holds the path's BDP; `None`: it holds it already.
    pub raised: Option<Measured>,
    /// Memory of all connections.
    pub memory: Memory,
}

/// What was offered.
#[derive(Clone, Debug)]
pub struct Measured {
    /// `net.ipv4.tcp_rmem`, with single spaces.
    pub tcp_rmem: String,
    /// Windows and times.
    pub offered: Offered,
    /// Objects, smallest first.
    pub transfers: Vec<Transfer>,
}

/// An object that begins with the connection, from a sender that is held back by the window and the path's rate alone.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Its length.
    pub bytes: u64,
    /// How long it takes until its last byte is read, from when the first may be sent; `None`: longer than was measured.
    pub takes: Option<Duration>,
    /// If the receiver were not the limit.
    pub line: Duration,
}

/// Memory that the host's connections take, and may.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Taken now, bytes.
    pub used_bytes: u64,
    /// Above this the kernel holds windows down, bytes (`net.ipv4.tcp_mem`); `None`: the host's own network namespace alone
    /// shows it.
    pub pressure_bytes: Option<u64>,
}

impl Memory {
    /// The kernel holds windows down now.
    pub fn is_under_pressure(self) -> bool {
        self.pressure_bytes.is_some_and(|most| self.used_bytes > most)
    }

    /// How many connections fill buffers of these bytes before it does.
    pub fn connections(self, buffer_bytes: u64) -> Option<u64> {
        self.pressure_bytes.map(|most| most.saturating_sub(self.used_bytes) / buffer_bytes.max(1))
    }

    fn read() -> Self {
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4_096) as u64;
        // `TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1`
        let used = fs::read_to_string("/proc/thread-self/net/sockstat").ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?.to_owned();
            line.split(' ').skip_while(|word| *word != "mem").nth(1)?.parse::<u64>().ok()
        });
        let limits = fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok();
        let pressure = limits.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
        Self { used_bytes: used.unwrap_or(0) * page, pressure_bytes: pressure.map(|pages| pages * page) }
    }
}

impl Measured {
    /// Initial receive buffer, bytes.
    pub fn initial_bytes(&self) -> u64 {
        words(&self.tcp_rmem)[1]
    }

    /// The largest object's time; what has not come is longer than any.
    fn longest(&self) -> Duration {
        self.transfers.last().and_then(|last| last.takes).unwrap_or(Duration::MAX)
    }
}

impl Receiver {
    /// The raise opens the first window; `None`: there is none.
    pub fn opens_first_window(&self) -> Option<bool> {
        let raised = self.raised.as_ref()?;
        Some(raised.offered.first_window_bytes > self.now.offered.first_window_bytes.max(UNSCALED_BYTES))
    }

    /// What `--fix` sets, if it is worth it.
    pub fn wanted(&self) -> Option<Wanted> {
        let raised = self.raised.as_ref()?;
        let (now, then) = (self.now.longest(), raised.longest());
        if then.as_secs_f64() > now.as_secs_f64() * (1.0 - WORTH) {
            return None;
        }
        let seconds = |time: Duration| {
            if time == Duration::MAX { "too long".into() } else { format!("{:.2} s", time.as_secs_f64()) }
        };
        let bytes = TRANSFERS[TRANSFERS.len() - 1] / 1_000_000;
        Some(Wanted {
            name: RMEM,
            now: self.now.tcp_rmem.clone(),
            to: Some(raised.tcp_rmem.clone()),
            found: format!("{bytes} MB take {} at best, and {} with it", seconds(now), seconds(then)),
            enables: "whoever sends to this host",
            source: "measured on this host, by one connection before and one with it",
            effect: "new connections offer more at once; one whose application does not read may take as much memory",
        })
    }
}

/// Measures the receiver over a path, in a network namespace of its own with this one's settings.
///
/// # Errors
/// [`Error::Receiver`] without CAP_SYS_ADMIN and CAP_NET_ADMIN, or without TUN devices.
pub fn measure(path: Path) -> Result<Receiver, Error> {
    let rmem = value(&Namespace::current()?, RMEM)?;
    let raised = raised(&rmem, path);
    let raised = raised.map(|rmem| measured(path, rmem)).transpose()?;
    Ok(Receiver { now: measured(path, rmem)?, raised, memory: Memory::read() })
}

fn measured(path: Path, tcp_rmem: String) -> Result<Measured, Error> {
    let plan = Plan {
        rate_bps: path.rate_bps,
        rtt: Duration::from_micros(path.rtt_us),
        bytes: TRANSFERS[TRANSFERS.len() - 1],
        limit: LIMIT,
        tcp_rmem: Some(tcp_rmem.clone()),
    };
    let offered = plan.measure()?;
    let transfers = TRANSFERS
        .map(|bytes| Transfer { bytes, takes: offered.time_of(bytes), line: plan.line_time(bytes) })
        .to_vec();
    Ok(Measured { tcp_rmem, offered, transfers })
}

/// Smallest, initial and largest.
fn words(rmem: &str) -> [u64; 3] {
    let mut words = rmem.split(' ').map(|word| word.parse().unwrap_or(0));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

/// `tcp_rmem` with an initial buffer whose window holds the path's BDP; `None`: it does already.
fn raised(rmem: &str, path: Path) -> Option<String> {
    let [least, initial, most] = words(rmem);
    let wanted = (path.bdp_bytes() * WINDOW_PART).next_multiple_of(STEP_BYTES).min(MOST_BYTES);
    let most = most.max(path.recommended_bytes().min(MOST_BYTES));
    (wanted > initial).then(|| format!("{least} {wanted} {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEO: Path = Path { rate_bps: 150_000_000, rtt_us: 600_000 };

    #[test]
    fn the_initial_buffer_is_raised_to_twice_the_product_and_never_lowered() {
        assert_eq!(raised("4096 131072 6291456", GEO).as_deref(), Some("4096 22544384 26214400"));
        assert_eq!(raised("4096 131072 99999999", GEO).as_deref(), Some("4096 22544384 99999999"));
        assert_eq!(raised("4096 22544384 26214400", GEO), None);
        let huge = Path { rate_bps: u64::MAX, rtt_us: 600_000 };
        assert_eq!(raised("4096 131072 6291456", huge).as_deref(), Some("4096 2147483647 2147483647"));
    }

    #[test]
    fn memory_under_pressure_has_room_for_no_buffer() {
        let memory = Memory { used_bytes: 10, pressure_bytes: Some(110) };
        assert_eq!((memory.is_under_pressure(), memory.connections(50)), (false, Some(2)));
        let full = Memory { used_bytes: 111, ..memory };
        assert_eq!((full.is_under_pressure(), full.connections(50)), (true, Some(0)));
        assert_eq!(Memory { pressure_bytes: None, ..memory }.connections(50), None);
    }
}
