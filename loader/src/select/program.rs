//! The program that asks the table, and where it is pinned. This file alone knows that it is one of socket operations
//! (`sockops`), which every kernel from 6.1 on attaches to a cgroup by a link.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, Object};

use super::cgroup::{Cgroup, Cgroups};
use super::rule::Rule;
use super::table::{Place, Table};
use super::taken;
use crate::object::open;
use crate::object::programs;
use crate::pins::profiles::{self, MAPS, NAMES};
use crate::pins::{self, ROOT, SELECT};
use crate::system::error::Error;
use crate::system::hierarchy;
use crate::system::kernel::{self, Capability, Kernel};

/// What is pinned there: the place of the table, and the program's link to the cgroup.
const TABLES: &str = "tables";
const LINK: &str = "link";
/// What takes their places.
const TABLES_NEXT: &str = "tables-next";
const LINK_NEXT: &str = "link-next";
/// A table that decides about no connection: the rules that `onramp apply` made; and one that takes its place.
const APPLIED: &str = "applied";
const APPLIED_NEXT: &str = "applied-next";

/// Fails unless this process may ask and change what is selected: the table is found by the number that the kernel gives
/// it.
///
/// # Errors
/// [`Error::Privilege`].
pub fn require() -> Result<(), Error> {
    if Capability::SysAdmin.held() {
        return Ok(());
    }
    Err(Error::Privilege { verb: "select", capabilities: "CAP_SYS_ADMIN" })
}

/// The program, loaded.
pub(crate) struct Program(Object);

impl Program {
    /// With a place of its own, and no table.
    pub fn load() -> Result<Self, Error> {
        open::select(&[], &Kernel::read()?).map(Self)
    }

    /// Attaches it: sockets of a cgroup and of those below are asked about for as long as the link lives.
    pub fn attach(&self, cgroup: &Path) -> Result<Link, Error> {
        let directory = File::open(cgroup).map_err(Error::io("open", cgroup))?;
        let missing = || Error::io("find", "the selection program")(io::ErrorKind::NotFound.into());
        let program = self.0.progs_mut().next().ok_or_else(missing)?;
        program.attach_cgroup(directory.as_raw_fd()).map_err(|error| match error.kind() {
            // Who may load the program may attach it; what is refused is to stand next to another, or below it.
            ErrorKind::PermissionDenied => taken::taken(cgroup),
            _ => open::failed("attach", "select")(error),
        })
    }

    /// Where it looks for its table.
    pub fn place(&self) -> Result<Place, Error> {
        let missing = || Error::io("find", TABLES)(io::ErrorKind::NotFound.into());
        let map = self.0.maps().find(|map| map.name() == TABLES).ok_or_else(missing)?;
        Place::new(map.as_fd())
    }
}

/// Which sockets the program is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// None.
    Nowhere,
    /// All of the host.
    Everywhere,
    /// Those of the cgroup of this number and of those below it: it was attached where the root was out of sight.
    Below(u64),
}

/// The program of this host's rules, by its pins.
pub(crate) struct Selector {
    directory: PathBuf,
}

impl Selector {
    /// That of this host.
    pub fn here() -> Self {
        Self { directory: kernel::on_host(Path::new(ROOT)).join(SELECT) }
    }

    fn tables(&self) -> PathBuf {
        self.directory.join(TABLES)
    }

    fn link(&self) -> PathBuf {
        self.directory.join(LINK)
    }

    /// Whether there is any of it.
    pub fn exists(&self) -> Result<bool, Error> {
        profiles::selection_exists()
    }

    /// The same for who may lack the privilege to look, which is then what is wrong.
    ///
    /// # Errors
    /// [`Error::Privilege`], [`Error::Io`].
    pub fn exists_as_seen(&self) -> Result<bool, Error> {
        self.exists().or_else(|error| require().and(Err(error)))
    }

    /// Which connections are asked about. A command that was cut off, or a pin that was removed by hand, leaves the rules
    /// without a program; so does the end of the cgroup that it was attached to.
    pub fn linked(&self) -> Result<Linked, Error> {
        if !pins::is_there(&self.link())? {
            return Ok(Linked::Nowhere);
        }
        let info = Link::open(self.link()).and_then(|link| link.info());
        Ok(match info.map_err(open::failed("look at", "select"))?.info {
            LinkTypeInfo::Cgroup(of) => match of.cgroup_id {
                0 => Linked::Nowhere,
                hierarchy::ROOT_ID => Linked::Everywhere,
                // The kernel lets a cgroup that has been removed go in its own time.
                id if hierarchy::root().is_ok() && Cgroups::all()?.path(id).is_none() => Linked::Nowhere,
                id => Linked::Below(id),
            },
            _ => Linked::Nowhere,
        })
    }

    /// The cgroup, not the root, whose connections alone are asked about.
    pub fn holds_in(&self) -> Result<Option<Cgroup>, Error> {
        match self.linked()? {
            Linked::Below(id) => Ok(Some(Cgroup { id, path: Cgroups::all()?.path(id).map(str::to_owned) })),
            Linked::Nowhere | Linked::Everywhere => Ok(None),
        }
    }

    /// Fails where the next change of a rule could not have all connections asked about.
    ///
    /// # Errors
    /// [`Error::NoCgroup`], [`Error::PartOfCgroups`].
    pub fn require_root(&self) -> Result<(), Error> {
        if self.linked()? == Linked::Everywhere { Ok(()) } else { hierarchy::root().map(drop) }
    }

