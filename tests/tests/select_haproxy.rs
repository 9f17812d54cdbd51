//! `onramp select` under haproxy, whose two sides are two decisions. It takes a processor with cmpxchg16b.

use onramp_tests::Attachments;
use onramp_tests::cli::{onramp, public_directory};
use onramp_tests::clients::{FIBRE, SATELLITE, arrive, downloads, have, hosts};
use onramp_tests::servers::{Server, answers};

const HAPROXY: &str = "
global
    maxconn 1000
    nbthread 2
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend web
    bind :8080
    bind :::8080 v6only
    default_backend nginx
backend nginx
    http-reuse safe
    server one 127.0.0.1:80 check
";

#[test]
#[ignore = "in a guest: make test"]
fn haproxy_has_the_control_of_the_client_on_one_side_and_that_of_the_server_on_the_other() {
    let _attachments = Attachments::lock();
    let hosts = hosts();
    onramp("attach fixed").ok();
    for rule in [
        "--to 203.0.113.0/24 --accept --use search",
        "--to 2001:db8:5::/48 --accept --use search",
        "--to 127.0.0.1 --connect --use fixed",
        // The port of the listening side: what haproxy accepts, unless a prefix decides, and what nginx accepts.
        "--port 8080 --accept --use bbr",
        "--port 80 --accept --use cubic",
    ] {
        onramp(&format!("select add {rule}")).ok();
    }
    let _nginx = Server::nginx(hosts.sender());
    let mut command = hosts.sender().command("/usr/sbin/haproxy");
    command.args(["-db", "-f"]);
    let _haproxy = Server::start(public_directory(), command, HAPROXY);
    answers(hosts.sender(), "http://127.0.0.1:8080/object");
    let established = downloads(&hosts, &[SATELLITE, FIBRE].concat(), 8080);
    have(hosts.sender(), "sport", 8080, &SATELLITE.map(|peer| (peer, "onramp_search")));
    have(hosts.sender(), "sport", 8080, &FIBRE.map(|peer| (peer, "bbr")));
    have(hosts.sender(), "dport", 80, &[("127.0.0.1", "onramp_fixed")]);
    have(hosts.sender(), "sport", 80, &[("127.0.0.1", "cubic")]);
    arrive(established);
}
