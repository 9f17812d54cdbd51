//! `onramp serve --offline`: takes no privilege and has none.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::cli;

#[test]
fn a_server_of_recordings_alone_has_no_capability_and_knows_no_flow() {
    let mut command = cli::command(["serve", "--offline", "--listen", "127.0.0.1:0"]);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let place = url.trim().trim_start_matches("http://").trim_end_matches('/');
    let get = |path: &str| {
        let mut stream = TcpStream::connect(place).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let flows = get("/api/flows");
    assert!(flows.starts_with("HTTP/1.1 200") && flows.contains("\"total\":0"), "{flows}");
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    kill(Pid::from_raw(server.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let refused = cli::onramp("serve --offline --shadow search");
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
