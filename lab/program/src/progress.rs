//! How far a command is: one line on stderr that is written over, where stderr is a terminal. And what Ctrl-C leaves.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::output::{Output, escape_line, say};
use crate::units;

/// What takes less shows nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
/// From one look at the clock to the next.
const PERIOD: Duration = Duration::from_millis(500);
/// Begin of the line, and what is behind its end.
const AGAIN: &str = "\r\x1b[K";

/// What the same command does once Ctrl-C has stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumes {
    /// It goes on: what was made is kept.
    Yes,
    /// Nothing was kept.
    No,
}

impl Resumes {
    fn words(self) -> &'static str {
        match self {
            Self::Yes => "stopped; the same command goes on with what is missing",
            Self::No => "stopped; nothing is kept, and the same command begins anew",
        }
    }
}

/// See the module. The line is gone when this is dropped.
pub(crate) struct Progress {
    shown: Option<Shown>,
}

struct Shown {
    state: Arc<Mutex<State>>,
    /// Dropped to end the thread that looks at the clock.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    began: Instant,
    what: String,
    /// When it is expected to be over.
    over: Option<Instant>,
    on_screen: bool,
    hidden: bool,
}

impl Progress {
    /// Of a command that begins now, and that Ctrl-C may stop.
    pub fn begin(output: &Output, what: &str, resumes: Resumes) -> Self {
        *lock(&STOPPED) = Some(resumes);
        interruptible();
        let state = State {
            began: Instant::now(),
            what: what.to_owned(),
            over: None,
            on_screen: false,
            hidden: false,
        };
        let shows = !output.quiet() && io::stderr().is_terminal();
        Self { shown: shows.then(|| Shown::new(state)) }
    }

    /// What it does now, with counts where there are any; and what is left of it as far as one knows.
    pub fn set(&self, what: &str, left: Option<Duration>) {
        let Some(shown) = &self.shown else { return };
        let mut state = shown.state();
        state.what = what.to_owned();
        state.over = left.and_then(|left| Instant::now().checked_add(left));
        state.draw();
    }

    /// So many of all are made.
    pub fn count(&self, what: &str, made: u64, all: u64, began: Instant) {
        let left = (made > 0).then(|| began.elapsed().mul_f64(all.saturating_sub(made) as f64 / made as f64));
        self.set(&format!("[{made}/{all}] {what}"), left);
    }

    /// Says a line that stays, on a terminal.
    pub fn say(&self, line: &str) {
        let Some(shown) = &self.shown else { return };
        let mut state = shown.state();
        state.clear();
        say(line);
        state.draw();
    }

    /// Shows nothing from here on: other output follows.
    pub fn hide(&self) {
        let Some(shown) = &self.shown else { return };
        let mut state = shown.state();
        state.clear();
        state.hidden = true;
    }
}

impl Shown {
    fn new(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let (end, ended) = mpsc::channel();
        let seen = Arc::clone(&state);
        let look = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                lock(&seen).draw();
            }
        };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(look).ok();
        Self { state, end: Some(end), thread }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
        self.state().clear();
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn draw(&mut self) {
        let elapsed = self.began.elapsed();
        if self.hidden || elapsed < SHOWN_AFTER {
            return;
        }
        self.on_screen = true;
        write(&format!("{AGAIN}{}", escape_line(&self.line(elapsed, Instant::now()))));
    }

    fn line(&self, elapsed: Duration, now: Instant) -> String {
        let seconds = |time: Duration| units::show_us(time.as_secs() * 1_000_000);
        let left = self.over.map(|over| over.saturating_duration_since(now));
        match left {
            Some(left) if left.as_secs() > 0 => {
                format!("{}, {} so far, about {} left", self.what, seconds(elapsed), seconds(left))
            }
            _ => format!("{}, {} so far", self.what, seconds(elapsed)),
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.on_screen) {
            write(AGAIN);
        }
    }
}

/// Who looks at the terminal may have gone.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// What the same command does once it is stopped; none: it shows no progress.
static STOPPED: Mutex<Option<Resumes>> = Mutex::new(None);
/// What is done before the process ends by [`ended_by`].
static BEFORE_END: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Has this done, after what has been said before, once a signal ends the process.
pub(crate) fn before_end(call: fn()) {
    lock(&BEFORE_END).push(call);
}

/// Ends the process as shells have it, with code 130 for Ctrl-C, and says in one line what the same command would do.
pub(crate) fn ended_by(signal: Signal) -> ! {
    let calls = lock(&BEFORE_END).clone();
    calls.iter().for_each(|call| call());
    if let Some(resumes) = *lock(&STOPPED) {
        if io::stderr().is_terminal() {
            write(AGAIN);
        }
        say(resumes.words());
    }
    std::process::exit(128 + signal as i32)
}

/// From here on Ctrl-C and SIGTERM end the process by [`ended_by`].
pub(crate) fn interruptible() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        // Threads that are started later hold it back, too; programs do not.
        if set.thread_block().is_err() {
            return;
        }
        let wait = move || {
            if let Ok(signal) = set.wait() {
                ended_by(signal);
            }
        };
        let thread = std::thread::Builder::new().name("interrupt".into()).spawn(wait);
        if thread.is_err() {
            let _ = set.thread_unblock();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_what_is_made_the_time_so_far_and_what_is_left() {
        let now = Instant::now();
        let state = State {
            began: now,
            what: "[3/6] runs".into(),
            over: now.checked_add(Duration::from_millis(90_500)),
            on_screen: false,
            hidden: false,
        };
        let elapsed = Duration::from_secs(30);
        assert_eq!(state.line(elapsed, now), "[3/6] runs, 30.0 s so far, about 90.0 s left");
        let late = now.checked_add(Duration::from_secs(200)).unwrap();
        assert_eq!(state.line(elapsed, late), "[3/6] runs, 30.0 s so far");
    }

    #[test]
    fn nothing_is_shown_where_stderr_is_no_terminal() {
        if io::stderr().is_terminal() {
            return;
        }
        let progress = Progress::begin(&Output::plain(), "work", Resumes::No);
        assert!(progress.shown.is_none());
    }
}
