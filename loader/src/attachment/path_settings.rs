//! What an operator sets of learned paths, see [`super::paths`].

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use aya::maps::{Array, MapData};
use onramp_net::Prefix;
use onramp_net::prefix::mask;

use crate::object::abi;
use crate::object::open::PATH_SETTINGS;
use crate::pins::{self, map_failed, profiles};
use crate::system::error::Error;
use crate::system::kernel;

/// What holds for all learned paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSettings {
    /// For how long what is learned is used, whole seconds; at half of it, half as much.
    pub lifetime: Duration,
    /// How many bits of an address say which path it is.
    pub prefix: PathPrefix,
}

/// How many bits of an address say which path it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPrefix {
    /// Of IPv4, see [`PathPrefix::IPV4`].
    pub ipv4: u32,
    /// Of IPv6, see [`PathPrefix::IPV6`].
    pub ipv6: u32,
}

impl PathSettings {
    /// Seconds that a lifetime may have. RFC 9959 asks for a limit, and names none. Below ten seconds a path of 600 ms has
    /// few round trips in which another connection could use it; in more than a week routes and beams change.
    pub const LIFETIME_S: RangeInclusive<u64> = 10..=7 * 86_400;

    fn new(settings: &abi::PathSettings) -> Self {
        let bits = |words: &[u32]| words.iter().map(|word| u32::from_be(*word).leading_ones()).sum();
        let prefix = PathPrefix { ipv4: bits(&[settings.mask_ipv4]), ipv6: bits(&settings.mask_ipv6) };
        Self { lifetime: Duration::from_nanos(settings.lifetime_ns), prefix }
    }

    fn layout(&self) -> abi::PathSettings {
        let word = |mask: u128, shift: u32| ((mask >> shift) as u32).to_be();
        abi::PathSettings {
            lifetime_ns: self.lifetime.as_nanos() as u64,
            mask_ipv4: word(mask(self.prefix.ipv4), 96),
            mask_ipv6: [96, 64, 32, 0].map(|shift| word(mask(self.prefix.ipv6), shift)),
            unused: 0,
        }
    }
}

impl PathPrefix {
    /// Lengths of IPv4: from the largest networks that were given to one holder to an address.
    pub const IPV4: RangeInclusive<u32> = 8..=32;
    /// Lengths of IPv6: from what a registry gives to a provider at least (RFC 6177 has what he gives on) to an address.
    pub const IPV6: RangeInclusive<u32> = 32..=128;

    /// How many bits of this address count.
    pub fn of(self, address: IpAddr) -> u32 {
        if address.is_ipv4() { self.ipv4 } else { self.ipv6 }
    }

    /// As the command line has it.
    fn text(self) -> String {
        format!("{},{}", self.ipv4, self.ipv6)
    }

    /// # Errors
    /// [`Error::PathPrefix`] for a path by another prefix.
    pub(super) fn require(self, path: Prefix) -> Result<(), Error> {
        if self.of(path.address()) == path.length() {
            return Ok(());
        }
        let wanted = if path.address().is_ipv4() {
            Self { ipv4: path.length(), ..self }
        } else {
            Self { ipv6: path.length(), ..self }
        };
        Err(Error::PathPrefix { path, have: self.text(), wanted: wanted.text() })
    }
}

fn open() -> Result<Option<Array<MapData, abi::PathSettings>>, Error> {
    let path = profiles::path(PATH_SETTINGS);
    if !kernel::has_bpffs() || !pins::is_there(&path)? {
        return Ok(None);
    }
    Array::try_from(pins::open(&path)?).map(Some).map_err(map_failed("read", &path))
}

/// The settings of learned paths; `None`: no attachment has had a start policy.
///
/// # Errors
/// [`Error::Privilege`], or a map that cannot be read.
pub fn path_settings() -> Result<Option<PathSettings>, Error> {
    kernel::require_privilege("paths")?;
    let Some(map) = open()? else { return Ok(None) };
    let settings = map.get(&0, 0).map_err(map_failed("read", &profiles::path(PATH_SETTINGS)))?;
    Ok(Some(PathSettings::new(&settings)))
}

/// Writes them. The caller holds the lock.
pub(super) fn write(settings: &PathSettings) -> Result<(), Error> {
    let mut map = open()?.ok_or(Error::NoStartPolicy)?;
    map.set(0, settings.layout(), 0).map_err(map_failed("write", &profiles::path(PATH_SETTINGS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        for (ipv4, ipv6) in [(8, 32), (24, 56), (25, 64), (32, 128)] {
            let prefix = PathPrefix { ipv4, ipv6 };
            let settings = PathSettings { lifetime: Duration::from_secs(7 * 86_400), prefix };
            assert_eq!(PathSettings::new(&settings.layout()), settings);
        }
        let layout =
            PathSettings { lifetime: Duration::ZERO, prefix: PathPrefix { ipv4: 24, ipv6: 56 } }.layout();
        assert_eq!(layout.mask_ipv4.to_ne_bytes(), [255, 255, 255, 0]);
        assert_eq!(layout.mask_ipv6.map(u32::to_ne_bytes), [[255; 4], [255, 255, 255, 0], [0; 4], [0; 4]]);
    }

    #[test]
    fn a_path_by_another_prefix_is_refused_with_both() {
        let prefix = PathPrefix { ipv4: 24, ipv6: 56 };
        for path in ["203.0.113.0/24", "2001:db8::/56"] {
            prefix.require(path.parse().unwrap()).unwrap();
        }
        for (path, wanted) in [("203.0.113.9", "32,56"), ("2001:db8::/48", "24,48")] {
            let error = prefix.require(path.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("24,56") && error.contains(&format!("prefix={wanted}")), "{error}");
        }
    }
}
