//! A panic while a picture is drawn restores the terminal: in a process of its own, on a pseudo-terminal.

use std::env;
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;

use ratatui::crossterm::terminal::is_raw_mode_enabled;

use crate::verb::top::app::App;
use crate::verb::top::screen;
use crate::verb::top::terminal::Screen;
use crate::verb::top::theme::Theme;

/// Set for the process that panics.
const VARIABLE: &str = "ONRAMP_TEST_PANIC";
const MESSAGE: &str = "in the middle of a picture";

/// The two ends of a terminal of 80 columns and 24 lines.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut far, mut near) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let (name, settings) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: the kernel fills both descriptors and reads the size.
    let made = unsafe { libc::openpty(&raw mut far, &raw mut near, name, settings, &raw const size) };
    assert_eq!(made, 0, "openpty");
    // SAFETY: both are open, and owned here alone.
    unsafe { (OwnedFd::from_raw_fd(far), OwnedFd::from_raw_fd(near)) }
}

/// What it is set to: input, output, control and local modes.
fn modes(terminal: &OwnedFd) -> [u32; 4] {
    let mut settings = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the kernel fills it, which is checked before it is read.
    let settings = unsafe {
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()), 0);
        settings.assume_init()
    };
    [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
}

mod child {
    use super::*;

    #[test]
    #[ignore = "run by another test, in a process of its own"]
    fn panicking_process() {
        if env::var_os(VARIABLE).is_none() {
            return;
        }
        let (app, theme) = (App::default(), Theme { color: false });
        let mut screen = Screen::take().unwrap();
        screen.0.draw(|frame| screen::draw(frame, &app, theme)).unwrap();
        assert!(is_raw_mode_enabled().unwrap());
        let _ = screen.0.draw(|frame| {
            screen::draw(frame, &app, theme);
            panic!("{MESSAGE}");
        });
    }
}

#[test]
fn a_panic_while_drawing_gives_the_terminal_back_before_it_is_reported() {
    let (far, near) = terminal();
    let before = modes(&near);
    let side = || Stdio::from(near.try_clone().unwrap());
    let test = concat!(module_path!(), "::child::panicking_process");
    let test = test.split_once("::").unwrap().1;
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .env("TERM", "xterm-256color")
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    // Ends with the last descriptor of the near side.
    let reader = thread::spawn(move || {
        let (mut far, mut written, mut buffer) = (File::from(far), Vec::new(), [0; 4096]);
        while let Ok(bytes @ 1..) = far.read(&mut buffer) {
            written.extend_from_slice(&buffer[..bytes]);
        }
        String::from_utf8_lossy(&written).into_owned()
    });
    assert_eq!(child.wait().unwrap().code(), Some(101), "it panics");
    let after = modes(&near);
    drop(near);
    let text = reader.join().unwrap();
    assert_eq!(after, before, "keys come by lines again, and are shown: {text:?}");
    // A picture, then the normal screen with a cursor, then what was wrong.
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text:?}"));
    let order = ["\x1b[?1049h", "onramp top", "\x1b[?1049l", "\x1b[?25h", MESSAGE].map(at);
    assert!(order.is_sorted(), "{order:?}: {text:?}");
    assert!(!text[at(MESSAGE)..].contains("\x1b[?1049h"), "and no other screen after it");
}
