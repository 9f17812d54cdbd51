//! Settings of the host that are not onramp's own: changed only when asked to, and given back exactly.
//!
//! What each was before is recorded first, in a pinned map by the network namespace's cookie. It goes with a reboot, as the
//! settings do.

use std::fs;
use std::path::PathBuf;

use aya::maps::{HashMap, MapData, MapError};
use libbpf_rs::{MapHandle, MapType};
use onramp_net::namespace::Namespace;

use crate::abi::{padded, text};
use crate::error::Error;
use crate::kernel;
use crate::pins::{self, Lock, ROOT};
use crate::{open, trust};

/// The pin.
const SETTINGS: &str = "settings";
/// Of all namespaces.
const SETTINGS_MAX: u32 = 4_096;
/// Bytes of a sysctl's name, and of a value; each ends with a NUL at least.
const NAME: usize = 56;
const VALUE: usize = 64;

type Key = [u8; 8 + NAME];
type Record = [u8; 2 * VALUE];

/// A sysctl that [`change`] has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub sysctl: String,
    /// What it was before.
    pub before: String,
    /// What it was set to.
    pub set: String,
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is again what it was before.
    GivenBack,
    /// Somebody else has set it since, to this: it was left alone, and is recorded no more.
    Left(String),
}

/// What giving back did.
#[derive(Clone, Debug, Default)]
pub struct GivenBack {
    /// The settings, with the network namespace of each.
    pub settings: Vec<(String, Setting, Outcome)>,
    /// Where it could not be looked, and why, if settings are recorded of a namespace that was not found: they still are.
    pub unseen: Vec<String>,
}

/// Values separated by single spaces; the kernel shows tabs.
pub(crate) fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sets sysctls of the current network namespace, and records what they were. Those that have their value already are left
/// alone. Returns what was changed.
///
/// # Errors
/// [`Error::Privilege`], or a sysctl that cannot be set: then all are as before.
pub fn change(wanted: &[(&str, &str)]) -> Result<Vec<Setting>, Error> {
    kernel::require_privilege("doctor --fix")?;
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    let namespace = Namespace::current()?;
    let mut records = Records::open_or_create()?;
    let mut changes = Changes { namespace: &namespace, records: &mut records, done: Vec::new() };
    let mut result = Ok(());
    for (sysctl, to) in wanted {
        result = changes.set(sysctl, to);
        if result.is_err() {
            changes.take_back();
            break;
        }
    }
    let changed = changes.done.into_iter().map(|done| done.setting).collect();
    records.tidy()?;
    result.map(|()| changed)
}

/// What is recorded, of all network namespaces.
///
/// # Errors
/// [`Error::Privilege`], or a map that cannot be read.
pub fn changed() -> Result<Vec<Setting>, Error> {
    kernel::require_privilege("status")?;
    if !kernel::has_bpffs() {
        return Ok(Vec::new());
    }
    let _lock = Lock::take()?;
    changed_locked()
}

/// [`changed`] for a caller that holds the lock.
pub(crate) fn changed_locked() -> Result<Vec<Setting>, Error> {
    let recorded = Records::open()?.map_or_else(|| Ok(Vec::new()), |records| records.all())?;
    Ok(recorded.into_iter().map(|(_, setting)| setting).collect())
}

/// Gives all recorded settings back, in every network namespace. What somebody else has set since is left alone.
///
/// # Errors
/// [`Error::Privilege`], or a sysctl that cannot be set: it stays recorded, as do those after it.
pub fn give_back() -> Result<GivenBack, Error> {
    kernel::require_everywhere("doctor --undo")?;
    let mut given = GivenBack::default();
    if !kernel::has_bpffs() {
        return Ok(given);
    }
    let _lock = Lock::take()?;
    let Some(mut records) = Records::open()? else { return Ok(given) };
    let survey = Namespace::survey()?;
    for namespace in survey.namespaces() {
        let namespace = namespace?;
        let cookie = namespace.cookie()?;
        for setting in records.of(cookie)? {
            let outcome = restore(&namespace, &setting)?;
            records.remove(cookie, &setting.sysctl)?;
            given.settings.push((namespace.to_string(), setting, outcome));
        }
    }
    let unseen = survey.unseen();
    if unseen.is_empty() {
        // Their namespaces have gone.
        for (cookie, setting) in records.all()? {
            records.remove(cookie, &setting.sysctl)?;
        }
    } else if !records.all()?.is_empty() {
        given.unseen = unseen;
    }
    records.tidy()?;
    Ok(given)
}

fn restore(namespace: &Namespace, setting: &Setting) -> Result<Outcome, Error> {
    let now = words(&namespace.sysctl_get(&setting.sysctl)?);
    if now == setting.set {
        namespace.sysctl_set(&setting.sysctl, &setting.before)?;
    } else if now != setting.before {
        return Ok(Outcome::Left(now));
    }
    Ok(Outcome::GivenBack)
}

/// A row of changes, which can be taken back.
struct Changes<'a> {
    namespace: &'a Namespace,
    records: &'a mut Records,
    done: Vec<Done>,
}

/// A change, with what it found.
struct Done {
    setting: Setting,
    found: String,
    recorded: Option<Setting>,
}