    /// The table that is in use; `None`: no rule has been made yet.
    pub fn table(&self) -> Result<Option<Table>, Error> {
        if pins::is_there(&self.tables())? {
            self.place()?.table()
        } else if pins::is_there(&self.link())? {
            Err(Error::SelectionBroken { path: self.tables() })
        } else {
            Ok(None)
        }
    }

    fn place(&self) -> Result<Place, Error> {
        pins::data(&self.tables()).map(Place::open)
    }

    /// The rules that `onramp apply` made; `None`: it made none.
    pub fn applied(&self) -> Result<Option<Table>, Error> {
        let path = self.directory.join(APPLIED);
        if pins::is_there(&path)? { Table::open(&path).map(Some) } else { Ok(None) }
    }

    /// Records that `onramp apply` made these rules, and no others.
    pub fn mark_applied(&self, rules: &[Rule]) -> Result<(), Error> {
        let (path, next) = (self.directory.join(APPLIED), self.directory.join(APPLIED_NEXT));
        for file in [&next].into_iter().chain(rules.is_empty().then_some(&path)) {
            pins::remove_if_there(file)?;
        }
        if !rules.is_empty() {
            Table::pin(rules, &next)?;
            fs::rename(&next, &path).map_err(Error::io("pin", &path))?;
        }
        Ok(())
    }

    /// Has connections find this table from now on.
    pub fn put(&self, table: &Table) -> Result<(), Error> {
        self.place()?.put(table)
    }

    /// Makes what is missing; whether all was. The table's place comes first: with the link alone it could not be found.
    pub fn ensure(&self) -> Result<bool, Error> {
        let new = !self.exists()?;
        let made = self.complete();
        if made.is_err() && new {
            self.take_back();
        }
        made.map(|()| new)
    }

    fn complete(&self) -> Result<(), Error> {
        profiles::ensure()?;
        let usable = pins::is_there(&self.tables())? && self.place()?.table()?.is_some();
        if usable && self.linked()? == Linked::Everywhere && self.is_of_these_maps()? {
            return Ok(());
        }
        let cgroup = hierarchy::root()?;
        let mut pinned: Vec<_> = MAPS.map(|name| (name, profiles::path(name))).into();
        pinned.extend(usable.then(|| (TABLES, self.tables())));
        let mut program = Program(open::select(&pinned, &Kernel::read()?)?);
        if !usable {
            pins::make(&self.directory)?;
            for mut map in program.0.maps_mut().filter(|map| map.name() == TABLES) {
                self.pin(TABLES, TABLES_NEXT, |place| map.pin(place))?;
            }
        }
        // Where there is one, both are asked for a moment: what the first has set, the second leaves alone.
        let mut link = program.attach(&cgroup)?;
        self.pin(LINK, LINK_NEXT, |place| link.pin(place))?;
        tracing::debug!("attached to cgroup {}, pinned under {}", cgroup.display(), self.directory.display());
        Ok(())
    }

    /// Pins what takes the place of what is pinned under this name, at once.
    fn pin(
        &self,
        name: &str,
        next: &str,
        pin: impl FnOnce(PathBuf) -> libbpf_rs::Result<()>,
    ) -> Result<(), Error> {
        let (path, next) = (self.directory.join(name), self.directory.join(next));
        pins::remove_if_there(&next)?;
        let place = if pins::is_there(&path)? { &next } else { &path };
        pin(place.clone()).map_err(open::failed("pin", "select"))?;
        if *place == next {
            fs::rename(&next, &path).map_err(Error::io("pin", &path))?;
        }
        Ok(())
    }

    /// Whether the program that is linked looks into the maps that are pinned. That of an onramp of before does not, and
    /// that of a command which was cut off may not.
    fn is_of_these_maps(&self) -> Result<bool, Error> {
        let failed = open::failed("look at", "select");
        let program = Link::open(self.link()).and_then(|link| link.info()).map_err(&failed)?.prog_id;
        let used = programs::info(program).and_then(|info| info.map_ids().ok().flatten()).unwrap_or_default();
        for path in [profiles::path(NAMES), self.tables()] {
            let map = MapHandle::from_pinned_path(path).and_then(|map| map.info()).map_err(&failed)?;
            if !used.contains(&map.info.id) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does what needs all of it, made if it is missing. If that fails, what was made goes again.
    pub fn with(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let made = self.ensure()?;
        let done = work();
        if done.is_err() && made {
            self.take_back();
        }
        done
    }

    /// [`Selector::remove`] after a failure, which is what the caller reports; `status` shows what may be left.
    fn take_back(&self) {
        let removed = self.exists().and_then(|exists| if exists { self.remove() } else { profiles::tidy() });
        if let Err(error) = removed {
            tracing::debug!("{error}");
        }
    }

    /// Removes all of it; the link first, for with it the program ends.
    pub fn remove(&self) -> Result<(), Error> {
        let others =
            [LINK_NEXT, TABLES, TABLES_NEXT, APPLIED_NEXT, APPLIED].map(|name| self.directory.join(name));
        for path in [self.link()].iter().chain(&others) {
            pins::remove_if_there(path)?;
        }
        fs::remove_dir(&self.directory).map_err(Error::io("remove", &self.directory))?;
        // The root goes with what is last in it.
        let _ = fs::remove_dir(kernel::on_host(Path::new(ROOT)));
        profiles::tidy()
    }
}
