// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Network interfaces of the calling thread's namespace, by their names (netdevice(7)).

use std::mem::zeroed;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Longest name of an interface, without the NUL that ends it.
pub const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// A request about an interface, for whose name [`NAME_MAX`] bytes count.
pub(crate) fn request(name: &str) -> libc::ifreq {
    // SAFETY: all zero is an ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(NAME_MAX)) {
        *to = from as libc::c_char;
    }
    request
}

/// Sets something about an interface: `what` is an ioctl that reads one `ifreq`.
pub(crate) fn set(name: &str, what: libc::c_ulong, value: libc::__c_anonymous_ifr_ifru) -> Result<(), Errno> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let request = libc::ifreq { ifr_ifru: value, ..request(name) };
    // SAFETY: these read one ifreq, which `request` is, with a name that ends in NUL.
    let result = unsafe { libc::ioctl(any.as_raw_fd(), what, &raw const request) };
    Errno::result(result).map(drop)
}

/// Has an interface up.
///
/// # Errors
/// As netdevice(7) has them for `SIOCSIFFLAGS`: there is none of this name, or the privilege is missing.
pub fn set_up(name: &str) -> Result<(), Errno> {
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    set(name, libc::SIOCSIFFLAGS, libc::__c_anonymous_ifr_ifru { ifru_flags: flags })
}
