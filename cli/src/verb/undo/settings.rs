//! `onramp undo settings`.

use onramp_loader::Action;
use onramp_loader::host::{self, Changed, Outcome, Owner, Restored};
use serde::Serialize;

use crate::failure::{FAILURE, PARTIAL};
use crate::output::{Output, escape_line, say};
use crate::verb::elsewhere::{entering, unseen_text};
use crate::verb::plan;

/// What was restored.
#[derive(Serialize)]
pub(super) struct Undone {
    restored: Vec<Row>,
    left: Vec<Row>,
    /// What could not be set; it is still recorded.
    failed: Vec<Failed>,
    /// Where it could not be looked.
    unseen: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    /// None: the host has it once.
    namespace: Option<String>,
    setting: String,
    before: String,
    /// By --fix.
    set: String,
    now: String,
}

/// Restores what was set, everywhere.
pub(super) fn undo(dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    if dry_run {
        return plan::print(&planned()?, output);
    }
    let undone = Undone::new(host::restore_all()?);
    output.report(&undone, || undone.text());
    undone.say_failed();
    Ok(undone.code())
}

/// What a restore would do.
pub(super) fn planned() -> anyhow::Result<Vec<Action>> {
    let action = |Changed { setting, owner }: Changed| {
        let (label, path) = match owner {
            Owner::Host => (None, None),
            Owner::Namespace { label, path } => (Some(label), path),
            Owner::Unseen => (Some("that is not found".into()), None),
        };
        let undo = format!("{}{}", entering(path.as_deref()), setting.command());
        let host::Setting { name, before, set } = setting;
        let place = place(label.as_deref());
        Action { what: format!("set {name} {place} to {before} again, if it is still {set}"), undo }
    };
    Ok(host::changed()?.into_iter().map(action).collect())
}

#[derive(Serialize)]
struct Failed {
    namespace: Option<String>,
    setting: String,
    error: String,
}

/// Whose a setting is. `namespace`: of a network namespace; none: the host has it once.
pub(in crate::verb) fn place(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("in network namespace {}", escape_line(namespace)),
        None => "of this host".into(),
    }
}

impl Undone {
    pub fn new(given: Restored) -> Self {
        let (mut restored, mut left, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (namespace, setting, outcome) in given.settings {
            let host::Setting { name: setting, before, set } = setting;
            match outcome {
                Outcome::Restored => {
                    restored.push(Row { namespace, setting, now: before.clone(), before, set });
                }
                Outcome::Left(now) => left.push(Row { namespace, setting, before, set, now }),
                Outcome::Failed(error) => failed.push(Failed { namespace, setting, error }),
            }
        }
        Self { restored, left, failed, unseen: given.unseen }
    }

    pub fn code(&self) -> u8 {
        match (self.failed.is_empty(), self.restored.is_empty()) {
            (false, true) => FAILURE,
            (true, _) if self.left.is_empty() && self.unseen.is_empty() => 0,
            _ => PARTIAL,
        }
    }

    /// Whether anything is as it was before.
    pub fn is_something_restored(&self) -> bool {
        !self.restored.is_empty()
    }

    /// The errors, on standard error.
    pub fn say_failed(&self) {
        for Failed { setting, error, .. } in &self.failed {
            say(&format!("error: {setting} is not restored: {error}"));
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for Row { namespace, setting, now, .. } in &self.restored {
            text += &format!("{setting} = {now} again {}\n", place(namespace.as_deref()));
        }
        for Row { namespace, setting, before, set, now } in &self.left {
            let place = place(namespace.as_deref());
            text += &format!(
                "{setting} {place} is left as it is, {now}: another process has set it since it was set to {set}; it was {before} before\n"
            );
        }
        text += &unseen_text(&self.unseen);
        if text.is_empty() && self.failed.is_empty() { "no setting was changed\n".into() } else { text }
    }
}
