// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The guest's way to say something: QEMU's debug port, which takes a byte with each `out` instruction at once. No
//! device, no interrupt, no driver: what is said does not disturb the guest's time.

use std::io::{self, Write};

/// The port of QEMU's device `isa-debugcon`.
pub(super) const NUMBER: u16 = 0xe9;

/// Opens the port for this process, which must be root.
///
/// # Errors
/// Where the kernel refuses, or the processor has no ports.
#[cfg(target_arch = "x86_64")]
pub(super) fn open() -> io::Result<impl Write> {
    // SAFETY: ioperm changes only which ports this thread may use.
    let result = unsafe { libc::ioperm(NUMBER.into(), 1, 1) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Port) }
}

/// As above.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn open() -> io::Result<impl Write> {
    Err::<io::Sink, _>(io::Error::other("this processor has no ports"))
}

#[cfg(target_arch = "x86_64")]
struct Port;

#[cfg(target_arch = "x86_64")]
impl Write for Port {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the instruction reads `rcx` bytes from `rsi` on, which are those of the slice, and writes them to the
        // port that `open` was granted; a `Port` comes from nowhere else.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") NUMBER,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(nostack, readonly)
            );
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
