// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Linux networking plumbing that both the loader and the lab need, and nothing else:
//!
//! * [`namespace`]: network namespaces held by file descriptor, code and commands run inside them, their
//!   `net.*` sysctls, and a list of all namespaces of the host.
//! * [`interface`]: network interfaces.
//! * [`mounts`]: what is mounted where.
//! * [`prefix`]: prefixes of IPv4 and IPv6 addresses.
//! * [`receiver`]: what this host's TCP allows any sender of data to do.
//! * [`route`]: the congestion control that a route has.
//! * [`sock_diag`]: TCP sockets with `tcp_info`, congestion control name and BPF socket storage.
//! * [`tun`]: TUN devices.
//!
//! Nothing here leaves anything behind: a namespace made by [`namespace::Namespace::create`] has no name in the
//! file system and ends with the last descriptor, also when the process is killed.

pub mod interface;
pub mod mounts;
pub mod namespace;
mod netlink;
pub mod prefix;
pub mod receiver;
pub mod route;
pub mod sock_diag;
pub mod tun;

pub use namespace::{Namespace, NamespaceError};
pub use prefix::Prefix;
