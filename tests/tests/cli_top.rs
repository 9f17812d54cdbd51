//! `onramp top` on a pseudo-terminal: a flow, keys, tuning, and the terminal as it was after every kind of end.

use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_loader::AttachOptions;
use onramp_loader::algorithm::find;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, json, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{lease_processes, traces};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Fate, Wire};

/// Hangs a terminal up (include/uapi/asm-generic/ioctls.h).
const TIOCVHANGUP: libc::Ioctl = 0x5437;

/// What a terminal is set to, as far as it can be compared.
type Settings = (u32, u32, u32, u32, [u8; 32]);

/// A terminal of 80 columns and 24 lines, and what has been written to it.
struct Terminal {
    keys: File,
    near: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
    before: Settings,
}

impl Terminal {
    fn new() -> Self {
        let (mut far, mut near) = (-1, -1);
        let mut size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let (name, settings) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the kernel fills both descriptors and reads the size.
        let made = unsafe { libc::openpty(&raw mut far, &raw mut near, name, settings, &raw mut size) };
        assert_eq!(made, 0, "openpty");
        // SAFETY: both are open, and owned here alone.
        let (far, near) = unsafe { (OwnedFd::from_raw_fd(far), OwnedFd::from_raw_fd(near)) };
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut output = File::from(far.try_clone().unwrap());
        let collected = Arc::clone(&written);
        // Ends with the last descriptor of the near side.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = output.read(&mut buffer) {
                collected.lock().unwrap().extend_from_slice(&buffer[..bytes]);
            }
        });
        let before = settings_of(&near);
        Self { keys: File::from(far), near, written, before }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The words that are on the screen: Ctrl-L draws all of it anew.
    fn words(&mut self) -> String {
        self.press("\x0c");
        thread::sleep(Duration::from_millis(300));
        let text = self.text();
        let newest = text.rsplit("\x1b[2J").next().unwrap();
        let mut words = String::new();
        let mut rest = newest;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            words += before;
            // A sequence ends with a letter; where it moves the cursor a word ends too.
            let end = after.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(after.len() - 1);
            if after[end..].starts_with('H') {
                words.push(' ');
            }
            rest = &after[end + 1..];
        }
        words + rest
    }

    fn shows(&mut self, what: &str) {
        let shown = eventually(|| self.words().contains(what));
        assert!(shown, "{what:?} in {}", self.words());
    }

    /// Starts `onramp top` on it, and waits for its picture.
    fn start(&mut self, arguments: &str) -> Top {
        self.start_by(cli::command(["top"]), arguments)
    }

    fn start_by(&mut self, mut command: Command, arguments: &str) -> Top {
        command.args(arguments.split_whitespace()).env("TERM", "xterm-256color");
        let side = || Stdio::from(self.near.try_clone().unwrap());
        let top = Top(command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap());
        assert!(eventually(|| self.text().contains("\x1b[?1049h")), "no picture: {}", self.text());
        self.shows("onramp top");
        assert_ne!(settings_of(&self.near), self.before, "keys come one by one");
        top
    }

    /// It is as it was: normal screen, cursor shown, same settings.
    fn assert_restored(&self, how: &str) {
        // What it wrote last may not have been read yet.
        let ends_with = |last: &str, before: &str| {
            eventually(|| {
                let text = self.text();
                text.rfind(last) > text.rfind(before)
            })
        };
        assert!(ends_with("\x1b[?1049l", "\x1b[?1049h"), "{how}: normal screen");
        assert!(ends_with("\x1b[?25h", "\x1b[?25l"), "{how}: cursor");
        assert_eq!(settings_of(&self.near), self.before, "{how}");
    }
}

fn settings_of(terminal: &OwnedFd) -> Settings {
    let mut settings = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the kernel fills it, which is checked before it is read.
    let settings = unsafe {
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()), 0);
        settings.assume_init()
    };
    (settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag, settings.c_cc)
}

/// `onramp top` in progress; killed when dropped.
struct Top(Child);

