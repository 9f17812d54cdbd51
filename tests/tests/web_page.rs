//! The page of `onramp serve` in a real browser, on the running kernel: `web/tests/page.mjs` looks and types, and this has
//! the server, a flow in a namespace of its own, and the server's restarts. Nothing is said of times.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_net::Namespace;
use onramp_tests::cli::{self, DEFAULT};
use onramp_tests::host::Fixed;
use onramp_tests::skip;
use onramp_tests::traffic::{Transfer, namespace};

/// `onramp serve`; ended when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(listen: &str, token: Option<&Path>) -> Self {
        let mut command = cli::command(["serve", "--listen", listen, "--shadow", "search,hystart"]);
        if let Some(token) = token {
            command.arg("--write-token-file").arg(token);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }

    /// The place that it listened at, for the next one.
    fn end(mut self) -> String {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.url.trim_start_matches("http://").trim_end_matches('/').to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program by its name, or one of several.
fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// How many flows are tried.
const FLOWS: usize = 5;

#[test]
fn a_browser_sees_a_flow_and_its_exit_tunes_it_and_goes_on_after_a_restart() {
    let Some(chromium) = found(&["chromium", "chromium-browser", "google-chrome"]) else {
        return skip("there is no Chromium: `apt-get install chromium`");
    };
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web");
    if !web.join("node_modules/playwright-core").exists() || !web.join("dist/index.html").exists() {
        return skip("the page was not built: `make web`");
    }
    for _ in 0..FLOWS {
        let Some(_fixed) = Fixed::attach() else { return };
        if is_right(&chromium, &web) {
            return;
        }
    }
    panic!("{FLOWS} flows have exited slow start by themselves, one after the other");
}

/// Looks at a flow. False: it was not one to look at, because it exited slow start before it was asked to. On a busy machine
/// the kernel takes a late acknowledgment for a loss.
fn is_right(chromium: &Path, web: &Path) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let mut server = Server::start("127.0.0.1:0", Some(&token));

    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_fixed").unwrap();
    let transfer = Transfer::start(&inside, 1_000_000);
    assert!(transfer.goes_on());

    let mut page = Command::new("node")
        .arg("tests/page.mjs")
        .args([chromium.as_os_str(), server.url.as_ref(), transfer.local.port().to_string().as_ref()])
        .arg(&token)
        .current_dir(web)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = page.stdin.take().unwrap();
    let mut reported = Vec::new();
    for line in BufReader::new(page.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("restart") {
            let place = server.end();
            let writable = (line == "restart").then_some(token.as_path());
            server = Server::start(&place, writable);
            writeln!(answers, "{line}").unwrap();
        }
        reported.push(line);
    }
    let right = page.wait().unwrap().success();
    if !right && left_by_itself(&inside) {
        return false;
    }
    assert!(right, "{reported:?}");
    assert_eq!(reported, ["restart", "restart read-only", "done"]);
    assert!(transfer.goes_on(), "the flow has not suffered");
    true
}

fn left_by_itself(inside: &Namespace) -> bool {
    let flows = inside.command(cli::binary()).args(["flows", "--json"]).output().unwrap();
    let flows: serde_json::Value = serde_json::from_slice(&flows.stdout).unwrap();
    let flows = flows["flows"].as_array().unwrap();
    flows.iter().filter_map(|flow| flow["exit"]["reason"].as_str()).any(|reason| reason != "algorithm")
}
