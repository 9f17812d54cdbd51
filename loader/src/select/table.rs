//! A table of rules in the kernel: one longest prefix match trie. Tables are filled before they are used, or changed by one
//! rule at a time, so that a connection finds either what was or what will be. Next to its rules a table says which shapes of
//! rules it has; it may say so of more than it has.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{ArrayOfMaps, Map, MapData, MapError};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::rule::{Choice, KeyValue, RULES_MAX, Rule, Target, shapes_key, shapes_layout};
use crate::object::abi::SelectRule;
use crate::object::open;
use crate::pins::profiles::Names;
use crate::pins::{self, map_failed};
use crate::system::error::Error;

type Trie = LpmTrie<MapData, KeyValue, SelectRule>;

/// A table, pinned nowhere: it lives as long as it is in use, or open.
pub(crate) struct Table {
    trie: Trie,
    names: Names,
}

/// Where a program looks for its table.
pub(crate) struct Place(MapData);

fn failed(action: &'static str) -> impl Fn(MapError) -> Error {
    map_failed(action, Path::new("select_rules"))
}

impl Place {
    /// That of a map that is open.
    pub fn open(map: MapData) -> Self {
        Self(map)
    }

    /// That of a program that is not pinned.
    pub fn new(tables: BorrowedFd<'_>) -> Result<Self, Error> {
        let fd = tables.try_clone_to_owned().map_err(Error::io("use", "select_rules"))?;
        MapData::from_fd(fd).map(Self).map_err(failed("use"))
    }

    /// The table in use; `None`: no rule has been made yet.
    pub fn table(&self) -> Result<Option<Table>, Error> {
        match self.tables()?.get(&0, 0) {
            Ok(trie) => Ok(Some(Table { trie, names: Names::read()? })),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(failed("read")(error)),
        }
    }

    fn tables(&self) -> Result<ArrayOfMaps<MapData, Trie>, Error> {
        let fd = self.0.fd().as_fd().try_clone_to_owned().map_err(Error::io("use", "select_rules"))?;
        let map = MapData::from_fd(fd).and_then(Map::from_map_data).map_err(failed("use"))?;
        map.try_into().map_err(failed("use"))
    }

    /// Has connections find this table from now on.
    pub fn put(&mut self, table: &Table) -> Result<(), Error> {
        self.tables()?.set(0, &table.trie, 0).map_err(failed("write"))
    }
}

impl Table {
    /// A new table with these rules, of which no two have the same target. What they name is among the names.
    pub fn new(rules: &[Rule], names: &Names) -> Result<Self, Error> {
        let map = filled(rules, names)?;
        let fd = map.as_fd().try_clone_to_owned().map_err(Error::io("use", "the table of rules"))?;
        let map = MapData::from_fd(fd).and_then(Map::from_map_data).map_err(failed("use"))?;
        let trie = Trie::try_from(map).map_err(failed("use"))?;
        Ok(Self { trie, names: names.clone() })
    }

    /// The same, pinned.
    pub fn pin(rules: &[Rule], path: &Path) -> Result<(), Error> {
        filled(rules, &Names::read()?)?.pin(path).map_err(open::failed("pin", "the table of rules"))
    }

