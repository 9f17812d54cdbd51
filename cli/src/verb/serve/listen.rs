//! The address of the server.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use anyhow::Context;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};

pub(super) use super::socket_file::SocketFile;
use super::{socket_file, users};
use crate::failure::Usage;

/// A place to listen at: an address with a port, or a UNIX socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Reads a place.
pub(super) fn place(text: &str) -> Result<Place, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() || !path.starts_with('/') {
            return Err("a UNIX socket needs an absolute path: write unix:/run/onramp.sock".into());
        }
        return Ok(Place::Unix(path.into()));
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        format!(
            "{text:?} is no address with a port: write 127.0.0.1:8090, [::1]:8090 or unix:/run/onramp.sock"
        )
    })?;
    Ok(Place::Tcp(address))
}

impl Place {
    /// Refuses what others on the network could reach, unless it is encrypted and asks who reads.
    pub fn require_protection(&self, tls: bool, token: bool) -> anyhow::Result<()> {
        match self {
            Self::Unix(path) if tls => Err(Usage::error(format!(
                "--tls-cert is for addresses, and --listen unix:{} is none: the web server in front speaks TLS",
                path.display()
            ))),
            Self::Tcp(address) if !(address.ip().to_canonical().is_loopback() || tls && token) => {
                Err(Usage::error(format!(
                    "{address} could be reached from the network, which takes TLS and a token for reading: give --tls-cert, --tls-key and --read-token-file; or from elsewhere use `ssh -L 8090:127.0.0.1:8090 HOST`, or --listen unix:PATH behind a web server that does both, with --allow-host NAME"
                )))
            }
            _ => Ok(()),
        }
    }

    /// As in a browser.
    pub fn url(&self, tls: bool) -> String {
        let scheme = if tls { "https" } else { "http" };
        match self {
            Self::Tcp(address) => format!("{scheme}://{address}/"),
            Self::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

/// A socket that is bound and not listening yet.
pub(super) struct Bound {
    pub socket: OwnedFd,
    /// With the port that the kernel chose, if it was to.
    pub place: Place,
    /// A UNIX socket's file, removed when this is dropped.
    pub file: Option<SocketFile>,
}

/// Binds. A UNIX socket is for its owner and this group (by default the owner's) alone.
pub(super) fn bound(place: &Place, group: Option<&str>) -> anyhow::Result<Bound> {
    match place {
        Place::Tcp(_) if group.is_some() => {
            Err(Usage::error("--socket-group is for a UNIX socket: give --listen unix:PATH too"))
        }
        Place::Tcp(address) => tcp(*address),
        Place::Unix(path) => {
            let (socket, file) = socket_file::bound(path, group.map(users::group).transpose()?)?;
            Ok(Bound { socket, place: place.clone(), file: Some(file) })
        }
    }
}

fn tcp(address: SocketAddr) -> anyhow::Result<Bound> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket =
        socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).context("cannot make a socket")?;
    setsockopt(&socket, sockopt::ReuseAddr, &true).context("cannot set SO_REUSEADDR")?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address)).with_context(|| {
        format!(
            "cannot bind to {address}: does another program listen there? choose another port with --listen"
        )
    })?;
    let listener = std::net::TcpListener::from(socket);
    let place = Place::Tcp(listener.local_addr().context("cannot ask for the port")?);
    Ok(Bound { socket: listener.into(), place, file: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_reaches_only_what_is_encrypted_and_asks_who_reads() {
        for own in ["127.0.0.1:8090", "127.9.9.9:0", "[::1]:80", "unix:/run/onramp.sock"] {
            assert!(place(own).unwrap().require_protection(false, false).is_ok(), "{own}");
        }
        for far in ["0.0.0.0:8090", "[::]:8090", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            let far = place(far).unwrap();
            for (tls, token) in [(false, false), (true, false), (false, true)] {
                let said = far.require_protection(tls, token).unwrap_err().to_string();
                assert!(said.contains("ssh -L") && said.contains("--read-token-file"), "{said}");
            }
            assert!(far.require_protection(true, true).is_ok(), "{far:?}");
        }
        assert!(place("unix:/s").unwrap().require_protection(true, true).is_err());
        for bad in ["8090", "localhost:8090", "unix:", "unix:here.sock", ""] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
