//! Directories into which no other user could have put anything. Where the BPF file system is writable for all users, as
//! some mount it, another user may have been there first, and what he made must not be followed, read or removed as
//! root.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use nix::unistd::{Uid, setfsuid};

use crate::system::error::Error;

/// Permission to write for the group and for others.
pub(crate) const OTHERS_MAY_WRITE: u32 = 0o022;
/// Only the owner of a file may remove it from the directory, as in /tmp.
pub(crate) const STICKY: u32 = 0o1000;

/// Makes a directory for this user alone, unless it is there; it is to be trusted then.
///
/// # Errors
/// [`Error::Untrusted`], or a directory that cannot be made.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => other.map_err(Error::io("create", directory))?,
    }
    require(directory)
}

/// Fails if others may write to a directory, or if it is another user's, a link or a file. One that is not there may be
/// made.
///
/// # Errors
/// [`Error::Untrusted`].
pub(crate) fn require(directory: &Path) -> Result<(), Error> {
    match mode_of_own(directory)? {
        Some(mode) if mode & OTHERS_MAY_WRITE != 0 => Err(open_to_others(directory, mode)),
        _ => Ok(()),
    }
}

/// The same for a directory that others may write to if they cannot remove what is not theirs.
///
/// # Errors
/// [`Error::Untrusted`].
pub(crate) fn require_sticky(directory: &Path) -> Result<(), Error> {
    match mode_of_own(directory)? {
        Some(mode) if mode & OTHERS_MAY_WRITE != 0 && mode & STICKY == 0 => {
            Err(open_to_others(directory, mode))
        }
        _ => Ok(()),
    }
}

fn open_to_others(directory: &Path, mode: u32) -> Error {
    let why = format!("others may write to it (mode {mode:o})");
    Error::Untrusted { path: directory.to_owned(), why }
}

/// The user as whom this process makes and opens files; no user has the number that is asked for (setfsuid(2)).
fn own_user() -> u32 {
    setfsuid(Uid::from_raw(u32::MAX)).as_raw()
}

/// The mode of a directory that is this user's or root's; `None`: it is not there.
fn mode_of_own(directory: &Path) -> Result<Option<u32>, Error> {
    let there = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::io("look at", directory))?,
    };
    let why = if !there.is_dir() {
        "it is a link or a file, not a directory".to_owned()
    } else if ![0, own_user()].contains(&there.uid()) {
        format!("it belongs to user {}", there.uid())
    } else {
        return Ok(Some(there.mode() & 0o7777));
    };
    Err(Error::Untrusted { path: directory.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_is_trusted_that_no_other_user_could_have_prepared() {
        let parent = tempfile::tempdir().unwrap();
        let (real, link) = (parent.path().join("real"), parent.path().join("link"));
        make(&real).unwrap();
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o700);
        make(&real).unwrap();
        require(&parent.path().join("missing")).unwrap();
        symlink(&real, &link).unwrap();
        let mode = |mode| fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        let refused = |result: Result<(), Error>, why: &str| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(make(&link), "a link or a file");
        refused(require_sticky(&link), "a link or a file");
        mode(0o1777);
        require_sticky(&real).unwrap();
        refused(require(&real), "others may write to it (mode 1777)");
        mode(0o777);
        refused(require_sticky(&real), "others may write to it (mode 777)");
    }
}