    /// A table that is pinned.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let trie = Trie::try_from(pins::open(path)?).map_err(map_failed("use", path))?;
        Ok(Self { trie, names: Names::read()? })
    }

    /// What it has for exactly this target.
    pub fn get(&self, target: &Target) -> Result<Option<Choice>, Error> {
        let found = self.longest(target)?;
        Ok(found.filter(|rule| rule.target == *target).map(|rule| rule.choice))
    }

    /// The rule of the longest prefix of a target: its own, or one that leaves out bits of its address, or the address.
    pub fn longest(&self, target: &Target) -> Result<Option<Rule>, Error> {
        let key = target.key();
        match self.trie.get(&key, 0) {
            Ok(layout) => {
                let found = target.shortened(layout.bits);
                Ok(found.map(|target| Rule { target, choice: Choice::new(&layout, &self.names) }))
            }
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(failed("read")(error)),
        }
    }

    /// All its rules; those of another build, which this one would misread, are none.
    pub fn rules(&self) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        for entry in self.trie.iter() {
            let (key, layout) = entry.map_err(failed("read"))?;
            let rule = |target| Rule { target, choice: Choice::new(&layout, &self.names) };
            rules.extend(Target::new(&key).map(rule));
        }
        Ok(rules)
    }

    /// How many rules it has.
    pub fn count(&self) -> usize {
        self.targets().count()
    }

    /// Whether there is one rule and no more.
    pub fn has_one(&self) -> bool {
        self.targets().take(2).count() == 1
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        self.trie.keys().filter_map(|key| Target::new(&key.ok()?))
    }

    /// Which shapes of rules there may be, see [`Target::shape`].
    pub fn shapes(&self) -> Result<u32, Error> {
        match self.trie.get(&shapes_key(), 0) {
            Ok(layout) => Ok(layout.bits),
            Err(MapError::KeyNotFound) => Ok(0),
            Err(error) => Err(failed("read")(error)),
        }
    }

    /// Adds or replaces a rule. What it names is among the names.
    pub fn insert(&mut self, rule: &Rule, names: &Names) -> Result<(), Error> {
        let key = rule.target.key();
        // First: what no shape announces is not found.
        let shapes = self.shapes()? | rule.target.shape();
        self.trie.insert(&shapes_key(), shapes_layout(shapes), 0).map_err(failed("write"))?;
        self.trie.insert(&key, rule.choice.layout(&key, names), 0).map_err(|error| match &error {
            MapError::SyscallError(call) if call.io_error.raw_os_error() == Some(libc::ENOSPC) => {
                Error::TooManyRules { most: RULES_MAX }
            }
            _ => failed("write")(error),
        })
    }

    /// Removes a rule that is there.
    pub fn remove(&mut self, target: &Target) -> Result<(), Error> {
        self.trie.remove(&target.key()).map_err(failed("write"))
    }
}

/// A new map with these rules.
fn filled(rules: &[Rule], names: &Names) -> Result<MapHandle, Error> {
    let options = open::map_options(libbpf_sys::BPF_F_NO_PREALLOC);
    let (key, value) = (size_of::<Key<KeyValue>>() as u32, size_of::<SelectRule>() as u32);
    let name = Some("select_rules");
    // One entry more: the shapes of the rules.
    let most = RULES_MAX as u32 + 1;
    let map = MapHandle::create(MapType::LpmTrie, name, key, value, most, &options)
        .map_err(open::failed("create", "the table of rules"))?;
    let mut keys = Vec::with_capacity((rules.len() + 1) * key as usize);
    let mut values = Vec::with_capacity((rules.len() + 1) * value as usize);
    let mut put = |key: Key<KeyValue>, layout: SelectRule| {
        let SelectRule { control, profile, initial_window, resume_kbps, resume_rtt_us, bits } = layout;
        keys.extend(key.prefix_len().to_ne_bytes().into_iter().chain(key.data()));
        values.extend(control.into_iter().chain([profile]));
        for number in [initial_window, resume_kbps, resume_rtt_us, bits] {
            values.extend(number.to_ne_bytes());
        }
    };
    let shapes = rules.iter().map(|rule| rule.target.shape()).fold(0, |all, one| all | one);
    put(shapes_key(), shapes_layout(shapes));
    for rule in rules {
        let key = rule.target.key();
        let layout = rule.choice.layout(&key, names);
        put(key, layout);
    }
    map.update_batch(&keys, &values, rules.len() as u32 + 1, MapFlags::ANY, MapFlags::ANY)
        .map_err(open::failed("fill", "the table of rules"))?;
    Ok(map)
}
