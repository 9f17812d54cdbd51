//! The terminal, restored on every way out.

use std::io::{self, Stdout};
use std::panic;

use anyhow::Context;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Raw mode and the alternate screen, until dropped. A panic restores the terminal before it says what is wrong.
pub(super) struct Screen(pub Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub fn take() -> anyhow::Result<Self> {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
        // From here on whatever fails passes restore().
        Self::enter().inspect_err(|_| restore()).context("cannot use the terminal")
    }

    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(Self(Terminal::new(CrosstermBackend::new(io::stdout()))?))
    }

    /// Draws all of it with the next picture. Terminal::clear would ask the terminal where its cursor is, and wait.
    pub fn forget(&mut self) -> anyhow::Result<()> {
        let forget = || {
            execute!(io::stdout(), Clear(ClearType::All))?;
            Terminal::new(CrosstermBackend::new(io::stdout()))
        };
        self.0 = forget().context("cannot draw")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// What fails here cannot be helped: the terminal may be gone.
fn restore() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
