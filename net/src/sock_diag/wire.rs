// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Netlink framing and the layouts of linux/inet_diag.h. Everything that comes from the kernel is read through
//! bounds-checked accessors: short or odd input gives `None`, never a panic.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Socket, Storage, TcpInfo, TcpState};

/// `struct nlmsghdr` and alignment of messages and attributes.
const HEADER: usize = 16;
const ALIGN: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// `struct inet_diag_msg`: 4 bytes, `inet_diag_sockid` (48), five u32.
const DIAG_MESSAGE: usize = 72;

/// linux/sock_diag.h, linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SK_BPF_STORAGES: u16 = 20;
const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
const SK_DIAG_BPF_STORAGE_REQ_MAP_FD: u16 = 1;
const SK_DIAG_BPF_STORAGE: u16 = 1;
const SK_DIAG_BPF_STORAGE_MAP_ID: u16 = 2;
const SK_DIAG_BPF_STORAGE_MAP_VALUE: u16 = 3;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are flags in an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_ne_bytes)
}

/// One netlink message.
pub(super) struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

/// The messages of one datagram. `Err(())` is the last item when the rest is not a message.
pub(super) fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, ()>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = message(rest);
        rest = match &message {
            Some((_, length)) => rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default(),
            None => &[],
        };
        Some(message.map(|(message, _)| message).ok_or(()))
    })
}

fn message(bytes: &[u8]) -> Option<(Message<'_>, usize)> {
    let length = u32_at(bytes, 0)? as usize;
    let message = Message {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        sequence: u32_at(bytes, 8)?,
        payload: bytes.get(HEADER..length)?,
    };
    Some((message, length))
}

/// Attributes by type, flags removed. Ends early at anything malformed.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A dump request for one address family (`AF_INET`, `AF_INET6`).
pub(super) fn request(family: u8, states: u32, storages: &[BorrowedFd<'_>], sequence: u32) -> Vec<u8> {
    let extensions = (1_u8 << (INET_DIAG_INFO - 1)) | (1_u8 << (INET_DIAG_CONG - 1));
    let mut out = Vec::with_capacity(128);
    out.extend(0_u32.to_ne_bytes()); // length, below
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes()); // port: the kernel fills it in
    // struct inet_diag_req_v2
    out.extend([family, libc::IPPROTO_TCP as u8, extensions, 0]);
    out.extend(states.to_ne_bytes());
    out.extend([0; 48]); // struct inet_diag_sockid: any
    if !storages.is_empty() {
        let nested = storages.len() * (ATTRIBUTE_HEADER + 4);
        out.extend(((ATTRIBUTE_HEADER + nested) as u16).to_ne_bytes());
        out.extend((INET_DIAG_REQ_SK_BPF_STORAGES | libc::NLA_F_NESTED as u16).to_ne_bytes());
        for map in storages {
            out.extend(((ATTRIBUTE_HEADER + 4) as u16).to_ne_bytes());
            out.extend(SK_DIAG_BPF_STORAGE_REQ_MAP_FD.to_ne_bytes());
            out.extend(map.as_raw_fd().to_ne_bytes());
        }
    }
    let length = (out.len() as u32).to_ne_bytes();
    out[..4].copy_from_slice(&length);
    out
}

/// Reads `struct inet_diag_msg` and what follows it. `None` when it is too short or of an unknown family.
pub(super) fn socket(payload: &[u8]) -> Option<Socket> {
    let family = u8_at(payload, 0)?;
    let attributes_of = payload.get(DIAG_MESSAGE..)?;
    let mut socket = Socket {
        local: address(family, payload.get(8..24)?, port(payload, 4)?)?,
        remote: address(family, payload.get(24..40)?, port(payload, 6)?)?,
        state: TcpState::from_raw(u8_at(payload, 1)?),
        cookie: u64::from(u32_at(payload, 44)?) | u64::from(u32_at(payload, 48)?) << 32,
        interface: u32_at(payload, 40)?,
        receive_queue_bytes: u32_at(payload, 56)?,
        send_queue_bytes: u32_at(payload, 60)?,
        uid: u32_at(payload, 64)?,
        inode: u32_at(payload, 68)?,
        congestion_control: None,
        info: None,
        storages: Vec::new(),
    };
    for (kind, value) in attributes(attributes_of) {
        match kind {
            INET_DIAG_CONG => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                socket.congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            INET_DIAG_INFO => socket.info = Some(TcpInfo::parse(value)),
            INET_DIAG_SK_BPF_STORAGES => socket.storages = storages(value),
            _ => {}
        }
    }
    Some(socket)
}

fn storages(value: &[u8]) -> Vec<Storage> {
    let mut out = Vec::new();
    for (kind, entry) in attributes(value) {
        if kind != SK_DIAG_BPF_STORAGE {
            continue;
        }
        let (mut map_id, mut bytes) = (None, None);
        for (kind, value) in attributes(entry) {
            match kind {
                SK_DIAG_BPF_STORAGE_MAP_ID => map_id = u32_at(value, 0),
                SK_DIAG_BPF_STORAGE_MAP_VALUE => bytes = Some(value.to_vec()),
                _ => {}
            }
        }
        if let (Some(map_id), Some(value)) = (map_id, bytes) {
            out.push(Storage { map_id, value });
        }
    }
    out
}

fn port(payload: &[u8], at: usize) -> Option<u16> {
    u16_at(payload, at).map(u16::from_be)
}

fn address(family: u8, bytes: &[u8], port: u16) -> Option<SocketAddr> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    match i32::from(family) {
        libc::AF_INET => {
            let [a, b, c, d, ..] = bytes;
            Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port).into())
        }
        libc::AF_INET6 => Some(SocketAddrV6::new(Ipv6Addr::from(bytes), port, 0, 0).into()),
        _ => None,
    }
}
