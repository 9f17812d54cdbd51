// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A machine for BPF instructions (RFC 9669) that reaches nothing but the memory which it is given, and stops.
//!
//! Addresses are not the host's: the upper half is the number of a [`Bytes`], the lower one an offset in it.

use std::fmt;

/// A call stops after so many instructions, which is also what the kernel's verifier walks at most.
const INSTRUCTIONS_MAX: u32 = 1_000_000;
/// Bytes of a function's stack, as in the kernel.
const FRAME: usize = 512;
/// Functions that call each other at most, as in the kernel.
const DEPTH: usize = 8;
/// The number of the stack's memory; those of what is given to a call follow.
const STACK: u64 = 1;
/// The number of the memory of constants and variables.
pub(super) const DATA: u64 = 2;
/// The number of the first argument's memory.
const ARGUMENT: usize = 3;
/// With those of five arguments, which are the most.
const MEMORIES: usize = ARGUMENT + 5;

/// One instruction; the constant of a wide one is whole, and a second one that does nothing follows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Instruction {
    pub code: u8,
    pub to: u8,
    pub from: u8,
    pub offset: i16,
    pub constant: i64,
}

/// The code of a constant of 64 bits.
pub(super) const WIDE: u8 = 0x18;
/// Of a call.
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Memory that a call may read, or write, too.
pub(super) enum Bytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

/// What a function is called with, from the first on.
pub(super) enum Argument<'a> {
    Memory(Bytes<'a>),
    Number(u64),
}

/// Why a call has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It reads or writes outside of what it was given.
    Memory,
    /// It runs too long.
    Endless,
    /// It calls too deeply.
    Depth,
    /// It does what pure code does not: calls of the kernel, atomic instructions.
    Instruction(u8),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => {
                formatter.write_str("reads or writes outside of its state, its arguments and its stack")
            }
            Self::Endless => write!(formatter, "runs for more than {INSTRUCTIONS_MAX} instructions"),
            Self::Depth => write!(formatter, "calls more than {DEPTH} functions deep"),
            Self::Instruction(code) => {
                write!(formatter, "has the instruction {code:#04x}, which pure code does without")
            }
        }
    }
}

