//! What a changing command would do, for `--dry-run`.

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What would be done.
    pub what: String,
    /// The command that undoes it; empty if there is nothing to undo.
    pub undo: String,
}

impl Action {
    pub(crate) fn new(what: impl Into<String>, undo: impl Into<String>) -> Self {
        Self { what: what.into(), undo: undo.into() }
    }
}
