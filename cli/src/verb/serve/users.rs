//! Users and groups on the command line. A number needs no look-up, so it works where there is no /etc/passwd.
//!
//! Names are those of /etc/passwd and /etc/group. A static program cannot use the host's name services: they are libraries
//! of the host's own libc.

use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use nix::unistd::{Gid, Uid, geteuid};

use crate::failure::Usage;

/// The user without rights, and its group, where /etc/passwd does not have it: the kernel's overflow ids.
const NOBODY: (&str, u32) = ("nobody", 65534);
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// "No user" and "no group" of setresuid(2) and chown(2).
const NONE: u32 = u32::MAX;

/// Whom a process becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub uid: Uid,
    pub gid: Gid,
}

/// Whom `--user` names, if this process may become another user.
pub(super) fn user(given: &str) -> anyhow::Result<Option<Identity>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    identity(given, Path::new(USERS)).map(Some)
}

fn identity(given: &str, users: &Path) -> anyhow::Result<Identity> {
    let found = match numbers(given)? {
        Some(numbers) => numbers,
        None => named(given, users)?,
    };
    if found.uid.is_root() || found.gid.as_raw() == 0 {
        return Err(Usage::error(format!(
            "--user {given} is root or of its group: choose a user without rights, such as nobody"
        )));
    }
    Ok(found)
}

/// `UID` or `UID:GID`; `None`: it is a name.
fn numbers(given: &str) -> anyhow::Result<Option<Identity>> {
    if !given.starts_with(|sign: char| sign.is_ascii_digit()) {
        return Ok(None);
    }
    let (uid, gid) = given.split_once(':').unwrap_or((given, given));
    let number = |text: &str| {
        text.parse().ok().filter(|number| *number != NONE).ok_or_else(|| {
            Usage::error(format!(
                "--user {given:?} is no number of a user: give a name, UID or UID:GID, each from 1 to {}",
                NONE - 1
            ))
        })
    };
    Ok(Some(Identity { uid: Uid::from_raw(number(uid)?), gid: Gid::from_raw(number(gid)?) }))
}

fn named(name: &str, users: &Path) -> anyhow::Result<Identity> {
    let found = ids(users, name)?;
    let nobody = Identity { uid: Uid::from_raw(NOBODY.1), gid: Gid::from_raw(NOBODY.1) };
    match found.as_deref() {
        Some([uid, gid, ..]) => Ok(Identity { uid: Uid::from_raw(*uid), gid: Gid::from_raw(*gid) }),
        _ if name == NOBODY.0 => Ok(nobody),
        _ => Err(Usage::error(format!(
            "{} has no user {name:?} for --user: give a number, as in --user {}",
            users.display(),
            NOBODY.1
        ))),
    }
}

/// The numbers at the start of what a file of users or groups has for a name, after the password; `None` also where there is no
/// such file.
fn ids(file: &Path, name: &str) -> anyhow::Result<Option<Vec<u32>>> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let text = String::from_utf8_lossy(&text);
    let entry = text.lines().map(|line| line.split(':')).find_map(|mut fields| {
        (fields.next() == Some(name)).then(|| fields.skip(1).map_while(|field| field.parse().ok()).collect())
    });
    Ok(entry)
}

/// The group that `--socket-group` names.
pub(super) fn group(given: &str) -> anyhow::Result<Gid> {
    if given.starts_with(|sign: char| sign.is_ascii_digit()) {
        let number = given.parse().ok().filter(|number| *number != NONE);
        return number.map(Gid::from_raw).ok_or_else(|| {
            Usage::error(format!(
                "--socket-group {given:?} is no number of a group: give a name, or a number from 0 to {}",
                NONE - 1
            ))
        });
    }
    match ids(Path::new(GROUPS), given)?.as_deref() {
        Some([gid, ..]) => Ok(Gid::from_raw(*gid)),
        _ => Err(Usage::error(format!("{GROUPS} has no group {given:?} for --socket-group: give a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use crate::failure::USAGE;

    fn of(uid: u32, gid: u32) -> Identity {
        Identity { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) }
    }

    #[test]
    fn a_number_is_taken_without_a_look_up_and_nobody_needs_no_file_of_users() {
        let directory = tempfile::tempdir().unwrap();
        let users = directory.path().join("passwd");
        for written in [false, true] {
            assert_eq!(identity("1000", &users).unwrap(), of(1000, 1000));
            assert_eq!(identity("1000:33", &users).unwrap(), of(1000, 33));
            assert_eq!(identity("nobody", &users).unwrap(), of(65534, 65534));
            let error = identity("www", &users).unwrap_err();
            assert!(exit::code(&error) == USAGE && error.to_string().contains("passwd"), "{error}");
            if !written {
                fs::write(&users, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
            }
        }
        fs::write(&users, "root:x:0:0::/:\nwww-data:x:12:33:www:/:/bin/false\nwww:x:34\n").unwrap();
        assert_eq!(identity("www-data", &users).unwrap(), of(12, 33));
        for given in ["root", "www", "www-dat"] {
            assert_eq!(exit::code(&identity(given, &users).unwrap_err()), USAGE, "{given}");
        }
        assert!(identity("www", directory.path()).is_err(), "a directory has no users");
    }

    #[test]
    fn root_and_what_is_no_number_are_refused() {
        let unread = Path::new("/");
        for given in ["0", "0:1", "1000:0", "4294967295", "99999999999", "1000:", "1000:x", "1x", "1:2:3"] {
            assert_eq!(exit::code(&identity(given, unread).unwrap_err()), USAGE, "{given}");
        }
        for given in ["4294967295", "12x", "no such group"] {
            assert_eq!(exit::code(&group(given).unwrap_err()), USAGE, "{given}");
        }
        assert_eq!(group("33").unwrap(), Gid::from_raw(33));
    }
}
