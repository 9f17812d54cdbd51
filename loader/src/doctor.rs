//! What this kernel and host can do for onramp, each with what it enables and what to do where it is missing.

use std::fs;

use libbpf_rs::Object;
use onramp_algorithm::Algorithm;
use onramp_net::namespace::Namespace;
use onramp_net::sock_diag::SockDiag;

use crate::abi::Base;
use crate::error::Error;
use crate::flows;
use crate::host::{HYSTART, parameter};
use crate::kernel::{self, Capability, Kernel};
use crate::open::Rehoming;
use crate::pins::BPFFS;
use crate::select::program::Program;
use crate::{bbr, defaults, open, run};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There.
    Ok,
    /// There, with something worth knowing.
    Warning,
    /// Not there.
    Missing,
}

/// One thing looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What it is needed for.
    pub enables: &'static str,
    /// What to do; empty where nothing is.
    pub advice: String,
}

impl Check {
    fn ok(name: &'static str, enables: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, found: found.into(), enables, advice: String::new() }
    }

    fn of(name: &'static str, enables: &'static str, result: Result<String, String>, advice: &str) -> Self {
        match result {
            Ok(found) => Self::ok(name, enables, found),
            Err(found) => Self { name, verdict: Verdict::Missing, found, enables, advice: advice.into() },
        }
    }

    fn warned(self, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, advice: advice.into(), ..self }
    }
}

/// Looks at the kernel, the privileges and the host. Loads objects to see whether the kernel takes them; attaches
/// nothing and changes nothing.
pub fn doctor() -> Vec<Check> {
    let mut checks = vec![Check::ok("kernel", "", kernel::release()), privilege()];
    match Kernel::read() {
        Ok(kernel) => {
            checks.extend(types(&kernel));
            checks.extend(if kernel::may_attach() { loads(&kernel) } else { vec![not_tried()] });
        }
        Err(error) => {
            let advice = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y";
            checks.push(Check::of("type information (BTF)", "everything", Err(error.to_string()), advice));
        }
    }
    checks.push(pins());
    checks.extend(if kernel::require_writable().is_ok() { broken_pins() } else { Vec::new() });
    checks.extend([listing(), cgroup(), jit(), lockdown(), hystart(), queueing()]);
    checks.push(default_control());
    checks
}

fn privilege() -> Check {
    let held = [
        (Capability::Bpf, "CAP_BPF"),
        (Capability::Perfmon, "CAP_PERFMON"),
        (Capability::NetAdmin, "CAP_NET_ADMIN"),
        (Capability::SysAdmin, "CAP_SYS_ADMIN"),
    ];
    let names: Vec<_> = held.iter().filter(|(one, _)| one.held()).map(|(_, name)| *name).collect();
    let found = if names.is_empty() { "none of the capabilities".to_owned() } else { names.join(" ") };
    let result = if kernel::may_attach() { Ok(found) } else { Err(found) };
    Check::of(
        "privilege",
        "attach, detach, tune, run, flows",
        result,
        "run as root, or give CAP_BPF and CAP_PERFMON",
    )
}

/// What the kernel's type information tells.
fn types(kernel: &Kernel) -> Vec<Check> {
    let link = if kernel.has_link() {
        Check::ok("struct_ops link", "pinned registration, safe detach", "yes")
    } else {
        Check::ok(
            "struct_ops link",
            "pinned registration, safe detach",
            "no (before 6.4): the map is registered",
        )
    };
    let cubic = kernel.missing_cubic().map_or(Ok("yes".to_owned()), |name| Err(format!("{name} is missing")));
    vec![
        Check::ok("type information (BTF)", "everything", "yes"),
        link,
        Check::of(
            "CUBIC callable from BPF",
            "base cubic",
            cubic,
            "base reno is used; 5.13 on x86-64, 6.10 elsewhere have it",
        ),
        match bbr::require(kernel) {
            Ok(()) => Check::ok("BBR callable from BPF", "base bbr", "yes"),
            Err(Error::NoBbr { missing, advice }) => {
                Check::ok("BBR callable from BPF", "base bbr", missing).warned(advice)
            }
            Err(other) => Check::ok("BBR callable from BPF", "base bbr", other.to_string()).warned(""),
        },
    ]
}

/// Algorithms that are attached and whose pins cannot be read.
fn broken_pins() -> Vec<Check> {
    let check = |(algorithm, why): (Algorithm, String)| {
        let name = algorithm.name();
        let advice = format!("`onramp detach {name}` clears it; flows go on");
        Check::of(
            "pins",
            "status, flows, tune",
            Err(format!("those of {name} cannot be read: {why}")),
            &advice,
        )
    };
    flows::unreadable().into_iter().map(check).collect()
}

