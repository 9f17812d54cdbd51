// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Who may see a recording, and where none is written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::fixtures::manifest;
use crate::{Error, Limits, Writer};

fn create(directory: &Path) -> Result<Writer, Error> {
    Writer::create(directory, manifest(), Limits::default())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_is_recorded_is_for_its_owner_alone() {
    // Whatever the caller's mask lets others do. The tests next to this one do not rest on it.
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    let directory = tempfile::tempdir().unwrap();
    let (made, there) = (directory.path().join("below/made"), directory.path().join("there"));
    fs::create_dir(&there).unwrap();
    // Others may have been let in before; an empty directory is a recording's own from then on.
    fs::set_permissions(&there, Permissions::from_mode(0o1777)).unwrap();
    for recording in [made, there] {
        create(&recording).unwrap().finish(0).unwrap();
        assert_eq!(mode(&recording), 0o700);
        let files: Vec<_> = fs::read_dir(&recording).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}

#[test]
fn a_directory_that_another_user_could_have_prepared_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |path: &Path, reason: &str| {
        let error = create(path).unwrap_err();
        assert!(matches!(&error, Error::Untrusted { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    };
    let (target, link) = (directory.path().join("target"), directory.path().join("link"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    refused(&link, "a link or a file");
    // A slash at the end would have it followed.
    refused(&directory.path().join("link/"), "a link or a file");
    assert!(fs::read_dir(&target).unwrap().next().is_none());
    if nix::unistd::geteuid().is_root() {
        nix::unistd::chown(&target, Some(65534.into()), None).unwrap();
        refused(&target, "belongs to user 65534");
    } else {
        refused(Path::new("/proc"), "belongs to user 0");
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, "whole").unwrap();
    let file = directory.path().join("manifest.json");
    let temporary = directory.path().join("manifest.json.tmp");
    symlink(&victim, &temporary).unwrap();
    crate::replace::replace(&file, b"text").unwrap_err();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
    // In the place of the file itself it is replaced.
    assert!(!temporary.is_symlink());
    symlink(&victim, &file).unwrap();
    crate::replace::replace(&file, b"text").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}
