//! What settings were before, in a pinned map by the network namespace's cookie; 0 for what a host has once.

use std::fs;
use std::path::PathBuf;

use aya::maps::{HashMap, MapData, MapError};
use libbpf_rs::{MapHandle, MapType};

use super::setting::Setting;
use crate::object::abi::{padded, text};
use crate::object::open;
use crate::pins::{self, ROOT};
use crate::system::error::Error;
use crate::system::kernel;
use crate::system::trust;

/// The pin.
const SETTINGS: &str = "settings";
/// Of all namespaces.
const SETTINGS_MAX: u32 = 4_096;
/// Bytes of a setting's name, and of a value; each ends with a NUL at least.
const NAME: usize = 56;
const VALUE: usize = 64;

type Key = [u8; 8 + NAME];
type Record = [u8; 2 * VALUE];

/// The pinned map.
pub(super) struct Records(HashMap<MapData, Key, Record>);

impl Records {
    fn path() -> PathBuf {
        root().join(SETTINGS)
    }

    pub fn open() -> Result<Option<Self>, Error> {
        let path = Self::path();
        if !pins::is_there(&path)? {
            return Ok(None);
        }
        let map = HashMap::try_from(pins::open(&path)?).map_err(pins::map_failed("read", &path))?;
        Ok(Some(Self(map)))
    }

    pub fn open_or_create() -> Result<Self, Error> {
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

    pub fn all(&self) -> Result<Vec<(u64, Setting)>, Error> {
        let failed = pins::map_failed("read", &Self::path());
        let entry = |(key, record): (Key, Record)| {
            let (cookie, name) = key.split_at(8);
            let (before, set) = record.split_at(VALUE);
            let setting = Setting { name: text(name), before: text(before), set: text(set) };
            (u64::from_ne_bytes(cookie.try_into().unwrap_or_default()), setting)
        };
        let mut all: Vec<_> =
            self.0.iter().map(|one| one.map(entry)).collect::<Result<_, _>>().map_err(failed)?;
        all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        Ok(all)
    }

    pub fn settings(&self, cookie: u64) -> Result<Vec<Setting>, Error> {
        let all = self.all()?.into_iter();
        Ok(all.filter(|(of, _)| *of == cookie).map(|(_, setting)| setting).collect())
    }

    pub fn insert(&mut self, cookie: u64, setting: &Setting) -> Result<(), Error> {
        let mut record = [0; 2 * VALUE];
        record[..VALUE].copy_from_slice(&padded::<VALUE>(&setting.before));
        record[VALUE..].copy_from_slice(&padded::<VALUE>(&setting.set));
        self.0.insert(key(cookie, &setting.name), record, 0).map_err(pins::map_failed("write", &Self::path()))
    }

    pub fn remove(&mut self, cookie: u64, name: &str) -> Result<(), Error> {
        let key = key(cookie, name);
        match self.0.get(&key, 0) {
            Err(MapError::KeyNotFound) => Ok(()),
            _ => self.0.remove(&key).map_err(pins::map_failed("write", &Self::path())),
        }
    }

    /// Removes the pin if nothing is recorded any more.
    pub fn tidy(self) -> Result<(), Error> {
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

fn key(cookie: u64, name: &str) -> Key {
    let mut key = [0; 8 + NAME];
    key[..8].copy_from_slice(&cookie.to_ne_bytes());
    key[8..].copy_from_slice(&padded::<NAME>(name));
    key
}
