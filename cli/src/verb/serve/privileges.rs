//! What each part may do: the broker read and write BPF, the web part nothing.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Uid, setfsuid, setgroups, setresgid, setresuid};

use super::confine;
pub(super) use super::confine::Confinement;
use super::users::Identity;
use crate::filter::read_services;

/// Connections, and a few descriptors more.
const DESCRIPTORS: u64 = 1024;
/// Address space of the web part: what it is sent is decoded within budgets, and this is the wall behind them.
const MEMORY: u64 = 2 << 30;
/// What reading and tuning take.
const BPF: [Capability; 2] = [Capability::CAP_BPF, Capability::CAP_PERFMON];

/// What this process is confined to, once it is.
static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// What the kernel enforces in this process.
pub(super) fn confinement() -> Confinement {
    CONFINEMENT.get().copied().unwrap_or(Confinement { seccomp: false, landlock: "none" })
}

/// Gives up, for good, what the web part does not need: its user, every capability, every way to new ones, and the system
/// calls for anything but its sockets.
pub(super) fn restrict_web(user: Option<Identity>) -> anyhow::Result<()> {
    // Afterwards there would be no capability to do it with.
    empty_bounding_set()?;
    if let Some(user) = user {
        become_user(user)?;
    }
    keep(&[])?;
    seal()?;
    // No other process of the same user looks into this one. Into the broker none does without its capabilities.
    prctl::set_dumpable(false).context("cannot forbid dumps")?;
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS).context("cannot limit descriptors")?;
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY).context("cannot limit memory")?;
    read_services();
    let _ = CONFINEMENT.set(confine::web());
    Ok(())
}

/// Gives up, for good, what the broker does not need. `live`: it keeps what reading and tuning take. `socket_directory`:
/// where it removes its socket's file.
///
/// It becomes the user too, but opens files as root, whose the pins and the socket are: what it starts is that user in
/// everything (setfsuid(2)).
pub(super) fn restrict_broker(
    user: Option<Identity>,
    live: bool,
    socket_directory: Option<&Path>,
) -> anyhow::Result<()> {
    empty_bounding_set()?;
    if let Some(user) = user {
        prctl::set_keepcaps(true).context("cannot keep capabilities")?;
        become_user(user)?;
        prctl::set_keepcaps(false).context("cannot give up capabilities")?;
        raise(Capability::CAP_SETUID)?;
        let root = Uid::from_raw(0);
        setfsuid(root);
        ensure!(setfsuid(Uid::from_raw(u32::MAX)) == root, "cannot open files as root");
    }
    keep(if live { &BPF } else { &[] })?;
    seal()?;
    let _ = CONFINEMENT.set(confine::broker(socket_directory));
    Ok(())
}

/// No program that is started from here on has a capability.
fn empty_bounding_set() -> anyhow::Result<()> {
    // Without it a process that is no root's cannot, and needs not: what it starts gains nothing by `seal`.
    if !caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).context("cannot read capabilities")? {
        return Ok(());
    }
    for capability in caps::all() {
        if caps::has_cap(None, CapSet::Bounding, capability).unwrap_or(false) {
            caps::drop(None, CapSet::Bounding, capability)
                .with_context(|| format!("cannot drop {capability} from the bounding set"))?;
        }
    }
    Ok(())
}

fn become_user(Identity { uid, gid }: Identity) -> anyhow::Result<()> {
    setgroups(&[]).context("cannot leave the groups")?;
    setresgid(gid, gid, gid).context("cannot change the group")?;
    setresuid(uid, uid, uid).context("cannot change the user")
}

/// Has a capability in effect that is permitted.
fn raise(capability: Capability) -> anyhow::Result<()> {
    caps::raise(None, CapSet::Effective, capability).with_context(|| format!("cannot use {capability}"))
}

/// Keeps these capabilities, as far as they are permitted, and no other.
fn keep(capabilities: &[Capability]) -> anyhow::Result<()> {
    let kept: CapsHashSet = capabilities.iter().copied().collect();
    caps::clear(None, CapSet::Ambient).context("cannot drop capabilities")?;
    caps::set(None, CapSet::Effective, &kept).context("cannot drop capabilities")?;
    caps::set(None, CapSet::Permitted, &kept).context("cannot drop capabilities")?;
    caps::clear(None, CapSet::Inheritable).context("cannot drop capabilities")
}

/// No privilege comes back, and nothing of this process is written to a file.
fn seal() -> anyhow::Result<()> {
    prctl::set_no_new_privs().context("cannot give up new privileges")?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot limit core files")
}
