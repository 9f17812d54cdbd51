//! What this kernel and host can do for onramp, each with what it enables and what to do where it is missing.

mod check;
pub(crate) mod path;
pub mod receiver;

pub use check::{Check, Scope, Verdict};

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use libbpf_rs::Object;
use onramp_algorithm::Algorithm;
use onramp_net::namespace::Namespace;
use onramp_net::sock_diag::SockDiag;

use crate::attachment::basis::{self, Basis};
use crate::attachment::defaults;
use crate::host::{HYSTART, parameter};
use crate::object::abi::Base;
use crate::object::algorithms;
use crate::object::open;
use crate::object::open::Migrating;
use crate::pins::base_of;
use crate::report::flows;
use crate::select;
use crate::select::program::Program;
use crate::system::error::{Error, REMEDY_PART, remedy_taken};
use crate::system::everywhere::SYSCTL;
use crate::system::kernel::{self, BPFFS, Capability, Kernel, MOUNT_SYSFS};
use crate::system::{bbr, hierarchy};

/// Looks at the kernel, the privileges and the host. Loads objects to see whether the kernel accepts them, and attaches the
/// selection for a moment, without a rule; changes nothing.
pub fn doctor() -> Vec<Check> {
    let mut checks = vec![Check::ok("kernel", "", kernel::release()), privilege()];
    match Kernel::read() {
        Ok(kernel) => {
            checks.extend(types(&kernel));
            checks.extend(if kernel::may_attach() { loads(&kernel) } else { vec![not_tried()] });
        }
        Err(error) => {
            let (found, advice) = match error {
                Error::Unsupported { missing, advice } => (missing, advice),
                other => (other.to_string(), ""),
            };
            checks.push(Check::new("type information (BTF)", "everything", Err(found), advice));
        }
    }
    checks.push(pins());
    checks.extend(if kernel::require_writable().is_ok() { broken_pins() } else { Vec::new() });
    checks.extend([listing(), cgroup()]);
    checks.extend([jit(), lockdown(), hystart(), queueing()].map(|check| check.of(Scope::Host)));
    checks.push(default_control().of(Scope::Namespace));
    checks.extend(other_defaults());
    checks.extend(path::cached_thresholds().map(|found| found.check()));
    checks.extend(rules());
    checks.extend(starts());
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
    Check::new(
        "privilege",
        "attach, detach, tune, run, flows",
        result,
        if kernel::in_first_user_namespace() {
            "run as root, or give CAP_BPF and CAP_PERFMON"
        } else {
            "run outside of this user namespace: capabilities in it do not count for BPF"
        },
    )
}

/// What the kernel's type information shows.
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
        Check::new(
            "CUBIC callable from BPF",
            "base cubic",
            cubic,
            "use --base reno; 5.13 on x86-64, 6.10 elsewhere have it",
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
        Check::new(
            "pins",
            "status, flows, tune",
            Err(format!("those of {name} cannot be read: {why}")),
            &advice,
        )
    };
    // Who may not look has its own row.
    flows::unreadable().unwrap_or_default().into_iter().map(check).collect()
}

fn pins() -> Check {
    if let Err(error) = kernel::require_writable() {
        let advice = format!("mount -o remount,rw {BPFFS}");
        return Check::new("BPF file system", "everything", Err(error.to_string()), &advice);
    }
    let check =
        Check::ok("BPF file system", "attach", if kernel::has_bpffs() { "mounted" } else { "not mounted" });
    if kernel::has_bpffs() {
        check
    } else if kernel::has_sysfs() {
        check.warned("attach mounts it; or `mount -t bpf bpf /sys/fs/bpf`")
    } else {
        check.warned(format!("first {MOUNT_SYSFS}; then attach mounts it"))
    }
}

/// What loading shows, where it cannot be tried.
const BY_BPF: &str = "congestion controls in BPF";

fn not_tried() -> Check {
    let skipped = Err("not tried without the privilege".to_owned());
    Check::new(BY_BPF, "attach, run", skipped, "what it takes is said at: privilege")
}

