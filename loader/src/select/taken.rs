//! Programs that others have attached to cgroups.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::object::programs;
use crate::system::error::Error;
use crate::system::hierarchy;

/// Why a program of socket operations cannot be attached to a cgroup although this process may: another one, there or above,
/// allows none next to it.
pub(crate) fn taken(cgroup: &Path) -> Error {
    let top = hierarchy::top().unwrap_or_else(|_| cgroup.into());
    let places = cgroup.ancestors().take_while(|path| path.starts_with(&top));
    for place in places {
        let Ok(Attached { flags, programs }) = attached(place) else { break };
        let Some(program) = programs.first() else { continue };
        let allows = flags & libbpf_sys::BPF_F_ALLOW_MULTI != 0
            || place != cgroup && flags & libbpf_sys::BPF_F_ALLOW_OVERRIDE != 0;
        if allows {
            break;
        }
        let name = programs::info(*program).and_then(|info| Some(info.name_as_str()?.to_owned()));
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "without a name".into());
        return Error::CgroupTaken { path: place.into(), program: *program, name };
    }
    Error::CgroupTakenAbove { path: top }
}

/// The programs of socket operations of one cgroup.
struct Attached {
    /// `BPF_F_ALLOW_MULTI` and the like, as the process that attached the first one set them.
    flags: u32,
    programs: Vec<u32>,
}

fn attached(cgroup: &Path) -> io::Result<Attached> {
    let directory = fs::File::open(cgroup)?;
    let (mut flags, mut programs) = (0, [0; 64]);
    let mut count = programs.len() as u32;
    // SAFETY: the descriptor is open, and the kernel writes at most `count` numbers into the array, and how many into it.
    let failed = unsafe {
        libbpf_sys::bpf_prog_query(
            directory.as_raw_fd(),
            libbpf_sys::BPF_CGROUP_SOCK_OPS,
            0,
            &raw mut flags,
            programs.as_mut_ptr(),
            &raw mut count,
        )
    };
    if failed < 0 {
        return Err(io::Error::from_raw_os_error(-failed));
    }
    Ok(Attached { flags, programs: programs.into_iter().take(count as usize).collect() })
}
