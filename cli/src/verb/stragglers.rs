//! Sockets by network namespace, and what still holds code that was detached or replaced, as `detach`, `upgrade` and
//! `status` report it.

use onramp_loader::{Held, HeldBy, Users};
use serde::Serialize;

use crate::output::escape_line;
use crate::units::count;

/// Open sockets of a network namespace.
#[derive(Serialize)]
pub(super) struct Sockets {
    pub namespace: String,
    pub sockets: usize,
}

impl Sockets {
    pub fn all(users: Vec<Users>) -> Vec<Self> {
        let one = |Users { namespace, sockets }| Self { namespace, sockets };
        users.into_iter().map(one).collect()
    }
}

/// Sockets of one process in one state that hold code which is not the attached one.
#[derive(Serialize)]
pub(super) struct Holder {
    /// As ss(8) names it.
    state: &'static str,
    /// They are listening, and connections that they accept do not run the code.
    only_listens: bool,
    /// None: no process that can be seen has them open.
    process: Option<String>,
    pid: Option<u32>,
    sockets: usize,
}

impl Holder {
    pub fn all(held: &Held) -> Vec<Self> {
        let one = |HeldBy { state, only_listens, process, sockets }: &HeldBy| Self {
            state: state.name(),
            only_listens: *only_listens,
            process: process.as_ref().map(|(_, name)| name.clone()),
            pid: process.as_ref().map(|(pid, _)| *pid),
            sockets: *sockets,
        };
        held.by.iter().map(one).collect()
    }

    fn text(&self) -> String {
        let sockets = count(self.sockets, "socket");
        let what = if self.only_listens {
            sockets.replacen(" socket", " listening socket", 1)
        } else {
            format!("{sockets} in state {}", self.state)
        };
        match (&self.process, self.pid) {
            (Some(process), Some(pid)) => format!("{what} of {} (pid {pid})", escape_line(process)),
            _ => what,
        }
    }
}

/// What holds code; `which`: the code's name.
pub(super) fn held_text(which: &str, held: &Held) -> String {
    let mut text = String::new();
    for holder in Holder::all(held) {
        let (keeps, end) = match (holder.sockets, holder.only_listens) {
            (1, true) => ("keeps", "its new connections do not run it"),
            (1, false) => ("keeps", "a connection that it has or makes runs it"),
            (_, true) => ("keep", "their new connections do not run it"),
            (_, false) => ("keep", "connections that they have or make run it"),
        };
        text += &format!("  {} {keeps} the {which} code loaded until closed; {end}\n", holder.text());
    }
    if held.unexplained > 0 {
        text += &format!(
            "  the {which} code of {} is still loaded, and no socket that can be found has it: the kernel has not freed it yet, or is ending connections of a network namespace that is gone\n",
            count(held.unexplained, "attachment")
        );
    }
    text
}

/// A line for each namespace whose sockets run the code, then what holds it.
pub(super) fn text(which: &str, stragglers: &[Sockets], held: &Held) -> String {
    let line = |Sockets { namespace, sockets }: &Sockets| {
        let sockets = count(*sockets, "socket");
        let namespace = escape_line(namespace);
        format!(
            "  still on the {which} code: {sockets} in network namespace {namespace}; it stays loaded until they close\n"
        )
    };
    stragglers.iter().map(line).collect::<String>() + &held_text(which, held)
}
