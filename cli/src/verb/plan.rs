//! What a dry run prints.

use onramp_loader::Action;
use serde::Serialize;

use crate::output::{Output, say};

#[derive(Serialize)]
struct Plan<'a> {
    dry_run: bool,
    actions: Vec<Step<'a>>,
    /// What it would change in addition to what was asked for.
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Step<'a> {
    what: &'a str,
    undo: Option<&'a str>,
}

/// Prints a plan. Nothing has been changed.
pub(super) fn print(actions: &[Action], output: &Output) -> anyhow::Result<u8> {
    print_warned(actions, &[], output)
}

/// The same with what it would change besides.
pub(super) fn print_warned(actions: &[Action], warnings: &[String], output: &Output) -> anyhow::Result<u8> {
    let plan = Plan { dry_run: true, actions: actions.iter().map(step).collect(), warnings };
    output.data(&plan, || {
        let mut text = String::new();
        for step in &plan.actions {
            text += &format!("would {}", step.what);
            text += &step.undo.map_or_else(String::new, |undo| format!("  (undo: {undo})"));
            text.push('\n');
        }
        if plan.actions.is_empty() {
            text += "would do nothing\n";
        }
        text
    })?;
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(0)
}

fn step(action: &Action) -> Step<'_> {
    let undo = Some(action.undo.as_str()).filter(|undo| !undo.is_empty());
    Step { what: &action.what, undo }
}
