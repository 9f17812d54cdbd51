//! Choosing who gets what: rules that give connections a congestion control by their peer's prefix, port or cgroup.
//!
//! Rules lie in one pinned table, which a program at the root of cgroup v2 asks; both are there as long as there is a rule.
//! What is in the kernel is the only record of them.

mod apply;
pub(crate) mod cgroup;
pub(crate) mod decide;
mod edit;
mod path;
pub(crate) mod program;
pub(crate) mod rule;
mod selection;
mod sets;
pub(crate) mod table;
mod taken;

pub use apply::{Changes, apply, plan_apply};
pub use cgroup::Cgroup;
pub use decide::Connection;
pub use edit::{add, check_add, clear, control, remove, replace};
pub use path::{check_start, missing_starts, require_start};
pub use program::require;
pub use rule::{Choice, KnownPath, RULES_MAX, Rule, Side, Target};
pub(crate) use selection::rules_summary;
pub use selection::{
    RulesSummary, Selection, cgroup_root, holds_in, missing_controls, missing_profiles, peek, rules_of,
    selection,
};
pub use sets::Profile;
