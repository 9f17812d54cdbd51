//! The paths that connections have learned (`bpf/start/path.h`), for attachments with a start policy.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use aya::maps::{HashMap, MapData};
use onramp_net::{Namespace, Prefix};

use super::path_settings::{self, PathPrefix, PathSettings};
use crate::object::abi::{Path, PathKey};
use crate::object::open::PATHS;
use crate::pins::{self, Lock, map_failed, profiles};
use crate::system::clock;
use crate::system::error::Error;
use crate::system::kernel;

/// What is remembered of paths, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedPaths {
    /// By namespace and network.
    pub paths: Vec<LearnedPath>,
    /// What holds for all.
    pub settings: PathSettings,
}

/// What is remembered of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedPath {
    /// Cookie of the network namespace that it begins in.
    pub netns_cookie: u64,
    /// The peer, or the network of peers that it leads to.
    pub network: Prefix,
    /// Bytes per second that a connection had.
    pub rate: u64,
    /// Minimum RTT, microseconds.
    pub rtt_us: u32,
    /// How long ago that was.
    pub age: Duration,
    /// Starts from it that went well.
    pub confirmed: u32,
    /// Starts that were given up, since the last that went well.
    pub retreated: u32,
    /// A connection starts from it now.
    pub claimed: bool,
}

/// What a change of the settings did, or would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathsSet {
    /// The settings before.
    pub before: PathSettings,
    /// The settings now.
    pub after: PathSettings,
    /// Paths that were forgotten, since another prefix gives addresses another meaning.
    pub forgotten: usize,
}

type Paths = HashMap<MapData, PathKey, Path>;

impl LearnedPath {
    fn new(key: &PathKey, path: &Path, prefix: PathPrefix, now_ns: u64) -> Self {
        let claim = onramp_algorithm::Path { claim_ends_ns: path.claim_ends_ns, ..Default::default() };
        let bits = key.address.into_iter().fold(0, |bits, word| bits << 32 | u128::from(u32::from_be(word)));
        let network = Prefix::from(IpAddr::V6(Ipv6Addr::from_bits(bits)));
        Self {
            netns_cookie: key.netns_cookie,
            network: network.shortened(prefix.of(network.address())),
            rate: path.rate,
            rtt_us: path.rtt_us,
            age: Duration::from_nanos((now_ns.wrapping_sub(path.learned_ns) as i64).max(0) as u64),
            confirmed: path.confirmed,
            retreated: path.retreated,
            claimed: claim.is_claimed(now_ns),
        }
    }

