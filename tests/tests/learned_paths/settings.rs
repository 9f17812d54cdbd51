//! What an operator sets of learned paths (`onramp paths set`).

use std::net::{IpAddr, Ipv4Addr, TcpStream};

use onramp_tests::connection::bytes_from;
use onramp_tests::wire::FAR_IPV6;
use serde_json::{Value, json as value};

use super::*;

/// Another host of the far end, in the same /24.
const SLOW: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 3);

fn settings() -> Value {
    json("paths list")["settings"].clone()
}

fn shown(lifetime_s: u64, ipv4: u32, ipv6: u32) -> Value {
    value!({ "lifetime_s": lifetime_s, "prefix_ipv4_bits": ipv4, "prefix_ipv6_bits": ipv6 })
}

fn window_of(wire: &Wire, connection: Connection) -> u32 {
    let (stream, _reader) = connection.over(wire);
    info(wire, &stream).snd_cwnd
}

#[test]
#[ignore = "in a guest: make test"]
fn a_lifetime_holds_at_once_and_nothing_of_a_wrong_setting_does() {
    let _attachments = Attachments::lock();
    assert!(onramp("paths set lifetime=1h").refused(2).contains("--start"));
    onramp("attach plain --base cubic --start resume+window").ok();
    assert_eq!(settings(), shown(600, 32, 128));
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    import(&wire, &format!("{FAR} 100mbit,60ms 5s\n"));
    assert_eq!(first_window(&wire), FIRST_MAX);
    let set = json("paths set lifetime=10s");
    assert_eq!((&set["undo"], &set["forgotten"]), (&"onramp paths set lifetime=600s".into(), &0.into()));
    // A guest has not been up for long, which is the most that a path can be old.
    assert!(eventually(|| of_far().unwrap()["age_s"].as_u64() >= Some(10)));
    assert_eq!(first_window(&wire), 10, "it is older");
    for wrong in ["lifetime=1h prefix=33,56", "prefix=24,56 lifetime=9s", "lifetime=1h age=1"] {
        onramp(&format!("paths set {wrong}")).refused(2);
    }
    assert_eq!(settings(), shown(10, 32, 128));
    onramp("paths set lifetime=600s").ok();
    assert_eq!(first_window(&wire), FIRST_MAX, "and has not been forgotten");
    onramp("detach plain").ok();
    assert_eq!(settings(), Value::Null);
}

#[test]
#[ignore = "in a guest: make test"]
fn another_prefix_forgets_all_paths_and_each_host_of_it_starts_from_one() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic --start resume+window").ok();
    let wire = remembered().with_ipv6();
    let dry = json("paths set prefix=24,56 --dry-run");
    assert_eq!((&dry["forgotten"], &dry["before"]), (&1.into(), &settings()));
    assert_eq!(first_window(&wire), FIRST_MAX);
    let set = json("paths set prefix=24,56");
    assert_eq!((&set["forgotten"], &set["undo"]), (&1.into(), &"onramp paths set prefix=32,128".into()));
    assert_eq!((paths().len(), settings()), (0, shown(600, 24, 56)));
    assert_eq!(first_window(&wire), 10);
    // By whose prefix it was, nothing is imported, nor how long it holds.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("lifetime=1h\n{FAR} 100mbit,60ms 0s\n")).unwrap();
    let refused = onramp(&format!("paths import {}", file.path().display())).refused(2);
    assert!(refused.contains("24,56") && refused.contains("32,56"), "{refused}");
    assert_eq!((paths().len(), settings()), (0, shown(600, 24, 56)));
    let lines = "lifetime=1h\n192.0.2.0/24 100mbit,60ms 0s\n2001:db8::/56 100mbit,60ms 0s\n";
    import(&wire, lines);
    let ipv6 = Connection { ipv6: true, ..Connection::default() };
    let mapped = Connection { mapped: true, ..Connection::default() };
    for connection in [Connection::default(), ipv6, mapped] {
        assert_eq!(window_of(&wire, connection), FIRST_MAX, "{connection:?}");
    }
    let exported = wire.near.run(|| onramp("paths export")).unwrap().ok();
    let words = ["lifetime=3600s\n", "192.0.2.0/24 100000000bit,", "2001:db8::/56 100000000bit,"];
    assert!(words.iter().all(|word| exported.contains(word)), "{exported}");
    // Code that is replaced keeps both.
    onramp("upgrade plain").ok();
    let status = json("status")["paths"].clone();
    assert_eq!(
        status,
        value!({ "remembered": 2, "lifetime_s": 3600, "prefix_ipv4_bits": 24, "prefix_ipv6_bits": 56 })
    );
    assert_eq!(window_of(&wire, mapped), FIRST_MAX);
    // A host of a network, and a network in a larger one.
    assert_eq!(json("paths flush --to 192.0.2.77")["forgotten"], 1);
    assert_eq!(json("paths flush --to 2001:db8::/32")["forgotten"], 1);
    for (connection, far) in [(Connection::default(), IpAddr::from(FAR)), (ipv6, FAR_IPV6.into())] {
        assert_eq!(window_of(&wire, connection), 10, "{far} is forgotten");
    }
}

