//! What the running kernel and this process can do.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::system::error::Error;
use crate::system::types::Types;

/// The BPF file system.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
/// The congestion control that is always there and always allowed.
pub(crate) const LAST_RESORT: &str = "reno";
/// What the names of all our controls begin with.
pub(crate) const CONTROL_PREFIX: &str = "onramp_";
/// BTF of the kernel.
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
/// BTF of its BBR where that is a module that is loaded.
pub(crate) const BBR: &str = "/sys/kernel/btf/tcp_bbr";
/// `BPF_FS_MAGIC`.
const BPFFS_MAGIC: i64 = 0xcafe_4a11;
/// What CUBIC's state may take of the 104 bytes that the kernel has for a congestion control; it takes 60.
const CUBIC_BYTES_MAX: usize = 88;
/// CUBIC's functions that the base calls.
const CUBIC: [&str; 5] =
    ["cubictcp_init", "cubictcp_recalc_ssthresh", "cubictcp_cong_avoid", "cubictcp_state", "cubictcp_acked"];

/// The namespaces that the kernel made itself, as /proc/self/ns shows them (include/uapi/linux/nsfs.h has the numbers).
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Capabilities by number (linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Networks, cgroup programs.
    NetAdmin = 12,
    /// Other processes' namespaces and descriptors.
    Ptrace = 19,
    /// Everything, and namespaces.
    SysAdmin = 21,
    /// Tracing.
    Perfmon = 38,
    /// BPF.
    Bpf = 39,
}

impl Capability {
    /// Whether this process has it in effect on this host; what it has in a user namespace is nothing to BPF.
    pub fn held(self) -> bool {
        if !in_first_user_namespace() {
            return false;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        bits & 1 << self as u64 != 0
    }
}

/// Whether this process may load and register congestion controls.
pub(crate) fn may_attach() -> bool {
    Capability::SysAdmin.held() || Capability::Bpf.held() && Capability::Perfmon.held()
}

/// Whether this process is in a namespace of the host's own; also where /proc does not say.
fn is_in(namespace: &str) -> bool {
    let kind = namespace.split(':').next().unwrap_or_default();
    let own = fs::read_link(Path::new("/proc/self/ns").join(kind));
    own.map_or(true, |own| own.as_os_str() == namespace)
}

/// Fails unless this process may change what is attached.
pub(crate) fn require_privilege(verb: &'static str) -> Result<(), Error> {
    if may_attach() {
        return Ok(());
    }
    Err(Error::Privilege { verb, capabilities: "CAP_BPF and CAP_PERFMON" })
}

/// Fails unless this process may also look into every network namespace: what it left there would go unnoticed.
///
/// # Errors
/// [`Error::Privilege`].
pub fn require_everywhere(verb: &'static str) -> Result<(), Error> {
    if Capability::SysAdmin.held() && Capability::Ptrace.held() {
        return Ok(());
    }
    Err(Error::Privilege {
        verb,
        capabilities: "CAP_BPF and CAP_PERFMON, and CAP_SYS_ADMIN and CAP_SYS_PTRACE to look into every network namespace",
    })
}

/// Whether this process is in the host's own user namespace, where capabilities count for BPF.
pub(crate) fn in_first_user_namespace() -> bool {
    is_in(FIRST_USER_NAMESPACE)
}

/// What mounts /sys.
pub(crate) const MOUNT_SYSFS: &str = "`mount -t sysfs sysfs /sys`";

/// Whether /sys is mounted.
pub(crate) fn has_sysfs() -> bool {
    Path::new("/sys/kernel").exists()
}

/// The mode of lockdown; `None`: it cannot be read.
pub(crate) fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let mode = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(mode.unwrap_or("none").to_owned())
}

/// Why the kernel takes no program that reads its memory, where lockdown forbids that.
pub(crate) fn locked_down() -> Option<Error> {
    (lockdown()? == LOCKED_DOWN).then(|| Error::Unsupported {
        missing: format!("its lockdown mode {LOCKED_DOWN} forbids BPF to read kernel memory"),
        advice: "boot with lockdown=integrity, which is enough for Secure Boot",
    })
}

