//! The program that asks the table, and where it is pinned. This file alone knows that it is one of socket operations
//! (`sockops`), which every kernel from 6.1 on attaches to a cgroup by a link.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, Object};

use super::rule::Rule;
use super::table::{Place, Table};
use crate::error::Error;
use crate::kernel::{self, Kernel};
use crate::open;
use crate::pins::{self, ROOT};
use crate::profiles::{self, CHOICES, NAMES};
use crate::programs;
use crate::run::hierarchy;

/// Directory of the pins, below that of all.
pub(crate) const SELECT: &str = "select";
/// What is pinned there: the place of the table, and the program's link to the cgroup.
const TABLES: &str = "tables";
const LINK: &str = "link";
/// A link that takes its place.
const LINK_NEXT: &str = "link-next";
/// A table that nobody is decided by: the rules that `onramp apply` made; and one that takes its place.
const APPLIED: &str = "applied";
const APPLIED_NEXT: &str = "applied-next";

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
            // Who may load the program may attach it; what is refused is to stand beside another.
            ErrorKind::PermissionDenied => Error::CgroupTaken { path: cgroup.into() },
            _ => open::failed("attach", "select")(error),
        })
    }

    /// Where it looks for its table.
    pub fn place(&self) -> Result<Place, Error> {
        let missing = || Error::io("find", TABLES)(io::ErrorKind::NotFound.into());
        let map = self.0.maps().find(|map| map.name() == TABLES).ok_or_else(missing)?;
        Place::of(map.as_fd())
    }
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

    /// Whether there is any of it; there may be where this process may not look.
    pub fn exists(&self) -> bool {
        self.directory.try_exists().unwrap_or(true)
    }

    /// Whether connections are asked about. A command that was cut off, or a pin that was removed by hand, leaves the
    /// rules without.
    pub fn is_linked(&self) -> bool {
        self.link().exists()
    }

    /// The table that is in use; `None`: no rule has been made yet.
    pub fn table(&self) -> Result<Option<Table>, Error> {
        match (self.tables().exists(), self.is_linked()) {
            (true, _) => self.place()?.table(),
            (false, false) => Ok(None),
            (false, true) => Err(Error::SelectionBroken { path: self.tables() }),
        }
    }

    fn place(&self) -> Result<Place, Error> {
        Place::open(pins::open(&self.tables())?)
    }

    /// The rules that `onramp apply` made; `None`: it made none.
    pub fn applied(&self) -> Result<Option<Table>, Error> {
        let path = self.directory.join(APPLIED);
        if path.exists() { Table::open(&path).map(Some) } else { Ok(None) }
    }

    /// Records that `onramp apply` made these rules, and no others.
    pub fn mark_applied(&self, rules: &[Rule]) -> Result<(), Error> {
        let (path, next) = (self.directory.join(APPLIED), self.directory.join(APPLIED_NEXT));
        for file in [&next].into_iter().chain(rules.is_empty().then_some(&path)).filter(|file| file.exists())
        {
            fs::remove_file(file).map_err(Error::io("remove", file))?;
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

    /// Makes what is missing; whether all was. The table's place comes first: with the link alone nobody would find it.
    pub fn ensure(&self) -> Result<bool, Error> {
        let new = !self.exists();
        let made = self.complete();
        if made.is_err() && new {
            self.take_back();
        }
        made.map(|()| new)
    }

    fn complete(&self) -> Result<(), Error> {
        profiles::ensure()?;
        if self.is_linked() && self.knows_profiles()? {
            return Ok(());
        }
        let cgroup = hierarchy()?;
        let mut pinned: Vec<_> = [NAMES, CHOICES].map(|name| (name, profiles::path(name))).into();
        let former = self.tables().exists();
        pinned.extend(former.then(|| (TABLES, self.tables())));
        let mut program = Program(open::select(&pinned, &Kernel::read()?)?);
        if !former {
            pins::make(&self.directory)?;
            for mut map in program.0.maps_mut().filter(|map| map.name() == TABLES) {
                map.pin(self.tables()).map_err(open::failed("pin", "select"))?;
            }
        }
        // Where there is one, both are asked for a moment: what the first has set, the second leaves alone.
        let next = self.directory.join(LINK_NEXT);
        if next.exists() {
            fs::remove_file(&next).map_err(Error::io("remove", &next))?;
        }
        let place = if self.is_linked() { &next } else { &self.link() };
        program.attach(&cgroup)?.pin(place).map_err(open::failed("pin", "select"))?;
        if *place == next {
            fs::rename(&next, self.link()).map_err(Error::io("pin", self.link()))?;
        }
        tracing::debug!("attached to cgroup {}, pinned under {}", cgroup.display(), self.directory.display());
        Ok(())
    }

    /// Whether the program that is linked tells controls of profiles. That of an older onramp does not.
    fn knows_profiles(&self) -> Result<bool, Error> {
        let failed = open::failed("look at", "select");
        let names = MapHandle::from_pinned_path(profiles::path(NAMES)).and_then(|map| map.info());
        let names = names.map_err(&failed)?.info.id;
        let program = Link::open(self.link()).and_then(|link| link.info()).map_err(&failed)?.prog_id;
        let maps = programs::info(program).and_then(|info| info.map_ids().ok().flatten());
        Ok(maps.is_some_and(|maps| maps.contains(&names)))
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

    /// [`Selector::remove`] after a failure, which is what the caller tells of; `status` shows what may be left.
    fn take_back(&self) {
        let removed = if self.exists() { self.remove() } else { profiles::tidy() };
        if let Err(error) = removed {
            tracing::debug!("{error}");
        }
    }

    /// Removes all of it; the link first, for with it the program ends.
    pub fn remove(&self) -> Result<(), Error> {
        let others = [LINK_NEXT, TABLES, APPLIED_NEXT, APPLIED].map(|name| self.directory.join(name));
        for path in [self.link()].iter().chain(&others).filter(|path| path.exists()) {
            fs::remove_file(path).map_err(Error::io("remove", path))?;
        }
        fs::remove_dir(&self.directory).map_err(Error::io("remove", &self.directory))?;
        // The root goes with what is last in it.
        let _ = fs::remove_dir(kernel::on_host(Path::new(ROOT)));
        profiles::tidy()
    }
}
