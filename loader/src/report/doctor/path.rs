//! What a path wants of the host: buffers that hold its bandwidth-delay product, since a window larger than the buffers is
//! never reached (Ataei Kachooei et al. 2022, Peters et al. 2021), and no needless new slow starts.

use std::time::Duration;

use onramp_algorithm::INITIAL_WINDOW;
use onramp_net::namespace::Namespace;

use super::check::{Check, Scope, Verdict};
use crate::host::{HYSTART, QDISC, is_of_host, value};
use crate::system::error::Error;

/// Share of a socket buffer that carries data: the kernel keeps the other half for its own structures and for a
/// reader that lags (Peters et al. 2021: "TCP only advertises up to half of the buffer size").
const USABLE_DIVISOR: u64 = 2;
/// Recommendations are multiples of this, so that the worked example of Ataei Kachooei et al. 2022 and Peters et al. 2021 comes out as they give it:
/// 26 214 400 bytes for 150 Mb/s and 600 ms.
const STEP_BYTES: u64 = 5 << 20;
/// What a connection may send at first: ten segments (RFC 6928), of an Ethernet's size.
const INITIAL_WINDOW_BYTES: u64 = INITIAL_WINDOW as u64 * 1_448;
/// Chosen: slow starts after a pause are avoided where each takes longer than this.
const LONG_SLOW_START: Duration = Duration::from_secs(1);

/// A path, against which a host's settings are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Bottleneck rate, bits per second, above 0.
    pub rate_bps: u64,
    /// Base round-trip time, microseconds, above 0.
    pub rtt_us: u64,
}

impl Path {
    /// Bandwidth-delay product, bytes.
    pub fn bdp_bytes(self) -> u64 {
        (u128::from(self.rate_bps) * u128::from(self.rtt_us) / 8_000_000) as u64
    }

    /// Maximum for `tcp_rmem` and `tcp_wmem`, bytes.
    pub fn recommended_bytes(self) -> u64 {
        (self.bdp_bytes() * USABLE_DIVISOR).div_ceil(STEP_BYTES) * STEP_BYTES
    }

    /// Round trips in which a window that doubles grows from the initial window to the bandwidth-delay product.
    fn doublings(self) -> u32 {
        self.bdp_bytes().div_ceil(INITIAL_WINDOW_BYTES).next_power_of_two().ilog2()
    }

    fn slow_start(self) -> Duration {
        Duration::from_micros(self.rtt_us.saturating_mul(self.doublings().into()))
    }
}

/// A setting of the current network namespace or of its host, as a path wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name: a sysctl, or a module's parameter, `MODULE.PARAMETER`.
    pub name: &'static str,
    /// Its value.
    pub now: String,
    /// What it should be; `None`: it is as it should be.
    pub to: Option<String>,
    /// What was found, in words.
    pub found: String,
    /// What it is for.
    pub enables: &'static str,
    /// Who says so.
    pub source: &'static str,
    /// What the change brings, and what it costs.
    pub effect: &'static str,
}

impl Wanted {
    /// Whose it is.
    pub fn scope(&self) -> Scope {
        if is_of_host(self.name) { Scope::Host } else { Scope::Namespace }
    }

    /// The same as one of the things that [`crate::doctor()`] looks at.
    pub fn check(&self) -> Check {
        let advice = self.to.as_ref().map(|to| {
            format!("sysctl -w {}=\"{to}\" (now \"{}\"), or `onramp doctor … --fix`", self.name, self.now)
        });
        Check {
            name: self.name,
            verdict: if advice.is_some() { Verdict::Warning } else { Verdict::Ok },
            found: self.found.clone(),
            scope: Some(self.scope()),
            enables: self.enables,
            advice: advice.unwrap_or_default(),
        }
    }
}

