//! New maps next to those of another ABI, for an upgrade, which has them change places.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use libbpf_rs::{MapCore, MapHandle};

use super::consumers::listeners;
use super::shared::{Shared, directory};
use crate::object::abi::shared::Telemetry;
use crate::pins::{self, TELEMETRY, UPGRADE};
use crate::system::error::Error;

/// Maps of this ABI next to those of another. Unless kept, all is as before when they are dropped.
pub(crate) struct NewMaps {
    in_place: bool,
}

impl NewMaps {
    /// Makes them. The caller holds the lock.
    pub fn make() -> Result<Self, Error> {
        clear_new_maps()?;
        let new_maps = Self { in_place: false };
        Shared::create(new_maps.directory())?;
        Ok(new_maps)
    }

    /// Where they are pinned until they are put in place.
    pub fn directory(&self) -> PathBuf {
        place()
    }

    /// Has them change places with the others.
    pub fn put_in_place(&mut self) -> Result<(), Error> {
        pins::exchange(&directory(), &place())?;
        self.in_place = true;
        Ok(())
    }

    /// Lets them stay in place.
    pub fn keep(mut self) {
        self.in_place = false;
    }

    /// The consumers of the others; `None`: there are none.
    pub fn listeners(found: u32) -> Result<Option<String>, Error> {
        let others = Shared::any(directory())?;
        if others.wanted.load(Relaxed) == 0 {
            return Ok(None);
        }
        let path = directory().join("telemetry");
        let size = MapHandle::from_pinned_path(&path).map_or(0, |map| map.value_size());
        // What is of another size has them elsewhere.
        let named = (size as usize == size_of::<Telemetry>()).then(|| listeners(&others));
        let named = named.filter(|named| !named.is_empty());
        Ok(Some(named.unwrap_or_else(|| format!("programs of an onramp of ABI {found}"))))
    }
}

impl Drop for NewMaps {
    fn drop(&mut self) {
        if self.in_place
            && let Err(error) = pins::exchange(&directory(), &place())
        {
            tracing::error!("{error}");
        }
        if let Err(error) = clear_new_maps() {
            tracing::error!("{error}");
        }
    }
}

fn place() -> PathBuf {
    directory().with_file_name(format!("{TELEMETRY}{UPGRADE}"))
}

/// Removes what is next to the maps: an upgrade has left it.
pub(crate) fn clear_new_maps() -> Result<(), Error> {
    let place: &Path = &place();
    match fs::read_dir(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", place)(error)),
        Ok(entries) => {
            for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
        }
    }
    fs::remove_dir(place).map_err(Error::io("remove", place))
}
