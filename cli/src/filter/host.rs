//! HOST and PORT of ss(8).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::net::if_::{if_indextoname, if_nametoindex};
use onramp_files::bounded;
use onramp_loader::algorithm::did_you_mean;
use onramp_net::Prefix;

/// Where ports have names.
const SERVICES: &str = "/etc/services";
/// Names that are known where that file is missing.
const WELL_KNOWN: [(&str, u16); 4] = [("ssh", 22), ("domain", 53), ("http", 80), ("https", 443)];

/// An address family that a filter names; it holds for the whole filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Inet,
    Inet6,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Inet6 => "inet6",
        }
    }

    /// All its addresses. IPv4-mapped ones are of IPv4: telemetry does not know which the socket has.
    pub fn addresses(self) -> Prefix {
        match self {
            Self::Inet => Prefix::from(IpAddr::from(Ipv4Addr::UNSPECIFIED)).shortened(0),
            Self::Inet6 => Prefix::from(IpAddr::from(Ipv6Addr::UNSPECIFIED)).shortened(0),
        }
    }
}

/// `PREFIX[:PORT]`, `:PORT`; IPv6 with a port in brackets, `*` for any address or port, and `all`, `any` and `default` for any
/// address. `family`: what an address is of; the text is what is left behind its name.
pub(super) fn host(family: Option<Family>, text: &str) -> Result<(Option<Prefix>, Option<u16>), String> {
    let (host, port) = split_port(text)?;
    let prefix = match host {
        "" | "*" | "all" | "any" | "default" => None,
        host => Some(prefix(host)?),
    };
    if let Some(family) =
        family.filter(|family| prefix.is_some() && (*family == Family::Inet6) != host.contains(':'))
    {
        return Err(format!("{host:?} is not an address of {}", family.name()));
    }
    let any_port = port == Some("*");
    let port = port.map(self::port).transpose()?.flatten();
    if host.is_empty() && port.is_none() && !any_port && family.is_none() {
        return Err(format!("{text:?} names neither a host nor a port"));
    }
    Ok((prefix, port))
}

/// `:PORT`, or PORT; none: any.
pub(super) fn port_alone(text: &str) -> Result<Option<u16>, String> {
    port(text.strip_prefix(':').unwrap_or(text))
}

/// The family that is named before an address, and the rest.
pub(super) fn family(text: &str) -> Result<(Option<Family>, &str), String> {
    match text.split_once(':') {
        Some(("inet", rest)) => Ok((Some(Family::Inet), rest)),
        Some(("inet6", rest)) => Ok((Some(Family::Inet6), rest)),
        Some((family @ ("unix" | "link" | "netlink" | "vsock" | "tipc" | "xdp"), _)) => {
            Err(format!("{family:?} of ss(8) is not supported in a filter of onramp: write inet or inet6"))
        }
        _ => Ok((None, text)),
    }
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        // As ss prints it: [fe80::1]%eth0:443.
        let zone = if rest.starts_with('%') { rest.find(':').unwrap_or(rest.len()) } else { 0 };
        let (zone, rest) = rest.split_at(zone);
        prefix(&format!("{host}{zone}"))?;
        let port = rest.strip_prefix(':');
        return if port.is_some() || rest.is_empty() {
            Ok((host, port))
        } else {
            Err(format!("{text:?} has {rest:?} behind the bracket: write [PREFIX]:PORT"))
        };
    }
    Ok(match text.split_once(':') {
        // More than one colon without brackets: IPv6 without a port.
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    })
}

/// A prefix; of IPv4 also one that lacks its last bytes, which are 0 then. A zone is not compared: telemetry has none.
fn prefix(text: &str) -> Result<Prefix, String> {
    let (text, zone) = zoned(text)?;
    zone.map(interface).transpose()?;
    text.parse().or_else(|error| short(text).ok_or(error))
}

