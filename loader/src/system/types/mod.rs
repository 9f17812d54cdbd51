//! The kernel's type information (BTF): looked up by name, and the part of it that an object is fitted to.
//!
//! libbpf goes through all types of the kernel, a hundred thousand, for each name that it looks up and for each structure
//! of an object. Here they are gone through once, and libbpf is given an excerpt. Format: Documentation/bpf/btf.rst.

mod item;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::ops::Range;

use libbpf_sys::{BTF_KIND_PTR, BTF_KIND_STRUCT};

use item::{COUNT, HEAD, Type, word};

/// `BTF_MAGIC` and the version behind it.
const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// Bytes of the header.
const HEADER: u32 = 24;
/// Lists of ids that names are distributed among, a power of two.
const LISTS: usize = 1 << LIST_BITS;
const LIST_BITS: u32 = 14;

/// Types that were read. The first has the id 1; 0 is `void`.
#[derive(Default)]
pub(crate) struct Types {
    /// What was read, one after the other: it is looked at where it is, for the kernel's is five megabytes long.
    bytes: Vec<u8>,
    /// Where in `bytes` each type begins.
    starts: Vec<usize>,
    /// Names that were read.
    strings: Vec<Strings>,
    /// The first and the last id of each list, see [`list`]; 0: it has none.
    lists: Vec<(u32, u32)>,
    /// By id, the next one of its list; 0: there is none.
    next: Vec<u32>,
}

/// Names, each with a NUL at its end.
struct Strings {
    /// The offset by which types refer to the first byte.
    offset: usize,
    /// Where in [`Types::bytes`] they are.
    place: Range<usize>,
}

impl Types {
    /// Adds types: the kernel's first, and then a module's, whose ids and names go on where the kernel's end.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`], and nothing is added.
    pub fn add(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let bad = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let magic = bytes.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
        if magic != Some(MAGIC) || bytes.get(2) != Some(&VERSION) {
            return Err(bad("it does not begin as BTF of version 1 does"));
        }
        // Where the header says that a section begins and ends.
        let section = |at: usize| {
            let start = word(&bytes, 4)? as usize + word(&bytes, at)? as usize;
            let place = start..start + word(&bytes, at + 4)? as usize;
            bytes.get(place.clone()).map(|_| place)
        };
        let types = section(8).ok_or_else(|| bad("its types are cut off"))?;
        let strings = section(16).ok_or_else(|| bad("its names are cut off"))?;

        let (before, count) = (self.bytes.len(), self.starts.len());
        if let Err(why) = self.find_starts(&bytes, types, before) {
            self.starts.truncate(count);
            return Err(bad(why));
        }
        if before == 0 {
            self.bytes = bytes;
        } else {
            self.bytes.extend(bytes);
        }
        let offset = self.strings.last().map_or(0, |last| last.offset + last.place.len());
        self.strings.push(Strings { offset, place: before + strings.start..before + strings.end });
        self.enlist(count);
        Ok(())
    }

