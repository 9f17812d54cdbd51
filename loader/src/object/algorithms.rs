//! Algorithms by their names; those from outside the tree that are attached are read from their pins first.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use onramp_algorithm::Algorithm;
use onramp_algorithm::outside::{self, OutsideError};

use crate::object::open;
use crate::system::error::Error;
use crate::system::kernel;

/// Directory of all pins.
pub const ROOT: &str = "/sys/fs/bpf/onramp";
/// The pin of the object of an algorithm from outside the tree.
const OBJECT: &str = "object";

/// Every algorithm of the tree, and from outside of it that is attached or that this process has read.
pub(crate) fn all() -> impl Iterator<Item = Algorithm> {
    read_pinned();
    onramp_algorithm::all()
}

/// The algorithm whose congestion control has this name. For controls of others, which most sockets of a host have, nothing is
/// read.
pub(crate) fn find_control(name: &str) -> Option<Algorithm> {
    onramp_algorithm::find_control(name).or_else(|| {
        name.starts_with(kernel::CONTROL_PREFIX).then(read_pinned)?;
        onramp_algorithm::find_control(name)
    })
}

/// Names of all algorithms, separated by commas.
pub(crate) fn known() -> String {
    all().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// The algorithm of this name; its congestion control's name (`onramp_…`) is understood too, and the path of an object
/// that `onramp-lab build` has made.
///
/// # Errors
/// [`Error::UnknownAlgorithm`], [`Error::Outside`].
pub fn find(name: &str) -> Result<Algorithm, Error> {
    if outside::is_path(name) {
        return Ok(outside::open(Path::new(name))?.into());
    }
    read_pinned();
    onramp_algorithm::find(name).ok_or_else(|| Error::UnknownAlgorithm { name: name.into(), known: known() })
}

/// Pins the object of an algorithm from outside the tree in `directory`, so that every process knows the algorithm.
pub(crate) fn pin_object(algorithm: Algorithm, directory: &Path) -> Result<(), Error> {
    let Some(outside) = algorithm.outside() else { return Ok(()) };
    let failed = |action| open::failed(action, OBJECT);
    // The object, where it came from, and how long that is.
    let origin = outside.origin().as_os_str().as_bytes();
    let bytes = [outside.whole(), origin, &(origin.len() as u32).to_le_bytes()].concat();
    let size = bytes.len() as u32;
    let mut map = MapHandle::create(MapType::Array, Some("onramp_object"), 4, size, 1, &open::map_options(0))
        .map_err(failed("create"))?;
    map.update(&[0; 4], &bytes, MapFlags::ANY).map_err(failed("fill"))?;
    map.pin(directory.join(OBJECT)).map_err(failed("pin"))
}

/// Reads the objects that are pinned and of whose name nothing has been read.
fn read_pinned() {
    // Where this process may not look it finds nothing attached either, and says so.
    let entries = kernel::on_host(Path::new(ROOT)).read_dir().into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path().join(OBJECT);
        let name = entry.file_name();
        if onramp_algorithm::all().any(|one| name == one.name()) || !path.exists() {
            continue;
        }
        let bytes = MapHandle::from_pinned_path(&path).and_then(|map| map.lookup(&[0; 4], MapFlags::ANY));
        match bytes.map(|bytes| read(bytes.unwrap_or_default(), &path)) {
            Ok(Ok(_)) => {}
            // What is attached can be named and detached, whatever it was built for.
            Ok(Err(OutsideError::Abi { path, .. })) => drop(outside::named(&name.to_string_lossy(), &path)),
            Ok(Err(error)) => tracing::warn!("{error}"),
            Err(error) => tracing::debug!("{}: {error}", path.display()),
        }
    }
}

/// The algorithm of a pinned object, whose origin is behind it.
fn read(mut bytes: Vec<u8>, pin: &Path) -> Result<Algorithm, OutsideError> {
    let cut_off = || OutsideError::NoObject { path: pin.to_owned(), why: "it is cut off".to_owned() };
    let (rest, length) = bytes.split_last_chunk().ok_or_else(cut_off)?;
    let length = u32::from_le_bytes(*length) as usize;
    let whole = rest.len().checked_sub(length).ok_or_else(cut_off)?;
    let origin = Path::new(OsStr::from_bytes(&rest[whole..])).to_owned();
    bytes.truncate(whole);
    outside::read(bytes, &origin).map(Algorithm::from)
}
