// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The layouts of linux/inet_diag.h. Short or odd input gives `None`, never a panic.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Socket, SocketMemory, Storage, TcpInfo, TcpState};
use crate::netlink::{attributes, push_attribute, text, u8_at, u16_at, u32_at, u64_at, with_header};

/// `struct inet_diag_msg`: 4 bytes, `inet_diag_sockid` (48), five u32.
const DIAG_MESSAGE: usize = 72;

/// linux/sock_diag.h, linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_SK_BPF_STORAGES: u16 = 20;
const INET_DIAG_CGROUP_ID: u16 = 21;
const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
const SK_DIAG_BPF_STORAGE_REQ_MAP_FD: u16 = 1;
const SK_DIAG_BPF_STORAGE: u16 = 1;
const SK_DIAG_BPF_STORAGE_MAP_ID: u16 = 2;
const SK_DIAG_BPF_STORAGE_MAP_VALUE: u16 = 3;

/// A dump request for one address family (`AF_INET`, `AF_INET6`).
pub(super) fn request(family: u8, states: u32, storages: &[BorrowedFd<'_>], sequence: u32) -> Vec<u8> {
    let extension = |kind: u16| 1_u8 << (kind - 1);
    let extensions = extension(INET_DIAG_INFO) | extension(INET_DIAG_CONG) | extension(INET_DIAG_SKMEMINFO);
    with_header(SOCK_DIAG_BY_FAMILY, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, sequence, |out| {
        // struct inet_diag_req_v2
        out.extend([family, libc::IPPROTO_TCP as u8, extensions, 0]);
        out.extend(states.to_ne_bytes());
        out.extend([0; 48]); // struct inet_diag_sockid: any
        if !storages.is_empty() {
            let mut nested = Vec::new();
            for map in storages {
                push_attribute(&mut nested, SK_DIAG_BPF_STORAGE_REQ_MAP_FD, &map.as_raw_fd().to_ne_bytes());
            }
            push_attribute(out, INET_DIAG_REQ_SK_BPF_STORAGES | libc::NLA_F_NESTED as u16, &nested);
        }
    })
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
        cgroup_id: None,
        congestion_control: None,
        info: None,
        memory: None,
        storages: Vec::new(),
    };
    for (kind, value) in attributes(attributes_of) {
        match kind {
            INET_DIAG_CONG => socket.congestion_control = Some(text(value)),
            INET_DIAG_CGROUP_ID => socket.cgroup_id = u64_at(value, 0),
            INET_DIAG_INFO => socket.info = Some(TcpInfo::parse(value)),
            INET_DIAG_SKMEMINFO => socket.memory = memory(value),
            INET_DIAG_SK_BPF_STORAGES => socket.storages = storages(value),
            _ => {}
        }
    }
    Some(socket)
}

/// By the numbers of linux/sock_diag.h: SK_MEMINFO_WMEM_ALLOC, SK_MEMINFO_WMEM_QUEUED, SK_MEMINFO_SNDBUF.
fn memory(value: &[u8]) -> Option<SocketMemory> {
    let word = |number: usize| u32_at(value, 4 * number);
    Some(SocketMemory { in_host_queue_bytes: word(2)?, queued_bytes: word(5)?, send_buffer_bytes: word(3)? })
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