impl Top {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        assert!(eventually(|| self.0.try_wait().unwrap().is_some()), "it does not end");
        self.0.wait().unwrap().code()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Attaches `fixed`, whose flows exit slow start at 60,000 bytes.
fn attach_fixed(attachments: &Attachments) {
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", "60000").unwrap();
    attachments.attach(&AttachOptions::new(parameters));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_is_shown_opened_and_tuned() {
    let attachments = Attachments::lock();
    attach_fixed(&attachments);
    let mut terminal = Terminal::new();
    let mut top = terminal.start("--color never");
    terminal.shows("No flow yet");
    let wire = Wire::lay(Duration::from_millis(10), |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, "onramp_fixed");
    sender.send(300_000);
    let remote = sender.stream.peer_addr().unwrap().to_string();
    terminal.shows(&remote);
    terminal.shows("algorithm");
    // Several at once in what Enter opens: the second consumer gets every ACK.
    terminal.press("\r");
    terminal.shows("exited slow start by algorithm at");
    assert!(eventually(|| onramp_loader::consumers().unwrap().len() == 2));
    sender.send(100_000);
    terminal.shows("delivery rate by round");

    terminal.press("texit_window_bytes=-1\r");
    terminal.shows("is not allowed: give");
    let now = || json("tune fixed")["parameters"]["exit_window_bytes"].clone();
    assert_eq!(now(), 60_000);
    terminal.press("\x7f\x7f30000\r");
    terminal.shows("60000 -> 30000; u: undo (exit_window_bytes=60000)");
    assert_eq!(now(), 30_000);
    terminal.press("u");
    terminal.shows("30000 -> 60000");
    assert_eq!(now(), 60_000);

    terminal.press("\x1b");
    // Else it would begin a sequence.
    thread::sleep(Duration::from_millis(500));
    terminal.shows("REMOTE");
    assert!(eventually(|| onramp_loader::consumers().unwrap().len() == 1));
    assert!(!terminal.text().contains("\x1b[38;"), "no colour");
    drop(sender);
    terminal.shows("1 ended");
    terminal.press("q");
    assert_eq!(top.code(), Some(0));
    terminal.assert_restored("q");
}

#[test]
#[ignore = "in a guest: make test"]
fn where_nothing_is_attached_flows_of_other_controls_are_shown_until_something_is() {
    let attachments = Attachments::lock();
    let wire = Wire::lay(Duration::from_millis(10), |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, "reno");
    sender.send(30_000);
    let remote = sender.stream.peer_addr().unwrap().to_string();
    let mut terminal = Terminal::new();
    let mut command = sender.wire.near.command(cli::binary());
    command.arg("top");
    let mut top = terminal.start_by(command, "--color never");
    terminal.shows(&remote);
    terminal.shows("reno");
    terminal.press("/dst 203.0.113.1\r");
    assert!(eventually(|| !terminal.words().contains(&remote)), "{}", terminal.words());
    terminal.press("\x1b");
    thread::sleep(Duration::from_millis(500));
    terminal.shows(&remote);
    attach_fixed(&attachments);
    terminal.shows("No flow yet");
    terminal.press("q");
    assert_eq!(top.code(), Some(0));
    terminal.assert_restored("q");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_terminal_is_restored_on_every_end() {
    let _attachments = Attachments::lock();
    let before = traces();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut terminal = Terminal::new();
        let mut top = terminal.start("");
        top.signal(signal);
        assert_eq!(top.code(), Some(0), "{signal}");
        terminal.assert_restored(signal.as_str());
    }
    let mut terminal = Terminal::new();
    let mut top = terminal.start("");
    terminal.press("\x03");
    assert_eq!(top.code(), Some(0));
    terminal.assert_restored("Ctrl-C");
    // What a connection that is cut off does to the terminals of its sessions.
    let mut terminal = Terminal::new();
    let mut top = terminal.start("");
    // SAFETY: it takes no memory.
    assert_eq!(unsafe { libc::ioctl(terminal.near.as_raw_fd(), TIOCVHANGUP) }, 0);
    assert_eq!(top.code(), Some(0), "the terminal is gone");
    // An error: its lease process is gone.
    let others = lease_processes();
    let mut terminal = Terminal::new();
    let mut top = terminal.start("");
    let lease_process: Vec<i32> = lease_processes().into_iter().filter(|pid| !others.contains(pid)).collect();
    assert_eq!(lease_process.len(), 1, "{lease_process:?}");
    kill(Pid::from_raw(lease_process[0]), Signal::SIGKILL).unwrap();
    assert_eq!(top.code(), Some(1));
    terminal.assert_restored("error");
    assert!(terminal.text().rsplit("\x1b[?1049l").next().unwrap().contains("error: "), "said afterwards");
    assert!(eventually(|| traces() == before), "{:?}, before {before:?}", traces());
}

#[test]
fn without_a_terminal_or_with_json_it_says_what_to_use() {
    assert!(onramp("top").refused(2).contains("onramp watch"));
    assert!(onramp("top --json").refused(2).contains("onramp watch --json"));
    assert!(onramp("top dst 10.0.0.0/33").refused(2).contains("0 to 32"));
}

#[test]
#[ignore = "in a guest: make test"]
fn under_the_lock_of_another_flows_are_drawn_and_opened_and_a_key_ends_it() {
    let attachments = Attachments::lock();
    attach_fixed(&attachments);
    let mut terminal = Terminal::new();
    let mut top = terminal.start("--color never");
    let directory = File::open("/sys/fs/bpf").unwrap();
    let held = Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap();
    let mut sender = Sender::connect(Wire::lay(Duration::from_millis(10), |_| Fate::Deliver), "onramp_fixed");
    sender.send(300_000);
    let remote = sender.stream.peer_addr().unwrap().to_string();
    terminal.shows(&remote);
    terminal.press("\r");
    terminal.shows("exited slow start by algorithm at");
    terminal.press("q");
    assert_eq!(top.code(), Some(0));
    terminal.assert_restored("q");
    drop(held);
    assert!(eventually(|| onramp_loader::consumers().unwrap().is_empty()));
}
