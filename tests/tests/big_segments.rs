//! Segments larger than Ethernet's, and bursts of them that are sent, received and acknowledged as one.

use std::io::Write;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Duration;

use onramp_lab::experiment::veth_pair;
use onramp_lab::host::RECEIVER;
use onramp_loader::abi::ExitRecord;
use onramp_loader::telemetry::{Level, What};
use onramp_loader::{ExitReason, Flow, Phase};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::cli::DEFAULT;
use onramp_tests::connection::{Connection, bytes_from};
use onramp_tests::counted::ends;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::Wire;

/// One way; the RTT is twice this.
const DELAY: Duration = Duration::from_millis(20);
const ALGORITHMS: [&str; 2] = ["ramp", "search"];
/// `tcp_rmem` and `tcp_wmem` that no window is bounded by.
const LARGE_BUFFERS: &str = "4096 4000000 100000000";
/// Of IPv4 and TCP with timestamps, bytes.
const HEADERS: u32 = 52;

/// The exit that the algorithm has decided.
#[track_caller]
fn by_algorithm(flow: &Flow) -> ExitRecord {
    let Phase::Left(ExitReason::Algorithm, record) = flow.phase() else {
        panic!("{}: {:?} {:?}", flow.algorithm.name(), flow.phase(), flow.info)
    };
    record
}

#[test]
#[ignore = "in a guest: make test"]
fn large_segments_leave_slow_start_at_windows_of_as_many_segments() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let bring = |mtu: u32, control: &str| {
        let wire = Wire::lay(DELAY, bottleneck(1_000_000, 16 * 27)).with_mtu(mtu);
        for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            wire.sysctl(name, LARGE_BUFFERS);
        }
        let mut sender = Sender::connect(wire, control);
        let came = sender.bring(480 * (mtu - HEADERS) as usize);
        assert_eq!((came.retransmitted, sender.info().snd_mss), (0, mtu - HEADERS), "{control}");
        (sender, came)
    };
    // Of jumbo frames, and the most that IPv4 can have, which the stock control is to carry as well.
    let stock = bring(65_535, "cubic").1;
    for algorithm in ALGORITHMS {
        let control = format!("onramp_{algorithm}");
        let windows = [1_500, 9_000, 65_535].map(|mtu| {
            let (sender, came) = bring(mtu, &control);
            let record = by_algorithm(&sender.flow());
            println!("{algorithm}, MTU {mtu}: {record:?}");
            assert_eq!(u32::from(record.mss), mtu - HEADERS, "{algorithm}: {record:?}");
            assert!(came.read == stock.read || mtu < 65_535, "{algorithm}: {came:?}");
            record.window
        });
        // The bottleneck takes packets of any size as fast: 27 in an RTT, and sixteen times as many in its queue.
        assert!(windows.iter().all(|window| (27..17 * 27).contains(window)), "{algorithm}: {windows:?}");
        assert_eq!(ends(algorithm), [("algorithm", 3)].into(), "{algorithm}");
    }
}

/// A connection that has sent so many bytes, each of which was read.
fn transfer(near: &Namespace, far: &Namespace, address: IpAddr, bytes: usize) -> TcpStream {
    let connection = Connection { ipv6: address.is_ipv6(), ..Connection::default() };
    let (mut stream, reader) = connection.between(near, far, address);
    stream.write_all(&bytes_from(0, bytes)).unwrap();
    assert!(eventually(|| reader.read() == bytes as u64), "{} of {bytes}", reader.read());
    stream
}

fn flow(place: &Namespace, stream: &TcpStream) -> Flow {
    let local = stream.local_addr().unwrap();
    let listed = place.run(|| onramp_loader::flows(|socket| socket.local == local)).unwrap().unwrap();
    listed.into_iter().next().expect("listed")
}

