//! What the kernel's slab allocator has given out, and files enough to fill it.

use std::fs;

use anyhow::{Context, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// So many open files, and some more.
pub(super) fn allow_files(files: u64) -> anyhow::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = files + 1_000;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted))
            .with_context(|| format!("{wanted} open files are not allowed: give fewer --flows"))?;
    }
    Ok(())
}

/// Bytes of all objects in use.
pub(super) fn slab_bytes() -> anyhow::Result<u64> {
    in_use(&fs::read_to_string("/proc/slabinfo").context("cannot read /proc/slabinfo: root may")?)
}

/// The sum of `active_objs` times `objsize` (slabinfo(5)).
fn in_use(slabinfo: &str) -> anyhow::Result<u64> {
    let mut total = 0;
    for line in slabinfo.lines().skip(2) {
        let mut words = line.split_whitespace().skip(1);
        let active: u64 =
            words.next().and_then(|word| word.parse().ok()).context("active_objs of /proc/slabinfo")?;
        let size: u64 =
            words.nth(1).and_then(|word| word.parse().ok()).context("objsize of /proc/slabinfo")?;
        total += active * size;
    }
    ensure!(total > 0, "/proc/slabinfo has no objects");
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLABINFO: &str = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>
TCP                   10     13   2432   13    8 : tunables    0    0    0 : slabdata      1      1      0
kmalloc-512          100    112    512   16    2 : tunables    0    0    0 : slabdata      7      7      0
";

    #[test]
    fn memory_is_what_objects_in_use_take() {
        assert_eq!(in_use(SLABINFO).unwrap(), 10 * 2_432 + 100 * 512);
        assert!(in_use("slabinfo - version: 2.1\n# name\n").is_err());
        assert!(in_use("slabinfo - version: 2.1\n# name\nTCP 10\n").is_err());
    }
}