    fn key(&self) -> PathKey {
        let bits = match self.network.network().address() {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let address = [96, 64, 32, 0].map(|shift| ((bits >> shift) as u32).to_be());
        PathKey { netns_cookie: self.netns_cookie, address }
    }

    fn layout(&self, now_ns: u64) -> Path {
        Path {
            rate: self.rate,
            learned_ns: now_ns.wrapping_sub(self.age.as_nanos() as u64),
            claim_ends_ns: 0,
            rtt_us: self.rtt_us,
            confirmed: self.confirmed,
            retreated: self.retreated,
            unused: 0,
        }
    }
}

/// The cookie of the current network namespace, as learned paths have it.
///
/// # Errors
/// [`Error::Namespace`] if the kernel does not say it.
pub fn netns_cookie() -> Result<u64, Error> {
    Ok(Namespace::current()?.cookie()?)
}

/// The map; `None`: no attachment has had a start policy. The caller holds the lock, or only looks.
fn open() -> Result<Option<Paths>, Error> {
    let path = profiles::path(PATHS);
    if !kernel::has_bpffs() || !pins::is_there(&path)? {
        return Ok(None);
    }
    Paths::try_from(pins::open(&path)?).map(Some).map_err(map_failed("read", &path))
}

/// All learned paths; `None`: no attachment has had a start policy. What connections learn meanwhile may be among them or not.
///
/// # Errors
/// [`Error::Privilege`], or a map that cannot be read.
pub fn learned_paths() -> Result<Option<LearnedPaths>, Error> {
    let Some(settings) = path_settings::path_settings()? else { return Ok(None) };
    let mut paths = all(settings.prefix)?;
    paths.sort_by_key(|path| (path.netns_cookie, path.network));
    Ok(Some(LearnedPaths { paths, settings }))
}

/// All of them, by whose prefix.
fn all(prefix: PathPrefix) -> Result<Vec<LearnedPath>, Error> {
    let Some(map) = open()? else { return Ok(Vec::new()) };
    let now_ns = clock::boot_ns();
    let mut paths = Vec::new();
    for entry in map.iter() {
        let (key, path) = entry.map_err(map_failed("read", &profiles::path(PATHS)))?;
        paths.push(LearnedPath::new(&key, &path, prefix, now_ns));
    }
    Ok(paths)
}

/// Forgets the learned paths of which `which` holds, and returns them. A connection that starts from one goes on.
///
/// # Errors
/// [`Error::Privilege`], or a map that cannot be changed.
pub fn forget_paths(which: impl Fn(&LearnedPath) -> bool) -> Result<Vec<LearnedPath>, Error> {
    kernel::require_privilege("paths")?;
    let _lock = Lock::take_if_mounted()?;
    let mut forgotten = learned_paths()?.map_or_else(Vec::new, |learned| learned.paths);
    forgotten.retain(|path| which(path));
    forget(&forgotten)?;
    Ok(forgotten)
}

fn forget(paths: &[LearnedPath]) -> Result<(), Error> {
    let Some(mut map) = open()? else { return Ok(()) };
    for path in paths {
        match map.remove(&path.key()) {
            // It was the one that was not used for longest.
            Ok(()) | Err(aya::maps::MapError::KeyNotFound) => {}
            Err(error) => return Err(map_failed("write", &profiles::path(PATHS))(error)),
        }
    }
    Ok(())
}

/// Remembers paths, each in the place of what is remembered of it, and for how long, if that is said. Beyond
/// [`crate::PATHS_MAX`] the ones that were not used for longest go. Returns the settings before and now.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NoStartPolicy`], [`Error::PathPrefix`], of which nothing is changed then; or a map that
/// cannot be changed.
pub fn remember_paths(paths: &[LearnedPath], lifetime: Option<Duration>) -> Result<PathsSet, Error> {
    kernel::require_privilege("paths")?;
    let _lock = Lock::take_if_mounted()?;
    let mut map = open()?.ok_or(Error::NoStartPolicy)?;
    let before = path_settings::path_settings()?.ok_or(Error::NoStartPolicy)?;
    for path in paths {
        before.prefix.require(path.network)?;
    }
    let after = PathSettings { lifetime: lifetime.unwrap_or(before.lifetime), ..before };
    if after != before {
        path_settings::write(&after)?;
    }
    let now_ns = clock::boot_ns();
    for path in paths {
        map.insert(path.key(), path.layout(now_ns), 0)
            .map_err(map_failed("write", &profiles::path(PATHS)))?;
    }
    Ok(PathsSet { before, after, forgotten: 0 })
}

/// Changes what is asked for: it holds from now on, for what has been learned, too. Another prefix forgets all paths. A
/// connection that starts from one goes on.
///
/// # Errors
/// [`Error::Privilege`], [`Error::NoStartPolicy`], or a map that cannot be changed.
pub fn set_path_settings(
    lifetime: Option<Duration>,
    prefix: Option<PathPrefix>,
    dry_run: bool,
) -> Result<PathsSet, Error> {
    kernel::require_privilege("paths")?;
    let _lock = Lock::take_if_mounted()?;
    let before = path_settings::path_settings()?.ok_or(Error::NoStartPolicy)?;
    let after = PathSettings {
        lifetime: lifetime.unwrap_or(before.lifetime),
        prefix: prefix.unwrap_or(before.prefix),
    };
    if !dry_run && after != before {
        path_settings::write(&after)?;
    }
    // After that, so that none is learned any more by the prefix before.
    let meant = if after.prefix == before.prefix { Vec::new() } else { all(before.prefix)? };
    if !dry_run {
        forget(&meant)?;
    }
    Ok(PathsSet { before, after, forgotten: meant.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        let prefix = PathPrefix { ipv4: 32, ipv6: 56 };
        // The host had booted a minute before for one, and longer ago than that for the other.
        for (network, now_ns) in [("203.0.113.9", 60_000_000_000), ("2001:db8::/56", 1_000_000_000_000)] {
            let path = LearnedPath {
                netns_cookie: 7,
                network: network.parse().unwrap(),
                rate: 6_250_000,
                rtt_us: 600_000,
                age: Duration::from_secs(90),
                confirmed: 3,
                retreated: 1,
                claimed: false,
            };
            assert_eq!(LearnedPath::new(&path.key(), &path.layout(now_ns), prefix, now_ns), path);
        }
        let learned_meanwhile = Path { learned_ns: 1_001, ..Path::default() };
        let key = PathKey { netns_cookie: 1, address: [0; 4] };
        assert_eq!(LearnedPath::new(&key, &learned_meanwhile, prefix, 1_000).age, Duration::ZERO);
        let mapped = LearnedPath::new(
            &PathKey { netns_cookie: 1, address: [0, 0, 0xffff_u32.to_be(), 0x0102_0304_u32.to_be()] },
            &Path { claim_ends_ns: 1_001, ..Path::default() },
            prefix,
            1_000,
        );
        assert_eq!((mapped.network, mapped.claimed), (Prefix::from(IpAddr::from([1, 2, 3, 4])), true));
    }
}
