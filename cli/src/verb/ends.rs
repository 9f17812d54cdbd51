//! An end of a connection in text.

use std::net::SocketAddr;

/// Address and port; an IPv4-mapped address is the IPv4 address.
pub(super) fn canonical(end: SocketAddr) -> String {
    SocketAddr::new(end.ip().to_canonical(), end.port()).to_string()
}