    /// Finds where types begin; what is before these bytes is so long.
    fn find_starts(&mut self, bytes: &[u8], types: Range<usize>, before: usize) -> Result<(), &'static str> {
        self.starts.reserve(types.len() / (4 * HEAD));
        let bytes = bytes.get(..types.end).unwrap_or_default();
        let mut start = types.start;
        while start < types.end {
            self.starts.push(before + start);
            let info = word(bytes, start + 4).ok_or("a type is cut off")?;
            start += 4 * item::words(info).ok_or("a type is of a kind that is not known")?;
        }
        if start == types.end { Ok(()) } else { Err("a type is cut off") }
    }

    /// Puts types that have a name on its list, those behind so many.
    fn enlist(&mut self, count: usize) {
        self.lists.resize(LISTS, (0, 0));
        self.next.resize(self.starts.len() + 1, 0);
        for (id, start) in (1..).zip(&self.starts).skip(count) {
            let offset = word(&self.bytes, *start).unwrap_or(0);
            // The first of all names is the empty one.
            if offset == 0 {
                continue;
            }
            let (first, last) = &mut self.lists[list(from(&self.bytes, &self.strings, offset))];
            if *last == 0 {
                *first = id;
            } else {
                self.next[*last as usize] = id;
            }
            *last = id;
        }
    }

    /// Whether there is a type, or a function, of this name.
    pub fn has(&self, name: &str) -> bool {
        self.ids(name).next().is_some()
    }

    /// Bytes of a struct; `None` if there is no such struct.
    pub fn size(&self, structure: &str) -> Option<usize> {
        self.structure(structure).map(|found| found.word(HEAD - 1) as usize)
    }

    /// Names of a struct's members; none if there is no such struct.
    pub fn members(&self, structure: &str) -> Vec<String> {
        let Some(found) = self.structure(structure) else { return Vec::new() };
        let names = found.names().skip(1).map(|place| self.string(found.word(place)));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// BTF of its own, of the types that have these names and of what those are made of. A struct that is behind a pointer
    /// has no members there unless it is one of them: CO-RE, which it is for, asks of it no more than its name. Ids are
    /// others, so `bpf_core_type_id_kernel` must not be asked of it.
    pub fn excerpt<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<u8> {
        let kept = self.reached(names.into_iter().flat_map(|name| self.ids(name)));
        let ids: BTreeMap<u32, u32> = kept.keys().copied().zip(1..).collect();
        let mut words = Vec::new();
        let mut strings = vec![0];
        for (id, whole) in kept {
            let Some(found) = self.shown(id, whole) else { continue };
            let start = words.len();
            words.extend(found.words());
            if found.is_composite() && !whole {
                words[start + 1] &= !COUNT;
            }
            for place in found.names() {
                let name = self.string(found.word(place));
                words[start + place] = if name.is_empty() { 0 } else { strings.len() as u32 };
                if !name.is_empty() {
                    strings.extend_from_slice(name);
                    strings.push(0);
                }
            }
            for place in found.types() {
                words[start + place] = ids.get(&found.word(place)).copied().unwrap_or(0);
            }
        }
        let (types, names) = (4 * words.len() as u32, strings.len() as u32);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([VERSION, 0]);
        bytes.extend([HEADER, 0, types, types, names].into_iter().chain(words).flat_map(u32::to_ne_bytes));
        bytes.extend(strings);
        bytes
    }

    /// Ids of all types that these are made of, and whether with their members.
    fn reached(&self, from: impl Iterator<Item = u32>) -> BTreeMap<u32, bool> {
        let mut reached: BTreeMap<u32, bool> = BTreeMap::new();
        let mut next: Vec<_> = from.map(|id| (id, true)).collect();
        while let Some((id, whole)) = next.pop() {
            let Some(found) = self.shown(id, whole) else { continue };
            let known = reached.get(&id).copied();
            if known.is_none_or(|before| whole && !before) {
                reached.insert(id, whole);
                let whole = whole && found.kind() != BTF_KIND_PTR;
                next.extend(found.types().map(|place| (found.word(place), whole)));
            }
        }
        reached
    }

    /// A type as an excerpt shows it; `None`: `void`, or no type.
    fn shown(&self, id: u32, whole: bool) -> Option<Type<'_>> {
        let found = self.get(id)?;
        Some(if found.is_composite() && !whole { found.head() } else { found })
    }

    fn structure(&self, name: &str) -> Option<Type<'_>> {
        self.ids(name).filter_map(|id| self.get(id)).find(|found| found.kind() == BTF_KIND_STRUCT)
    }

    fn get(&self, id: u32) -> Option<Type<'_>> {
        let start = *self.starts.get((id as usize).checked_sub(1)?)?;
        Type::at(self.bytes.get(start..)?)
    }

    /// Ids of all types of this name.
    fn ids(&self, name: &str) -> impl Iterator<Item = u32> {
        let first = self.lists.get(list(name.as_bytes())).map_or(0, |(first, _)| *first);
        let listed = |id: u32| Some(id).filter(|id| *id != 0);
        let ids = std::iter::successors(listed(first), move |id| listed(self.next[*id as usize]));
        ids.filter(|id| !name.is_empty() && self.is_called(*id, name.as_bytes()))
    }

    fn is_called(&self, id: u32, name: &[u8]) -> bool {
        let offset = self.starts.get(id as usize - 1).and_then(|start| word(&self.bytes, *start));
        let rest = from(&self.bytes, &self.strings, offset.unwrap_or(0)).strip_prefix(name);
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    fn string(&self, offset: u32) -> &[u8] {
        let from = from(&self.bytes, &self.strings, offset);
        CStr::from_bytes_until_nul(from).map_or(&[], CStr::to_bytes)
    }
}

/// Names from this offset on.
fn from<'a>(bytes: &'a [u8], strings: &[Strings], offset: u32) -> &'a [u8] {
    let offset = offset as usize;
    let found = strings.iter().rfind(|one| one.offset <= offset);
    let from = found.and_then(|one| bytes.get(one.place.clone())?.get(offset - one.offset..));
    from.unwrap_or_default()
}

/// The list that the id of this name is in, by its first eight bytes; what follows a NUL is not part of it.
fn list(name: &[u8]) -> usize {
    let first = name.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..name.len()].copy_from_slice(name);
        padded
    });
    let first = u64::from_le_bytes(first);
    // The lowest bit of these is the highest one of the first byte that is 0.
    let zeros = first.wrapping_sub(0x0101_0101_0101_0101) & !first & 0x8080_8080_8080_8080;
    let kept = if zeros == 0 { first } else { first & ((1 << (zeros.trailing_zeros() - 7)) - 1) };
    // Fibonacci hashing.
    (kept.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LIST_BITS)) as usize
}
