// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A web server on the loopback interface.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::example::Files;

/// Serves files by their paths, until the process ends. `/cut` announces more than it sends; `/moved/…` redirects to `/…`.
/// All else is not found.
pub fn serve(files: Files) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may have gone.
            let _ = answer(stream.unwrap(), &files);
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, files: &Files) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    while !lines.next().unwrap_or_else(|| Ok(String::new()))?.is_empty() {}
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let head = |status: &str, more: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}\r\n");
    if let Some(path) = path.strip_prefix("moved/") {
        return stream
            .write_all(head("302 Found", &format!("Location: /{path}\r\nContent-Length: 0\r\n")).as_bytes());
    }
    match files.get(path) {
        Some(content) => {
            stream.write_all(head("200 OK", &format!("Content-Length: {}\r\n", content.len())).as_bytes())?;
            stream.write_all(content)
        }
        None if path == "cut" => {
            stream.write_all(head("200 OK", "Content-Length: 1000\r\n").as_bytes())?;
            stream.write_all(b"a part")
        }
        None => stream.write_all(head("404 Not Found", "Content-Length: 0\r\n").as_bytes()),
    }
}
