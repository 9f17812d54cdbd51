//! Users and groups on the command line. A number needs no look-up, so it works where there is no /etc/passwd.

use anyhow::Context;
use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, geteuid};

use crate::failure::Usage;

/// The user without rights, and its group, where /etc/passwd does not have it: the kernel's overflow ids.
const NOBODY: (&str, u32) = ("nobody", 65534);
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
    identity(given, User::from_name).map(Some)
}

fn identity(given: &str, find: impl Fn(&str) -> Result<Option<User>, Errno>) -> anyhow::Result<Identity> {
    let found = match numbers(given)? {
        Some(numbers) => numbers,
        None => named(given, find)?,
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

fn named(name: &str, find: impl Fn(&str) -> Result<Option<User>, Errno>) -> anyhow::Result<Identity> {
    // Where there is no file of users there is no user of that name.
    let found = match find(name) {
        Err(Errno::ENOENT) => None,
        found => found.with_context(|| format!("cannot look up user {name:?} in /etc/passwd"))?,
    };
    let nobody = Identity { uid: Uid::from_raw(NOBODY.1), gid: Gid::from_raw(NOBODY.1) };
    match found {
        Some(User { uid, gid, .. }) => Ok(Identity { uid, gid }),
        None if name == NOBODY.0 => Ok(nobody),
        None => Err(Usage::error(format!(
            "/etc/passwd has no user {name:?} for --user: give a number, as in --user {}",
            NOBODY.1
        ))),
    }
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
    let found = match Group::from_name(given) {
        Err(Errno::ENOENT) => None,
        found => found.with_context(|| format!("cannot look up group {given:?} in /etc/group"))?,
    };
    found.map(|group| group.gid).ok_or_else(|| {
        Usage::error(format!("/etc/group has no group {given:?} for --socket-group: give a number"))
    })
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
        let unasked = |_: &str| -> Result<Option<User>, Errno> { panic!("it is looked up") };
        assert_eq!(identity("1000", unasked).unwrap(), of(1000, 1000));
        assert_eq!(identity("1000:33", unasked).unwrap(), of(1000, 33));
        for answer in [Err(Errno::ENOENT), Ok(None)] {
            assert_eq!(identity("nobody", |_| answer.clone()).unwrap(), of(65534, 65534));
            let error = identity("www", |_| answer.clone()).unwrap_err();
            assert!(exit::code(&error) == USAGE && error.to_string().contains("/etc/passwd"), "{error}");
        }
        let error = identity("www", |_| Err(Errno::EIO)).unwrap_err();
        assert!(error.to_string().contains("/etc/passwd"), "{error}");
    }

    #[test]
    fn root_and_what_is_no_number_are_refused() {
        let unasked = |_: &str| -> Result<Option<User>, Errno> { panic!("it is looked up") };
        for given in ["0", "0:1", "1000:0", "4294967295", "99999999999", "1000:", "1000:x", "1x", "1:2:3"] {
            assert_eq!(exit::code(&identity(given, unasked).unwrap_err()), USAGE, "{given}");
        }
        for given in ["4294967295", "12x", "no such group"] {
            assert_eq!(exit::code(&group(given).unwrap_err()), USAGE, "{given}");
        }
        assert_eq!(group("33").unwrap(), Gid::from_raw(33));
    }
}
