// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! An object of pure code: its instructions, its data, and where its symbols are.

use std::collections::BTreeMap;

use object::elf::{R_BPF_64_32, R_BPF_64_64};
use object::read::elf::ElfFile64;
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind,
};

use super::machine::{self, Argument, Bytes, DATA, Fault, Instruction, WIDE};

/// Constants and variables are no more, bytes.
const DATA_MAX: usize = 1 << 20;
/// Of an address in data (`R_BPF_64_ABS64`).
const R_BPF_64_ABS64: u32 = 2;

/// Code and data with every address in place.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    code: Vec<Instruction>,
    /// Constants, and after them variables.
    data: Vec<u8>,
    functions: BTreeMap<String, usize>,
    /// Offsets in the data.
    objects: BTreeMap<String, usize>,
}

/// Where a section of the object is: in the code from this instruction on, or in the data from this offset on.
#[derive(Clone, Copy)]
enum Place {
    Code(usize),
    Data(usize),
}

impl Image {
    /// Reads what clang has made with `-target bpf`.
    ///
    /// # Errors
    /// What of it is not as clang makes it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(|error| error.to_string())?;
        let mut image =
            Self { code: Vec::new(), data: Vec::new(), functions: BTreeMap::new(), objects: BTreeMap::new() };
        let mut places = BTreeMap::new();
        for section in file.sections() {
            let content = || section.data().map_err(|error| error.to_string());
            match section.kind() {
                SectionKind::Text => {
                    places.insert(section.index().0, Place::Code(image.code.len()));
                    image.code.extend(instructions(content()?)?);
                }
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Data => {
                    places.insert(section.index().0, Place::Data(image.data.len()));
                    image.data.extend(content()?);
                }
                SectionKind::UninitializedData => {
                    places.insert(section.index().0, Place::Data(image.data.len()));
                    let size = usize::try_from(section.size()).unwrap_or(usize::MAX);
                    image.data.resize(image.data.len().saturating_add(size).min(DATA_MAX + 1), 0);
                }
                _ => {}
            }
            image.data.resize(image.data.len().next_multiple_of(8), 0);
            if image.data.len() > DATA_MAX {
                return Err(format!("its data have more than {DATA_MAX} bytes"));
            }
        }
        let place =
            |index: Option<object::SectionIndex>| index.and_then(|index| places.get(&index.0).copied());
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or_default().to_owned();
            match place(symbol.section_index()) {
                Some(Place::Code(start)) => {
                    image.functions.insert(name, start + symbol.address() as usize / 8);
                }
                Some(Place::Data(start)) => {
                    image.objects.insert(name, start.wrapping_add(symbol.address() as usize));
                }
                None => {}
            }
        }
        for section in file.sections() {
            let Some(here) = place(Some(section.index())) else { continue };
            for (offset, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                let named = symbol.name().unwrap_or_default();
                let target = place(symbol.section_index())
                    .ok_or_else(|| format!("it uses {named:?}, which it does not have"))?;
                image.relocate(here, offset as usize, r_type, target, symbol.address())?;
            }
        }
        Ok(image)
    }

    fn relocate(
        &mut self,
        here: Place,
        offset: usize,
        kind: u32,
        target: Place,
        address: u64,
    ) -> Result<(), String> {
        let value = match target {
            Place::Data(start) => DATA << 32 | (start as u64).wrapping_add(address),
            // Of functions, in data: instructions are numbered.
            Place::Code(start) => start as u64 + address / 8,
        };
        match (here, kind) {
            (Place::Code(start), R_BPF_64_64) => {
                let one = self.code.get_mut(start + offset / 8).ok_or("a relocation is past its code")?;
                one.constant = one.constant.wrapping_add(value as i64);
            }
            (Place::Code(start), R_BPF_64_32) => {
                let at = start + offset / 8;
                let one = self.code.get_mut(at).ok_or("a relocation is past its code")?;
                // The constant counts from the next instruction, and in front of the symbol's own.
                one.constant = one.constant.wrapping_add(value as i64).wrapping_sub(at as i64);
            }
            (Place::Data(start), R_BPF_64_ABS64) => {
                let bytes = self.data.get_mut(start..).and_then(|bytes| bytes.get_mut(offset..));
                let bytes =
                    bytes.and_then(|bytes| bytes.get_mut(..8)).ok_or("a relocation is past its data")?;
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                let added = match target {
                    Place::Data(_) => u64::from_le_bytes(word),
                    Place::Code(_) => u64::from_le_bytes(word) / 8,
                };
                bytes.copy_from_slice(&value.wrapping_add(added).to_le_bytes());
            }
            (_, other) => return Err(format!("it has a relocation of type {other}")),
        }
        Ok(())
    }

    /// The functions whose names begin so, with their entries.
    pub fn functions(&self, prefix: &str) -> impl Iterator<Item = (&str, usize)> {
        let all = self.functions.iter().map(|(name, entry)| (name.as_str(), *entry));
        all.filter_map(move |(name, entry)| Some((name.strip_prefix(prefix)?, entry)))
    }

    /// The data from a symbol on.
    pub fn at(&self, symbol: &str) -> Option<&[u8]> {
        self.data.get(*self.objects.get(symbol)?..)
    }

    /// The data from an address on, as data has it; `None`: there is none.
    pub fn address(&self, address: u64) -> Option<&[u8]> {
        if address >> 32 != DATA { None } else { self.data.get(address as u32 as usize..) }
    }

    /// Text at an address; of 0 it is empty.
    pub fn text(&self, address: u64) -> Option<&str> {
        if address == 0 {
            return Some("");
        }
        let bytes = self.address(address)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        str::from_utf8(&bytes[..end]).ok()
    }

    /// Calls a function, which leaves the data as they are.
    pub fn call<const N: usize>(&self, entry: usize, arguments: [Argument<'_>; N]) -> Result<u64, Fault> {
        machine::call(&self.code, entry, Bytes::Read(&self.data), arguments)
    }

    /// Calls a function with data of its own, and returns these.
    pub fn call_apart(&self, entry: usize) -> Result<Self, Fault> {
        let mut after = self.clone();
        machine::call(&self.code, entry, Bytes::Write(&mut after.data), [])?;
        Ok(after)
    }
}

fn instructions(bytes: &[u8]) -> Result<Vec<Instruction>, String> {
    let mut all = Vec::with_capacity(bytes.len() / 8);
    for one in bytes.chunks_exact(8) {
        if one[1] & 15 > 10 || one[1] >> 4 > 10 {
            return Err("it uses a register that there is not".to_owned());
        }
        all.push(Instruction {
            code: one[0],
            to: one[1] & 15,
            from: one[1] >> 4,
            offset: i16::from_le_bytes([one[2], one[3]]),
            constant: i32::from_le_bytes([one[4], one[5], one[6], one[7]]).into(),
        });
    }
    for at in 0..all.len().saturating_sub(1) {
        if all[at].code == WIDE {
            all[at].constant = all[at].constant & 0xffff_ffff | all[at + 1].constant << 32;
        }
    }
    Ok(all)
}
