//! Whose time runs are made in, as the options say.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use onramp_lab::experiment::{self, Guests, Shard, Tool};
use onramp_lab::guest::{self, Image, Kernel};

use super::guest::host_program;
use super::require_root;
use crate::failure::Usage;
use crate::units;

/// Programs that the lab uses in a guest.
const PROGRAMS: [&str; 3] = ["ip", "ss", "tc"];

/// Word for the program in the guest: record the run.
pub(super) const RECORD: &str = "--record";

/// Seconds of this machine after which a guest is given up, where nothing is said.
const GUEST_SECONDS: u32 = 1_800;

/// Whose time runs are made in.
#[derive(Args, Clone, Debug)]
pub(in crate::verb) struct ClockOptions {
    /// Whose time: virtual, of a guest that counts its instructions, the same on every machine, without root; or
    /// machine, of this machine and its kernel
    #[arg(long, value_enum, default_value = "virtual", value_name = "CLOCK")]
    clock: Which,
    /// Kernel of the guests: a series of `onramp lab kernel list`, or the path of a directory with vmlinuz and modules/
    #[arg(long, value_name = "KERNEL", default_value = "6.12")]
    kernel: String,
    /// In virtual time, make runs anew that have been made before
    #[arg(long)]
    fresh: bool,
    /// In virtual time, give a guest up after this time of this machine: seconds, or such as 30m
    #[arg(long, value_name = "TIME", value_parser = units::seconds, default_value_t = GUEST_SECONDS)]
    guest_timeout: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    Virtual,
    Machine,
}

impl ClockOptions {
    /// Guests of this kernel.
    pub fn of_guests(kernel: &str, fresh: bool) -> Self {
        Self { clock: Which::Virtual, kernel: kernel.to_owned(), fresh, guest_timeout: GUEST_SECONDS }
    }

    /// Whether runs are made in guests.
    pub fn is_virtual(&self) -> bool {
        self.clock == Which::Virtual
    }

    /// Whether runs are kept, and taken by the same command.
    pub fn keeps(&self) -> bool {
        self.is_virtual() && !self.fresh
    }

    /// The clock, for runs with this tool. `words` go to the program in the guest.
    pub fn clock(
        &self,
        tool: Tool,
        words: &[&str],
        shard: Option<Shard>,
    ) -> anyhow::Result<experiment::Clock> {
        if !self.is_virtual() {
            if shard.is_some() {
                return Err(Usage::error(
                    "--shard is for virtual time: the machine's runs are not the same elsewhere",
                ));
            }
            return Ok(experiment::Clock::Machine);
        }
        Ok(experiment::Clock::Virtual(Arc::new(Guests {
            image: self.image(tool, words.contains(&RECORD))?,
            qemu: guest::machine::version()?,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            fresh: self.fresh,
            shard: shard.unwrap_or(Shard::WHOLE),
            seconds: self.guest_timeout.into(),
        })))
    }

    /// What guests boot; `records`: with the program that records.
    pub fn image(&self, tool: Tool, records: bool) -> anyhow::Result<Image> {
        let iperf3: &[&str] = if tool == Tool::Iperf3 { &["iperf3"] } else { &[] };
        let programs = [&PROGRAMS[..], iperf3].concat();
        let files = if records { vec![host_program()?] } else { Vec::new() };
        Ok(Image::build(Kernel::named(&self.kernel)?, &guest::MODULES, &programs, &files)?)
    }

    /// Runs at once, where nothing is said: as many as there are processors, but one where they would disturb each
    /// other.
    pub fn jobs(&self, asked: Option<u16>) -> u16 {
        let processors =
            || std::thread::available_parallelism().map_or(1, |count| count.get().min(16) as u16);
        asked.unwrap_or_else(|| if self.is_virtual() { processors() } else { 1 })
    }

    /// Fails with the exit code for missing privileges instead of in the middle of a run.
    pub fn require_root(&self, verb: &'static str) -> anyhow::Result<()> {
        if self.is_virtual() { Ok(()) } else { require_root(verb) }
    }
}