/// What a path wants of the current network namespace.
///
/// # Errors
/// [`Error::Namespace`] if the sysctls cannot be read.
pub fn wanted(path: Path) -> Result<Vec<Wanted>, Error> {
    let namespace = Namespace::current()?;
    let now = |name| value(&namespace, name);
    Ok(vec![
        buffer(
            "net.ipv4.tcp_rmem",
            "the receiver's window; matters on the receiving host",
            now("net.ipv4.tcp_rmem")?,
            path,
        ),
        buffer(
            "net.ipv4.tcp_wmem",
            "the sender's window; matters on the sending host",
            now("net.ipv4.tcp_wmem")?,
            path,
        ),
        after_idle(now("net.ipv4.tcp_slow_start_after_idle")?, path),
        thresholds(now("net.ipv4.tcp_no_ssthresh_metrics_save")?),
    ])
}

/// Whether connections begin with thresholds of earlier ones, on any path.
///
/// # Errors
/// [`Error::Namespace`] if the sysctl cannot be read.
pub fn cached_thresholds() -> Result<Wanted, Error> {
    Ok(thresholds(value(&Namespace::current()?, "net.ipv4.tcp_no_ssthresh_metrics_save")?))
}

/// The kernel's HyStart off, for every flow of the kernel's own CUBIC: beyond what a path wants, since other traffic of the
/// host has it as well.
///
/// # Errors
/// [`Error::Io`] without CUBIC in the kernel.
pub fn hystart_off() -> Result<Wanted, Error> {
    Ok(hystart(value(&Namespace::current()?, HYSTART)?))
}

/// fq as the queueing discipline of interfaces to come, whatever the path.
///
/// # Errors
/// [`Error::OfTheHost`] outside the host's own network namespace, which alone shows the default queueing discipline.
pub fn fq_by_default() -> Result<Wanted, Error> {
    Ok(qdisc(value(&Namespace::current()?, QDISC)?))
}

fn hystart(now: String) -> Wanted {
    let on = now != "0";
    Wanted {
        name: HYSTART,
        to: on.then(|| "0".to_owned()),
        found: if on { "it ends slow start when delays vary" } else { "off" }.to_owned(),
        now,
        enables: "flows of the kernel's own CUBIC; those of onramp do without it",
        source: "Peters et al. 2021: over GEO it leaves long before the window fills the path",
        effect: "every CUBIC flow of this host, in every network namespace, doubles until a loss or its threshold",
    }
}

fn qdisc(now: String) -> Wanted {
    let other = now != "fq";
    Wanted {
        name: QDISC,
        to: other.then(|| "fq".to_owned()),
        found: if other { "TCP paces by a timer for each socket" } else { "fq paces" }.to_owned(),
        now,
        enables: "pacing by the queueing discipline, which takes less processor time with many flows",
        source: "the kernel's tcp_bbr.c and sch_fq.c",
        effect: "interfaces made from now on, once the module sch_fq is loaded, which the kernel does; those that are there take `tc qdisc replace`",
    }
}

fn buffer(name: &'static str, enables: &'static str, now: String, path: Path) -> Wanted {
    let mut values: Vec<&str> = now.split(' ').collect();
    let maximum: u64 = values.last().and_then(|text| text.parse().ok()).unwrap_or(0);
    let usable = maximum / USABLE_DIVISOR;
    let bdp = path.bdp_bytes();
    let recommended = path.recommended_bytes().to_string();
    if let Some(last) = values.last_mut() {
        *last = &recommended;
    }
    Wanted {
        to: (usable < bdp).then(|| values.join(" ")),
        found: format!("maximum {maximum}, of which {usable} bytes are usable; the path holds {bdp}"),
        name,
        now,
        enables,
        source: "Ataei Kachooei et al. 2022, figure 1; Peters et al. 2021",
        effect: "windows may grow to what the path holds; a connection may take as much memory",
    }
}