/// The mode of lockdown in which no program can be loaded.
pub(crate) const LOCKED_DOWN: &str = "confidentiality";

/// Whether the BPF file system is where pins go.
pub fn has_bpffs() -> bool {
    is_bpffs(&bpffs())
}

/// Fails where there is no BPF file system.
///
/// # Errors
/// [`Error::NotMounted`].
pub(crate) fn require_bpffs() -> Result<(), Error> {
    if has_bpffs() { Ok(()) } else { Err(Error::NotMounted { path: BPFFS }) }
}

/// Fails where the BPF file system can be read only.
///
/// # Errors
/// [`Error::ReadOnly`].
pub(crate) fn require_writable() -> Result<(), Error> {
    let bpffs = bpffs();
    let read_only = statvfs(&bpffs).is_ok_and(|status| status.flags().contains(FsFlags::ST_RDONLY));
    if is_bpffs(&bpffs) && read_only { Err(Error::ReadOnly { path: BPFFS }) } else { Ok(()) }
}

/// Why something cannot be read. That no pin can be opened on a read-only file system explains all errors there.
pub(crate) fn reason(error: Error) -> String {
    explained(error).to_string()
}

/// The same as an error.
pub(crate) fn explained(error: Error) -> Error {
    require_writable().err().unwrap_or(error)
}

/// Where the BPF file system is, or belongs.
pub(crate) fn bpffs() -> PathBuf {
    on_host(Path::new(BPFFS))
}

/// A path as the process that has the host's mounts sees it, see [`host_process`].
pub(crate) fn on_host(path: &Path) -> PathBuf {
    host_process().map_or_else(|| path.into(), |pid| below_root_of(pid, path))
}

/// The nearest ancestor that has a BPF file system, if this process sees none. `ip netns exec` gives its command a
/// /sys of its own, with neither a BPF file system nor cgroups, and what is pinned in one mounted there would be gone
/// when the command ends.
pub fn host_process() -> Option<u32> {
    if is_bpffs(Path::new(BPFFS)) {
        return None;
    }
    std::iter::successors(parent_of(process::id()), |pid| parent_of(*pid))
        .find(|pid| is_bpffs(&below_root_of(*pid, Path::new(BPFFS))))
}

fn below_root_of(pid: u32, path: &Path) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").unwrap_or(path))
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    (parent != 0).then_some(parent)
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|status| status.filesystem_type() == FsType(BPFFS_MAGIC))
}

fn without_sysfs() -> Error {
    Error::Unsupported {
        missing: "/sys is not mounted, which says what it offers".into(),
        advice: "run `mount -t sysfs sysfs /sys`",
    }
}

/// Mounts the BPF file system where it is missing, as bpftool and tc do; systemd mounts it at boot.
pub(crate) fn ensure_bpffs() -> Result<(), Error> {
    if has_bpffs() {
        return Ok(());
    }
    if !has_sysfs() {
        return Err(without_sysfs());
    }
    let missing = |why: String| Error::Unsupported {
        missing: format!("no BPF file system is mounted at {BPFFS}, and it cannot be mounted ({why})"),
        advice: "run `mount -t bpf bpf /sys/fs/bpf` in the host's mount namespace",
    };
    if !is_in(FIRST_PID_NAMESPACE) {
        // Its first process is not the host's.
        return Err(missing("this is a container, so the pins would go with it".into()));
    }
    // Not readable is not private: without permission to look at the first process, what it has is not known.
    let mounts = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    if mounts("1").is_some_and(|first| Some(first) != mounts("self")) {
        return Err(missing("this mount namespace is private, so the pins would go with it".into()));
    }
    mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
        .map_err(|errno| missing(errno.to_string()))
}