impl Changes<'_> {
    fn set(&mut self, sysctl: &str, to: &str) -> Result<(), Error> {
        let found = words(&self.namespace.sysctl_get(sysctl)?);
        if found == to {
            return Ok(());
        }
        let recorded =
            self.records.of(self.namespace.cookie()?)?.into_iter().find(|one| one.sysctl == sysctl);
        // What somebody else has set since is what was before now.
        let before = recorded.as_ref().filter(|one| one.set == found).map(|one| one.before.clone());
        let before = before.unwrap_or_else(|| found.clone());
        let setting = Setting { sysctl: sysctl.into(), before, set: to.into() };
        self.done.push(Done { setting: setting.clone(), found, recorded });
        self.by_way_of_before(&setting, Some(&setting), to)
    }

    /// As far as the kernel lets it, which it did before.
    fn take_back(&mut self) {
        for Done { setting, found, recorded } in std::mem::take(&mut self.done).into_iter().rev() {
            if let Err(error) = self.by_way_of_before(&setting, recorded.as_ref(), &found) {
                tracing::error!("{error}");
            }
        }
    }

    /// Sets what was before, then records, then sets the value: whenever this is cut off, the record tells what was before.
    fn by_way_of_before(
        &mut self,
        setting: &Setting,
        record: Option<&Setting>,
        to: &str,
    ) -> Result<(), Error> {
        let Setting { sysctl, before, .. } = setting;
        let cookie = self.namespace.cookie()?;
        if words(&self.namespace.sysctl_get(sysctl)?) != *before {
            self.namespace.sysctl_set(sysctl, before)?;
        }
        match record {
            Some(record) => self.records.insert(cookie, record)?,
            None => self.records.remove(cookie, sysctl)?,
        }
        if to != before {
            self.namespace.sysctl_set(sysctl, to)?;
        }
        Ok(())
    }
}

/// The pinned map.
struct Records(HashMap<MapData, Key, Record>);

impl Records {
    fn path() -> PathBuf {
        root().join(SETTINGS)
    }

    fn open() -> Result<Option<Self>, Error> {
        let path = Self::path();
        if !path.exists() {
            return Ok(None);
        }
        let map = HashMap::try_from(pins::open(&path)?).map_err(pins::map_failed("read", &path))?;
        Ok(Some(Self(map)))
    }

    fn open_or_create() -> Result<Self, Error> {
        if let Some(records) = Self::open()? {
            return Ok(records);
        }
        let failed = |action| open::failed(action, SETTINGS);
        trust::make(&root())?;
        let options = open::map_options(libbpf_sys::BPF_F_NO_PREALLOC);
        let (key, value) = (size_of::<Key>() as u32, size_of::<Record>() as u32);
        let name = Some("onramp_settings");
        let mut map = MapHandle::create(MapType::Hash, name, key, value, SETTINGS_MAX, &options)
            .map_err(failed("create"))?;
        map.pin(Self::path()).map_err(failed("pin")).inspect_err(|_| remove_root())?;
        Self::open()?.ok_or_else(|| Error::io("open", Self::path())(std::io::ErrorKind::NotFound.into()))
    }

    fn all(&self) -> Result<Vec<(u64, Setting)>, Error> {
        let failed = pins::map_failed("read", &Self::path());
        let entry = |(key, record): (Key, Record)| {
            let (cookie, name) = key.split_at(8);
            let (before, set) = record.split_at(VALUE);
            let setting = Setting { sysctl: text(name), before: text(before), set: text(set) };
            (u64::from_ne_bytes(cookie.try_into().unwrap_or_default()), setting)
        };
        let mut all: Vec<_> =
            self.0.iter().map(|one| one.map(entry)).collect::<Result<_, _>>().map_err(failed)?;
        all.sort_by(|(_, one), (_, other)| one.sysctl.cmp(&other.sysctl));
        Ok(all)
    }

    fn of(&self, cookie: u64) -> Result<Vec<Setting>, Error> {
        let all = self.all()?.into_iter();
        Ok(all.filter(|(of, _)| *of == cookie).map(|(_, setting)| setting).collect())
    }

    fn insert(&mut self, cookie: u64, setting: &Setting) -> Result<(), Error> {
        let mut record = [0; 2 * VALUE];
        record[..VALUE].copy_from_slice(&padded::<VALUE>(&setting.before));
        record[VALUE..].copy_from_slice(&padded::<VALUE>(&setting.set));
        self.0
            .insert(key(cookie, &setting.sysctl), record, 0)
            .map_err(pins::map_failed("write", &Self::path()))
    }

    fn remove(&mut self, cookie: u64, sysctl: &str) -> Result<(), Error> {
        let key = key(cookie, sysctl);
        match self.0.get(&key, 0) {
            Err(MapError::KeyNotFound) => Ok(()),
            _ => self.0.remove(&key).map_err(pins::map_failed("write", &Self::path())),
        }
    }

    /// Removes the pin if nothing is recorded any more.
    fn tidy(self) -> Result<(), Error> {
        if self.all()?.is_empty() {
            let path = Self::path();
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            remove_root();
        }
        Ok(())
    }
}

fn root() -> PathBuf {
    kernel::on_host(ROOT.as_ref())
}

/// The directory of all pins goes with what was last in it.
fn remove_root() {
    let _ = fs::remove_dir(root());
}

fn key(cookie: u64, sysctl: &str) -> Key {
    let mut key = [0; 8 + NAME];
    key[..8].copy_from_slice(&cookie.to_ne_bytes());
    key[8..].copy_from_slice(&padded::<NAME>(sysctl));
    key
}
