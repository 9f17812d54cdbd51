//! `onramp serve --offline`: takes no privilege and has none.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};

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

/// Starts a server of recordings at a UNIX socket.
fn start(socket: &Path) -> Child {
    let mut command = cli::command(["serve", "--offline", "--listen"]);
    command.arg(format!("unix:{}", socket.display()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a server says that it accepts connections; else it has ended.
fn listens(server: &mut Child) -> bool {
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    !line.is_empty()
}

#[test]
fn of_two_servers_that_begin_at_one_place_at_once_one_runs_and_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    for round in 0..10 {
        let pair = [start(&socket), start(&socket)];
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for mut server in pair {
            if listens(&mut server) { running.push(server) } else { ended.push(server) }
        }
        assert_eq!((running.len(), ended.len()), (1, 1), "{round}");
        let (mut running, refused) = (running.remove(0), ended.remove(0));
        let refused = cli::Ran::from(refused.wait_with_output().unwrap());
        assert!(refused.code == Some(1) && refused.stderr.contains("choose another path"), "{refused:?}");
        UnixStream::connect(&socket).unwrap();
        // One that is killed is followed by the next, by its own file.
        let signal = if round % 2 == 0 { Signal::SIGKILL } else { Signal::SIGTERM };
        kill(Pid::from_raw(running.id() as i32), signal).unwrap();
        running.wait().unwrap();
        assert!(socket.exists() || signal == Signal::SIGTERM);
    }
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
