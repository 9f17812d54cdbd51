//! What is shown of the model, and what keys do; nothing of it needs a terminal.

use std::net::SocketAddr;

use onramp_loader::Tuned;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::prompt::{Prompt, Purpose};
use super::sort::Sort;
use crate::filter::Filter;
use crate::live::{Flow, FlowTable};
use crate::verb::others::OtherFlow;
use crate::verb::tune::changes;

/// Rows by which PgUp and PgDn go.
const PAGE: usize = 15;

/// What a key asks of the world outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Redraw,
    /// Every acknowledgment of this flow is wanted.
    Open(u64),
    /// No longer.
    Close(u64),
    /// These settings for the parameter set of this flow.
    Tune(u64, Vec<String>),
}

/// A tuning that can be reverted.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    flow: u64,
    settings: Vec<String>,
}

/// Flows that are kept, and the buckets that each has for its past.
const FLOWS_MAX: usize = 2_000;
const BUCKETS_MAX: usize = 512;

#[derive(Debug)]
pub(super) struct App {
    pub model: FlowTable,
    /// Flows of other controls, where nothing is attached.
    pub others: Option<Vec<OtherFlow>>,
    pub sort: Sort,
    pub reverse: bool,
    pub filter_text: String,
    filter: Filter,
    /// The flow under the cursor; it stays chosen when the order changes.
    pub selected: Option<u64>,
    pub open: Option<u64>,
    pub help: bool,
    pub prompt: Option<Prompt>,
    pub message: Option<String>,
    undo: Option<Undo>,
}

impl Default for App {
    fn default() -> Self {
        Self {
            model: FlowTable::new(FLOWS_MAX, BUCKETS_MAX),
            others: None,
            sort: Sort::default(),
            reverse: false,
            filter_text: String::new(),
            filter: Filter::default(),
            selected: None,
            open: None,
            help: false,
            prompt: None,
            message: None,
            undo: None,
        }
    }
}