/// `193.233.7/24`, `10/8`.
fn short(text: &str) -> Option<Prefix> {
    let (address, length) = text.split_once('/')?;
    let bytes: Vec<u8> = address
        .split('.')
        .map(|byte| byte.bytes().all(|digit| digit.is_ascii_digit()).then(|| byte.parse().ok())?)
        .collect::<Option<_>>()?;
    let mut whole = [0; 4];
    whole.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Prefix::new(Ipv4Addr::from(whole).into(), length.parse().ok()?)
}

/// An address without its zone, and the zone (RFC 4007, section 11: `fe80::1%eth0`).
///
/// # Errors
/// The zone is empty, or the address is not link-local.
pub(crate) fn zoned(text: &str) -> Result<(&str, Option<&str>), String> {
    let Some((address, zone)) = text.split_once('%') else { return Ok((text, None)) };
    if zone.is_empty() || zone.contains(':') {
        return Err(format!(
            "{text:?} has no interface behind %: write for instance fe80::1%eth0, with a port [fe80::1%eth0]:443"
        ));
    }
    match address.parse() {
        Ok(IpAddr::V6(link_local)) if link_local.is_unicast_link_local() => Ok((address, Some(zone))),
        _ => Err(format!("{text:?}: only link-local addresses (fe80::/10) have a zone: leave %{zone} out")),
    }
}

/// The index of the interface that a zone names, or whose number it is; none: this process may not look.
///
/// # Errors
/// This network namespace has no such interface.
pub(crate) fn interface(zone: &str) -> Result<Option<u32>, String> {
    let by_number = || {
        let number: u32 = zone.parse().map_err(|_| Errno::ENODEV)?;
        // An empty name where there is none.
        if_indextoname(number)?.to_bytes().first().map(|_| number).ok_or(Errno::ENODEV)
    };
    match if_nametoindex(zone).or_else(|error| by_number().map_err(|_| error)) {
        Ok(index) => Ok(Some(index)),
        Err(Errno::EPERM | Errno::EACCES) => Ok(None),
        Err(_) => {
            Err(format!("{zone:?} is no interface of this network namespace: `ip link` lists those that are"))
        }
    }
}

/// A number, or the name of a service; none: `*`, any.
fn port(text: &str) -> Result<Option<u16>, String> {
    if text == "*" {
        return Ok(None);
    }
    let number = text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let named = || SERVICE_PORTS.get(text).copied();
    number.or_else(named).map(Some).ok_or_else(|| {
        format!(
            "{text:?} is not a port{}: write a number from 0 to 65535 such as :443, or a name of {SERVICES}",
            did_you_mean(text, SERVICE_PORTS.keys().map(String::as_str))
        )
    })
}

/// Reads the names of ports now: a process that will confine itself cannot later.
pub(crate) fn read_services() {
    LazyLock::force(&SERVICE_PORTS);
}

static SERVICE_PORTS: LazyLock<HashMap<String, u16>> = LazyLock::new(|| {
    let text = bounded::read_text(SERVICES.as_ref()).unwrap_or_default();
    let named = WELL_KNOWN.into_iter().map(|(name, port)| (name.to_owned(), port));
    named.chain(text.lines().flat_map(services)).collect()
});

/// The names of a line, which has `NAME PORT/PROTOCOL ALIAS…`, with their port of TCP.
fn services(line: &str) -> Vec<(String, u16)> {
    let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
    let (name, port) = (words.next(), words.next());
    let port = port.and_then(|word| word.strip_suffix("/tcp")).and_then(|port| port.parse().ok());
    let Some(port) = port else { return Vec::new() };
    name.into_iter().chain(words).map(|name| (name.to_owned(), port)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_services_names_ports_of_tcp() {
        assert_eq!(
            services("http\t\t80/tcp\t\twww\t# WorldWideWeb"),
            [("http".to_owned(), 80), ("www".to_owned(), 80)]
        );
        assert_eq!(services("ntp 123/udp"), []);
        assert_eq!(services("# only a comment"), []);
        assert_eq!(services("bad 99999/tcp"), []);
    }
}