/// What the kernel's own type information says it offers.
pub struct Kernel {
    types: Types,
}

impl Kernel {
    /// Reads the BTF of the kernel, and that of its BBR where that is a module that is loaded.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel has none, or none that can be read.
    pub fn read() -> Result<Self, Error> {
        let mut types = Types::default();
        if !has_sysfs() {
            return Err(without_sysfs());
        }
        let unsupported = |missing: &'static str, advice| {
            move |why: io::Error| Error::Unsupported {
                missing: format!("{missing} ({VMLINUX}: {why})"),
                advice,
            }
        };
        let bytes = match fs::read(VMLINUX) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                return Err(unsupported(
                    "its BTF type information cannot be read",
                    "run as root, where nothing is mounted over /sys/kernel/btf",
                )(why));
            }
            read => read.map_err(unsupported(
                "it has no BTF type information",
                "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's are",
            ))?,
        };
        types.add(bytes).map_err(unsupported(
            "its BTF type information is damaged or of a form that onramp does not know",
            "boot a kernel as it comes from its distribution",
        ))?;
        match fs::read(BBR).and_then(|bytes| types.add(bytes)) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => tracing::warn!("{BBR} is left out: {why}"),
            Ok(()) | Err(_) => {}
        }
        Ok(Self { types })
    }

    #[cfg(test)]
    pub(crate) fn without_types() -> Self {
        Self { types: Types::default() }
    }

    /// What an object is fitted to.
    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// Whether the kernel has a type (a struct, enum or function) of this name.
    pub fn has_type(&self, name: &str) -> bool {
        self.types.has(name)
    }

    /// Names of the members of a struct of the kernel; none if there is no such struct.
    pub fn members(&self, structure: &str) -> Vec<String> {
        self.types.members(structure)
    }

    /// Fails unless congestion controls can be written in BPF.
    ///
    /// # Errors
    /// [`Error::Unsupported`], naming what is missing.
    pub fn require_struct_ops(&self) -> Result<(), Error> {
        if self.has_type("bpf_struct_ops_tcp_congestion_ops") {
            return Ok(());
        }
        Err(Error::Unsupported {
            missing: "it has no BPF struct_ops for tcp_congestion_ops".into(),
            advice: "use Linux 6.1 or newer with CONFIG_BPF_JIT=y",
        })
    }

    /// Whether a registration can be a link, which can be pinned and detached; else the map itself is registered.
    pub fn has_link(&self) -> bool {
        self.has_type("bpf_struct_ops_link")
    }

    /// What the base needs of CUBIC and BPF has not: the first of its functions, or room behind its state, where the shell
    /// keeps its own (`bpf/kernel/storage.bpf.h`); `None` if all is there.
    pub fn missing_cubic(&self) -> Option<&'static str> {
        CUBIC.into_iter().find(|name| !self.has_type(name)).or_else(|| {
            let full = self.types.size("bictcp").is_some_and(|bytes| bytes > CUBIC_BYTES_MAX);
            full.then_some("16 bytes behind CUBIC's state")
        })
    }
}

/// Names of the congestion controls registered now.
///
/// # Errors
/// [`Error::Io`] if `/proc` does not say.
pub fn registered() -> Result<Vec<String>, Error> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Waits until every program of BPF that runs now has ended (an RCU grace period). Where the kernel does not offer that, it does
/// not wait: programs end within microseconds.
pub(crate) fn await_readers() {
    // SAFETY: a system call without memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
}

/// Release of the running kernel, as `uname -r`.
pub fn release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::kind::Kind;

    #[test]
    fn a_kernel_without_struct_ops_is_refused_in_one_sentence() {
        let error = Kernel::without_types().require_struct_ops().unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains("struct_ops") && error.to_string().contains("6.1"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }

    #[test]
    fn a_kernel_without_cubics_functions_names_the_first() {
        assert_eq!(Kernel::without_types().missing_cubic(), Some("cubictcp_init"));
    }
}