impl App {
    /// Flows as shown, in order; those that have ended come last.
    pub fn shown(&self) -> Vec<&Flow> {
        let passes = |flow: &&Flow| self.passes(flow.local, flow.remote);
        let mut flows: Vec<&Flow> = self.model.flows.values().filter(passes).collect();
        flows.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            one.ended.cmp(&other.ended).then(if self.reverse { order.reverse() } else { order })
        });
        flows
    }

    /// Flows of other controls, where they are shown.
    pub fn others_shown(&self) -> Option<&[OtherFlow]> {
        self.others.as_deref().filter(|_| self.model.flows.is_empty())
    }

    /// Whether the filter lets a flow with these ends through.
    pub fn passes(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.filter.matches(local, remote)
    }

    /// Its line among those shown; the first if it is not there.
    pub fn line(&self, shown: &[&Flow]) -> usize {
        shown.iter().position(|flow| Some(flow.id) == self.selected).unwrap_or(0)
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Quit),
                KeyCode::Char('l') => Some(Action::Redraw),
                _ => None,
            };
        }
        if self.prompt.is_some() {
            return self.type_key(key.code);
        }
        self.message = None;
        if std::mem::take(&mut self.help) {
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('t') => self.begin_tuning(),
            KeyCode::Char('u') => return self.take_back(),
            KeyCode::Char('x') => self.model.clear_ended(),
            KeyCode::Char('/') => {
                let text = self.filter_text.clone();
                self.prompt = Some(Prompt::new(Purpose::Filter, "filter: ".into(), text));
            }
            KeyCode::Esc if self.open.is_some() => {
                return self.open.take().map(Action::Close);
            }
            KeyCode::Esc => (self.filter_text, self.filter) = Default::default(),
            _ if self.open.is_some() => {}
            KeyCode::Char('<') => self.sort = self.sort.before(),
            KeyCode::Char('>') => self.sort = self.sort.after(),
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Enter => {
                let shown = self.shown();
                self.open = shown.get(self.line(&shown)).map(|flow| flow.id);
                self.selected = self.open.or(self.selected);
                return self.open.map(Action::Open);
            }
            code => self.move_cursor(code),
        }
        None
    }

    fn move_cursor(&mut self, code: KeyCode) {
        let shown = self.shown();
        let line = self.line(&shown);
        let line = match code {
            KeyCode::Up | KeyCode::Char('k') => line.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => line + 1,
            KeyCode::PageUp => line.saturating_sub(PAGE),
            KeyCode::PageDown => line + PAGE,
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return,
        };
        self.selected = shown.get(line.min(shown.len().saturating_sub(1))).map(|flow| flow.id);
    }

    /// The flow that is open or under the cursor.
    pub fn current(&self) -> Option<&Flow> {
        let id = self.open.or_else(|| {
            let shown = self.shown();
            shown.get(self.line(&shown)).map(|flow| flow.id)
        });
        self.model.flows.get(&id?)
    }

    fn begin_tuning(&mut self) {
        let Some(flow) = self.current() else {
            self.message = Some("there is no flow whose parameters could be tuned".into());
            return;
        };
        let label = format!("tune {}, set {}, name=value: ", flow.algorithm.name(), flow.profile);
        self.prompt = Some(Prompt::new(Purpose::Tune(flow.id), label, String::new()));
    }

    fn take_back(&mut self) -> Option<Action> {
        let Some(undo) = self.undo.take() else {
            self.message = Some("nothing has been tuned from here".into());
            return None;
        };
        Some(Action::Tune(undo.flow, undo.settings))
    }

    fn type_key(&mut self, code: KeyCode) -> Option<Action> {
        let prompt = self.prompt.as_mut()?;
        match code {
            KeyCode::Char(letter) => prompt.insert(letter),
            KeyCode::Backspace => prompt.backspace(),
            KeyCode::Esc => self.prompt = None,
            KeyCode::Enter => return self.entered(),
            _ => {}
        }
        None
    }

    fn entered(&mut self) -> Option<Action> {
        let prompt = self.prompt.as_mut()?;
        match prompt.purpose {
            Purpose::Filter => match Filter::parse(std::slice::from_ref(&prompt.text)) {
                Ok(filter) => {
                    self.filter = filter;
                    self.filter_text = prompt.text.trim().to_owned();
                    self.prompt = None;
                }
                Err(error) => prompt.error = Some(error),
            },
            Purpose::Tune(flow) => {
                let settings: Vec<String> = prompt.text.split_whitespace().map(str::to_owned).collect();
                if settings.is_empty() {
                    self.prompt = None;
                } else {
                    return Some(Action::Tune(flow, settings));
                }
            }
        }
        None
    }

    /// What became of [`Action::Tune`]: what is wrong stays on the screen with what was typed.
    pub fn tuned(&mut self, flow: u64, result: Result<Tuned, String>) {
        match (result, &mut self.prompt) {
            (Ok(tuned), prompt) => {
                *prompt = None;
                let (message, settings) = describe(&tuned);
                self.message = Some(message);
                self.undo = (!settings.is_empty()).then_some(Undo { flow, settings });
            }
            (Err(error), Some(prompt)) => prompt.error = Some(error),
            (Err(error), None) => self.message = Some(error),
        }
    }
}

/// What changed, and the settings that revert it.
fn describe(tuned: &Tuned) -> (String, Vec<String>) {
    let changes = changes(tuned);
    if changes.is_empty() {
        return ("nothing changes: these are the values already".to_owned(), Vec::new());
    }
    let what: Vec<String> =
        changes.iter().map(|one| format!("{}: {} -> {}", one.name, one.before, one.after)).collect();
    let undo: Vec<String> = changes.iter().map(|one| format!("{}={}", one.name, one.before)).collect();
    (format!("{}; u: undo ({})", what.join(", "), undo.join(" ")), undo)
}