/// Sends so much to a host of the far end, and ends: segments that were retransmitted.
fn transfer(wire: &Wire, to: Ipv4Addr, bytes: usize) -> u32 {
    let (mut stream, reader): (TcpStream, _) =
        Connection::default().between(&wire.near, &wire.far, to.into());
    stream.write_all(&bytes_from(0, bytes)).unwrap();
    assert!(eventually(|| info(wire, &stream).bytes_acked >= bytes as u64), "{to}");
    assert!(eventually(|| reader.read() == bytes as u64), "{to}");
    info(wire, &stream).retrans_total
}

/// Two hosts, the one's path four times as fast as the other's: 24 and 6 Mbit/s.
fn unlike() -> Wire {
    let mut fast = slower_bottleneck(Duration::from_micros(500), DELAY, true);
    let mut slow = slower_bottleneck(Duration::from_millis(2), DELAY, true);
    let to_slow = SLOW.octets()[3];
    let wire = Wire::lay(DELAY, move |data| if data.to == to_slow { slow(data) } else { fast(data) });
    let address = format!("{SLOW}/24");
    let added = wire.far.command("ip").args(["address", "add", &address, "dev", "wire0"]).status().unwrap();
    assert!(added.success());
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", "onramp_plain").unwrap();
    wire
}

#[test]
#[ignore = "in a guest: make test"]
fn behind_one_prefix_a_path_four_times_as_slow_loses_no_more_than_the_jump_and_lowers_what_is_known() {
    let _attachments = Attachments::lock();
    onramp("attach plain --base cubic").ok();
    let doubled = transfer(&unlike(), SLOW, 1_000_000);
    onramp("detach plain").ok();
    onramp("attach plain --base cubic --start resume+window").ok();
    onramp("paths set prefix=24,56").ok();
    let wire = unlike();
    transfer(&wire, FAR, 1_500_000);
    assert!(eventually(|| paths().len() == 1));
    let before = paths().remove(0);
    assert_eq!((&before["address"], &before["prefix_bits"]), (&"192.0.2.0".into(), &24.into()));
    let rate = before["rate_bits_per_s"].as_u64().unwrap();
    assert!(rate > 12_000_000, "{before}");
    let jump = rate / 8 * before["min_rtt_us"].as_u64().unwrap() / 2_000_000 / 1_448;
    let lost = transfer(&wire, SLOW, 1_000_000);
    assert!(u64::from(lost) <= u64::from(doubled) + jump, "{lost} for {doubled}, jump {jump}");
    let lowered =
        |path: &Value| path["rate_bits_per_s"].as_u64().unwrap() < rate / 2 || path["retreated"] == 1;
    assert!(eventually(|| paths().len() == 1 && lowered(&paths()[0]) && paths()[0]["claimed"] == false));
    // What is known now suits both.
    let lost = transfer(&wire, SLOW, 1_000_000);
    assert!(u64::from(lost) <= u64::from(doubled) + jump / 2, "{lost} for {doubled}, jump {jump}");
    transfer(&wire, FAR, 1_500_000);
}