fn after_idle(now: String, path: Path) -> Wanted {
    let restarts = now != "0";
    let (doublings, takes) = (path.doublings(), path.slow_start());
    let found = if restarts {
        format!("after a pause slow start begins anew: {doublings} round trips, {takes:.1?}")
    } else {
        "a pause leaves the window as it is".to_owned()
    };
    Wanted {
        name: "net.ipv4.tcp_slow_start_after_idle",
        to: (restarts && takes > LONG_SLOW_START).then(|| "0".to_owned()),
        found,
        now,
        enables: "connections with pauses between objects; matters on the sending host",
        source: "RFC 5681, section 4.1, asks for the restart; RFC 7661, section 1, says what it costs",
        effect: "no slow start after a pause; the initial window after it leaves as a burst unless the flow is paced",
    }
}

fn thresholds(now: String) -> Wanted {
    let kept = now == "0";
    let found = if kept { "kept for later connections" } else { "forgotten with the connection" };
    Wanted {
        name: "net.ipv4.tcp_no_ssthresh_metrics_save",
        to: kept.then(|| "1".to_owned()),
        found: found.to_owned(),
        now,
        enables: "slow start of later connections, which a threshold left by an early exit ends",
        source: "the kernel's ip-sysctl.rst; 1 is its default",
        effect: "every connection finds its own threshold; those kept so far stay until `ip tcp_metrics flush`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEO: Path = Path { rate_bps: 150_000_000, rtt_us: 600_000 };
    const TERRESTRIAL: Path = Path { rate_bps: 100_000_000, rtt_us: 30_000 };

    fn receive(now: &str) -> Wanted {
        buffer("net.ipv4.tcp_rmem", "", now.to_owned(), GEO)
    }

    #[test]
    fn the_worked_example_of_the_documents_comes_out() {
        assert_eq!(GEO.bdp_bytes(), 11_250_000);
        assert_eq!(GEO.recommended_bytes(), 26_214_400);
    }

    #[test]
    fn the_kernels_default_is_too_small_and_the_recommendation_is_enough() {
        let wanted = receive("4096 131072 6291456");
        assert_eq!(wanted.to.as_deref(), Some("4096 131072 26214400"));
        assert_eq!(wanted.check().verdict, Verdict::Warning);
        assert!(wanted.check().advice.contains("\"4096 131072 26214400\""), "{:?}", wanted.check());
        assert_eq!(receive("4096 131072 26214400").check().verdict, Verdict::Ok);
    }

    #[test]
    fn exactly_the_product_is_enough_and_one_byte_less_is_not() {
        assert_eq!(receive(&format!("4096 131072 {}", GEO.bdp_bytes() * 2)).to, None);
        assert!(receive(&format!("4096 131072 {}", GEO.bdp_bytes() * 2 - 2)).to.is_some());
    }

    #[test]
    fn a_restart_is_avoided_where_it_takes_long_and_only_there() {
        // 14,480 bytes doubled ten times are the first to be more than 11,250,000.
        assert_eq!((GEO.doublings(), GEO.slow_start()), (10, Duration::from_secs(6)));
        assert_eq!(after_idle("1".into(), GEO).to.as_deref(), Some("0"));
        assert_eq!(after_idle("0".into(), GEO).to, None);
        assert_eq!(after_idle("1".into(), TERRESTRIAL).to, None);
        // What the initial window fills needs no doubling.
        assert_eq!(Path { rate_bps: 1_000, rtt_us: 1_000 }.doublings(), 0);
    }

    #[test]
    fn what_is_as_it_was_asked_for_is_left() {
        assert_eq!(hystart("1".into()).to.as_deref(), Some("0"));
        assert_eq!(hystart("0".into()).to, None);
        assert_eq!(qdisc("fq_codel".into()).to.as_deref(), Some("fq"));
        assert_eq!(qdisc("fq".into()).to, None);
    }

    #[test]
    fn a_threshold_that_is_kept_is_to_be_forgotten() {
        assert_eq!(thresholds("0".into()).to.as_deref(), Some("1"));
        assert_eq!(thresholds("1".into()).to, None);
    }
}
