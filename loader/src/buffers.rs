//! Socket buffers against the bandwidth-delay product: a window larger than the buffers is never reached (documents
//! Ataei Kachooei et al. 2022 and Peters et al. 2021).

use onramp_net::namespace::Namespace;

use crate::doctor::{Check, Verdict};
use crate::error::Error;

/// Share of a socket buffer that carries data: the kernel keeps the other half for its own structures and for a
/// reader that lags (Peters et al. 2021: "TCP only advertises up to half of the buffer size").
const USABLE_DIVISOR: u64 = 2;
/// Recommendations are multiples of this, so that the worked example of Ataei Kachooei et al. 2022 and Peters et al. 2021 comes out as they give it:
/// 26 214 400 bytes for 150 Mb/s and 600 ms.
const STEP_BYTES: u64 = 5 << 20;

/// A path, for judging buffers.
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
}

/// Compares the current namespace's limits with what a path needs.
///
/// # Errors
/// [`Error::Namespace`] if the sysctls cannot be read.
pub fn buffers(path: Path) -> Result<Vec<Check>, Error> {
    let namespace = Namespace::current()?;
    let sysctls = [
        ("net.ipv4.tcp_rmem", "the receiver's window; matters on the receiving host"),
        ("net.ipv4.tcp_wmem", "the sender's window; matters on the sending host"),
    ];
    sysctls
        .into_iter()
        .map(|(name, enables)| Ok(judge(name, enables, &namespace.sysctl_get(name)?, path)))
        .collect()
}

fn judge(name: &'static str, enables: &'static str, value: &str, path: Path) -> Check {
    let maximum: u64 = value.split_whitespace().last().and_then(|text| text.parse().ok()).unwrap_or(0);
    let usable = maximum / USABLE_DIVISOR;
    let bdp = path.bdp_bytes();
    let found = format!("maximum {maximum}, of which {usable} bytes are usable; the path holds {bdp}");
    if usable >= bdp {
        return Check { name, verdict: Verdict::Ok, found, enables, advice: String::new() };
    }
    let mut words: Vec<&str> = value.split_whitespace().collect();
    let recommended = path.recommended_bytes().to_string();
    if let Some(last) = words.last_mut() {
        *last = &recommended;
    }
    let advice = format!(
        "sysctl -w {name}=\"{}\" (now \"{}\")",
        words.join(" "),
        value.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    Check { name, verdict: Verdict::Warning, found, enables, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEO: Path = Path { rate_bps: 150_000_000, rtt_us: 600_000 };

    #[test]
    fn the_worked_example_of_the_documents_comes_out() {
        assert_eq!(GEO.bdp_bytes(), 11_250_000);
        assert_eq!(GEO.recommended_bytes(), 26_214_400);
    }

    #[test]
    fn the_kernels_default_is_too_small_and_the_recommendation_is_enough() {
        let check = judge("net.ipv4.tcp_rmem", "", "4096\t131072\t6291456", GEO);
        assert_eq!(check.verdict, Verdict::Warning);
        assert!(check.advice.contains("\"4096 131072 26214400\""), "{}", check.advice);
        assert_eq!(judge("net.ipv4.tcp_rmem", "", "4096\t131072\t26214400", GEO).verdict, Verdict::Ok);
    }

    #[test]
    fn exactly_the_product_is_enough_and_one_byte_less_is_not() {
        let exact = format!("4096 131072 {}", GEO.bdp_bytes() * 2);
        assert_eq!(judge("net.ipv4.tcp_wmem", "", &exact, GEO).verdict, Verdict::Ok);
        let less = format!("4096 131072 {}", GEO.bdp_bytes() * 2 - 2);
        assert_eq!(judge("net.ipv4.tcp_wmem", "", &less, GEO).verdict, Verdict::Warning);
    }
}
