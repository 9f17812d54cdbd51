//! The maps by which rules give connections the parameters of a profile: names by the number that rules have for them, and
//! what was chosen for each socket. The selection and all algorithms share them: the first user makes them, the last one
//! removes them.

use std::fs;
use std::path::PathBuf;

use aya::maps::{Array, MapData};
use libbpf_rs::{MapCore, MapHandle};

use crate::object::abi::{self, Path, PathKey, ProfileName, SELECT_PROFILES_MAX, padded, text};
use crate::object::algorithms;
use crate::object::open::{self, PATH_SETTINGS, PATHS};
use crate::pins::{self, Pins, ROOT, SELECT, map_failed};
use crate::system::error::Error;
use crate::system::kernel;

/// Where they are pinned, below the directory of all pins.
const PROFILES: &str = "profiles";
/// A congestion control and a profile, by number.
pub(crate) const NAMES: &str = "profile_names";
/// The same, by socket.
pub(crate) const CHOICES: &str = "profile_choices";
/// The path that is remembered for a socket.
pub(crate) const STARTS: &str = "starts";
/// All of those that every attachment uses.
pub(crate) const MAPS: [&str; 3] = [NAMES, CHOICES, STARTS];
/// Those of learned paths, with the sizes of their keys and values.
pub(crate) const PATH_MAPS: [(&str, usize, usize); 2] = [
    (PATHS, size_of::<PathKey>(), size_of::<Path>()),
    (PATH_SETTINGS, size_of::<u32>(), size_of::<abi::PathSettings>()),
];

fn directory() -> PathBuf {
    kernel::on_host(std::path::Path::new(ROOT)).join(PROFILES)
}

/// Where one of the maps is pinned.
pub(crate) fn path(name: &str) -> PathBuf {
    directory().join(name)
}

fn exist() -> Result<bool, Error> {
    for name in MAPS {
        if !pins::is_there(&path(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the maps if there are none. The caller holds the lock.
pub(crate) fn ensure() -> Result<(), Error> {
    if exist()? {
        return Ok(());
    }
    clear()?;
    pins::make(&directory())?;
    let mut loaded = open::profiles()?;
    for mut map in loaded.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if MAPS.contains(&name.as_str()) {
            map.pin(path(&name)).map_err(open::failed("pin", PROFILES))?;
        }
    }
    Ok(())
}

/// Makes the maps of learned paths if there are none, or those of another onramp. The caller holds the lock and has called
/// [`ensure`].
pub(crate) fn ensure_paths() -> Result<(), Error> {
    let mut made = None;
    for (name, key, value) in PATH_MAPS {
        let pinned = path(name);
        if pins::is_there(&pinned)? {
            let map = MapHandle::from_pinned_path(&pinned).map_err(open::failed("open", name))?;
            if map.key_size() as usize == key && map.value_size() as usize == value {
                continue;
            }
            pins::remove_if_there(&pinned)?;
        }
        let made = match &mut made {
            Some(made) => made,
            none => none.insert(open::paths()?),
        };
        for mut map in made.maps_mut().filter(|map| open::map_name(map.name()) == name) {
            map.pin(&pinned).map_err(open::failed("pin", name))?;
        }
    }
    Ok(())
}

/// Whether there is anything of the rules.
pub(crate) fn selection_exists() -> Result<bool, Error> {
    pins::is_there(&kernel::on_host(std::path::Path::new(ROOT)).join(SELECT))
}

/// Removes the maps once nothing is attached and there are no rules. The caller holds the lock.
pub(crate) fn tidy() -> Result<(), Error> {
    if !pins::is_there(&directory())? || selection_exists()? {
        return Ok(());
    }
    for algorithm in algorithms::all() {
        if Pins::new(algorithm).exist()? || Pins::other_of(algorithm).exist()? {
            return Ok(());
        }
    }
    clear()?;
    let _ = fs::remove_dir(kernel::on_host(std::path::Path::new(ROOT)));
    Ok(())
}

fn clear() -> Result<(), Error> {
    if !pins::is_there(&directory())? {
        return Ok(());
    }
    for path in MAPS.into_iter().chain(PATH_MAPS.map(|(name, ..)| name)).map(path) {
        pins::remove_if_there(&path)?;
    }
    fs::remove_dir(directory()).map_err(Error::io("remove", directory()))
}

/// Congestion controls and profiles, by the number that rules have for both; that of 0 is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<Option<(String, String)>>);

impl Names {
    /// Those that there are now.
    pub fn read() -> Result<Self, Error> {
        if !exist()? {
            return Ok(Self::default());
        }
        let map = map()?;
        let entry = |number| {
            let name = map.get(&number, 0).map_err(map_failed("read", &path(NAMES)))?;
            let (control, profile) = (text(&name.control), text(&name.profile));
            Ok((!profile.is_empty()).then_some((control, profile)))
        };
        (0..SELECT_PROFILES_MAX as u32).map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// Has a number for each of these, by control and profile.
    ///
    /// # Errors
    /// [`Error::TooManyProfiles`]; those before it have theirs then.
    pub fn with<'a>(named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let mut names = Self::read()?;
        for (control, profile) in named {
            if names.number(control, profile) != 0 {
                continue;
            }
            let free = names.0.iter().skip(1).position(Option::is_none).map(|place| place + 1);
            let number = free.ok_or_else(|| Error::TooManyProfiles {
                most: SELECT_PROFILES_MAX - 1,
                profiles: "of all algorithms".into(),
            })?;
            let name = ProfileName { control: padded(control), profile: padded(profile) };
            map()?.set(number as u32, name, 0).map_err(map_failed("write", &path(NAMES)))?;
            names.0[number] = Some((control.to_owned(), profile.to_owned()));
        }
        Ok(names)
    }

    /// The number of a control's profile; 0: it has none.
    pub fn number(&self, control: &str, profile: &str) -> u8 {
        let of_it = |name: &Option<(String, String)>| {
            name.as_ref()
                .is_some_and(|(its_control, its_profile)| its_control == control && its_profile == profile)
        };
        self.0.iter().position(of_it).unwrap_or(0) as u8
    }

    /// The profile of a number.
    pub fn profile(&self, number: u8) -> Option<String> {
        self.0.get(usize::from(number))?.as_ref().map(|(_, profile)| profile.clone())
    }

    /// Frees the numbers of what no rule names any more.
    pub fn keep(self, named: impl Fn(&str, &str) -> bool) -> Result<(), Error> {
        for (number, name) in (0u32..).zip(self.0) {
            if name.is_some_and(|(control, profile)| !named(&control, &profile)) {
                let none = ProfileName { control: [0; 16], profile: [0; 32] };
                map()?.set(number, none, 0).map_err(map_failed("write", &path(NAMES)))?;
            }
        }
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

fn map() -> Result<Array<MapData, ProfileName>, Error> {
    let path = path(NAMES);
    Array::try_from(pins::open(&path)?).map_err(map_failed("read", &path))
}
