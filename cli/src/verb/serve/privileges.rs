//! What each part may do: the broker read and write BPF, the web part nothing.

use anyhow::Context;
use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, User, geteuid, setgroups, setresgid, setresuid};

use crate::failure::Usage;

/// Connections, and a few descriptors more.
const DESCRIPTORS: u64 = 1024;

/// The user of the web part, if this process may choose one.
pub(super) fn user(name: &str) -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = User::from_name(name).context("cannot look up users")?;
    let user = user.ok_or_else(|| {
        Usage::error(format!("there is no user {name:?} for --user: `useradd --system {name}` makes one"))
    })?;
    if user.uid.is_root() {
        return Err(Usage::error("--user is what the web part runs as: choose one that is not root"));
    }
    Ok(Some(user))
}

/// Gives up, for good, what the web part does not need: its user, every capability, every way to new ones.
pub(super) fn drop_all(user: Option<(Uid, Gid)>) -> anyhow::Result<()> {
    // Afterwards there would be no capability to do it with.
    for capability in caps::all() {
        match caps::has_cap(None, CapSet::Bounding, capability) {
            Ok(true) if geteuid().is_root() => caps::drop(None, CapSet::Bounding, capability)
                .with_context(|| format!("cannot drop {capability} from the bounding set"))?,
            _ => {}
        }
    }
    if let Some((uid, gid)) = user {
        setgroups(&[]).context("cannot leave the groups")?;
        setresgid(gid, gid, gid).context("cannot change the group")?;
        setresuid(uid, uid, uid).context("cannot change the user")?;
    }
    keep_nothing()?;
    prctl::set_no_new_privs().context("cannot give up new privileges")?;
    // Nobody of the same user looks into this process.
    prctl::set_dumpable(false).context("cannot forbid dumps")?;
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS).context("cannot limit descriptors")?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot limit core files")
}

/// Where nothing is read and nothing tuned.
pub(super) fn keep_nothing() -> anyhow::Result<()> {
    for set in [CapSet::Ambient, CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        caps::clear(None, set).context("cannot drop capabilities")?;
    }
    Ok(())
}

/// Keeps only what reading and tuning take.
pub(super) fn keep_bpf() -> anyhow::Result<()> {
    let keep: CapsHashSet = [Capability::CAP_BPF, Capability::CAP_PERFMON].into_iter().collect();
    caps::clear(None, CapSet::Ambient).context("cannot drop capabilities")?;
    caps::set(None, CapSet::Effective, &keep).context("cannot drop capabilities")?;
    caps::set(None, CapSet::Permitted, &keep).context("cannot drop capabilities")?;
    caps::clear(None, CapSet::Inheritable).context("cannot drop capabilities")
}
