// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TUN devices: a network interface on one side, a descriptor that reads and writes IP packets on the other, without
//! their checksums, and reads TCP segments of many packets at once ([`Tun::create`]), or as they are on a wire
//! ([`Tun::create_plain`]).
//! A device ends with its descriptor, so nothing stays behind a killed process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;
use thiserror::Error;

use crate::interface::{self, NAME_MAX};
use crate::{Namespace, NamespaceError};

/// Layer 3, nothing before the IP header.
const PLAIN: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI;
/// The header of offloads before that of IP.
const OFFLOADS: libc::c_int = PLAIN | libc::IFF_VNET_HDR;

/// What can go wrong with a TUN device.
#[derive(Debug, Error)]
pub enum TunError {
    /// The name does not fit.
    #[error("interface name {0:?} is out of range: expected 1 to {NAME_MAX} bytes without NUL")]
    Name(String),
    /// `/dev/net/tun` cannot be opened.
    #[error("cannot open /dev/net/tun: {0}; this needs root and a kernel with CONFIG_TUN")]
    Open(#[source] io::Error),
    /// The device cannot be made.
    #[error("cannot create TUN device {name}: {source}; this needs root (CAP_NET_ADMIN)")]
    Create {
        /// Name of the device.
        name: String,
        /// Reason.
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// A TUN device in a namespace, not blocking.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Creates device `name` in `namespace`; it is down and has no address.
    ///
    /// # Errors
    /// [`TunError`] without root or TUN, or when the name is taken.
    pub fn create(namespace: &Namespace, name: &str) -> Result<Self, TunError> {
        let tun = Self::create_with(OFFLOADS, namespace, name)?;
        set_offloads(&tun.file).map_err(|source| TunError::Create { name: name.into(), source })?;
        Ok(tun)
    }

    /// The same without offloads: a reader and writer of its descriptor handles IP packets as they are on a wire, one
    /// at a time and with their checksums.
    ///
    /// # Errors
    /// Those of [`Tun::create`].
    pub fn create_plain(namespace: &Namespace, name: &str) -> Result<Self, TunError> {
        Self::create_with(PLAIN, namespace, name)
    }

    fn create_with(flags: libc::c_int, namespace: &Namespace, name: &str) -> Result<Self, TunError> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
            return Err(TunError::Name(name.into()));
        }
        // The device belongs to the namespace of the thread that opened /dev/net/tun.
        namespace.run(|| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open("/dev/net/tun")
                .map_err(TunError::Open)?;
            set_interface(&file, name, flags)
                .map_err(|source| TunError::Create { name: name.into(), source })?;
            Ok(Self { file })
        })?
    }

    /// Reads one packet, or a segment behind its header; `None` when there is none.
    ///
    /// # Errors
    /// As read(2), for instance when the device is down.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands one packet, or a segment behind its header, to the kernel as if received.
    ///
    /// # Errors
    /// As write(2), for instance when the device is down.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `TUNSETIFF`.
fn set_interface(file: &File, name: &str, flags: libc::c_int) -> io::Result<()> {
    let mut request = interface::request(name);
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes one struct ifreq, which `request` is, with a name that ends in NUL.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `TUNSETOFFLOAD`: checksums may be left out, and segments of TCP over IPv4 left whole.
fn set_offloads(file: &File) -> io::Result<()> {
    let offloads = libc::c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4);
    // SAFETY: TUNSETOFFLOAD takes a number.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
