// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Guests: a virtual machine whose clock counts its own instructions, so that whatever runs in it takes the same time,
//! and does the same, on every machine and under any load.
//!
//! QEMU emulates one processor in software, a fixed part of a nanosecond of the guest's time an instruction
//! (`-icount shift=0` and [`INSTRUCTIONS_PER_NANOSECOND`]), and skips the time in which it has nothing to do
//! (`sleep=off`). The guest has no device that the outside could reach it by, and no source of randomness: its kernel, its
//! file system, its command line and QEMU's version decide all that happens. Needs neither root, nor KVM, nor TUN on the
//! host.
//!
//! * [`kernel`]: stock kernels of Debian, kept in a cache, or one that is given.
//! * [`source`]: where else such a kernel may come from.
//! * [`image`]: what is in the guest's memory when it boots.
//! * [`machine`]: boots it, follows what it says, and ends it.
//! * [`inside`]: its first process.
//!
//! ```text
//!   host: Guest::run ──► QEMU: kernel, file system ──► first process (this program) ──► command
//!            ▲                                               │ output, files, exit status
//!            └────────────── file ◄── debug port ◄───────────┘
//! ```

mod archive;
mod bzimage;
mod compressed;
mod error;
pub mod image;
pub mod inside;
pub mod kernel;
pub mod machine;
mod modules;
mod pace;
mod port;
mod processor;
mod programs;
pub mod source;
mod wire;

pub use error::GuestError;
pub use image::{Image, Placed};
pub use inside::load_control;
pub use kernel::{Kernel, Series};
pub use machine::{Guest, Outcome};
pub use modules::controls;
pub use pace::INSTRUCTIONS_PER_NANOSECOND;
pub use source::{Sha256Digest, Source};
pub use wire::Stream;

/// Modules of the kernel that the lab needs: sockets are listed through `tcp_diag`, links are made of `veth` and `tun`, `fq`
/// is a setting of hosts, and BBR is an arm.
pub const MODULES: [&str; 5] = ["tcp_diag", "veth", "tun", "tcp_bbr", "sch_fq"];
