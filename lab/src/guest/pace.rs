// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How fast a guest's processor is.
//!
//! QEMU lets one instruction take a nanosecond, and knows no less. A server's processor executes several, and at one the
//! guest itself would be the bottleneck from some 400 Mb/s on. So the guest is given two clocks that tick
//! [`INSTRUCTIONS_PER_NANOSECOND`] times as fast as they do, by which QEMU's nanosecond becomes a part of the guest's:
//!
//! * the time stamp counter, which it reads the time from, by `tsc_early_khz=` on its command line;
//! * the HPET, which wakes it up. Its frequency is the femtoseconds in a second over those in a tick, a register that
//!   cannot be set; so the femtoseconds in a second, a constant of the driver, are changed in the kernel's image.
//!
//! Nothing else in a guest measures time.

use super::GuestError;

/// Instructions that a guest executes in a nanosecond of its own time.
pub const INSTRUCTIONS_PER_NANOSECOND: u64 = 4;

/// Femtoseconds in a second, by which Linux's HPET driver divides.
const FEMTOSECONDS: u64 = 1_000_000_000_000_000;

/// What the kernel's command line says of its time stamp counter, which counts QEMU's nanoseconds.
pub(super) fn argument() -> String {
    format!("tsc_early_khz={}", 1_000_000 * INSTRUCTIONS_PER_NANOSECOND)
}

/// Changes the constant in a kernel's image.
///
/// # Errors
/// [`GuestError::Clock`] where it is not there.
pub(super) fn quicken(vmlinux: &mut [u8], release: &str) -> Result<(), GuestError> {
    let seconds: Vec<usize> = memchr::memmem::find_iter(vmlinux, &FEMTOSECONDS.to_le_bytes())
        .filter(|at| *at >= 2 && is_loaded(&vmlinux[at - 2..*at]))
        .collect();
    if seconds.is_empty() {
        return Err(GuestError::Clock { release: release.to_owned() });
    }
    for at in seconds {
        let quick = (FEMTOSECONDS * INSTRUCTIONS_PER_NANOSECOND).to_le_bytes();
        vmlinux[at..at + quick.len()].copy_from_slice(&quick);
    }
    Ok(())
}

/// Whether these are the bytes of an instruction that loads the eight bytes which follow into a register (movabs).
fn is_loaded(opcode: &[u8]) -> bool {
    matches!(opcode, [0x48 | 0x49, 0xb8..=0xbf])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// movabs of 10^15 into %rax, as in hpet_enable(); among other bytes.
    fn driver() -> Vec<u8> {
        let load = [&[0x48, 0xb8][..], &FEMTOSECONDS.to_le_bytes(), &[0x89, 0xc9, 0x31, 0xd2]].concat();
        [&[0x90; 5][..], &load, &[0x90; 3]].concat()
    }

    #[test]
    fn a_second_has_more_femtoseconds_and_nothing_else_changes() {
        let mut image = driver();
        quicken(&mut image, "6.12").unwrap();
        assert_eq!(image[7..15], (4 * FEMTOSECONDS).to_le_bytes());
        let (before, changed) = (driver(), image);
        assert_eq!((&before[..7], &before[15..]), (&changed[..7], &changed[15..]));
    }

    #[test]
    fn an_image_without_the_driver_is_refused_by_name() {
        let mut table = FEMTOSECONDS.to_le_bytes().repeat(3);
        let before = table.clone();
        let refused = quicken(&mut table, "6.12.1-mine").unwrap_err().to_string();
        assert!(refused.contains("6.12.1-mine") && refused.contains("CONFIG_HPET_TIMER"), "{refused}");
        assert_eq!(table, before);
        assert!(quicken(&mut [], "6.12").is_err());
    }

    #[test]
    fn the_time_stamp_counter_ticks_as_often_as_instructions_are_done() {
        assert_eq!(argument(), "tsc_early_khz=4000000");
    }
}