fn pins() -> Check {
    if let Err(error) = kernel::require_writable() {
        let advice = format!("mount -o remount,rw {BPFFS}");
        return Check::of("BPF file system", "everything", Err(error.to_string()), &advice);
    }
    let check =
        Check::ok("BPF file system", "attach", if kernel::has_bpffs() { "mounted" } else { "not mounted" });
    if kernel::has_bpffs() {
        check
    } else {
        check.warned("attach mounts it; or `mount -t bpf bpf /sys/fs/bpf`")
    }
}

fn not_tried() -> Check {
    let skipped = Err("not tried without the privilege".to_owned());
    Check::of("congestion controls in BPF", "attach, run", skipped, "run doctor as root")
}

/// What loading tells.
fn loads(kernel: &Kernel) -> Vec<Check> {
    let tried = |result: Result<Object, Error>| match result {
        Ok(_) => Ok("loads".to_owned()),
        Err(error) => Err(first_line(error)),
    };
    let mut checks: Vec<Check> = Vec::new();
    for algorithm in onramp_algorithm::all() {
        let result = tried(open::shell(algorithm.name(), Base::Cubic, kernel));
        checks.push(Check::of(algorithm.name(), "onramp attach, base cubic", result, "try --base reno"));
    }
    let reno = tried(open::shell("plain", Base::Reno, kernel));
    checks.push(Check::of("base reno", "kernels without CUBIC in BPF", reno, "use Linux 6.1 or newer"));
    if bbr::require(kernel).is_ok() {
        let bbr = tried(open::shell("plain", Base::Bbr, kernel));
        checks.push(Check::of("base bbr", "onramp attach --base bbr", bbr, "use --base cubic"));
    }
    let rehoming = Rehoming { from: "cubic", to: Some("cubic"), current: None };
    let iterator = tried(open::rehome(rehoming, kernel));
    checks.push(Check::of(
        "TCP socket iterator",
        "moving open sockets on detach",
        iterator,
        "sockets stay until they close",
    ));
    let selector = Program::load().map(|_| "loads".to_owned()).map_err(first_line);
    checks.push(Check::of(
        "cgroup socket operations",
        "onramp run, onramp select",
        selector,
        "use Linux 6.1 or newer with CONFIG_CGROUP_BPF",
    ));
    checks
}

fn first_line(error: Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn listing() -> Check {
    let result = SockDiag::open().map(|_| "yes".to_owned()).map_err(|error| error.to_string());
    Check::of("socket diagnostics", "flows, status", result, "load the modules inet_diag and tcp_diag")
}

fn cgroup() -> Check {
    let result = run::hierarchy().map(|path| path.display().to_string()).map_err(|error| error.to_string());
    Check::of("cgroup v2", "onramp run, onramp select", result, "mount -t cgroup2 none /sys/fs/cgroup")
}

fn jit() -> Check {
    let on = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|text| text.trim() != "0");
    let result = if on { Ok("on".to_owned()) } else { Err("off".to_owned()) };
    Check::of("BPF JIT", "attach", result, "sysctl net.core.bpf_jit_enable=1")
}

fn lockdown() -> Check {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode =
        text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or("none");
    let check = Check::ok("lockdown", "reading kernel memory from BPF", mode);
    if mode == "confidentiality" {
        check.warned("this mode forbids BPF to read kernel memory")
    } else {
        check
    }
}

/// The kernel's own HyStart, which onramp replaces where it is attached.
fn hystart() -> Check {
    let read = |name| fs::read_to_string(parameter(name)).ok();
    let found =
        match (read(HYSTART), read("tcp_cubic.hystart_detect"), read("tcp_cubic.hystart_ack_delta_us")) {
            (Some(on), Some(detect), Some(delta)) => {
                format!("hystart {}, detect {}, ack delta {} us", on.trim(), detect.trim(), delta.trim())
            }
            _ => "CUBIC is not loaded".to_owned(),
        };
    Check::ok("the kernel's HyStart", "comparison; silenced on onramp's flows", found)
}

fn queueing() -> Check {
    let found = fs::read_to_string("/proc/sys/net/core/default_qdisc").unwrap_or_default().trim().to_owned();
    Check::ok("default queueing discipline", "pacing: fq paces, others leave it to TCP's timer", found)
}

fn default_control() -> Check {
    let default = Namespace::current().and_then(|namespace| namespace.sysctl_get(defaults::SYSCTL));
    let found = default.unwrap_or_else(|error| error.to_string());
    Check::ok("default congestion control", "this network namespace's sockets that do not choose", found)
}
