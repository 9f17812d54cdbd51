// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Processor time of the machine and of a process.

use std::io::{Error, ErrorKind};

use super::ExperimentError;

/// Time that the processors were not idle since boot, all of them together, seconds.
///
/// # Errors
/// [`ExperimentError::ProcessorTime`] without /proc.
pub fn busy_seconds() -> Result<f64, ExperimentError> {
    seconds("/proc/stat".into(), busy_ticks)
}

/// Time that a process, all its threads together, has run since it began, in user space and in the kernel, seconds.
///
/// # Errors
/// [`ExperimentError::ProcessorTime`]: there is no such process.
pub fn process_seconds(pid: u32) -> Result<f64, ExperimentError> {
    seconds(format!("/proc/{pid}/stat"), process_ticks)
}

fn seconds(path: String, ticks: fn(&str) -> Option<u64>) -> Result<f64, ExperimentError> {
    let text = std::fs::read_to_string(&path);
    let ticks = text.and_then(|text| ticks(&text).ok_or(Error::from(ErrorKind::InvalidData)));
    let ticks = ticks.map_err(|source| ExperimentError::ProcessorTime { path: path.into(), source })?;
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    Ok(ticks as f64 / per_second as f64)
}

fn busy_ticks(stat: &str) -> Option<u64> {
    // user nice system idle iowait irq softirq steal; guest times are part of user.
    let columns: Option<Vec<u64>> =
        stat.lines().next()?.split_whitespace().skip(1).take(7).map(|word| word.parse().ok()).collect();
    Some(columns?.iter().enumerate().filter(|(at, _)| *at != 3 && *at != 4).map(|(_, one)| one).sum())
}

fn process_ticks(stat: &str) -> Option<u64> {
    // The name, in brackets, may have anything in it. After it: state, ten others, utime, stime.
    let after_name = stat.rsplit_once(')')?.1;
    let mut from_utime = after_name.split_whitespace().skip(11);
    let mut next = || from_utime.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let stat = "cpu  10 20 30 4000 5000 60 70 80 90 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), Some(10 + 20 + 30 + 60 + 70));
        assert_eq!((busy_ticks(""), busy_ticks("cpu 1 x 3")), (None, None));
    }

    #[test]
    fn a_process_has_user_and_system_time() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 120 0 0 0 7 30 5 5 20 0 1 0 100 1000 50";
        assert_eq!(process_ticks(stat), Some(37));
        assert_eq!(process_ticks("42 (name) S 1 42 42 0 -1 4194560 120 0 0 0 7"), None);
        assert!(process_seconds(std::process::id()).is_ok());
        assert!(process_seconds(u32::MAX).unwrap_err().to_string().contains("/proc/4294967295/stat"));
    }
}
