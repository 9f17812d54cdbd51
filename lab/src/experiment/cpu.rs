// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Processor time of the machine.

use std::path::Path;

use super::ExperimentError;

/// Time that the processors were not idle since boot, seconds.
pub(super) fn busy_seconds() -> Result<f64, ExperimentError> {
    let path = Path::new("/proc/stat");
    let failed = |source| ExperimentError::File { path: path.into(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let ticks: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest times are part of user.
    let busy: u64 =
        ticks.iter().take(7).enumerate().filter(|(at, _)| *at != 3 && *at != 4).map(|(_, one)| one).sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    Ok(busy as f64 / per_second as f64)
}
