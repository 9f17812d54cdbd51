//! `onramp-lab guest`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Component, PathBuf};

use anyhow::Context;
use clap::Args;
use onramp_lab::guest::{self, Image, Outcome, Placed, Stream};
use onramp_terminal::companion;

use crate::failure::Usage;
use crate::output::{Output, say};
use crate::progress::{Progress, Resumes};
use crate::target::directory;
use crate::units;

/// The host's program.
const HOST: &str = "onramp";

/// Run a command as root in a guest: a virtual machine whose clock counts its own instructions
///
/// The guest is emulated by QEMU in software and takes the same time, by its own clock, on every machine and under any
/// load. It has onramp-lab, onramp, the programs and files that are named, and nothing else: no disk, no network but what
/// is made inside. Needs no privilege here. What the command leaves in /out there comes back to DIR.
///
/// The exit code is the command's.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab guest -- onramp doctor
  onramp lab guest --kernel 6.1 --program busybox -- busybox sh -c 'uname -r; cat /proc/uptime'
  onramp lab guest --file ./test-program:/bin/test --output results -- test")]
pub(crate) struct Guest {
    /// Kernel: a series of `onramp lab kernel list`, or the path of a directory with vmlinuz and modules/
    #[arg(long, value_name = "KERNEL", default_value = "6.12")]
    kernel: String,
    /// A program of this machine, by name or path, with the libraries it needs; it is in /bin there. onramp is there
    /// unasked, if it is next to this program or in PATH; named here, it must be
    #[arg(long = "program", value_name = "PROGRAM")]
    programs: Vec<String>,
    /// A file of this machine, and where it is there, if not at the same path
    #[arg(long = "file", value_name = "PATH[:PATH]")]
    files: Vec<String>,
    /// A module of the kernel, besides tcp_diag, veth, tun and tcp_bbr
    #[arg(long = "module", value_name = "MODULE")]
    modules: Vec<String>,
    /// A variable of the command's environment
    #[arg(long = "env", value_name = "VARIABLE=VALUE")]
    environment: Vec<String>,
    /// Memory of the guest, MiB, 256 to 65536
    #[arg(long, value_name = "MIB", default_value_t = 1500, value_parser = units::number(256..=65_536_u32))]
    memory: u32,
    /// Give up after this time of this machine: seconds, or such as 30m
    #[arg(long, value_name = "TIME", value_parser = units::seconds, default_value_t = 600)]
    seconds: u32,
    /// Directory for what the command leaves in /out
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    output: Option<PathBuf>,
    /// Say on stderr what the guest has cost
    #[arg(long)]
    cost: bool,
    /// Command with its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<String>,
}

impl Guest {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let modules: Vec<_> =
            guest::MODULES.iter().copied().chain(self.modules.iter().map(String::as_str)).collect();
        let (host, programs): (Vec<&str>, Vec<&str>) =
            self.programs.iter().map(String::as_str).partition(|name| *name == HOST);
        let mut files: Vec<_> = self.files.iter().map(|text| placed(text)).collect();
        match host_program() {
            Err(absent) if !host.is_empty() => return Err(absent),
            found => files.extend(found.ok()),
        }
        let environment: BTreeMap<_, _> =
            self.environment.iter().map(|text| variable(text)).collect::<Result<_, _>>()?;
        let image = Image::build(guest::Kernel::named(&self.kernel)?, &modules, &programs, &files)?;
        let guest = guest::Guest {
            image: &image,
            command: self.command,
            environment,
            inputs: BTreeMap::new(),
            memory_mib: self.memory,
            seconds: self.seconds.into(),
        };
        let most = units::show_us(u64::from(self.seconds) * 1_000_000);
        let progress = Progress::begin(output, &format!("the guest runs, {most} at most"), Resumes::No);
        let outcome = guest.run(|stream, bytes| {
            progress.hide();
            print(stream, bytes);
        })?;
        drop(progress);
        if let Some(directory) = &self.output {
            write(directory, &outcome)?;
        }
        if self.cost {
            let Outcome { guest_seconds, host_cpu_seconds, .. } = outcome;
            say(&format!("{guest_seconds:.2} s in the guest, {host_cpu_seconds:.1} s of a processor here"));
        }
        Ok(outcome.status)
    }
}

/// The program for hosts, as a guest has it.
pub(super) fn host_program() -> anyhow::Result<Placed> {
    Ok(Placed { from: companion::find(HOST)?, to: format!("/bin/{HOST}") })
}

/// `PATH` or `PATH:PATH`; relative paths are below / there.
fn placed(text: &str) -> Placed {
    let (from, to) = text.rsplit_once(':').unwrap_or((text, text));
    let to = PathBuf::from(to);
    let parts: PathBuf = to.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    Placed { from: from.into(), to: format!("/{}", parts.display()) }
}

fn variable(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| Usage::error(format!("--env {text:?} is not VARIABLE=VALUE")))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// As it comes. The reader may have gone; the guest is to end all the same.
pub(crate) fn print(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
        Stream::Stderr => std::io::stderr().write_all(bytes),
    };
}

fn write(directory: &std::path::Path, outcome: &Outcome) -> anyhow::Result<()> {
    for (path, content) in &outcome.files {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_where_it_is_unless_asked() {
        assert_eq!(placed("/usr/bin/true").to, "/usr/bin/true");
        assert_eq!(placed("./a/b:/bin/c"), Placed { from: "./a/b".into(), to: "/bin/c".into() });
        assert_eq!(placed("../x").to, "/x");
    }

    #[test]
    fn a_variable_has_a_name_and_a_value() {
        assert_eq!(variable("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        assert!(variable("A").unwrap_err().to_string().contains("VARIABLE=VALUE"));
    }
}
