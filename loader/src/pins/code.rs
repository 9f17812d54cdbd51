//! Code of ours that the kernel holds, pinned or not: a control that was unregistered stays loaded for as long as a
//! socket or a namespace's default has it, also a socket that no list of sockets shows, because it is neither connected
//! nor listening.

use std::collections::BTreeMap;

use aya::maps::{MapData, MapError, MapInfo, MapType, loaded_maps};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::pins::{FLOWS, OPERATIONS, Pins};
use crate::system::error::Error;
use crate::system::kernel::{CONTROL_PREFIX, Capability};

/// Code that is loaded, as the ids of struct_ops maps, by the control's name. `None`: this process may not ask
/// (CAP_SYS_ADMIN).
pub(crate) type Loaded = Option<BTreeMap<String, Vec<u32>>>;

/// All code of ours that is loaded.
///
/// # Errors
/// [`Error::Bpf`] for want of descriptors or memory.
pub(crate) fn loaded() -> Result<Loaded, Error> {
    if !Capability::SysAdmin.held() {
        return Ok(None);
    }
    let mut found = BTreeMap::<_, Vec<u32>>::new();
    for map in loaded_maps() {
        let map = match map {
            Ok(map) => map,
            Err(error) if gone(&error) => continue,
            Err(error) => return Err(failed(std::io::Error::other(error).into())),
        };
        if map.map_type().is_ok_and(|kind| kind == MapType::StructOps)
            && let Some(name) = control(&map)?
        {
            found.entry(name).or_default().push(map.id());
        }
    }
    Ok(Some(found))
}

/// The code of a control that is loaded and not pinned; none where this process may not ask.
pub(crate) fn unpinned(loaded: &Loaded, pins: &Pins) -> Vec<u32> {
    let all = loaded.as_ref().and_then(|loaded| loaded.get(&pins.algorithm.congestion_control()));
    let pinned = pinned(pins);
    all.into_iter().flatten().copied().filter(|id| Some(*id) != pinned).collect()
}

/// The code that is pinned, if any is.
pub(crate) fn pinned(pins: &Pins) -> Option<u32> {
    let map = MapHandle::from_pinned_path(pins.path(OPERATIONS)).ok()?;
    map.info().ok().map(|info| info.info.id)
}

/// The name of the congestion control that a struct_ops map describes, if it is one of ours.
fn control(map: &MapInfo) -> Result<Option<String>, Error> {
    let value = match MapHandle::from_map_id(map.id())
        .and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY))
    {
        Ok(value) => value.unwrap_or_default(),
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // The kernel's struct, of which only the name is text that begins so.
    let prefix = CONTROL_PREFIX.as_bytes();
    let at = value.windows(prefix.len()).position(|window| window == prefix);
    Ok(at.map(|at| crate::object::abi::text(&value[at..])))
}

/// Whether a map has ended while the list was made.
fn gone(error: &MapError) -> bool {
    matches!(error, MapError::SyscallError(error) if error.io_error.kind() == std::io::ErrorKind::NotFound)
}

fn failed(source: libbpf_rs::Error) -> Error {
    Error::Bpf { action: "list", object: "loaded struct_ops maps".into(), source, log: String::new() }
}

/// Maps with the state of flows on code that is pinned no more: those of the shells' name that are not among `pinned`
/// (ids). None where this process may not ask, or the kernel does not say.
pub(crate) fn older_flows(pinned: &[u32]) -> Vec<MapData> {
    let ours = |map: &MapInfo| {
        map.map_type().is_ok_and(|kind| kind == MapType::SkStorage)
            && map.name_as_str() == Some(FLOWS)
            && !pinned.contains(&map.id())
    };
    loaded_maps()
        .map_while(Result::ok)
        .filter(ours)
        .filter_map(|map| MapData::from_id(map.id()).ok())
        .collect()
}
