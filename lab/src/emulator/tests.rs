// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The handle on a running emulator, with real packets.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use onramp_net::Namespace;

use super::*;
use crate::host::ip;
use crate::link::{DirectionSpec, Limit};

const HERE: &str = "192.0.2.1:7000";
const THERE: &str = "192.0.2.2:7000";

fn side(name: &'static str, address: &str) -> (Namespace, Tun, UdpSocket) {
    let namespace = Namespace::create().unwrap();
    let tun = Tun::create(&namespace, "onramp0").unwrap();
    let lines = format!("link set onramp0 mtu {MTU} up\naddress add {}/24 dev onramp0\n", &address[..9]);
    ip(name, &namespace, &lines).unwrap();
    let socket = namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (namespace, tun, socket)
}

#[test]
#[ignore = "in a guest: make test"]
fn rate_and_delay_change_while_packets_flow() {
    let (_one, sender, here) = side("sender", HERE);
    let (_other, receiver, there) = side("receiver", THERE);
    let direction = DirectionSpec::new(1_000_000_000, 1_000, Limit::Packets(1_000));
    let link = LinkSpec { forward: direction.clone(), back: direction };
    let emulator = Emulator::start(sender, receiver, &link, 1, 0).unwrap();
    let mut buffer = [0; MTU];
    let mut fly = |bytes: usize| {
        let sent = Instant::now();
        here.send_to(&vec![0; bytes], THERE).unwrap();
        there.recv_from(&mut buffer).unwrap();
        sent.elapsed()
    };
    fly(100);
    // A change can only make packets slower here than they were set to be, so a busy machine does no harm.
    emulator.set(Way::Forward, Change { delay_us: Some(300_000), rate_bps: None }).unwrap();
    assert!(fly(100) >= Duration::from_millis(300));
    // 1,250 bytes with headers at 100 kb/s are 100 ms.
    emulator.set(Way::Forward, Change { delay_us: Some(0), rate_bps: Some(100_000) }).unwrap();
    assert!(fly(1_222) >= Duration::from_millis(100));
    // A packet in transmission is finished at the new rate: at 1 kb/s it would take ten seconds.
    emulator.set(Way::Forward, Change { rate_bps: Some(1_000), delay_us: None }).unwrap();
    here.send_to(&[0; 1_222], THERE).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    emulator.set(Way::Forward, Change { rate_bps: Some(1_000_000_000), delay_us: None }).unwrap();
    there.recv_from(&mut buffer).unwrap();

    let error = emulator.set(Way::Return, Change { rate_bps: Some(1), delay_us: None }).unwrap_err();
    assert_eq!(error.to_string(), "link.return.rate_bps = 1 is out of range: expected 1000 to 100000000000");
    let report = emulator.stop().unwrap();
    assert_eq!(report.forward.counters.delivered, report.forward.counters.arrived);
}