/// Calls the function at instruction `entry` and returns its answer.
pub(super) fn call<const N: usize>(
    code: &[Instruction],
    entry: usize,
    data: Bytes<'_>,
    arguments: [Argument<'_>; N],
) -> Result<u64, Fault> {
    let mut stack = [0; FRAME * DEPTH];
    let mut registers = [0; 11];
    let mut memory = [const { Bytes::Read(&[]) }; MEMORIES];
    memory[STACK as usize] = Bytes::Write(&mut stack);
    memory[DATA as usize] = data;
    for (number, argument) in arguments.into_iter().enumerate() {
        registers[1 + number] = match argument {
            Argument::Number(number) => number,
            Argument::Memory(bytes) => {
                memory[ARGUMENT + number] = bytes;
                ((ARGUMENT + number) as u64) << 32
            }
        };
    }
    registers[10] = STACK << 32 | FRAME as u64;
    Machine { code, memory, registers, callers: Vec::new() }.run(entry)
}

struct Machine<'a> {
    code: &'a [Instruction],
    memory: [Bytes<'a>; MEMORIES],
    registers: [u64; 11],
    /// Where each goes on, and its registers from the sixth on.
    callers: Vec<(usize, [u64; 5])>,
}

impl Machine<'_> {
    fn run(mut self, entry: usize) -> Result<u64, Fault> {
        let mut at = entry;
        for _ in 0..INSTRUCTIONS_MAX {
            let one = *self.code.get(at).ok_or(Fault::Memory)?;
            at += 1;
            match one.code & 7 {
                0x04 | 0x07 => self.calculate(one)?,
                0x05 | 0x06 => match one.code {
                    CALL if one.from == 1 => {
                        self.enter(at)?;
                        at = jump(at, one.constant);
                    }
                    EXIT => match self.callers.pop() {
                        None => return Ok(self.registers[0]),
                        Some((back, kept)) => {
                            self.registers[6..].copy_from_slice(&kept);
                            at = back;
                        }
                    },
                    // With an offset of 32 bits.
                    0x06 => at = jump(at, one.constant),
                    _ if self.holds(one)? => at = jump(at, one.offset.into()),
                    _ => {}
                },
                _ => self.move_memory(one)?,
            }
        }
        Err(Fault::Endless)
    }

    fn enter(&mut self, back: usize) -> Result<(), Fault> {
        if self.callers.len() + 1 >= DEPTH {
            return Err(Fault::Depth);
        }
        let mut kept = [0; 5];
        kept.copy_from_slice(&self.registers[6..]);
        self.callers.push((back, kept));
        self.registers[10] += FRAME as u64;
        Ok(())
    }

    /// The second operand: a register, or the constant.
    fn operand(&self, one: Instruction) -> u64 {
        if one.code & 8 != 0 { self.registers[usize::from(one.from)] } else { one.constant as u64 }
    }

    fn calculate(&mut self, one: Instruction) -> Result<(), Fault> {
        let to = usize::from(one.to);
        let (left, right) = (self.registers[to], self.operand(one));
        let wide = one.code & 7 == 7;
        self.registers[to] = if one.code & 0xf0 == 0xd0 {
            swap(one, left)?
        } else if wide {
            calculate_64(one.code, left, right)?
        } else {
            calculate_32(one.code, left as u32, right as u32)?.into()
        };
        Ok(())
    }

    /// Whether a jump is taken.
    fn holds(&self, one: Instruction) -> Result<bool, Fault> {
        let (mut left, mut right) = (self.registers[usize::from(one.to)], self.operand(one));
        let (mut signed_left, mut signed_right) = (left as i64, right as i64);
        if one.code & 7 == 6 {
            (left, right) = (u64::from(left as u32), u64::from(right as u32));
            (signed_left, signed_right) = (i64::from(left as i32), i64::from(right as i32));
        }
        Ok(match one.code & 0xf0 {
            0x00 => true,
            0x10 => left == right,
            0x20 => left > right,
            0x30 => left >= right,
            0x40 => left & right != 0,
            0x50 => left != right,
            0x60 => signed_left > signed_right,
            0x70 => signed_left >= signed_right,
            0xa0 => left < right,
            0xb0 => left <= right,
            0xc0 => signed_left < signed_right,
            0xd0 => signed_left <= signed_right,
            _ => return Err(Fault::Instruction(one.code)),
        })
    }

    fn move_memory(&mut self, one: Instruction) -> Result<(), Fault> {
        if one.code == WIDE {
            self.registers[usize::from(one.to)] = one.constant as u64;
            return Ok(());
        }
        let size = match one.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        };
        let near =
            |register: u8| self.registers[usize::from(register)].wrapping_add(one.offset as i64 as u64);
        match one.code & 0xe7 {
            // The second half of a wide one.
            0x00 if one.code == 0 => {}
            0x61 => self.registers[usize::from(one.to)] = self.load(near(one.from), size)?,
            0x62 => self.store(near(one.to), size, one.constant as u64)?,
            0x63 => self.store(near(one.to), size, self.registers[usize::from(one.from)])?,
            _ => return Err(Fault::Instruction(one.code)),
        }
        Ok(())
    }

    fn load(&self, address: u64, size: usize) -> Result<u64, Fault> {
        let bytes = match self.memory.get((address >> 32) as usize) {
            Some(Bytes::Read(bytes)) => bytes,
            Some(Bytes::Write(bytes)) => &**bytes,
            None => return Err(Fault::Memory),
        };
        let at = address as u32 as usize;
        let bytes = bytes.get(at..at + size).ok_or(Fault::Memory)?;
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(whole))
    }

    fn store(&mut self, address: u64, size: usize, value: u64) -> Result<(), Fault> {
        let Some(Bytes::Write(bytes)) = self.memory.get_mut((address >> 32) as usize) else {
            return Err(Fault::Memory);
        };
        let at = address as u32 as usize;
        let bytes = bytes.get_mut(at..at + size).ok_or(Fault::Memory)?;
        bytes.copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(())
    }
}

fn jump(from: usize, by: i64) -> usize {
    // What is before the first instruction is past the last one, too.
    from.wrapping_add(by as usize)
}

fn swap(one: Instruction, value: u64) -> Result<u64, Fault> {
    let big = one.code & 8 != 0;
    Ok(match one.constant {
        16 if big => u64::from((value as u16).swap_bytes()),
        32 if big => u64::from((value as u32).swap_bytes()),
        64 if big => value.swap_bytes(),
        16 => u64::from(value as u16),
        32 => u64::from(value as u32),
        64 => value,
        _ => return Err(Fault::Instruction(one.code)),
    })
}

/// Arithmetic of a width: a shift uses as many bits of its operand as number the bits of a word.
macro_rules! calculate {
    ($name:ident, $word:ty, $signed:ty) => {
        fn $name(code: u8, left: $word, right: $word) -> Result<$word, Fault> {
            let bits = right as u32 & (<$word>::BITS - 1);
            Ok(match code & 0xf0 {
                0x00 => left.wrapping_add(right),
                0x10 => left.wrapping_sub(right),
                0x20 => left.wrapping_mul(right),
                0x30 => left.checked_div(right).unwrap_or(0),
                0x40 => left | right,
                0x50 => left & right,
                0x60 => left << bits,
                0x70 => left >> bits,
                0x80 => left.wrapping_neg(),
                0x90 => left.checked_rem(right).unwrap_or(left),
                0xa0 => left ^ right,
                0xb0 => right,
                0xc0 => (left as $signed >> bits) as $word,
                _ => return Err(Fault::Instruction(code)),
            })
        }
    };
}
calculate!(calculate_64, u64, i64);
calculate!(calculate_32, u32, i32);
