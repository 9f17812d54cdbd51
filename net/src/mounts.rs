//! What is mounted where, as proc(5)'s mountinfo has it. A mount point may be any bytes: what would end a field there (a
//! space, a tab, a line feed, a backslash) is written as a backslash and three octal digits.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What of the file system is seen there: `/`, or a path in it; of a namespace such as `net:[4026531840]`.
    pub root: PathBuf,
    /// Where it is mounted. Another mount may cover it.
    pub point: PathBuf,
    /// Type of the file system, such as `cgroup2`.
    pub kind: OsString,
}

/// Everything that is mounted in the mount namespace of a process, the oldest first; `None`: that of this thread.
///
/// # Errors
/// If /proc does not say.
pub fn of_process(pid: Option<u32>) -> io::Result<Vec<Mount>> {
    let path =
        pid.map_or_else(|| "/proc/thread-self/mountinfo".into(), |pid| format!("/proc/{pid}/mountinfo"));
    fs::read(Path::new(&path)).map(|text| parse(&text))
}

/// Lines that are none of mountinfo are left out.
pub(crate) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // Options, then any number of optional fields up to a hyphen.
    let kind = fields.skip(1).skip_while(|field| *field != b"-").nth(1)?;
    let path = |field| PathBuf::from(unescaped(field));
    Some(Mount { root: path(root), point: path(point), kind: unescaped(kind) })
}

/// Undoes the octal escapes of a field.
fn unescaped(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = |digits: &[u8]| match *digits {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        match tail.get(..3).and_then(octal) {
            Some(value) if byte == b'\\' => {
                out.push(value);
                rest = &tail[3..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_mount_point_of_any_bytes_is_read_as_it_is() {
        let read = |point: &[u8]| {
            let line =
                [b"29 22 0:25 / ", point, b" rw,nosuid shared:4 master:1 - cgroup2 none rw\n"].concat();
            parse(&line)
        };
        for (field, point) in [
            (&b"/run/my\\040cg"[..], &b"/run/my cg"[..]),
            (b"/run/a\\011b\\012c\\134d", b"/run/a\tb\nc\\d"),
            (b"/run/\\134040", b"/run/\\040"),
            (b"/run/\\043", b"/run/#"),
            ("/run/gr\u{fc}n".as_bytes(), "/run/gr\u{fc}n".as_bytes()),
            (b"/run/\xff\xfe", b"/run/\xff\xfe"),
            // No escapes of the kernel's.
            (b"/run/a\\", b"/run/a\\"),
            (b"/run/a\\09", b"/run/a\\09"),
            (b"/run/a\\777", b"/run/a\\777"),
            (b"/run/a\\+40", b"/run/a\\+40"),
        ] {
            let point = PathBuf::from(OsStr::from_bytes(point));
            let kind = "cgroup2".into();
            assert_eq!(read(field), [Mount { root: "/".into(), point, kind }]);
        }
    }

    #[test]
    fn the_type_follows_the_optional_fields_and_what_is_no_mount_is_left_out() {
        let text = b"22 1 0:21 / /proc rw - proc proc rw\n\
            36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
            90 1 0:4 net:[4026532001] /run/netns/a rw shared:9 propagate_from:2 - nsfs nsfs rw\n\
            91 1 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n\
            93 1\n92 1 0:4 / /x rw -\n\n";
        let read = parse(text);
        let kinds: Vec<_> = read.iter().map(|mount| mount.kind.to_str().unwrap()).collect();
        assert_eq!(kinds, ["proc", "ext3", "nsfs", "cgroup2"]);
        assert_eq!(read[1].root, Path::new("/mnt1"));
        assert_eq!(read[3].root, Path::new("/../.."));
        assert!(of_process(None).unwrap().iter().any(|mount| mount.kind == "proc"));
        assert!(of_process(Some(std::process::id())).is_ok());
    }
}