#[test]
#[ignore = "in a guest: make test"]
fn the_largest_segments_of_the_loopback_of_either_family_are_counted_as_what_they_are() {
    let _attachments = Attachments::new(&ALGORITHMS);
    let place = Namespace::create().unwrap();
    assert!(place.command("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    // A segment is half of the largest window that the receiver has offered at most.
    place.sysctl_set("net.ipv4.tcp_rmem", LARGE_BUFFERS).unwrap();
    for (address, mss) in [("127.0.0.1", 65_483), ("::1", 65_464)] {
        for algorithm in ALGORITHMS {
            place.sysctl_set(DEFAULT, &format!("onramp_{algorithm}")).unwrap();
            let stream = transfer(&place, &place, address.parse().unwrap(), 8_000_000);
            let flow = flow(&place, &stream);
            println!("{algorithm} {address}: {:?}", flow.phase());
            assert_eq!(
                (flow.info.snd_mss, flow.info.retrans_total),
                (mss, 0),
                "{algorithm}: {:?}",
                flow.info
            );
            assert!(
                flow.header.is_some_and(|header| header.slow_starts == 1),
                "{algorithm}: {:?}",
                flow.header
            );
            // A loopback has neither a rate nor a delay that an exit could be held to.
            if let Phase::Left(..) = flow.phase() {
                let record = by_algorithm(&flow);
                assert!(record.window >= 10 && u32::from(record.mss) == mss, "{algorithm}: {record:?}");
            }
        }
    }
    for algorithm in ALGORITHMS {
        // The ends that accept have the default as well, and nothing to send.
        let ended = ends(algorithm);
        assert_eq!((ended["no state"], ended.values().sum::<u64>()), (2, 4), "{algorithm}: {ended:?}");
    }
}

/// Switches an offload of a device on or off: the number of an `ETHTOOL_S…` command.
fn offload(place: &Namespace, command: u32, on: bool) {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let set = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let mut value = Value { command, data: on.into() };
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(b"veth0") {
            *to = *from as libc::c_char;
        }
        let data = (&raw mut value).cast();
        let mut request =
            libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
        // SAFETY: SIOCETHTOOL reads a request whose data is the structure of this command, both of which live on.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    };
    place.run(set).unwrap();
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

/// An algorithm, the options of the netem of a veth pair, and the windows at which slow start may end there, segments. The
/// paths hold 133 and 30; over the second one an ACK stands for up to 45 segments, which is too coarse for the bins of `search`,
/// and `ramp` needs four in half of a round, twice: 360 segments at least if all are so large, 30 times what is held at most.
const CASES: [(&str, &str, Range<u32>); 3] = [
    ("ramp", "delay 10ms rate 80mbit", 133..8 * 133),
    ("ramp", "delay 1ms rate 180mbit", 30..30 * 30),
    ("search", "delay 10ms rate 80mbit", 133..8 * 133),
];

#[test]
#[ignore = "in a guest: make test"]
fn bursts_that_are_sent_and_acknowledged_as_one_end_slow_start_where_single_segments_do() {
    let _attachments = Attachments::new(&ALGORITHMS);
    for (algorithm, path, windows) in CASES {
        for on in [false, true] {
            let (near, far) = veth_pair().unwrap();
            for end in [&near, &far] {
                for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
                    offload(end, command, on);
                }
                let words = format!("qdisc add dev veth0 root netem {path} limit 3000");
                assert!(end.command("tc").args(words.split(' ')).status().unwrap().success());
                end.sysctl_set(DEFAULT, "reno").unwrap();
            }
            near.sysctl_set(DEFAULT, &format!("onramp_{algorithm}")).unwrap();
            let mut stream_of_acks = stream(Level::Ack);
            let stream = transfer(&near, &far, RECEIVER.into(), 3_000_000);
            let flow = flow(&near, &stream);
            drop(stream);
            let reported = until_ended(&mut stream_of_acks, 1);
            let acked = events(&reported).into_iter().filter_map(|event| match &event.what {
                What::Ack(reported) => Some(reported.ack.acked),
                _ => None,
            });
            let most = acked.max().unwrap();
            println!("{algorithm}, {path}, offloads {on}: ACKs of up to {most} segments, {:?}", flow.phase());
            // Without offloads a receiver acknowledges every second segment at least.
            assert!(!on || most >= 8, "{algorithm}: ACKs of {most} segments at most");
            let window = by_algorithm(&flow).window;
            assert!(windows.contains(&window), "{algorithm}, {path}, offloads {on}: {window}");
            assert_eq!(flow.info.retrans_total, 0, "{algorithm}, {path}, offloads {on}");
        }
    }
    for algorithm in ALGORITHMS {
        let flows = 2 * CASES.iter().filter(|(of, ..)| *of == algorithm).count() as u64;
        assert_eq!(ends(algorithm), [("algorithm", flows)].into());
    }
}
