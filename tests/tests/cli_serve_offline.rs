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

/// A server that ends with the test, whatever becomes of that.
struct Server(Child);

impl Server {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    /// Whether it says that it accepts connections; else it has ended.
    fn listens(&mut self) -> bool {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        !line.is_empty()
    }

    /// What it says, once it has ended by itself.
    fn ended(mut self) -> cli::Ran {
        let mut stderr = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        cli::Ran { code: self.0.wait().unwrap().code(), stdout: String::new(), stderr }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of recordings at a port of its own, and that place.
fn at_a_port() -> (Server, String) {
    let mut command = cli::command(["serve", "--offline", "--listen", "127.0.0.1:0"]);
    let mut server = Server(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (server, url.trim().trim_start_matches("http://").trim_end_matches('/').to_owned())
}

/// What a server answers to a request, of which the lines after the host and the body are given.
fn ask(place: &str, request: &str, rest: &[u8]) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").unwrap();
    stream.write_all(rest).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn end(mut server: Server) {
    server.signal(Signal::SIGTERM);
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_recording_that_is_sent_is_opened_and_its_flow_is_shown() {
    let (server, place) = at_a_port();
    let recorded = "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited\n\
        1000,2896,14480,50000,10,8,1448,0\n2000,5792,17376,50000,12,10,1448,0\n";
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"acks.csv\"\r\n\r\n{recorded}\r\n--b--\r\n"
    );
    let rest = format!(
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let opened = ask(&place, "POST /api/recordings", rest.as_bytes());
    assert!(opened.starts_with("HTTP/1.1 200") && opened.contains("\"flows\":1"), "{opened}");
    let name = opened.split("\"recording\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(name.len(), 32, "{opened}");
    let flows = ask(&place, &format!("GET /api/flows?recording={name}"), b"\r\n");
    assert!(flows.starts_with("HTTP/1.1 200") && flows.contains("\"total\":1"), "{flows}");
    end(server);
}

#[test]
fn a_server_of_recordings_alone_has_no_capability_and_knows_no_flow() {
    let (server, place) = at_a_port();
    let flows = ask(&place, "GET /api/flows", b"\r\n");
    assert!(flows.starts_with("HTTP/1.1 200") && flows.contains("\"total\":0"), "{flows}");
    let status = fs::read_to_string(format!("/proc/{}/status", server.0.id())).unwrap();
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    end(server);
    let refused = cli::onramp("serve --offline --shadow search");
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

/// Starts a server of recordings at a UNIX socket.
fn start(socket: &Path) -> Server {
    let mut command = cli::command(["serve", "--offline", "--listen"]);
    command.arg(format!("unix:{}", socket.display()));
    Server(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn of_two_servers_that_begin_at_one_place_at_once_one_runs_and_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    for round in 0..10 {
        let pair = [start(&socket), start(&socket)];
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for mut server in pair {
            if server.listens() { running.push(server) } else { ended.push(server) }
        }
        assert_eq!((running.len(), ended.len()), (1, 1), "{round}");
        let (mut running, refused) = (running.remove(0), ended.remove(0));
        let refused = refused.ended();
        assert!(refused.code == Some(1) && refused.stderr.contains("choose another path"), "{refused:?}");
        UnixStream::connect(&socket).unwrap();
        // One that is killed is followed by the next, by its own file.
        let signal = if round % 2 == 0 { Signal::SIGKILL } else { Signal::SIGTERM };
        running.signal(signal);
        running.0.wait().unwrap();
        assert!(socket.exists() || signal == Signal::SIGTERM);
    }
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
