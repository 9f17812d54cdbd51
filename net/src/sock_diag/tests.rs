// SPDX-License-Identifier: MIT OR GPL-2.0-only
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

use super::*;
use crate::Namespace;
use crate::netlink::push_attribute;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_attribute(&mut out, kind, value);
    out
}

/// An `inet_diag_msg` of an IPv4 connection, with CONG, INFO and one storage.
fn record() -> Vec<u8> {
    let mut out = vec![libc::AF_INET as u8, 1, 0, 0];
    out.extend(5201_u16.to_be_bytes());
    out.extend(40_000_u16.to_be_bytes());
    out.extend([10, 0, 0, 1].into_iter().chain([0; 12]));
    out.extend([10, 0, 0, 2].into_iter().chain([0; 12]));
    for word in [3_u32, 0x5566_7788, 0x1122_3344, 0, 7, 8, 1000, 4242] {
        out.extend(word.to_ne_bytes());
    }
    assert_eq!(out.len(), 72);
    out.extend(attribute(4, b"onramp_search\0"));
    out.extend(attribute(21, &0x1_0000_0042_u64.to_ne_bytes()));
    out.extend(attribute(2, &[0x22; 232]));
    let memory: Vec<u8> = (1_u32..=9).flat_map(u32::to_ne_bytes).collect();
    out.extend(attribute(7, &memory));
    let mut entry = attribute(1, &[]);
    entry.extend(attribute(2, &9_u32.to_ne_bytes()));
    entry.extend(attribute(3, &[1, 2, 3, 4, 5]));
    out.extend(attribute(20 | libc::NLA_F_NESTED as u16, &attribute(1, &entry)));
    out
}

fn framed(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((payload.len() as u32 + 16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend([0; 2]);
    out.extend(1_u32.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend(payload);
    out
}

#[test]
fn a_record_is_read() {
    let socket = wire::socket(&record()).unwrap();
    assert_eq!(socket.local, "10.0.0.1:5201".parse().unwrap());
    assert_eq!(socket.remote, "10.0.0.2:40000".parse().unwrap());
    assert_eq!(socket.state, TcpState::Established);
    assert_eq!(socket.cookie, 0x1122_3344_5566_7788);
    assert_eq!((socket.interface, socket.receive_queue_bytes, socket.send_queue_bytes), (3, 7, 8));
    assert_eq!((socket.uid, socket.inode), (1000, 4242));
    assert_eq!(socket.congestion_control.as_deref(), Some("onramp_search"));
    assert_eq!(socket.cgroup_id, Some(0x1_0000_0042));
    assert_eq!(socket.info.unwrap().snd_cwnd, 0x2222_2222);
    let memory = SocketMemory { in_host_queue_bytes: 3, queued_bytes: 6, send_buffer_bytes: 4 };
    assert_eq!(socket.memory, Some(memory));
    assert_eq!(socket.storages, [Storage { map_id: 9, value: vec![1, 2, 3, 4, 5] }]);
}

#[test]
fn truncated_and_corrupt_input_never_panics() {
    let datagram = [framed(20, &record()), framed(3, &0_u32.to_ne_bytes())].concat();
    let walk = |bytes: &[u8]| {
        messages(bytes).filter_map(Result::ok).filter(|m| wire::socket(m.payload).is_some()).count()
    };
    assert_eq!(walk(&datagram), 1);
    for length in 0..datagram.len() {
        walk(&datagram[..length]);
    }
    for at in 0..datagram.len() {
        for value in [0, 1, 3, 0x7f, 0xff] {
            let mut corrupt = datagram.clone();
            corrupt[at] = value;
            walk(&corrupt);
        }
    }
    assert_eq!(messages(&datagram[..20]).filter(Result::is_err).count(), 1);
}

#[test]
fn repeated_dumps_deliver_once() {
    let mut seen = Seen::default();
    assert!(seen.is_new(1) && seen.is_new(2));
    seen.begin_again();
    assert!(!seen.is_new(1) && seen.is_new(3) && !seen.is_new(2));
    assert_eq!(seen.delivered.len(), 3);
}

/// Runs in a namespace with loopback up.
fn on_loopback(test: impl FnOnce() + Send) {
    let namespace = Namespace::create().unwrap();
    assert!(namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    namespace.run(test).unwrap();
}

fn pairs(count: usize) -> Vec<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (0..count).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn connections_are_listed_with_their_state() {
    on_loopback(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 10_000]).unwrap();
        server.read_exact(&mut [0; 10_000]).unwrap();

        let mut diag = SockDiag::open().unwrap();
        let mut found = Vec::new();
        assert_eq!(diag.dump(States::ESTABLISHED, &[], |socket| found.push(socket)).unwrap(), 2);
        let of_client = |socket: &&Socket| socket.local == client.local_addr().unwrap();
        let socket = found.iter().find(of_client).expect("the client's socket is listed");
        assert_eq!(socket.remote, client.peer_addr().unwrap());
        assert_ne!((socket.inode, socket.cookie), (0, 0));
        assert!(socket.congestion_control.as_deref().is_some_and(|name| !name.is_empty()));
        let info = socket.info.unwrap();
        assert_eq!(info.bytes_sent, 10_000);
        assert!(info.snd_cwnd > 0 && info.rtt_us > 0 && info.snd_mss > 0 && info.delivered > 0);
        assert!(info.min_rtt_us.is_some() && info.snd_ssthresh.is_none() && info.in_slow_start());

        let mut listening = 0;
        diag.dump(States::LISTEN, &[], |socket| {
            assert_eq!(socket.state, TcpState::Listen);
            listening += 1;
        })
        .unwrap();
        assert_eq!(listening, 1);
    });
}

#[test]
#[ignore = "in a guest: make test"]
fn ten_thousand_sockets_take_well_under_a_second() {
    on_loopback(|| {
        let (_, limit) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
        let connections = (limit.saturating_sub(200) / 2).min(5_000) as usize;
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, limit, limit).unwrap();
        let held = pairs(connections);
        let mut diag = SockDiag::open().unwrap();
        let begin = Instant::now();
        let found = diag.dump(States::ESTABLISHED, &[], drop).unwrap();
        let took = begin.elapsed();
        println!("{found} sockets in {took:?}");
        assert_eq!(found, 2 * held.len());
        assert!(took.as_millis() < 1000, "{took:?}");
    });
}

#[test]
#[ignore = "in a guest: make test"]
fn a_wrong_map_descriptor_is_a_clear_error_and_the_socket_stays_usable() {
    on_loopback(|| {
        let mut diag = SockDiag::open().unwrap();
        let not_a_map = std::fs::File::open("/dev/null").unwrap();
        let error = diag.dump(States::ALL, &[not_a_map.as_fd()], drop).unwrap_err();
        assert!(matches!(error, SockDiagError::Refused { family: "IPv4", storages: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("CAP_BPF"), "{error}");
        assert_eq!(diag.dump(States::ALL, &[], drop).unwrap(), 0);
    });
}