/// What loading shows.
fn loads(kernel: &Kernel) -> Vec<Check> {
    if let Some(Error::Unsupported { missing, advice }) = kernel::locked_down() {
        return vec![Check::new(BY_BPF, "attach, run", Err(missing), advice)];
    }
    let tried = |result: Result<Object, Error>| match result {
        Ok(_) => Ok("loads".to_owned()),
        Err(error) => Err(first_line(error)),
    };
    let without_cubic = if kernel.missing_cubic().is_some() { "use --base reno" } else { REFUSED };
    let mut checks: Vec<Check> = Vec::new();
    for algorithm in algorithms::all() {
        let result = tried(open::shell(algorithm, Base::Cubic, kernel));
        checks.push(Check::new(algorithm.name(), "onramp attach, base cubic", result, without_cubic));
    }
    let least = onramp_algorithm::baseline();
    let reno = tried(open::shell(least, Base::Reno, kernel));
    checks.push(Check::new("base reno", "kernels without CUBIC in BPF", reno, REFUSED));
    if bbr::require(kernel).is_ok() {
        let bbr = tried(open::shell(least, Base::Bbr, kernel));
        checks.push(Check::new("base bbr", "onramp attach --base bbr", bbr, "use --base cubic"));
    }
    let migrating = Migrating { from: "cubic", to: Some("cubic"), current: None };
    let iterator = tried(open::migrate(migrating, &[open::MIGRATE, open::HOLDERS, open::LISTENERS], kernel));
    checks.push(Check::new(
        "TCP socket iterator",
        "moving open sockets on detach",
        iterator,
        "sockets stay until they close",
    ));
    checks.push(selector());
    checks
}

/// What is left to do where the kernel says that it can, and does not.
const REFUSED: &str =
    "Linux 6.1 or newer is needed; on such a kernel, `onramp -vv attach` shows what it refuses";

/// Whether the program of `run` and `select` can be attached, next to what others have attached.
fn selector() -> Check {
    let tried = Program::load().and_then(|program| match hierarchy::top() {
        Ok(top) => program.attach(&top).map(|_| "attaches"),
        Err(_) => Ok("loads"),
    });
    let advice = match &tried {
        Err(Error::CgroupTaken { path, program, .. }) => remedy_taken(path, *program),
        Err(Error::CgroupTakenAbove { .. }) => "`bpftool cgroup tree` on the host finds it".into(),
        _ => REFUSED.into(),
    };
    let tried = tried.map(str::to_owned).map_err(|error| match error {
        Error::CgroupTaken { path, program, name } => {
            format!("cgroup {} has {name}, id {program}, which allows no other", path.display())
        }
        other => first_line(other),
    });
    Check::new("cgroup socket operations", "onramp run, onramp select", tried, &advice)
}

