//! Cgroups of the second version, by their number in the kernel and by their path.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use crate::system::error::{Error, quoted};
use crate::system::hierarchy;

/// What a number is written behind, in place of a path.
const BY_NUMBER: &str = "id:";

/// A cgroup. The number is the kernel's, and never another's later.
#[derive(Clone, Debug)]
pub struct Cgroup {
    /// Its number, which is its directory's inode.
    pub id: u64,
    /// Its path from the root of the hierarchy, such as `/system.slice`; `None`: it is gone, and the rule with it.
    pub path: Option<String>,
}

/// The number alone says which it is.
impl PartialEq for Cgroup {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Cgroup {}

impl Ord for Cgroup {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id.cmp(&other.id)
    }
}

impl PartialOrd for Cgroup {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Cgroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) if formatter.alternate() => formatter.write_str(&quoted(path)),
            Some(path) => formatter.write_str(path),
            None => write!(formatter, "{BY_NUMBER}{}", self.id),
        }
    }
}

impl Cgroup {
    /// The cgroup of a path from the root of the hierarchy (`/system.slice`), or of its directory
    /// (`/sys/fs/cgroup/system.slice`), or of a number (`id:27`), which may be that of one that is gone.
    ///
    /// # Errors
    /// [`Error::Cgroup`], [`Error::NoCgroup`], [`Error::PartOfCgroups`].
    pub fn find(path: &str) -> Result<Self, Error> {
        let root = hierarchy::root()?;
        if let Some(id) = path.strip_prefix(BY_NUMBER).and_then(|number| number.parse().ok()) {
            return Ok(Self { id, path: paths(&root).remove(&id) });
        }
        let refuse = |why: String| Error::Cgroup { path: path.into(), root: root.clone(), why };
        let below = Path::new(path);
        let below = below.strip_prefix(&root).unwrap_or(below);
        let unwritable = |sign: char| sign.is_whitespace() || sign.is_control() || sign == '#';
        if below.to_string_lossy().chars().any(unwritable) {
            return Err(refuse("no rule can be written with white space or # in it".into()));
        }
        if below.components().any(|part| part == Component::ParentDir) {
            return Err(refuse("write it without ..".into()));
        }
        let below = below.strip_prefix("/").unwrap_or(below);
        let directory = fs::symlink_metadata(root.join(below)).map_err(|error| refuse(error.to_string()))?;
        if !directory.is_dir() {
            return Err(refuse("it is no directory".into()));
        }
        Ok(Self { id: directory.ino(), path: Some(format!("/{}", below.display())) })
    }

    /// The same, of a cgroup that is there.
    ///
    /// # Errors
    /// As of [`Cgroup::find`].
    pub fn find_living(path: &str) -> Result<Self, Error> {
        let found = Self::find(path)?;
        if found.path.is_some() {
            return Ok(found);
        }
        Err(Error::Cgroup { path: path.into(), root: hierarchy::root()?, why: "it is gone".into() })
    }
}

/// All cgroups of this host.
pub(crate) struct Cgroups(BTreeMap<u64, String>);

impl Cgroups {
    /// None where there is no hierarchy; of a part of it, by their paths in that, those that are seen.
    pub fn all() -> Result<Self, Error> {
        match hierarchy::top() {
            Err(Error::NoCgroup { .. }) => Ok(Self(BTreeMap::new())),
            top => Ok(Self(paths(&top?))),
        }
    }

    /// The path of a cgroup; `None`: it is gone.
    pub fn path(&self, id: u64) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// The numbers of a cgroup and of those above it, the nearest first; none if it is gone.
    pub fn ancestry(&self, id: u64) -> Vec<u64> {
        let above: Vec<_> =
            self.path(id).map(Path::new).into_iter().flat_map(Path::ancestors).map(Path::as_os_str).collect();
        let find = |path| self.0.iter().find(|(_, other)| Path::new(other).as_os_str() == path);
        above.into_iter().filter_map(find).map(|(id, _)| *id).collect()
    }
}

/// Finds the paths of cgroups that are known by their numbers. Where the root is out of sight it cannot be known which are
/// gone.
pub(super) fn name_all<'a>(cgroups: impl Iterator<Item = &'a mut Cgroup>) -> Result<(), Error> {
    let mut cgroups = cgroups.peekable();
    if cgroups.peek().is_some() {
        let paths = paths(&hierarchy::root()?);
        cgroups.for_each(|cgroup| cgroup.path = paths.get(&cgroup.id).cloned());
    }
    Ok(())
}

/// All cgroups below a root, by their numbers.
fn paths(root: &Path) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let below = directory.strip_prefix(root).unwrap_or(&directory);
        if let Ok(metadata) = fs::metadata(&directory) {
            found.insert(metadata.ino(), format!("/{}", below.display()));
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        directories.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    found
}
