//! All that decides about new connections of a network namespace, as far as it can be asked: runs, rules, routes and the
//! default; and what servers have chosen for the connections that they accept. What an application chooses for itself
//! otherwise cannot be asked.

use std::collections::BTreeMap;

use onramp_net::Namespace;
use onramp_net::route::Routes;

use crate::attachment::migrate;
use crate::object::abi::SELECT_CGROUP_SHAPES;
use crate::pins::{LOCK_TIMEOUT, Lock};
use crate::report::flows::listening_ports;
use crate::run;
use crate::select::cgroup::Cgroups;
use crate::select::decide::decide;
use crate::select::program::{Linked, Selector};
use crate::select::table::Table;
use crate::select::{self, Cgroup, Connection, Rule, Side};
use crate::system::error::Error;
use crate::system::everywhere::SYSCTL;
use crate::system::hierarchy;
use crate::system::kernel;

/// What is asked.
pub struct Deciders {
    rules: Option<Rules>,
    registered: Vec<String>,
    cgroups: Cgroups,
    routes: Routes,
    default: String,
    /// What servers have chosen, by port; asked for when it is needed first.
    choices: Option<BTreeMap<u16, String>>,
}

/// The rules that are in use.
struct Rules {
    table: Table,
    shapes: u32,
    /// The cgroup, not the root, whose connections alone are asked about.
    holds_in: Option<u64>,
}

/// What decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The route, with `congctl lock`.
    LockedRoute,
    /// The application with a listening socket on this port.
    Server(u16),
    /// `onramp run` of this process.
    Run(u32),
    /// A rule.
    Rule(Rule),
    /// The route, with `congctl`.
    Route,
    /// The default of the network namespace.
    Default,
}

/// What a new connection gets unless its application chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The kernel's name of the congestion control.
    pub control: String,
    /// The profile whose parameters it has by a rule; `None`: those of the attachment, or it is no algorithm.
    pub profile: Option<String>,
    /// Reason.
    pub by: By,
    /// The rule that would decide if its control were registered.
    pub without_control: Option<Rule>,
}

impl Decision {
    /// The rule that decides, or would if its control were registered.
    pub fn rule(&self) -> Option<&Rule> {
        match &self.by {
            By::Rule(rule) => Some(rule),
            _ => self.without_control.as_ref(),
        }
    }
}

impl Deciders {
    /// Those of the current network namespace.
    ///
    /// # Errors
    /// [`Error::Privilege`] if there are rules that this process may not read, [`Error::SelectionBroken`],
    /// [`Error::PartOfCgroups`] if there are rules of cgroups that are out of sight, or what cannot be read.
    pub fn here() -> Result<Self, Error> {
        let rules = rules()?;
        if rules.as_ref().is_some_and(|rules| rules.shapes & SELECT_CGROUP_SHAPES != 0) {
            hierarchy::root()?;
        }
        Ok(Self {
            rules,
            registered: kernel::registered()?,
            cgroups: Cgroups::all()?,
            routes: Routes::open()?,
            default: Namespace::current()?.sysctl_get(SYSCTL)?,
            choices: None,
        })
    }

    /// The path of a cgroup, such as `/system.slice`; `None`: it is gone.
    pub fn cgroup_path(&self, id: u64) -> Option<&str> {
        self.cgroups.path(id)
    }

    /// What a connection gets that is established now.
    ///
    /// # Errors
    /// Rules or routes that cannot be read.
    pub fn decide(&mut self, connection: &Connection) -> Result<Decision, Error> {
        let route = self.routes.control(connection.peer, connection.local, connection.interface)?;
        let decision = |control: String, by| Decision { control, profile: None, by, without_control: None };
        if let Some(route) = route.as_ref().filter(|route| route.locked) {
            return Ok(decision(route.name.clone(), By::LockedRoute));
        }
        if let Some((port, control)) = self.chosen_by_server(connection)? {
            return Ok(match route {
                Some(route) => decision(route.name, By::Route),
                None => decision(control, By::Server(port)),
            });
        }
        let path = connection.cgroup.and_then(|id| self.cgroups.path(id));
        if let Some((pid, algorithm)) = path.and_then(run::of_path) {
            return Ok(decision(algorithm.congestion_control(), By::Run(pid)));
        }
        let rule = self.rule(connection)?;
        let without_control = match rule {
            Some(rule) if self.registered.contains(&rule.choice.control) => {
                let missing = !select::missing_profiles(std::slice::from_ref(&rule)).is_empty();
                let profile = rule.choice.profile.clone().filter(|_| !missing);
                return Ok(Decision { profile, ..decision(rule.choice.control.clone(), By::Rule(rule)) });
            }
            rule => rule,
        };
        Ok(match route {
            Some(route) => Decision { without_control, ..decision(route.name, By::Route) },
            None => Decision { without_control, ..decision(self.default.clone(), By::Default) },
        })
    }

    /// What the server has chosen that accepts this connection.
    fn chosen_by_server(&mut self, connection: &Connection) -> Result<Option<(u16, String)>, Error> {
        let Some(port) = connection.port.filter(|_| connection.side == Side::Accept) else { return Ok(None) };
        // Without the privilege it is not known, as what an application chooses later.
        if !kernel::may_attach() || !listening_ports()?.contains(&port) {
            return Ok(None);
        }
        let choices = match &self.choices {
            Some(choices) => choices,
            None => self.choices.insert(migrate::choices()?),
        };
        Ok(choices.get(&port).map(|control| (port, control.clone())))
    }

    /// The cgroup, not the root, whose connections alone are given what rules say.
    pub fn holds_in(&self) -> Option<Cgroup> {
        let id = self.rules.as_ref()?.holds_in?;
        Some(Cgroup { id, path: self.cgroups.path(id).map(str::to_owned) })
    }

    fn rule(&self, connection: &Connection) -> Result<Option<Rule>, Error> {
        let Some(Rules { table, shapes, holds_in }) = &self.rules else { return Ok(None) };
        let cgroups = connection.cgroup.map_or_else(Vec::new, |id| self.cgroups.ancestry(id));
        if holds_in.is_some_and(|id| !cgroups.contains(&id)) {
            return Ok(None);
        }
        let mut rule = decide(connection, &cgroups, *shapes, |target| table.longest(target))?;
        if let Some(cgroup) = rule.as_mut().and_then(|rule| rule.target.cgroup.as_mut()) {
            cgroup.path = self.cgroups.path(cgroup.id).map(str::to_owned);
        }
        Ok(rule)
    }
}

/// The rules that connections are decided by; `None`: there are none, or they are not in use.
fn rules() -> Result<Option<Rules>, Error> {
    let selector = Selector::here();
    if !kernel::has_bpffs() || !selector.exists_as_seen()? {
        return Ok(None);
    }
    select::require()?;
    let _lock = Lock::look_while(&|waited| waited < LOCK_TIMEOUT)?;
    let Some(table) = selector.table()? else { return Ok(None) };
    let shapes = table.shapes()?;
    Ok(match selector.linked()? {
        Linked::Nowhere => None,
        Linked::Everywhere => Some(Rules { table, shapes, holds_in: None }),
        Linked::Below(id) => Some(Rules { table, shapes, holds_in: Some(id) }),
    })
}
