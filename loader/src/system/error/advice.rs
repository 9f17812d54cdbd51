//! Texts of errors: what may have been meant, and what to do.

use std::path::Path;
use std::time::Duration;

use onramp_algorithm::did_you_mean;

/// What may have been meant among names that are separated by commas.
pub(super) fn meant(name: &str, known: &str) -> String {
    did_you_mean(name, known.split(", "))
}

pub(super) fn lasting(waited: &Duration) -> String {
    match waited.as_secs() {
        0 => String::new(),
        seconds => format!(" for {seconds} s"),
    }
}

/// What to do where the root of cgroup v2 is out of sight.
pub(crate) const REMEDY_PART: &str = "run it in the host's namespaces (`nsenter --target 1 --mount --cgroup onramp …`), or start the container with the host's cgroup namespace and cgroups (docker, podman: `--cgroupns=host --volume /sys/fs/cgroup:/sys/fs/cgroup`)";

/// What to do about another's program.
pub(crate) fn remedy_taken(cgroup: &Path, program: u32) -> String {
    let cgroup = quoted(&cgroup.display().to_string());
    format!(
        "have its owner attach it with BPF_F_ALLOW_MULTI, or remove it (`bpftool cgroup detach {cgroup} sock_ops id {program}`)"
    )
}

/// A word of a command line, as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-@:+,=%".contains(sign);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

pub(super) fn log_note(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_with_a_path_is_one_that_a_shell_takes() {
        let said = |path: &str| remedy_taken(Path::new(path), 7);
        for (path, word) in [
            ("/sys/fs/cgroup", "detach /sys/fs/cgroup sock_ops id 7`"),
            ("/run/my cg", "detach '/run/my cg' sock_ops id 7`"),
            ("/run/o'clock", r"detach '/run/o'\''clock' sock_ops id 7`"),
        ] {
            assert!(said(path).contains(word), "{}", said(path));
        }
    }
}
