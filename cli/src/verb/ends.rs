//! The ends of a connection, in text and in JSON.

use std::net::SocketAddr;

use serde::Serialize;

/// Both ends, as canonical addresses.
#[derive(Debug, Serialize)]
pub(super) struct Ends {
    local_address: String,
    local_port: u16,
    remote_address: String,
    remote_port: u16,
}

impl Ends {
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let address = |end: SocketAddr| end.ip().to_canonical().to_string();
        Self {
            local_address: address(local),
            local_port: local.port(),
            remote_address: address(remote),
            remote_port: remote.port(),
        }
    }
}

/// Address and port; an IPv4-mapped address is the IPv4 address.
pub(super) fn canonical(end: SocketAddr) -> String {
    SocketAddr::new(end.ip().to_canonical(), end.port()).to_string()
}