fn first_line(error: Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn listing() -> Check {
    let result = SockDiag::open().map(|_| "yes".to_owned()).map_err(|error| error.to_string());
    Check::new("socket diagnostics", "flows, status", result, "load the modules inet_diag and tcp_diag")
}

fn cgroup() -> Check {
    let check = |result, advice: &str| Check::new("cgroup v2", "onramp run, onramp select", result, advice);
    match hierarchy::root() {
        Ok(path) => check(Ok(path.display().to_string()), ""),
        Err(Error::PartOfCgroups { path }) => {
            let found = format!("{} is a part of it, enough for onramp run", path.display());
            check(Ok(found), "").warned(format!("for onramp select, {REMEDY_PART}"))
        }
        Err(Error::NoCgroup { remedy }) => check(Err("not mounted".into()), &remedy),
        Err(other) => check(Err(other.to_string()), ""),
    }
}

/// Where rules do not hold for all connections.
fn rules() -> Option<Check> {
    let cgroup = select::holds_in()?;
    let found = format!("hold in cgroup {cgroup} and below it alone");
    let check = Check::ok("rules of select", "onramp select", found);
    Some(
        check.warned(
            "on the host the next change of a rule has them hold everywhere, as `onramp select load`",
        ),
    )
}

/// Rules that say what is known of a path, for a control whose connections start without it.
fn starts() -> Option<Check> {
    let cannot = select::missing_starts(&select::selection().ok().flatten()?.rules);
    let algorithm = algorithms::find_control(cannot.first()?)?.name();
    let found = format!("those of {} have no effect", cannot.into_iter().collect::<Vec<_>>().join(", "));
    let advice = format!("`onramp upgrade {algorithm} --start resume`; over base bbr there is no such start");
    Some(Check::ok("known paths of select", "select --resume", found).warned(advice))
}

/// Whether the current network namespace is the host's own: it alone shows settings that the host has once.
pub fn is_hosts_own() -> bool {
    Path::new("/proc/sys/net/core/netdev_budget").exists()
}

/// What the whole host has once is shown in its first network namespace alone.
const NOT_SEEN: &str = "not to be seen from this network namespace";

fn jit() -> Check {
    let (result, advice) = match fs::read_to_string("/proc/sys/net/core/bpf_jit_enable") {
        Err(_) if !is_hosts_own() => (Ok(NOT_SEEN.to_owned()), ""),
        Ok(text) if text.trim() != "0" => (Ok("on".to_owned()), ""),
        Ok(_) => (Err("off".to_owned()), "sysctl -w net.core.bpf_jit_enable=1"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (Err("the kernel has none".to_owned()), "boot a kernel built with CONFIG_BPF_JIT=y")
        }
        Err(error) => (Err(format!("cannot be read: {error}")), "run doctor as root"),
    };
    Check::new("BPF JIT", "attach", result, advice)
}

fn lockdown() -> Check {
    let mode = kernel::lockdown();
    let is_forbidden = mode.as_deref() == Some(kernel::LOCKED_DOWN);
    let found = mode.unwrap_or_else(|| "not known: /sys/kernel/security/lockdown cannot be read".into());
    let result = if is_forbidden { Err(found) } else { Ok(found) };
    Check::new("lockdown", "reading kernel memory from BPF", result, "boot with lockdown=integrity")
}

/// The kernel's own HyStart, which onramp replaces where it is attached.
fn hystart() -> Check {
    let read = |name| fs::read_to_string(parameter(name)).ok();
    let found =
        match (read(HYSTART), read("tcp_cubic.hystart_detect"), read("tcp_cubic.hystart_ack_delta_us")) {
            (Some(on), Some(detect), Some(delta)) => {
                format!("hystart {}, detect {}, ack delta {} us", on.trim(), detect.trim(), delta.trim())
            }
            _ if !kernel::has_sysfs() => "not known: /sys is not mounted".to_owned(),
            _ => "CUBIC is not loaded".to_owned(),
        };
    Check::ok("the kernel's HyStart", "comparison; silenced on onramp's flows", found)
}

fn queueing() -> Check {
    let check = |found| {
        Check::ok("default queueing discipline", "flows that are paced: those of ramp and base bbr", found)
    };
    match fs::read_to_string("/proc/sys/net/core/default_qdisc") {
        Ok(text) if text.trim() == "fq" => check("fq, which paces".to_owned()),
        // It paces all the same, at more processor time.
        Ok(text) => check(format!("{}: TCP paces by a timer of each socket", text.trim())).warned(
            "`tc qdisc replace dev DEV root fq` has fq pace on an interface, `sysctl -w net.core.default_qdisc=fq` on those made from then on",
        ),
        Err(_) => check(NOT_SEEN.to_owned()),
    }
}

/// Where this namespace has an algorithm as default: who has not.
fn other_defaults() -> Option<Check> {
    let name = Namespace::current().ok()?.sysctl_get(SYSCTL).ok()?;
    let algorithm = algorithms::find_control(&name)?.name();
    let everywhere = defaults::defaults_everywhere().ok()?;
    let keep: Vec<_> = everywhere.of.iter().filter(|one| one.name != name).collect();
    let row = |found: String| {
        Check::ok("defaults of other network namespaces", "their sockets that do not choose", found)
    };
    Some(match keep.first() {
        None => row(format!("{name} as well")),
        Some(first) => {
            let more = if keep.len() > 1 { format!(" and {} more", keep.len() - 1) } else { String::new() };
            row(format!("{}: {}{more}", first.name, first.namespace))
                .warned(format!("`onramp attach {algorithm} --default=all` gives it to them, too"))
        }
    })
}

/// What attach would take as base here, or has taken.
fn default_control() -> Check {
    let check = |found: String| {
        Check::ok("default congestion control", "this network namespace's sockets that do not choose", found)
    };
    let default = match Namespace::current().and_then(|namespace| namespace.sysctl_get(SYSCTL)) {
        Ok(default) => default,
        Err(error) => return check(error.to_string()),
    };
    let attached = algorithms::all().find(|one| one.congestion_control() == default);
    match (attached, base_of(&default)) {
        (Some(algorithm), Some(base)) => {
            let found = format!("{default}, base {}", base.name());
            match Basis::here(algorithm, base) {
                Ok(here) if here.default != default && here.default_base != Some(base) => {
                    let before = here.default;
                    check(format!("{found} (before: {before})")).warned(format!(
                        "after slow start its connections are as under {}, and no longer as under {before}",
                        base.name()
                    ))
                }
                Ok(here) if here.default != default => check(format!("{found} (before: {})", here.default)),
                _ => check(found),
            }
        }
        (None, Some(base)) => match Kernel::read().map(|kernel| basis::require_any(&kernel, base)) {
            Ok(Ok(())) => check(format!("{default}, which attach and run take as base")),
            Ok(Err(error)) => check(default).warned(format!("attach and run need --base: {error}")),
            // Which is a check of its own.
            Err(_) => check(default),
        },
        (_, None) => check(default.clone()).warned(format!(
            "{default} cannot be a base: attach and run need --base cubic, reno or bbr, and so does a file of apply"
        )),
    }
}
